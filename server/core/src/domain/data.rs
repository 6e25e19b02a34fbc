//! Data that came beside an instruction, or in its place: a log, a file, the output of a program.
//!
//! What is inside: what is kept of it, and the mark that fences it off. What must never enter: how it
//! is shown to a model (`rendering`), or where its whole lies (`ports::artifact_store`).

use std::fmt;
use std::sync::Arc;

use super::artifact::ArtifactRef;
use super::provenance::Digest;

/// Most parts of data that one text may have beside it.
pub const MAX_DATA_PARTS: usize = 16;
/// All parts of one text together, in bytes, at most.
pub const MAX_DATA_BYTES: usize = 2 * 1024 * 1024;
/// Longest name of a part, in bytes.
pub const MAX_DATA_NAME_BYTES: usize = 256;
/// Longest media type of a part, in bytes.
pub const MAX_MEDIA_TYPE_BYTES: usize = 128;
/// Longest instruction that a configuration gives for data without one, in bytes.
pub const MAX_ON_FILE_BYTES: usize = 4096;
/// All parts of one text together, in bytes, as far as entries, events and the model carry them. What
/// is longer is there by its head and its tail, and its whole is an artifact.
pub const INLINE_DATA_BYTES: usize = 16 * 1024;

/// What a sender gave beside an instruction. Always untrusted, whoever the sender is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    parts: Vec<DataPart>,
    boundary: Boundary,
    on_file: Option<Arc<str>>,
}

/// One part: a file, a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPart {
    /// What its sender calls it; may be empty. Says nothing of where it lies.
    pub name: Arc<str>,
    /// What its sender says that it is, such as `text/plain`; may be empty.
    pub media_type: Arc<str>,
    /// Its whole length, in bytes.
    pub bytes: u64,
    /// The SHA-256 of the whole.
    pub sha256: Digest,
    /// What is carried of it.
    pub content: Content,
}

/// What entries, events and the model carry of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// All of it.
    Whole(Arc<[u8]>),
    /// Its ends, cut between characters where it is text.
    Cut {
        /// How it begins.
        head: Arc<[u8]>,
        /// How it ends.
        tail: Arc<[u8]>,
        /// All of it.
        artifact: ArtifactRef,
    },
}

impl Data {
    /// Parts, and what the configuration says to do with them if their sender did not. The mark of
    /// their fences is made of `random`, 128 fresh random bits, and occurs nowhere in what is carried
    /// of them. None if there are no parts.
    #[must_use]
    pub fn new(parts: Vec<DataPart>, on_file: Option<Arc<str>>, random: u128) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let boundary = Boundary::outside_of(&parts, random);
        Some(Self {
            parts,
            boundary,
            on_file,
        })
    }

    /// What was kept of one.
    ///
    /// None if that is none that [`Self::new`] made: without parts, or with a boundary that one of
    /// them contains.
    #[must_use]
    pub fn kept(parts: Vec<DataPart>, on_file: Option<Arc<str>>, boundary: &str) -> Option<Self> {
        let random = u128::from_str_radix(boundary, 16).ok()?;
        Self::new(parts, on_file, random).filter(|data| data.boundary.as_str() == boundary)
    }

    /// Its parts, at least one.
    #[must_use]
    pub fn parts(&self) -> &[DataPart] {
        &self.parts
    }

    /// What stands at both ends of each part, and in none of them.
    #[must_use]
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// The instruction of the configuration, where the sender gave none.
    #[must_use]
    pub fn on_file(&self) -> Option<&Arc<str>> {
        self.on_file.as_ref()
    }

    /// What is carried of all parts, in bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        self.parts.iter().map(|part| part.content.carried()).sum()
    }

    /// The whole lengths of all parts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The artifacts that hold what is not carried.
    pub fn artifacts(&self) -> impl Iterator<Item = &ArtifactRef> {
        self.parts.iter().filter_map(|part| part.content.artifact())
    }
}

impl Content {
    /// What is carried, in bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Whole(whole) => whole.len(),
            Self::Cut { head, tail, .. } => head.len() + tail.len(),
        }
    }

    /// Where the whole is, if it is not carried.
    #[must_use]
    pub fn artifact(&self) -> Option<&ArtifactRef> {
        match self {
            Self::Whole(_) => None,
            Self::Cut { artifact, .. } => Some(artifact),
        }
    }
}

