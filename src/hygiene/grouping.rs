//! Rows that are the same, as the passes find them: what stays of each group, and what goes into it.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::error::Result;
use crate::hygiene::joining::Joining;
use crate::hygiene::plan::{Field, Group, Loser, Phase, Stop};
use crate::limits::TAGS_MAX;
use crate::model::order::{Rank, canonical, reinforcement_first};
use crate::model::{MemoryId, Time, Vitals};
use crate::policy::Canonical;
use crate::store::{PartId, Snapshot};

/// What grouping keeps of a row.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) rank: Rank,
    version: u64,
    happened_at: Option<Time>,
    protected: bool,
    /// Whether a caller set its end.
    ends: bool,
    /// How many tags it has.
    tags: usize,
    visible: bool,
}

impl Member {
    pub(super) fn of(id: MemoryId, vitals: &Vitals, tags: usize, field: &Field) -> Self {
        Member {
            rank: vitals.rank(id),
            version: vitals.version,
            happened_at: vitals.happened_at,
            protected: vitals.is_protected(),
            ends: vitals.life().is_promised_end(),
            tags,
            visible: vitals.times.visible_live(field.now),
        }
    }

    fn loser(&self) -> Loser {
        Loser {
            id: self.rank.id,
            version: self.version,
            count: self.rank.reinforcement_count.max(1),
            happened_at: self.happened_at,
            visible: self.visible,
        }
    }
}

/// Groups as they are found.
pub(super) struct Groups {
    order: fn(&Rank, &Rank) -> Ordering,
    found: Vec<Group>,
    /// The canonical rows of groups that may not go into one row: a caller set an end, or the tags may be too many.
    bounded: BTreeSet<MemoryId>,
    /// Protected members that are not canonical, of groups without a removable member too.
    pub(super) protected: u64,
}

impl Groups {
    pub(super) fn new(order: Canonical) -> Self {
        let order = match order {
            Canonical::SignificanceFirst => canonical,
            Canonical::ReinforcementFirst => reinforcement_first,
        };
        Groups { order, found: Vec::new(), bounded: BTreeSet::new(), protected: 0 }
    }

    /// Two rows and more that are the same: a group, unless all that could go is protected.
    pub(super) fn add(&mut self, phase: Phase, part: PartId, signature: &str, mut members: Vec<&Member>) {
        members.sort_unstable_by(|a, b| (self.order)(&a.rank, &b.rank));
        let has_end = members.iter().any(|member| member.ends);
        let is_bounded = has_end || members.iter().map(|member| member.tags).sum::<usize>() > TAGS_MAX;
        let mut members = members.into_iter();
        let Some(canonical) = members.next() else { return };
        let mut losers = Vec::with_capacity(members.len());
        let mut protected = 0;
        for member in members {
            if member.protected {
                protected += 1;
            } else {
                losers.push(member.loser());
            }
        }
        self.protected += u64::from(protected);
        if !losers.is_empty() {
            let signature = format!("{}{signature}", phase.prefix());
            self.bounded.extend(is_bounded.then_some(canonical.rank.id));
            self.found.push(Group {
                phase,
                part,
                signature,
                canonical: canonical.rank.id,
                version: canonical.version,
                losers,
                protected,
            });
        }
    }

    /// The groups in which something can go, by phase, then by canonical id. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage that is not of single rows.
    pub(super) fn into_sorted(
        mut self,
        rows: &Snapshot,
        field: &Field,
        stop: Stop<'_>,
    ) -> Result<Option<Vec<Group>>> {
        let is_bounded = |group: &mut Group| self.bounded.contains(&group.canonical);
        let bounded: Vec<Group> = self.found.extract_if(.., is_bounded).collect();
        for group in bounded {
            let Group { phase, part, canonical, version, losers, protected, signature } = group;
            let members = std::iter::once(None).chain(losers.into_iter().map(Some));
            let id = |member: &Option<Loser>| member.as_ref().map_or(canonical, |loser| loser.id);
            let Some(mut joining) = Joining::read(rows, field, members, id, stop)? else { return Ok(None) };
            // What can't go into the canonical row may go together.
            while let Some(members) = joining.next_group() {
                let mut members = members.into_iter();
                let (canonical, version, protected) = match members.next().flatten() {
                    Some(first) => (first.id, first.version, 0),
                    None => (canonical, version, protected),
                };
                let losers: Vec<Loser> = members.flatten().collect();
                if !losers.is_empty() {
                    let signature = signature.clone();
                    self.found.push(Group { phase, part, signature, canonical, version, losers, protected });
                }
            }
        }
        self.found.sort_unstable_by_key(|group| (group.phase, group.canonical));
        Ok(Some(self.found))
    }
}
