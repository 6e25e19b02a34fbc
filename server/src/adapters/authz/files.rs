//! Follows the files that policies are in. What is wrong leaves the old policies in use.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::ports::clock::Clock;
use tokio::sync::Notify;

use super::authorizer::CedarAuthorizer;
use super::source::{PolicyError, PolicyPaths, PolicySource, digest};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The files, and who decides by them.
pub struct PolicyFiles {
    paths: PolicyPaths,
    clock: Arc<dyn Clock>,
    authorizer: Arc<CedarAuthorizer>,
    seen: [u8; 32],
}

impl PolicyFiles {
    /// Follows the files, of which `sources` were read last.
    #[must_use]
    pub fn new(
        paths: PolicyPaths,
        sources: &[PolicySource],
        authorizer: Arc<CedarAuthorizer>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            paths,
            clock,
            authorizer,
            seen: digest(sources),
        }
    }

    /// Follows the files for as long as it is polled; `hurry` makes it look at once.
    pub async fn follow(mut self, hurry: Arc<Notify>) {
        if self.paths.is_fixed() {
            return std::future::pending().await;
        }
        let mut refused = None;
        loop {
            let asked = tokio::select! {
                () = self.clock.sleep(LOOK_EVERY) => false,
                () = hurry.notified() => true,
            };
            let (paths, seen, authorizer) =
                (self.paths.clone(), self.seen, self.authorizer.clone());
            // Neither a file system that hangs nor a large set keeps the server's threads.
            let looked = tokio::task::spawn_blocking(move || look(&paths, seen, &authorizer)).await;
            let Ok((found, taken)) = looked else { continue };
            let told = refused == Some(found);
            match taken {
                Ok(false) => {
                    refused = None;
                    if asked {
                        tracing::info!("the policies are as they were");
                    }
                }
                Ok(true) => {
                    (refused, self.seen) = (None, found.unwrap_or(self.seen));
                    let count = self.authorizer.count();
                    tracing::info!(count, "the policies were read again, and hold from now on");
                }
                // Told once for each state of the files, and whenever somebody asks.
                Err(_) if told && !asked => {}
                Err(error) => {
                    refused = Some(found);
                    tracing::error!(
                        %error,
                        "the new policies are not used; those from before stay in use"
                    );
                }
            }
        }
    }
}

/// Reads the files; takes them if they are others than before. Which they are, where they could be read.
fn look(
    paths: &PolicyPaths,
    seen: [u8; 32],
    authorizer: &CedarAuthorizer,
) -> (Option<[u8; 32]>, Result<bool, PolicyError>) {
    let sources = match paths.read() {
        Ok(sources) => sources,
        Err(error) => return (None, Err(error)),
    };
    let found = digest(&sources);
    if found == seen {
        return (Some(found), Ok(false));
    }
    (Some(found), authorizer.replace(&sources).map(|()| true))
}
