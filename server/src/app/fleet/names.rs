//! Names that no session may be given, because a command or a page means something else by them.
//!
//! They are refused where a name is given, and not where a stored one is read: a session that has one
//! keeps it.

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::SessionName;

/// The names.
const RESERVED: [&str; 15] = [
    "agent", "agents", "all", "any", "fleet", "me", "new", "none", "null", "self", "server",
    "session", "sessions", "system", "this",
];

/// Refuses a reserved name.
pub(crate) fn check_name(field: &str, name: Option<&SessionName>) -> Result<(), CallError> {
    match name.map(SessionName::as_str) {
        Some(name) if RESERVED.contains(&name) => {
            let told = format!("{name:?} is reserved; give another name, such as \"{name}-1\"");
            Err(CallError::invalid(field, told))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c60_a_reserved_name_is_refused_with_its_field_and_a_way_out() {
        for name in RESERVED {
            let name = SessionName::parse(name).unwrap();
            let error = check_name("name", Some(&name)).unwrap_err();
            assert_eq!(error.violations[0].field, "name");
            assert!(error.message.contains("-1"), "{error}");
        }
        let page = include_str!("../../../../docs/fleet.md");
        let told = page
            .lines()
            .find(|line| line.contains("names are reserved"));
        for name in RESERVED {
            assert!(
                told.is_some_and(|told| told.contains(&format!("`{name}`"))),
                "{name}"
            );
        }
        for name in ["alls", "new-1", "my-session"] {
            let name = SessionName::parse(name).unwrap();
            assert_eq!(check_name("name", Some(&name)), Ok(()));
        }
        assert_eq!(check_name("name", None), Ok(()));
    }
}
