//! A client that changes a session between its runs: model and level, where the conversation goes on
//! from, compactions. The only one that does, one change at a time, so that what was acknowledged
//! last is what must hold.

use std::time::Duration;

use rand::RngExt as _;
use sessionplane_client::domain::command::Command;
use tokio::time::sleep;

use crate::load::{Caller, Gone};

impl Caller {
    /// Changes until the server is gone.
    pub(crate) async fn change(mut self) {
        while self.change_once().await.is_ok() {
            // The load's own pace, not a wait for something.
            sleep(Duration::from_millis(self.rng.random_range(0..6))).await;
        }
    }

    async fn change_once(&mut self) -> Result<(), Gone> {
        let pick = self.rng.random_range(0..3);
        match self.rng.random_range(0..10) {
            0..3 => {
                let model = [None, Some("scripted"), Some("scripted-thinking")][pick];
                let model = model.map(str::to_owned);
                self.dispatch(|_| Command::SetModel { model }).await
            }
            3..5 => {
                let level = [None, Some("low"), Some("high")][pick].map(str::to_owned);
                self.dispatch(|_| Command::SetThinking { level }).await
            }
            5..8 => self.navigate().await,
            _ => {
                let delay = 10 * pick;
                self.dispatch(|marker| Command::Compact {
                    instructions: Some(instructions(marker, delay).into()),
                })
                .await
            }
        }
    }

    async fn navigate(&mut self) -> Result<(), Gone> {
        let known = {
            let ledger = self.session.lock();
            let entries: Vec<_> = ledger.entries.values().map(|entry| entry.id).collect();
            entries
        };
        if known.is_empty() {
            return Ok(());
        }
        let entry = known[self.rng.random_range(0..known.len())];
        self.dispatch(|_| Command::Navigate { entry }).await
    }
}

/// A compaction that takes a while; its summary is [`summary`].
pub(crate) fn instructions(marker: &str, delay: usize) -> String {
    let summary = summary(marker);
    format!("wait {delay}ms\nsay \"{summary}\"")
}

/// The whole summary of a compaction.
pub(crate) fn summary(marker: &str) -> String {
    format!("in short {marker}, as far as we came")
}
