//! Another key for a record, and another end for memories.

use crate::error::{Error, Result};
use crate::ingest::NamespaceWriter;
use crate::ledger::Change;
use crate::model::{Expiry, Name, Outcome, Patch, RenameReport, RuleId, check_key};
use crate::store::{Rows, Traces};

impl NamespaceWriter<'_, '_, '_> {
    /// Gives every row that holds the key `old` the key `new`.
    ///
    /// # Errors
    /// `Invalid` for a new key out of bounds, `NotFound` if no row holds the old key, `Conflict` if a current row holds
    /// the new one, or a row holds both.
    pub(crate) fn rename_key(&mut self, old: &str, new: &str) -> Result<RenameReport> {
        check_key(new)?;
        self.check_new_key(new)?;
        let unknown = || Error::NotFound { what: "key", name: old.to_owned() };
        if check_key(old).is_err() || self.ledger.tx.holders_of_key(self.ns(), old)?.is_empty() {
            return Err(unknown());
        }
        let mut rows = 0;
        if old != new {
            if let Some((id, _)) = self.current_holder(new)? {
                let what = format!("rename {old}");
                return Err(Error::Conflict { what, why: format!("memory {id} holds the key {new}") });
            }
            self.refuse_both(old, new)?;
            let change = Change::Rename { old: old.to_owned(), new: new.to_owned() };
            rows = self.apply(RuleId::RENAME, change)?.renamed;
        }
        let (id, _) = self.find(new)?;
        Ok(RenameReport { id, rows })
    }

    /// Refuses a new key that some version of the record holds beside the old one: a key is on a row once.
    fn refuse_both(&self, old: &str, new: &str) -> Result<()> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        for (id, _) in tx.holders_of_key(ns, old)? {
            if tx.holds_key(ns, new, id)? {
                let (what, has) = (format!("rename {old}"), format!("memory {id} has both keys"));
                return Err(Error::Conflict {
                    what,
                    why: format!("{has}; `forget` of {new} takes that one away"),
                });
            }
        }
        Ok(())
    }

    /// Gives memories another end, one after the other. A name that names nothing, or nothing that can be changed, does
    /// not keep the others from theirs: nothing was written for it.
    ///
    /// # Errors
    /// `Corrupted`, and whatever else makes an update fail once it has begun.
    pub(crate) fn touch(&mut self, names: &[Name], expiry: Expiry) -> Result<Vec<Result<Outcome>>> {
        let one = |name: &Name| {
            let patch = Patch { expiry: Some(expiry), ..Patch::default() };
            // Every change takes a number of the journal.
            let untouched = self.ledger.clock.next_seq;
            match self.update(name.as_str(), patch, None) {
                Err(why @ (Error::NotFound { .. } | Error::Conflict { .. } | Error::Invalid { .. }))
                    if self.ledger.clock.next_seq == untouched =>
                {
                    Ok(Err(of_touch(why, name)))
                }
                other => other.map(Ok),
            }
        };
        names.iter().map(one).collect()
    }
}

/// A conflict of an update that `touch` made for a name.
fn of_touch(why: Error, name: &Name) -> Error {
    match why {
        Error::Conflict { why, .. } => Error::Conflict { what: format!("touch {name}"), why },
        why => why,
    }
}
