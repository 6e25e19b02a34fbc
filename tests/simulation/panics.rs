//! Panics of this thread. The server catches those of its sessions and goes on; here they are bugs.

use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

static WATCH: Once = Once::new();

/// How many there were in this thread since it first asked.
pub(crate) fn seen() -> u64 {
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            SEEN.with(|seen| seen.set(seen.get() + 1));
            before(info);
        }));
    });
    SEEN.with(Cell::get)
}
