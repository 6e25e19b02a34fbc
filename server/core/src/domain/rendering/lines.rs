//! Lines that begin with a mark, so that none of them can be taken for one that the server wrote.

use super::visible;

/// Adds a line feed and the content, made visible, each of whose lines begins with `mark`. A content
/// without a byte has one line.
pub(super) fn mark(out: &mut String, content: &[u8], mark: &str) {
    for line in content.split(|byte| *byte == b'\n') {
        out.push('\n');
        out.push_str(mark);
        visible::push(out, line);
    }
}

/// The content of lines that all begin with `mark`, the first after a line feed; none if one does not.
pub(super) fn unmarked(lines: &str, mark: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut first = true;
    for line in lines.strip_prefix('\n')?.split('\n') {
        if !std::mem::take(&mut first) {
            content.push(b'\n');
        }
        content.extend(visible::original(line.strip_prefix(mark)?));
    }
    Some(content)
}
