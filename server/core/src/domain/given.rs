//! What a sender says of a text and gives beside it. Nothing of it raises what a credential allows.

use std::sync::Arc;

use super::provenance::Trust;

/// What came with a text, besides its words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// The client's statement that the text was entered at a terminal or editor. It counts only with
    /// the credential of a person that allows it.
    pub typed: bool,
    /// Less trust than the credential would give. [`Trust::Untrusted`] makes data of the text itself.
    pub at_most: Option<Trust>,
    /// Data, in the order in which it is shown. With it, the text may be empty.
    pub data: Arc<[GivenData]>,
}

/// A part of data, whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenData {
    /// What its sender calls it, at most 256 bytes; may be empty.
    pub name: Arc<str>,
    /// What its sender says that it is, at most 128 bytes of printable ASCII; may be empty.
    pub media_type: Arc<str>,
    /// The content, at least one byte.
    pub content: Arc<[u8]>,
}

impl Given {
    /// A text that was entered at a terminal or editor.
    #[must_use]
    pub fn typed() -> Self {
        Self {
            typed: true,
            ..Self::default()
        }
    }

    /// The trust of the text, with a credential of this ceiling, which is that of a person or not.
    #[must_use]
    pub fn trust(&self, ceiling: Trust, is_human: bool) -> Trust {
        let stated = if self.typed && is_human {
            Trust::Typed
        } else {
            Trust::Relayed
        };
        ceiling.min(stated).min(self.at_most.unwrap_or(stated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Trust; 3] = [Trust::Untrusted, Trust::Relayed, Trust::Typed];

    #[test]
    fn c57_typed_needs_a_person_with_that_ceiling_and_the_statement() {
        for ceiling in ALL {
            for is_human in [false, true] {
                for typed in [false, true] {
                    let given = Given {
                        typed,
                        ..Given::default()
                    };
                    let is_typed = given.trust(ceiling, is_human) == Trust::Typed;
                    assert_eq!(is_typed, ceiling == Trust::Typed && is_human && typed);
                }
            }
        }
    }

    #[test]
    fn c57_c59_a_call_may_only_lower_trust() {
        for ceiling in ALL {
            for at_most in ALL {
                for typed in [false, true] {
                    let given = Given {
                        typed,
                        at_most: Some(at_most),
                        data: Arc::default(),
                    };
                    let trust = given.trust(ceiling, true);
                    let unlowered = Given {
                        typed,
                        ..Given::default()
                    }
                    .trust(ceiling, true);
                    assert!(trust <= ceiling && trust <= at_most);
                    assert_eq!(trust, unlowered.min(at_most));
                }
            }
        }
    }
}
