//! What a run consumed, as far as the engine tells. Absent means unknown, never zero.

/// Token and money counters; every one is optional because engines differ in what they report.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Tokens sent to the model.
    pub input_tokens: Option<u64>,
    /// Tokens the model produced.
    pub output_tokens: Option<u64>,
    /// Input tokens that a cache served.
    pub cached_tokens: Option<u64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The report without a cost that cannot be: one that is negative, infinite or no number.
    #[must_use]
    pub fn credible(self) -> Self {
        let possible = |cost: &f64| cost.is_finite() && *cost >= 0.0;
        Self {
            cost_usd: self.cost_usd.filter(possible),
            ..self
        }
    }

    /// Adds what another report tells; a counter stays unknown only while neither side knows it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
            cost_usd: match (self.cost_usd, other.cost_usd) {
                (Some(a), Some(b)) => Some((a + b).min(f64::MAX)),
                (a, b) => a.or(b),
            },
        }
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
