//! The groups that the default set names, and which one a principal is in unless its configuration says.

use sessionplane_core::domain::access::PrincipalKind;

/// A group that the default set allows something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everything.
    Admin,
    /// Everything but to administer.
    Operator,
    /// To look on.
    Observer,
    /// To send messages to the sessions that accept them.
    Ci,
}

impl Role {
    /// Every role there is, the mightiest first.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Operator, Self::Observer, Self::Ci];

    /// The group that has it.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Observer => "observer",
            Self::Ci => "ci",
        }
    }

    /// The group of a principal for which none is configured. A program that is itself driven by a
    /// model looks on until somebody says that it may do more.
    #[must_use]
    pub fn default_of(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::Human | PrincipalKind::Service => Self::Operator,
            PrincipalKind::Agent => Self::Observer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_looks_on_unless_somebody_says_that_it_may_do_more() {
        let default = Role::default_of;
        assert_eq!(default(PrincipalKind::Human), Role::Operator);
        assert_eq!(default(PrincipalKind::Service), Role::Operator);
        assert_eq!(default(PrincipalKind::Agent), Role::Observer);
    }
}
