//! How long does a memory of a tier live?

use crate::model::{Span, Tier, Time, Vitals};
use crate::policy::Ttl;

/// The default lifetime of a memory of a tier; none for the durable tiers.
pub(crate) fn tier_ttl(tier: Tier, ttl: &Ttl) -> Option<Span> {
    match tier {
        Tier::Working => Some(ttl.working),
        Tier::Episodic => Some(ttl.episodic),
        Tier::Semantic | Tier::Procedural => None,
    }
}

/// Gives a row whose life was over another one of the same length: it would be gone at once otherwise.
pub(super) fn renew(vitals: &mut Vitals, now: Time, ttl: &Ttl) {
    let Some(end) = vitals.times.expires_at.filter(|end| *end <= now) else { return };
    let lived = end.as_millis().saturating_sub(vitals.times.recorded_at.as_millis());
    let lived = Span::from_millis(lived.max(0));
    vitals.times.expires_at = Some(now.plus(tier_ttl(vitals.tier, ttl).unwrap_or(lived)));
}
