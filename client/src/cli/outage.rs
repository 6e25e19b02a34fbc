//! For how long no server has answered, for the words that a person waits with. Values only.

use tokio::time::Instant;

use crate::target::Target;

/// A lost connection, from its loss until somebody answers again.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
    /// Somebody has answered once: before that nothing was lost.
    met: bool,
}

impl Outage {
    /// The connection was lost, or could not be made again.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The same; what is the matter if that is news. Nothing of a connection that there never was:
    /// whoever tries to make it tells what came of that.
    pub(crate) fn begun(&mut self, target: &Target, now: Instant) -> Option<String> {
        let is_news = !self.is_on();
        self.begin(now);
        self.words(target, now).filter(|_| is_news && self.met)
    }

    /// Somebody has answered.
    pub(crate) fn end(&mut self) {
        self.since = None;
        self.met = true;
    }

    /// The same; the words for it if that is news.
    pub(crate) fn ended(&mut self, target: &Target) -> Option<String> {
        let is_news = self.is_on() && self.met;
        self.end();
        is_news.then(|| format!("connected again to {target}"))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// What is the matter, for how long, and what to do; none while there is a connection.
    pub(crate) fn words(&self, target: &Target, now: Instant) -> Option<String> {
        let seconds = now.saturating_duration_since(self.since?).as_secs();
        let since = match seconds {
            0 => "the connection is lost".to_owned(),
            seconds => format!("unreachable for {seconds} s"),
        };
        // What can be done comes first: a narrow terminal cuts the end off.
        Some(format!(
            "{since}; start it again, or Ctrl-C to leave: {target}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::instant;

    #[test]
    fn an_outage_counts_from_the_first_loss_until_an_answer() {
        let target: Target = "127.0.0.1:1".parse().unwrap();
        let (begun, mut outage) = (instant(), Outage::default());
        let after = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(outage.words(&target, begun), None);
        assert_eq!(outage.begun(&target, begun), None, "there never was one");
        assert_eq!(outage.ended(&target), None);
        let lost = outage.begun(&target, begun).unwrap();
        assert!(
            lost.starts_with("the connection is lost; start it"),
            "{lost}"
        );
        outage.begin(after(5));
        let words = outage.words(&target, after(83)).unwrap();
        assert_eq!(
            words,
            "unreachable for 83 s; start it again, or Ctrl-C to leave: http://127.0.0.1:1"
        );
        assert_eq!(outage.begun(&target, after(83)), None, "no news");
        let again = outage.ended(&target).unwrap();
        assert_eq!(again, "connected again to http://127.0.0.1:1");
        assert!(!outage.is_on());
        assert_eq!(outage.ended(&target), None, "no news");
        assert!(outage.begun(&target, after(90)).is_some());
    }
}
