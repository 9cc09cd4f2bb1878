//! One of several writers of a text says it in the place of a memory for which another text is announced: what the others say does not
//! end for that.

use crate::error::Result;
use crate::ingest::NamespaceWriter;
use crate::ingest::add::Named;
use crate::ingest::ahead::Ahead;
use crate::model::{Draft, MemoryId, Time};

impl NamespaceWriter<'_, '_, '_> {
    /// Whether another text is announced for what a draft takes the place of, so that the draft ends for that as well.
    pub(super) fn is_to_be_replaced(&mut self, draft: &Draft, named: &[Option<Named>]) -> Result<bool> {
        let at = draft.fields.valid_from.value().copied().unwrap_or(self.now());
        let named: Vec<Named> = named.iter().flatten().copied().collect();
        Ok(!self.announced_after(&named, at)?.is_empty())
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
