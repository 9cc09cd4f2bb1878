//! Indexes of metadata that a namespace declares.

use std::sync::Arc;

use crate::error::{Error, Result, sound};
use crate::ledger::derived::{Declared, IndexRow, index_rows};
use crate::ledger::{Context, Ledger};
use crate::limits::INDEXES_MAX;
use crate::model::{MemoryId, RuleId};
use crate::store::{NsId, Rows};

impl Ledger<'_, '_> {
    /// The paths of metadata that have an index in a namespace, read once.
    pub(super) fn declared(&mut self, ns: NsId) -> Result<Arc<Declared>> {
        if let Some(known) = self.declared.get(&ns) {
            return Ok(Arc::clone(known));
        }
        let read: Arc<Declared> = self.tx.meta_keys(ns)?.into();
        self.declared.insert(ns, Arc::clone(&read));
        Ok(read)
    }

    /// Declares an index and writes its rows. Gives the number of memories that stand in it; none where it was there.
    pub(crate) fn declare(&mut self, context: &Context, path: &str) -> Result<Option<u64>> {
        let declared = self.declared(context.ns)?;
        if declared.iter().any(|known| **known == *path) {
            return Ok(None);
        }
        if declared.len() >= INDEXES_MAX {
            let why = format!("a namespace has at most {INDEXES_MAX} indexes of metadata");
            return Err(Error::invalid("key", why, path));
        }
        self.tx.put_meta_key(context.ns, path)?;
        self.declared.remove(&context.ns);
        self.fill(context, &[path.into()]).map(Some)
    }

    /// Ends an index; false where there was none.
    pub(crate) fn end_declared(&mut self, context: &Context, path: &str) -> Result<bool> {
        self.declared.remove(&context.ns);
        let was = self.tx.delete_meta_key(context.ns, path)?;
        if was {
            self.journal_derived(context, RuleId::INDEX, format!("no index of metadata.{path}"))?;
        }
        Ok(was)
    }

    /// Writes the rows of every declared index anew, whatever stood there. Gives the number of memories in one at least.
    pub(crate) fn rebuild_declared(&mut self, context: &Context) -> Result<u64> {
        let declared = self.declared(context.ns)?;
        if declared.is_empty() {
            return Ok(0);
        }
        declared.iter().try_for_each(|path| self.tx.delete_meta_values(context.ns, path))?;
        self.fill(context, &declared)
    }

    fn fill(&mut self, context: &Context, declared: &Declared) -> Result<u64> {
        let ns = context.ns;
        let mut ids: Vec<MemoryId> = Vec::new();
        self.tx.all_vitals(ns, &mut |id, vitals| {
            if vitals.times.removed_at.is_none() {
                ids.push(id);
            }
            Ok(())
        })?;
        let mut filled = 0;
        for id in ids {
            let Some((vitals, content)) = sound(self.load(ns, id))? else { continue };
            let mut any = false;
            for row in index_rows(&vitals, Some(&content), declared) {
                if let IndexRow::Meta(path, value) = row {
                    self.tx.put_meta_value(ns, &path, &value, id)?;
                    any = true;
                }
            }
            filled += u64::from(any);
        }
        let paths = declared.join(", metadata.");
        self.journal_derived(context, RuleId::INDEX, format!("{filled} rows by metadata.{paths}"))?;
        Ok(filled)
    }
}
