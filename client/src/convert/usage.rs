//! What was consumed.

use sessionplane::v1;
use sessionplane_core::domain::usage::Usage;

/// Consumption; what is not told stays unknown.
pub(crate) fn read(usage: Option<v1::Usage>) -> Usage {
    let Some(usage) = usage else {
        return Usage::default();
    };
    Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cost_usd: usage.cost_usd,
    }
}
