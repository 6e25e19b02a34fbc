//! The real server is killed, again and again, under load and at the worst moments; what its
//! clients were told before is what they find afterwards.
//!
//! `SESSIONPLANE_CRASHES` is the number of kills under load (16: every failpoint once, and some at
//! random), `SESSIONPLANE_SEED` replays the choices of a failed run (timing apart).
#![cfg(test)]

#[path = "crash/backups.rs"]
mod backups;
#[path = "crash/changes.rs"]
mod changes;
#[path = "crash/compactions.rs"]
mod compactions;
#[path = "crash/crowds.rs"]
mod crowds;
#[path = "crash/daemon.rs"]
mod daemon;
#[path = "crash/damages.rs"]
mod damages;
#[path = "crash/deletions.rs"]
mod deletions;
#[path = "crash/drains.rs"]
mod drains;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/ledger.rs"]
mod ledger;
#[path = "crash/load.rs"]
mod load;
#[path = "crash/panics.rs"]
mod panics;
#[path = "crash/power.rs"]
mod power;
#[cfg(target_os = "linux")]
#[path = "crash/processes.rs"]
mod processes;
#[path = "crash/starts.rs"]
mod starts;
#[path = "crash/state.rs"]
mod state;
#[path = "crash/stops.rs"]
mod stops;
#[path = "crash/tree.rs"]
mod tree;
#[path = "crash/upgrades.rs"]
mod upgrades;
#[path = "crash/verify.rs"]
mod verify;
#[cfg(target_os = "linux")]
#[path = "crash/worktrees.rs"]
mod worktrees;
