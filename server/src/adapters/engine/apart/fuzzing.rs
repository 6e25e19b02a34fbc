//! A line of an agent's process.

/// It is a report or none.
pub(crate) fn report(bytes: &[u8]) {
    let _report_or_none = super::halves::read(bytes);
}
