//! Sections, in the place of a setting.

use super::*;

#[test]
fn a_section_is_explained_by_its_settings_and_never_taken_for_its_own_misspelling() {
    let (settings, _) = with("[limits]\nring_events = 100", &[], &[]);
    let told = explain_one(&settings, "limits").unwrap();
    assert!(told.lines().count() > 5, "{told}");
    assert!(
        told.lines().all(|line| line.starts_with("limits.")),
        "{told}"
    );
    assert!(told.contains("limits.ring_events = 100 "), "{told}");
    assert_eq!(explain_one(&settings, "limits.").unwrap(), told);
    // One whose settings have names, before and after there is a name.
    let told = explain_one(&settings, "agents").unwrap();
    assert!(told.contains("nothing is set in [agents]"), "{told}");
    assert!(told.contains("agents.NAME."), "{told}");
    let (settings, _) = with("[agents.one]\nengine = \"scripted\"", &[], &[]);
    for section in ["agents", "agents.one"] {
        let told = explain_one(&settings, section).unwrap();
        assert!(told.contains("agents.one.engine = "), "{told}");
    }
    let told = with("", &[], &[("limits", "300")]).1;
    let expected = "--set: limits is a section; name a setting in it, for example limits.";
    assert!(told[0].starts_with(expected), "{told:?}");
}
