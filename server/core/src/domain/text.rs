//! Keeping text inside bounds without ever cutting a character in two.

/// The last `max` bytes of a text, moved up to a character boundary, and how many bytes that
/// leaves out.
#[must_use]
pub fn tail(text: &str, max: usize) -> (&str, u64) {
    if text.len() <= max {
        return (text, 0);
    }
    let mut start = text.len() - max;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    (&text[start..], start as u64)
}

/// The first `max` bytes of a text, moved down to a character boundary.
#[must_use]
pub fn head(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text that keeps its end when it outgrows a bound, and says how much went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BoundedText {
    /// What was kept: the whole, or the tail.
    pub text: String,
    /// Bytes left out before [`Self::text`].
    pub omitted_bytes: u64,
}

impl BoundedText {
    /// Keeps at most the last `max` bytes of `text`.
    #[must_use]
    pub fn new(text: &str, max: usize) -> Self {
        let (kept, omitted_bytes) = tail(text, max);
        Self {
            text: kept.to_owned(),
            omitted_bytes,
        }
    }
    /// Narrows further, adding to what was left out before.
    #[must_use]
    pub fn narrowed(&self, max: usize) -> Self {
        let (kept, omitted) = tail(&self.text, max);
        Self {
            text: kept.to_owned(),
            omitted_bytes: self.omitted_bytes + omitted,
        }
    }
    /// Appends, dropping from the front what no longer fits `max`. Amortised: the front is cut
    /// only when twice the bound is reached, so a stream of deltas costs linear time.
    pub fn push(&mut self, more: &str, max: usize) {
        self.text.push_str(more);
        if self.text.len() > max.saturating_mul(2) {
            *self = self.narrowed(max);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn b41_a_cut_is_valid_text_at_every_offset(text in "\\PC{0,40}", max in 0_usize..60) {
            let (kept, omitted) = tail(&text, max);
            prop_assert!(kept.len() <= max);
            prop_assert_eq!(omitted + kept.len() as u64, text.len() as u64);
            prop_assert!(head(&text, max).len() <= max);
            prop_assert!(text.starts_with(head(&text, max)));
        }

        #[test]
        fn pushing_in_pieces_loses_only_from_the_front(pieces in prop::collection::vec("\\PC{0,12}", 0..30), max in 1_usize..40) {
            let whole: String = pieces.concat();
            let mut bounded = BoundedText::default();
            for piece in &pieces {
                bounded.push(piece, max);
            }
            prop_assert!(whole.ends_with(&bounded.text));
            prop_assert_eq!(bounded.omitted_bytes + bounded.text.len() as u64, whole.len() as u64);
            prop_assert!(bounded.text.len() <= 2 * max);
        }
    }
}