/// The two ends of `whole` that together have at most `budget` bytes, as much from the one as from the
/// other. None if all of it fits.
#[must_use]
pub fn ends(whole: &[u8], budget: usize) -> Option<(&[u8], &[u8])> {
    if whole.len() <= budget {
        return None;
    }
    let half = budget / 2;
    // No more than the rest of one character: what is no text is cut anywhere.
    let starts = |at: usize| whole.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let head = (half.saturating_sub(3)..=half).rev().find(|at| starts(*at));
    let from = whole.len() - half;
    let tail = (from..=from + 3).find(|at| starts(*at));
    Some((
        &whole[..head.unwrap_or(half)],
        &whole[tail.unwrap_or(from).min(whole.len())..],
    ))
}

/// The mark of a fence: 32 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boundary(String);

impl Boundary {
    /// Drawn anew as long as what is fenced contains it: of any content that is at most as often as
    /// the content has bytes.
    fn outside_of(parts: &[DataPart], mut random: u128) -> Self {
        loop {
            let mark = format!("{random:032x}");
            if !parts.iter().any(|part| part.says(&mark)) {
                return Self(mark);
            }
            random = random.wrapping_add(1);
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DataPart {
    /// Whether a mark stands anywhere in what its sender chose.
    fn says(&self, mark: &str) -> bool {
        let within = |bytes: &[u8]| {
            bytes
                .windows(mark.len())
                .any(|window| window == mark.as_bytes())
        };
        let carried = match &self.content {
            Content::Whole(whole) => within(whole),
            Content::Cut { head, tail, .. } => within(head) || within(tail),
        };
        carried || within(self.name.as_bytes()) || within(self.media_type.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(content: &[u8]) -> DataPart {
        DataPart {
            name: "build.log".into(),
            media_type: "text/plain".into(),
            bytes: content.len() as u64,
            sha256: Digest([0; 32]),
            content: Content::Whole(content.into()),
        }
    }

    #[test]
    fn c58_a_boundary_that_the_data_says_is_drawn_anew() {
        let said = |random: u128| format!("x{random:032x}x");
        let both = said(7) + &said(8);
        let data = Data::new(vec![part(both.as_bytes())], None, 7).unwrap();
        assert_eq!(data.boundary().as_str(), format!("{:032x}", 9));
        assert_eq!(Data::new(Vec::new(), None, 7), None);
    }

    #[test]
    fn c58_what_is_read_back_has_the_boundary_that_it_was_given() {
        let data = Data::new(vec![part(b"a")], Some("Read it.".into()), 7).unwrap();
        let kept =
            |boundary: &str| Data::kept(data.parts().to_vec(), data.on_file().cloned(), boundary);
        assert_eq!(kept(data.boundary().as_str()), Some(data.clone()));
        assert_eq!(kept("7"), None);
        assert_eq!(kept("no digits"), None);
        let inside = vec![part(data.boundary().as_str().as_bytes())];
        assert_eq!(Data::kept(inside, None, data.boundary().as_str()), None);
    }

    proptest! {
        #[test]
        fn b41_ends_are_cut_between_characters(text in "\\PC{0,60}", budget in 0_usize..80) {
            match ends(text.as_bytes(), budget) {
                None => prop_assert!(text.len() <= budget),
                Some((head, tail)) => {
                    prop_assert!(head.len() + tail.len() <= budget);
                    prop_assert!(text.starts_with(std::str::from_utf8(head).unwrap()));
                    prop_assert!(text.ends_with(std::str::from_utf8(tail).unwrap()));
                }
            }
        }

        #[test]
        fn ends_of_any_bytes_are_ends(bytes in prop::collection::vec(any::<u8>(), 0..60), budget in 0_usize..80) {
            if let Some((head, tail)) = ends(&bytes, budget) {
                prop_assert!(head.len() + tail.len() <= budget);
                prop_assert!(bytes.starts_with(head) && bytes.ends_with(tail));
                prop_assert!(head.len() + tail.len() + 8 >= budget);
            }
        }
    }
}
