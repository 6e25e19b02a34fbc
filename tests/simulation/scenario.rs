//! Programs for the scripted engine, drawn from chance.

use crate::rng::Rng;

/// What a program is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A prompt.
    Prompt,
    /// A steer or a follow-up: it never ends the run under the prompt's feet.
    Input,
}

/// Draws programs. Questions have names that nothing else in the world has.
pub(crate) struct Author {
    rng: Rng,
    questions: u64,
    name: String,
}

impl Author {
    pub(crate) fn new(name: String, rng: Rng) -> Self {
        Self {
            rng,
            questions: 0,
            name,
        }
    }

    /// A program, or now and then plain words.
    pub(crate) fn write(&mut self, kind: Kind) -> String {
        if self.rng.one_in(6) {
            return format!("plain words {}", self.rng.below(1000));
        }
        let mut lines = vec!["think \"hm\"".to_owned()];
        for _ in 0..=self.rng.below(6) {
            let line = self.line();
            lines.push(line);
        }
        if self.rng.one_in(3) {
            self.ask(&mut lines);
        }
        if kind == Kind::Prompt {
            let end = match self.rng.below(24) {
                0 => "crash",
                1 => "hang",
                2 => "fail overloaded \"no more\" retryable",
                3 => "wait-steer",
                4 => "slow 30ms",
                5 => "stop",
                _ => "say \"done\"",
            };
            lines.push(end.to_owned());
        }
        lines.join("\n")
    }

    /// What a compaction is asked for.
    pub(crate) fn compaction(&mut self) -> Option<String> {
        let text = match self.rng.below(8) {
            0 => return None,
            1 => "fail no_context \"it is too short\"".to_owned(),
            2 => "crash".to_owned(),
            3 => "hang".to_owned(),
            4 => "stop".to_owned(),
            5 => format!("compact \"kept\" after {}ms kept 2", self.rng.below(400)),
            6 => format!("wait {}ms\nsay \"a summary\"", self.rng.below(900)),
            _ => "what matters".to_owned(),
        };
        Some(text)
    }

    fn line(&mut self) -> String {
        let rng = &mut self.rng;
        match rng.below(16) {
            0..=2 => format!("say-words {} every {}ms", 1 + rng.below(6), rng.below(40)),
            3 => format!("say-words {} every 20ms by 8", 8 * (1 + rng.below(4))),
            4 => format!(
                "tool search {{\"q\": 1}} progress {} every {}ms",
                rng.below(6),
                rng.below(80)
            ),
            5 => "tool grep output \"found\" fail".to_owned(),
            6 => "tool-big 40KiB".to_owned(),
            7 => "big 20KiB".to_owned(),
            8 => "turn".to_owned(),
            9 => "usage in=10 out=3 cost=0.5".to_owned(),
            10 => format!("retry 1 of 3 after {}ms \"rate limited\"", rng.below(500)),
            11 => format!("compact \"short\" after {}ms kept 1", rng.below(200)),
            12 => "compact \"\" fail no_context \"it is too short\"".to_owned(),
            13 => format!("wait {}ms", rng.below(700)),
            14 => "echo\nmessage\nrecall\nsettings".to_owned(),
            _ => "say \"well\"".to_owned(),
        }
    }

    /// Questions, and waiting for what becomes of all of them.
    fn ask(&mut self, lines: &mut Vec<String>) {
        for _ in 0..=self.rng.below(3) {
            self.questions += 1;
            let name = format!("q-{}-{}", self.name, self.questions);
            let kind = match self.rng.below(6) {
                0 => format!("approval \"{name}\""),
                1 => format!("select \"{name}\" choices a=A b=B"),
                2 => format!("confirm \"{name}\" default no"),
                3 => format!("input \"{name}\""),
                4 => format!("input \"{name}\" secret"),
                _ => format!("form \"{name}\" field zone:north/south required field copies:number"),
            };
            let within = match self.rng.below(6) {
                0 => String::new(),
                1 => format!(" within {}ms", 1 + self.rng.below(100)),
                _ => format!(" within {}ms", 1_000 + self.rng.below(9_000)),
            };
            lines.push(format!("ask {name} {kind}{within}"));
        }
        if self.rng.one_in(6) {
            lines.push(format!("withdraw q-{}-{}", self.name, self.questions));
        }
        lines.push("wait-answers".to_owned());
    }
}
