//! What a verb works with: a client, the caller's request id, and the way to wait with patience.

use std::future::Future;
use std::time::Duration;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::RequestId;

use super::args::Globals;
use super::credentials;
use super::exit::Stop;
use super::hint::{self, About, Effect};
use super::interrupt::Interrupts;
use super::screen::Screen;
use crate::clock::mint_request_id;
use crate::connection::Client;

/// After so long a person is told that something is being waited for.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// What a verb works with.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) globals: Globals,
    /// Names the one logical call of this command.
    pub(crate) request_id: RequestId,
    /// Where the token came from, or was looked for, in words.
    pub(crate) token: String,
    /// Longest wait for an answer.
    pub(crate) patience: Duration,
}

impl Context {
    /// Makes the client; connects at the first call.
    ///
    /// # Errors
    /// When the token or the address cannot be used.
    pub(crate) fn new(globals: Globals) -> Result<Self, Stop> {
        let found = credentials::find(&globals)?;
        let patience = found.options.deadline;
        let client =
            Client::connect(found.options).map_err(|error| credentials::refusal(&error))?;
        let request_id = globals.request_id.clone().unwrap_or_else(mint_request_id);
        Ok(Self {
            client,
            globals,
            request_id,
            token: found.token,
            patience,
        })
    }

    /// Options for the command's one logical call.
    pub(crate) fn call(&self) -> CallOptions {
        CallOptions {
            request_id: Some(self.request_id.clone()),
            deadline: None,
        }
    }

    /// Longest wait for the beginning of a stream that is taken up again: however long a person
    /// wants to wait, a server that hangs is worth another attempt sooner.
    pub(crate) fn opening(&self) -> Duration {
        self.patience.min(credentials::PATIENCE)
    }

    /// What a call that got no answer means for a person.
    pub(crate) fn stop<'a>(
        &self,
        error: CallError,
        about: impl Into<About<'a>>,
        effect: Effect,
    ) -> Stop {
        hint::refusal(error, about.into(), effect, self)
    }

    /// Waits for a call, telling a person when it takes long, and until Ctrl-C.
    pub(crate) async fn patiently<T>(
        &self,
        screen: &mut Screen,
        effect: Effect,
        call: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let mut call = std::pin::pin!(call);
        let mut interrupts = Interrupts::new();
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                answer = &mut call => return Ok(answer),
                () = interrupts.pressed() => return Err(hint::interrupted(effect, self)),
                () = tokio::time::sleep(IMPATIENCE) => {
                    waited += IMPATIENCE;
                    let seconds = waited.as_secs();
                    let target = self.client.target();
                    screen.status(&format!("waiting for {target}… {seconds} s"))?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Arguments;

    fn context(words: &[&str]) -> Context {
        let words = ["sessionctl", "--address", "127.0.0.1:1"]
            .iter()
            .chain(words);
        let arguments = Arguments::try_parse_from(words.chain(&["version"])).unwrap();
        Context::new(arguments.globals).unwrap_or_else(|stop| panic!("{stop:?}"))
    }

    #[tokio::test]
    async fn a_stream_is_not_waited_for_as_long_as_an_answer_may_be() {
        let opening = |time| context(&["--timeout", time]).opening();
        assert_eq!(opening("2h"), Duration::from_secs(15));
        assert_eq!(opening("300ms"), Duration::from_millis(300));
    }
}
