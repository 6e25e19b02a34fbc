//! What an agent does with data.

use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::domain::withholding::Withheld;

use super::*;

#[test]
fn c58_an_agent_goes_without_tools_after_data_and_is_told_what_to_do_with_it() {
    let told = |keys: &str| {
        let settings = right(&format!("[agents.one]\nengine = \"scripted\"\n{keys}"));
        settings.with_data(&AgentName::parse("one").unwrap())
    };
    assert_eq!(told(""), (Withheld::Nothing, None));
    let (withheld, on_file) =
        told("withhold_after_untrusted = [\"sh\"]\non_file = \"Look for errors.\"");
    assert!(withheld.withholds("sh") && !withheld.withholds("read-file"));
    assert_eq!(on_file.as_deref(), Some("Look for errors."));
    let (all, _) = told("withhold_after_untrusted = [\"all\"]");
    assert_eq!(all, Withheld::All);
    let much = format!("on_file = \"{}\"", "x".repeat(4097));
    for wrong in ["on_file = \"\"", "withhold_after_untrusted = [\"\"]", &much] {
        let (_, problems) = read(&format!("[agents.one]\nengine = \"scripted\"\n{wrong}"));
        let [problem] = &problems[..] else {
            panic!("not one: {problems:?}");
        };
        let key = wrong.split(' ').next().unwrap();
        assert!(problem.contains(&format!("agents.one.{key}")), "{problem}");
    }
}
