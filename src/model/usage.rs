//! How much a memory was used, as far as its row says without its statistics.

use crate::model::kind::Tier;

/// How much a memory was used and what became of it, in the few bits from which the tables of unused memories and of
/// those in use follow. A use that changes none of these bits leaves the vitals alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of uses, at most [`USES_MAX`](crate::limits::USES_MAX); of a durable memory at most 1.
    pub uses: u8,
    /// Whether the memory was promoted from the tier `working`.
    pub is_promoted: bool,
    /// Whether a consolidation has looked at the memory.
    pub is_consolidated: bool,
}

impl Usage {
    /// What of it a memory of a tier keeps: of a durable memory the tables ask only whether it was used.
    pub(crate) fn for_tier(self, tier: Tier) -> Self {
        if tier.is_short_term() { self } else { Usage { uses: self.uses.min(1), ..Usage::default() } }
    }
}
