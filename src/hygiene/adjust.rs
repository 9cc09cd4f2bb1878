//! Fields of a memory that a pass changes, and how a change of them is taken back.

use serde_json::Value;

use crate::model::{Access, Delta, ExpiresBy, MemoryId, Span, Tier, Time, Vitals};

/// What a pass does to one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Adjustment {
    /// A durable row without a confidence gets this one.
    Seed(f32),
    /// A durable row that nobody has used becomes episodic.
    Demote(Demotion),
    /// A row of the tier `working` becomes episodic.
    Promote(Promotion),
    /// A consolidation has looked at a short-term row; one of the tier `working` becomes episodic, once.
    Consolidate(Promotion),
    /// A short-term row becomes durable.
    Last(Lasting),
    /// A row is of another cluster than before, or of none.
    Cluster(Membership),
}

/// What a row notes of the cluster that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The representative of the cluster.
    pub(crate) cluster: Option<MemoryId>,
    pub(crate) is_representative: bool,
}

impl Membership {
    /// Of a row in no cluster.
    pub(crate) const NONE: Membership = Membership { cluster: None, is_representative: false };

    pub(crate) fn of(access: &Access) -> Self {
        Membership { cluster: access.cluster_id, is_representative: access.is_representative }
    }

    fn noted(self, row: &Adjustable) -> Option<Adjustable> {
        let mut next = row.clone();
        (next.access.cluster_id, next.access.is_representative) = (self.cluster, self.is_representative);
        (next != *row).then_some(next)
    }
}

/// From how many uses on a row of the tier `working` becomes episodic, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Promotion {
    pub(crate) uses: u64,
    /// How long the row lives from now on, unless a caller set its end.
    pub(crate) ttl: Span,
}

impl Promotion {
    fn of(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        let (mut next, vitals) = (row.clone(), &row.vitals);
        let is_new = vitals.tier == Tier::Working && row.access.promoted_at.is_none();
        if !is_new || row.access.count() < self.uses || vitals.is_protected() {
            return None;
        }
        next.vitals.tier = Tier::Episodic;
        next.vitals.set_life(vitals.life().slid(now, Some(self.ttl)));
        next.access.promoted_at = Some(now);
        Some(next)
    }

    fn consolidated(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        if !is_to_settle(row, self.uses) {
            return None;
        }
        let mut next = self.of(row, now).unwrap_or_else(|| row.clone());
        next.access.last_consolidated_at = Some(now);
        Some(next)
    }
}

/// Whether a consolidation looks at a row: one of short term, once, after so many uses.
fn is_to_settle(row: &Adjustable, uses: u64) -> bool {
    let is_new = row.vitals.tier.is_short_term() && row.access.last_consolidated_at.is_none();
    is_new && row.access.count() >= uses && !row.vitals.is_protected()
}

/// From how many uses on a short-term row becomes durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lasting {
    pub(crate) uses: u64,
    /// The durable tier.
    pub(crate) tier: Tier,
    /// The confidence of a row without one.
    pub(crate) confidence: f32,
}

impl Lasting {
    fn of(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        if !is_to_settle(row, self.uses) {
            return None;
        }
        let (mut next, vitals) = (row.clone(), &row.vitals);
        next.vitals.tier = self.tier;
        if vitals.expires_by == ExpiresBy::Tier {
            next.vitals.times.expires_at = None;
        }
        next.vitals.confidence = vitals.confidence.or(Some(self.confidence));
        next.access.last_consolidated_at = Some(now);
        Some(next)
    }
}

/// Which rows become episodic, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demotion {
    /// Rows that were last written before it.
    pub(crate) older_than: Time,
    /// Rows of a lower importance.
    pub(crate) importance: f64,
    /// How long they live from now on.
    pub(crate) ttl: Span,
}

impl Demotion {
    fn of(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        let (mut next, vitals) = (row.clone(), &row.vitals);
        let is_unused = row.access.count() == 0 && vitals.updated_at < self.older_than;
        let is_small = f64::from(vitals.importance) < self.importance;
        let is_free = !vitals.is_protected() && vitals.expires_by == ExpiresBy::Tier;
        if vitals.tier.is_short_term() || !is_unused || !is_small || !is_free {
            return None;
        }
        next.vitals.tier = Tier::Episodic;
        next.vitals.times.expires_at = Some(now.plus(self.ttl));
        Some(next)
    }
}

/// The parts of a row that a pass may change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjustable {
    pub(crate) vitals: Vitals,
    pub(crate) access: Access,
}

impl Adjustment {
    /// The row afterwards; none where the condition does not hold, or holds no longer.
    pub(crate) fn of(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        if !row.vitals.times.visible_live(now) {
            return None;
        }
        let mut next = match self {
            Adjustment::Seed(confidence) => seeded(confidence, row, now)?,
            Adjustment::Demote(demotion) => demotion.of(row, now)?,
            Adjustment::Promote(promotion) => promotion.of(row, now)?,
            Adjustment::Consolidate(promotion) => promotion.consolidated(row, now)?,
            Adjustment::Last(lasting) => lasting.of(row, now)?,
            Adjustment::Cluster(membership) => membership.noted(row)?,
        };
        next.vitals.version += 1;
        Some(next)
    }
}

fn seeded(confidence: f32, row: &Adjustable, now: Time) -> Option<Adjustable> {
    let mut next = row.clone();
    if row.vitals.tier.is_short_term() || row.vitals.confidence.is_some() {
        return None;
    }
    next.vitals.confidence = Some(confidence);
    next.vitals.updated_at = now;
    Some(next)
}

/// The fields that an adjustment may change, each with its place.
macro_rules! adjustable {
    ($($name:literal $part:ident.$($place:ident).+;)+) => {
        impl Adjustable {
            /// What changes from this row to another, for the journal.
            pub(crate) fn deltas(&self, next: &Adjustable) -> Vec<Delta> {
                let mut all = Vec::new();
                $(if self.$part.$($place).+ != next.$part.$($place).+ {
                    let (before, after) = (shown(&self.$part.$($place).+), shown(&next.$part.$($place).+));
                    all.push(Delta { field: $name.to_owned(), before, after });
                })+
                all
            }

            /// The value of a field; none where it is no such field.
            pub(crate) fn value(&self, field: &str) -> Option<Value> {
                match field {
                    $($name => Some(shown(&self.$part.$($place).+)),)+
                    _ => None,
                }
            }

            /// Puts a field back to what it was; none where it is no such field, or the row has another value since.
            pub(crate) fn put_back(&mut self, delta: &Delta) -> Option<()> {
                match delta.field.as_str() {
                    $($name => {
                        // A use since has moved the end that the change set; the end of before is what it was all the same.
                        if $name != "expires_at" && shown(&self.$part.$($place).+) != delta.after {
                            return None;
                        }
                        self.$part.$($place).+ = serde_json::from_value(delta.before.clone()).ok()?;
                    })+
                    _ => return None,
                }
                Some(())
            }
        }
    };
}

adjustable! {
    "tier" vitals.tier;
    "expires_at" vitals.times.expires_at;
    "expires_by" vitals.expires_by;
    "happened_at" vitals.happened_at;
    "last_reinforced_at" vitals.last_reinforced_at;
    "confidence" vitals.confidence;
    "updated_at" vitals.updated_at;
    "promoted_at" access.promoted_at;
    "last_consolidated_at" access.last_consolidated_at;
    "cluster_id" access.cluster_id;
    "is_representative" access.is_representative;
    "version" vitals.version;
}

fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
