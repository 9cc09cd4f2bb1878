//! Another name for a record.
//!
//! A record is everything that its key leads to: the current row, superseded versions, rows in limbo, its messages, and the
//! tombstones that name the key. All of them change together. So nothing answers to the old key any more, and the history under the new
//! key is whole.

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Holder, MemoryId, Op};
use crate::store::control::EventRow;
use crate::store::{NsId, Rows, Table, keys};

impl Ledger<'_, '_> {
    pub(super) fn rename(&mut self, context: &Context, old: &str, new: &str, why: &Why) -> Result<Applied> {
        let ns = context.ns;
        let held = self.tx.holders_of_key(ns, old)?;
        let renamed = held.len() as u64;
        for (id, number) in held {
            self.rename_holder(ns, (id, number), old, new)?;
            match sound(self.load_there(ns, id))? {
                Some(None) => {}
                Some(Some((row, content))) => {
                    let mut vitals = row.clone();
                    vitals.version += 1;
                    self.store_row(context, id, Some((&row, &content)), vitals, &content)?;
                }
                // What follows from a row does not follow from its keys, so a damaged one needs no more than a new version.
                None => {
                    if let Some(mut vitals) = sound(self.tx.vitals(ns, id))?.flatten() {
                        vitals.version += 1;
                        truth(self.tx).put_vitals(ns, id, &vitals)?;
                    }
                }
            }
            let delta = Delta { field: "key".to_owned(), before: old.into(), after: new.into() };
            self.journal(context, Op::Rename, Some((id, Some(number))), vec![delta], why.clone())?;
        }
        self.rename_in_tombstones(ns, old, new)?;
        for (event, row) in self.messages_under(ns, old)? {
            truth(self.tx).put_event(ns, &event, &EventRow { key: Some(new.to_owned()), ..row })?;
        }
        Ok(Applied { renamed, ..Applied::default() })
    }

    /// Gives a holder the new key. Of one that can't be read the row by key goes on telling the key.
    fn rename_holder(&mut self, ns: NsId, (id, number): (MemoryId, u32), old: &str, new: &str) -> Result<()> {
        match sound(self.tx.holder(ns, id, number))? {
            Some(None) => {}
            Some(Some(before)) => {
                let holder = Holder { key: Some(new.to_owned()), ..before.clone() };
                // The row by the old key follows from the old form, so that form is deleted and not overwritten.
                truth(self.tx).delete_holder(ns, id, &before)?;
                truth(self.tx).put_holder(ns, id, &holder)?;
            }
            None => {
                truth(self.tx).delete(Table::HolderKey, &keys::holder_key(ns, old, id, number))?;
                truth(self.tx).put(Table::HolderKey, &keys::holder_key(ns, new, id, number), &[])?;
            }
        }
        Ok(())
    }

    /// Lets every tombstone that names a key name another one.
    fn rename_in_tombstones(&mut self, ns: NsId, old: &str, new: &str) -> Result<()> {
        let to = self.hash_key(new);
        for from in self.secret.names_of_key(old) {
            for id in self.tx.tombstones_of_hash(ns, &from)? {
                let Some(before) = self.tx.tombstone(ns, id)? else { continue };
                // The HMAC of a content is never that of a key, but a plain hash can be both.
                if !before.key_hashes.contains(&from) {
                    continue;
                }
                let mut stone = before.clone();
                stone.key_hashes.retain(|hash| *hash != from);
                stone.key_hashes.push(to);
                truth(self.tx).delete_tombstone(ns, &before)?;
                truth(self.tx).put_tombstone(ns, &stone)?;
            }
        }
        Ok(())
    }
}
