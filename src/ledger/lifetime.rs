//! How long does a memory of a tier live?

use crate::model::{Span, Tier};
use crate::policy::Ttl;

/// The default lifetime of a memory of a tier; none for the durable tiers.
pub(crate) fn tier_ttl(tier: Tier, ttl: &Ttl) -> Option<Span> {
    match tier {
        Tier::Working => Some(ttl.working),
        Tier::Episodic => Some(ttl.episodic),
        Tier::Semantic | Tier::Procedural => None,
    }
}
