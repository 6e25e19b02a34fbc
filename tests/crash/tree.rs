//! A conversation's entries as a tree: what is chosen at a place, and which places lie behind it.
//!
//! What must never enter: a call.

use std::collections::BTreeMap;

use sessionplane_client::domain::command::Command;
use sessionplane_client::domain::entry::{Entry, EntryBody};
use sessionplane_client::domain::settings::SettingsOverride;

/// Entries by number.
pub(crate) type Entries = BTreeMap<u64, Entry>;

/// The way from an entry to the first one, itself included.
pub(crate) fn path(entries: &Entries, from: Option<u64>) -> impl Iterator<Item = &Entry> {
    let parent = |entry: &&Entry| entry.parent.and_then(|id| entries.get(&id.seq));
    std::iter::successors(from.and_then(|seq| entries.get(&seq)), parent)
}

/// What is chosen at a place: what the newest settings on the way to it say.
pub(crate) fn chosen_at(entries: &Entries, leaf: Option<u64>) -> SettingsOverride {
    let mut settings = path(entries, leaf).filter_map(|entry| match &entry.body {
        EntryBody::Settings { chosen } => Some(chosen.clone()),
        _ => None,
    });
    settings.next().unwrap_or_default()
}

/// What is chosen once a command was accepted; nothing if it chooses nothing.
pub(crate) fn after(
    command: &Command,
    before: &SettingsOverride,
    entries: &Entries,
) -> Option<SettingsOverride> {
    let before = before.clone();
    match command {
        Command::SetModel { model } => Some(SettingsOverride {
            model: model.clone(),
            ..before
        }),
        Command::SetThinking { level } => Some(SettingsOverride {
            thinking_level: level.clone(),
            ..before
        }),
        Command::Navigate { entry } => Some(chosen_at(entries, Some(entry.seq))),
        _ => None,
    }
}
