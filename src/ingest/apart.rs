//! One of several writers of a text says it in the place of a memory for which another text is announced: what the others say does not
//! end for that.

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::add::{Match, Named};
use crate::ingest::ahead::Ahead;
use crate::model::order::Rank;
use crate::model::{Draft, MemoryId, RuleId, Time};
use crate::store::PartId;

impl NamespaceWriter<'_, '_, '_> {
    /// Whether another text is announced for what a draft takes the place of, so that the draft ends for that as well.
    pub(super) fn is_to_be_replaced(&mut self, draft: &Draft, named: &[Option<Named>]) -> Result<bool> {
        let at = self.true_from(draft);
        let named: Vec<Named> = named.iter().flatten().copied().collect();
        Ok(!self.announced_after(&named, at)?.is_empty())
    }

    /// The row of a partition that says a draft in the places of all that the draft names, with the rule by which it stands for the draft:
    /// it ends for what is announced for them anyway.
    pub(super) fn said_in_place(
        &mut self,
        draft: &Draft,
        part: PartId,
        named: &[Option<Named>],
    ) -> Result<Option<(Rank, RuleId)>> {
        let (at, now) = (self.true_from(draft), self.now());
        let Some(named) = named.iter().copied().collect::<Option<Vec<Named>>>() else { return Ok(None) };
        let mut place = None;
        for (id, _) in named.iter().filter(|(_, number)| number.is_some()) {
            // What a key means by the instant can be another memory than what it means now.
            let by_then = self.ahead_of(*id)?.map_or(*id, |ahead| ahead.by(at).0);
            if *place.get_or_insert(by_then) != by_then {
                return Ok(None);
            }
        }
        let Some(id) = place else { return Ok(None) };
        for (other, _) in named.iter().filter(|(_, number)| number.is_none()) {
            if !self.is_in_place_of(id, *other)? {
                return Ok(None);
            }
        }
        let Some((mut vitals, content)) = sound(self.ledger.load(self.ns(), id))? else { return Ok(None) };
        let is_there = vitals.place.partition == part.0 && vitals.times.is_or_will_be_true(now);
        if !is_there || vitals.tier != draft.fields.tier.unwrap_or_default() {
            return Ok(None);
        }
        // The end that it has of what is announced is that of the draft as well.
        vitals.times.valid_to = vitals.times.own_end();
        Ok(match self.match_of(draft, (id, &vitals, &content))? {
            Match::Absorbs(rule, rank) => Some((rank, rule)),
            Match::Near(_) | Match::Other => None,
        })
    }

    /// Whether a memory has the place of another one: a name of the other one leads to it, or it has superseded the other one.
    pub(super) fn is_in_place_of(&self, new: MemoryId, old: MemoryId) -> Result<bool> {
        let (vitals, _) = self.ledger.load(self.ns(), old)?;
        Ok(old == new || vitals.times.superseded_by() == Some(new))
    }

    /// The instant from which a draft is true.
    fn true_from(&self, draft: &Draft) -> Time {
        draft.fields.valid_from.value().copied().unwrap_or(self.now())
    }

    /// What is announced to take places, after an instant, that these names mean by then.
    fn announced_after(&mut self, named: &[Named], at: Time) -> Result<Vec<(MemoryId, Time)>> {
        let mut comes = Vec::new();
        // An id names a memory as it is, with all its writers.
        for (id, _) in named.iter().filter(|(_, number)| number.is_some()) {
            let to_come = self.ahead_of(*id)?.map(|ahead| ahead.to_come()).unwrap_or_default();
            comes.extend(to_come.into_iter().filter(|(_, begins)| *begins > at));
        }
        Ok(comes)
    }

    /// The row that takes the places of what some names mean, for a writer of the row: one of the writer's own, where others have
    /// written the text as well, and would end for what is announced for these names.
    pub(super) fn apart_from_others(
        &mut self,
        named: &[Named],
        (new, number): Named,
        at: Option<Time>,
    ) -> Result<MemoryId> {
        let Some(number) = number else { return Ok(new) };
        let at = at.unwrap_or(self.now());
        let comes = self.announced_after(named, at)?;
        if comes.is_empty() || !self.has_others(new, number)? {
            return Ok(new);
        }
        let mut own = self.ahead_of(new)?;
        let known = own.as_ref().map(Ahead::to_come).unwrap_or_default();
        // By the instant, another memory may have taken the place of the row.
        let is_over = known.iter().any(|(_, begins)| *begins <= at);
        if is_over || comes.iter().all(|step| step.0 == new || known.contains(step)) {
            return Ok(new);
        }
        own.as_mut().map_or(Ok(()), |own| self.bring_back(own))?;
        let apart = self.set_apart(new, number)?;
        own.map_or(Ok(()), |own| self.replace_ahead(&[own], (apart, None)))?;
        Ok(apart)
    }
}
