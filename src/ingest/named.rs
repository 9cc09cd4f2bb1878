//! What is done to memories that a caller names.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, RestoreTo, Restored};
use crate::model::{Name, RestoreReport, RuleId, SupersedeMode, SupersedeReport, Time};

impl NamespaceWriter<'_, '_, '_> {
    /// One memory takes the place of each of `old`.
    ///
    /// # Errors
    /// `Invalid` where `old` names nothing; `NotFound`, `Conflict`.
    pub(crate) fn supersede_names(
        &mut self,
        old: &[Name],
        new: &str,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<SupersedeReport> {
        if old.is_empty() {
            return Err(Error::invalid("old", "must name at least one memory", "none"));
        }
        let new = self.find(new)?;
        let mut seen = HashSet::new();
        let names = old.iter().filter(|name| seen.insert(name.as_str()));
        // Found before any key has moved to the new memory.
        let found = names.map(|name| self.find(name.as_str())).collect::<Result<Vec<_>>>()?;
        let id = self.apart_from_others(&found, new, at)?;
        self.supersede_each(found, id, mode, at)?;
        Ok(SupersedeReport { id, kept_for_others: self.left_to_others(&[])? })
    }

    /// Brings a memory back that was superseded or removed.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for one that is live.
    pub(crate) fn restore(&mut self, name: &str) -> Result<RestoreReport> {
        let (id, _) = self.find(name)?;
        let applied = self.apply(RuleId::RESTORE, Change::Restore { id, to: RestoreTo::Live })?;
        let Restored { keys_taken, replaced, superseded_by, .. } = applied.restored.unwrap_or_default();
        Ok(RestoreReport { id, keys_taken, replaced, superseded_by })
    }

    /// Counts uses of a memory.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn reinforce(&mut self, name: &str, by: u32) -> Result<()> {
        let (id, _) = self.find(name)?;
        let change = self.use_of(id, by)?;
        self.apply(RuleId::REINFORCE, change)?;
        Ok(())
    }
}
