//! A workspace folder as one value: what may be read of the outside world goes through it.
//!
//! What is inside: the folder's descriptor, opened once, and the few ways to look beneath it: open
//! a file, list a folder, walk the whole, resolve a path that a person typed, a boundary around a
//! folder beneath, and, where the folder was given to work in, making and removing things in it. What
//! must never enter: a path that is looked up from anywhere but that descriptor, a write into what is
//! there already, an opinion about which files are worth reading.
//!
//! # What is promised
//! - **Nothing leads out.** Every step of a path is one plain name beneath a descriptor that is
//!   held, and no step follows a link: with `openat2` the kernel is told so (`RESOLVE_BENEATH`,
//!   `NO_SYMLINKS`, `NO_MAGICLINKS`, `NO_XDEV`), without it `O_NOFOLLOW` and a look at the mount do.
//!   A link is resolved beforehand, within the folder, and its target is then opened in the same way:
//!   what is swapped in between is refused, or is itself inside.
//! - **What is judged is what was opened.** Kind, mount and whether it is hidden are asked of the open
//!   descriptor, by device and inode: another spelling, another case or another link is the same file.
//! - **Nothing waits.** Only regular files are read; a pipe, a device or a socket is refused, and
//!   opened without waiting if it comes in between. Every read and every listing has a bound.
//! - **The folder is the one that was opened.** What takes its place under its path is not seen.
//!   Once it was removed, everything is refused as gone.
//!
//! What is mounted inside is not part of the folder. A hard link is: it *is* the file, and nothing
//! tells where else it has a name. Whoever could link it there could read it (`protected_hardlinks`).
//! But for the files of a hidden folder, which are few: what has several names is compared with
//! them. See decision 0032.

mod beneath;
mod exactly;
mod file;
mod grounds;
mod hidden;
mod ignored;
mod list;
mod refusal;
mod removal;
mod root;
mod step;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod walk;
mod workplace;

pub use exactly::{About, Folder};
pub use file::OpenFile;
pub use grounds::{Grounds, Spot, directory};
pub use list::{Entry, Kind, Listed};
pub use refusal::Refusal;
pub use removal::{remove_all, remove_some};
pub use root::{Access, Boundary, Found, Identity};
pub use walk::{Limits, Taste, Walked, WalkedFile};
pub use workplace::{Held, Made, Workplace};
