//! Step 6 of the ladder: is there a memory whose vector says the same?
//!
//! Rows that existed before the transaction are searched in the published state, for all drafts of a unit at once.
//! Rows that the transaction itself has written lie beside that state ([`Staged`](crate::index::Staged)). Every result
//! is then checked again as the transaction sees it.

use std::collections::BTreeMap;

use crate::error::{Result, sound};
use crate::index::{Nearness, near_many};
use crate::ingest::likeness::{Likeness, skips_content};
use crate::ingest::similarity::Threshold;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::model::{Evidence, Hint, MemoryId, Outcome, Ranked, Vitals};
use crate::policy::VectorMatch;
use crate::store::{IndexId, PartId, Rows, SpaceId};
use crate::text::{Guard, Guards};
use crate::vector::{TopK, UnitVector};

/// The largest number of hints by vector for a write, and of hints by text.
pub(super) const HINTS_MAX: usize = 5;
/// The number of neighbours that are read if `dedup.neighbours` is 0.
const NEIGHBOURS_DEFAULT: usize = 20;

/// The memories that were near to a draft in one partition before its transaction began.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    part: PartId,
    hits: Vec<Ranked>,
}

/// The least score to look for, and the largest number of results.
#[derive(Clone, Copy, Debug)]
struct Reach {
    least: f32,
    most: usize,
}

impl Reach {
    /// The nearest of all, however far, and the next nearest.
    const NEAREST: Reach = Reach { least: -1.0, most: 2 };
}

