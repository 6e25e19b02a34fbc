//! Consumption.

use sessionplane::v1 as wire;
use sessionplane_core::domain::usage::Usage;

/// What was used; counters that are not known stay absent.
pub(crate) fn to_wire(usage: Usage) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cost_usd: usage.cost_usd,
    }
}
