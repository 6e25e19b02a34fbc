//! Deltas: how one object is made of another.

use super::GitError;

const DAMAGED: GitError = GitError::Damaged("delta");

/// What a delta makes of its base, of at most so many bytes.
pub(super) fn apply(base: &[u8], delta: &[u8], most: usize) -> Result<Vec<u8>, GitError> {
    let mut delta = delta;
    if size(&mut delta)? != base.len() {
        return Err(DAMAGED);
    }
    let length = size(&mut delta)?;
    if length > most {
        return Err(GitError::TooLarge("object"));
    }
    let mut made = Vec::new();
    while let Some(code) = byte(&mut delta) {
        let piece = if code & 0x80 != 0 {
            let from = number(&mut delta, code, 4)?;
            let count = match number(&mut delta, code >> 4, 3)? {
                0 => 0x1_0000,
                count => count,
            };
            let to = from.checked_add(count).ok_or(DAMAGED)?;
            base.get(from..to)
        } else {
            let count = usize::from(code);
            let piece = delta.get(..count).filter(|_| count > 0);
            delta = delta.get(count..).unwrap_or_default();
            piece
        };
        let piece = piece.ok_or(DAMAGED)?;
        if made.len() + piece.len() > length {
            return Err(DAMAGED);
        }
        made.extend_from_slice(piece);
    }
    if made.len() == length {
        Ok(made)
    } else {
        Err(DAMAGED)
    }
}

fn byte(delta: &mut &[u8]) -> Option<u8> {
    let (first, rest) = delta.split_first()?;
    *delta = rest;
    Some(*first)
}

/// A size, seven bits a byte.
fn size(delta: &mut &[u8]) -> Result<usize, GitError> {
    let mut size = 0;
    for shift in (0..usize::BITS - 7).step_by(7) {
        let next = byte(delta).ok_or(DAMAGED)?;
        size |= usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(size);
        }
    }
    Err(DAMAGED)
}

/// A number of which a code's lowest bits say which bytes there are.
fn number(delta: &mut &[u8], code: u8, bytes: u32) -> Result<usize, GitError> {
    let mut number = 0;
    for at in 0..bytes {
        if code & (1 << at) != 0 {
            number |= usize::from(byte(delta).ok_or(DAMAGED)?) << (8 * at);
        }
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_and_inserts() {
        let base = b"the harbour gate";
        // Sizes 16 and 12; copy 4 from 0, insert "red ", copy 4 from 12.
        let delta = b"\x10\x0c\x90\x04\x04red \x91\x0c\x04";
        assert_eq!(apply(base, delta, 100).as_deref(), Ok(&b"the red gate"[..]));
        assert_eq!(apply(base, delta, 11), Err(GitError::TooLarge("object")));
    }

    #[test]
    fn a_delta_that_is_damaged_is_told() {
        let base = b"the harbour gate";
        let good = b"\x10\x0c\x90\x04\x04red \x91\x0c\x04".to_vec();
        for at in 0..good.len() {
            assert!(apply(base, &good[..at], 100).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut odd = good.clone();
                odd[at] ^= 1 << bit;
                // Whatever it makes, it makes no more than it may.
                let made = apply(base, &odd, 100).unwrap_or_default();
                assert!(made.len() <= 100);
            }
        }
        assert_eq!(apply(base, b"\x10\x01\0", 9), Err(DAMAGED));
    }
}