impl NamespaceWriter<'_, '_, '_> {
    /// The memories near to each of these drafts before the transaction, where step 6 is likely to ask for them. One
    /// scan by each of at most so many threads serves all drafts.
    pub(crate) fn neighbours(&self, all: &[Prepared], threads: usize) -> Result<Vec<Option<Neighbours>>> {
        let mut near: Vec<Option<Neighbours>> = all.iter().map(|_| None).collect();
        if all.len() < 2 {
            return Ok(near);
        }
        let mut by_part: BTreeMap<PartId, Vec<(usize, &UnitVector)>> = BTreeMap::new();
        for (at, prepared) in all.iter().enumerate() {
            let Some(vector) = self.sought(prepared)? else { continue };
            let part = match prepared.checked.partition().agent_name() {
                None => Some(PartId(0)),
                Some(agent) => self.known_part(agent)?,
            };
            if let Some(part) = part
                && !self.is_known(prepared, part)?
            {
                by_part.entry(part).or_default().push((at, vector));
            }
        }
        for (part, asked) in by_part {
            let vectors: Vec<&UnitVector> = asked.iter().map(|(_, vector)| *vector).collect();
            let found = self.published_near(part, &vectors, self.reach()?, threads)?;
            for ((at, _), hits) in asked.iter().zip(found) {
                near.get_mut(*at)
                    .into_iter()
                    .for_each(|place| *place = Some(Neighbours { part, hits: hits.clone() }));
            }
        }
        Ok(near)
    }

    /// Like [`NamespaceWriter::add`], with the results of [`NamespaceWriter::neighbours`] for the draft.
    pub(crate) fn add_beside(&mut self, prepared: &Prepared, near: Option<Neighbours>) -> Result<Outcome> {
        self.near = near;
        self.add(prepared)
    }

    /// The vector with which step 6 searches; none if the step has nothing to do.
    fn sought<'p>(&self, prepared: &'p Prepared) -> Result<Option<&'p UnitVector>> {
        let off = self.policy.write.vector_match == VectorMatch::Off;
        if off || self.no_dedup || skips_content(prepared.checked.draft()) {
            return Ok(None);
        }
        let Some(space) = self.ledger.tx.space(SpaceId(self.ledger.clock.space))? else { return Ok(None) };
        Ok(prepared.vector.as_ref().filter(|vector| vector.dim() == space.dim as usize))
    }

    /// Whether an earlier step is likely to decide: the key is held, or the fingerprint exists.
    fn is_known(&self, prepared: &Prepared, part: PartId) -> Result<bool> {
        if let Some(key) = prepared.checked.key()
            && self.current_holder(key)?.is_some()
        {
            return Ok(true);
        }
        let Some(fingerprint) = prepared.normal.prefix() else { return Ok(false) };
        let tier = prepared.checked.draft().fields.tier.unwrap_or_default();
        self.ledger.tx.has_fingerprint(self.ns(), part, tier, &fingerprint)
    }

    fn threshold(&self) -> Result<Option<Threshold>> {
        Threshold::new(self.policy.dedup.metric, self.policy.dedup.similarity)
    }

    fn reach(&self) -> Result<Reach> {
        let hint = self.policy.write.hint_cosine as f32;
        let least = self.threshold()?.map_or(hint, |threshold| hint.min(threshold.least_cosine()));
        let absorbs = self.policy.write.vector_match == VectorMatch::Reinforce;
        let most = match self.policy.dedup.neighbours as usize {
            _ if !absorbs => HINTS_MAX,
            0 => NEIGHBOURS_DEFAULT,
            neighbours => neighbours.max(HINTS_MAX),
        };
        Ok(Reach { least, most })
    }

    fn index(&self, part: PartId) -> IndexId {
        IndexId { ns: self.ns(), part, space: SpaceId(self.ledger.clock.space) }
    }

    /// The near memories in the state before the transaction.
    fn published_near(
        &self,
        part: PartId,
        vectors: &[&UnitVector],
        reach: Reach,
        threads: usize,
    ) -> Result<Vec<Vec<Ranked>>> {
        let index = self.index(part);
        if self.published.snapshot().space(index.space)?.is_none() {
            return Ok(vectors.iter().map(|_| Vec::new()).collect());
        }
        let nearness = Nearness { least: reach.least, most: reach.most, now: self.now() };
        near_many(self.published, index, vectors, nearness, threads)
    }

    /// The current rows nearest to a draft as the transaction sees them, best first, equal scores by id.
    fn near(&self, vector: &UnitVector, part: PartId, reach: Reach) -> Result<Vec<Ranked>> {
        let ahead = self.near.as_ref().filter(|near| near.part == part && reach.most > Reach::NEAREST.most);
        let before = match ahead {
            Some(near) => near.hits.clone(),
            None => self.published_near(part, &[vector], reach, 1)?.pop().unwrap_or_default(),
        };
        let index = self.index(part);
        let mut top = TopK::new(reach.most);
        for hit in before {
            if !self.ledger.staged.has(index, hit.id) && self.current(hit.id, part)?.is_some() {
                top.push(hit.score, hit.id);
            }
        }
        let mut taken = 0;
        for hit in self.ledger.staged.near(index, vector, reach.least, reach.most) {
            // They come best first, so no later one can be among the best.
            if taken == reach.most || top.threshold().is_some_and(|worst| hit.score < worst) {
                break;
            }
            if self.current(hit.id, part)?.is_some() {
                top.push(hit.score, hit.id);
                taken += 1;
            }
        }
        let best = top.into_sorted().into_iter();
        Ok(best.map(|scored| Ranked::near(scored.id, scored.score)).collect())
    }

    /// The vitals of a row of a partition, if the row is current in the transaction.
    fn current(&self, id: MemoryId, part: PartId) -> Result<Option<Vitals>> {
        let found = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
        Ok(found.filter(|row| row.times.is_current(self.now()) && row.place.partition == part.0))
    }

    /// The highest cosine of a draft to a current row of a partition other than `except`. None if either side has no
    /// vector.
    pub(super) fn nearest_cosine(
        &self,
        prepared: &Prepared,
        part: PartId,
        except: Option<MemoryId>,
    ) -> Result<Option<f32>> {
        let Some(vector) = &prepared.vector else { return Ok(None) };
        let best =
            |hits: Vec<Ranked>| hits.into_iter().find(|hit| Some(hit.id) != except).map(|hit| hit.score);
        // The results searched ahead contain the nearest, if they contain any.
        let ahead = self.near.as_ref().is_some_and(|near| near.part == part);
        let known = if ahead { best(self.near(vector, part, self.reach()?)?) } else { None };
        match known {
            Some(score) => Ok(Some(score)),
            None => Ok(best(self.near(vector, part, Reach::NEAREST)?)),
        }
    }

    /// Step 6: the row that absorbs a draft by its vector, with the evidence. Near rows that do not decide become
    /// hints.
    pub(super) fn vector_step(
        &self,
        prepared: &Prepared,
        part: PartId,
        hints: &mut Vec<Hint>,
    ) -> Result<Option<(MemoryId, Evidence)>> {
        let Some(vector) = self.sought(prepared)? else { return Ok(None) };
        let (threshold, reach) = (self.threshold()?, self.reach()?);
        let hint_cosine = self.policy.write.hint_cosine as f32;
        let mut absorbing = None;
        let mut by_vector = 0;
        for Ranked { id, score, .. } in self.near(vector, part, reach)? {
            let reached = threshold.and_then(|threshold| threshold.reached_by(score));
            let (alike, guard) = match reached {
                Some(_) => self.compare_near(prepared, id)?,
                None => (false, None),
            };
            // Byte-equal rows that step 2 kept apart stay apart.
            let known = hints.iter_mut().find(|hint| hint.id == id);
            if let Some(score) = reached.filter(|_| alike && known.is_none() && absorbing.is_none()) {
                let signature = Some("vector".to_owned());
                absorbing = Some((id, Evidence { score: Some(score), signature, ..Evidence::default() }));
                continue;
            }
            if reached.is_none() && score < hint_cosine {
                continue;
            }
            match known {
                Some(hint) => (hint.score, hint.guard) = (Some(score), guard),
                None if by_vector < HINTS_MAX => {
                    by_vector += 1;
                    hints.push(Hint { id, why: "near vector", score: Some(score), guard });
                }
                None => {}
            }
        }
        Ok(absorbing)
    }

    /// Whether a row at the threshold may absorb a draft, and otherwise the guard that keeps the two apart.
    fn compare_near(&self, prepared: &Prepared, id: MemoryId) -> Result<(bool, Option<&'static str>)> {
        let draft = prepared.checked.draft();
        let Some((vitals, content)) = sound(self.ledger.load(self.ns(), id))? else {
            return Ok((false, None));
        };
        let guards = self.guards.get_or_init(|| Guards::new(&self.policy.guards, &self.policy.collapse));
        let guard = guards.first_failing(&draft.text, &content.text).map(Guard::as_str);
        let kind = content.kind(vitals.kind_code).to_string();
        let exempt = self.policy.dedup.exempt_kinds.contains(&kind);
        let alike = guard.is_none()
            && self.policy.write.vector_match == VectorMatch::Reinforce
            && !exempt
            && Likeness::of_draft(draft).is_near(&Likeness::of_row(&vitals, &content));
        Ok((alike, guard))
    }
}
