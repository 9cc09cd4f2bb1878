//! Another name for a record.
//!
//! A record is everything that its key leads to: the current row, superseded versions, rows in limbo, and the tombstones
//! that name the key. All of them change together. So nothing answers to the old key any more, and the history under the new
//! key is whole.

use crate::error::Result;
use crate::ledger::applied::Applied;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Op};
use crate::store::{NsId, Rows};

impl Ledger<'_, '_> {
    pub(super) fn rename(&mut self, context: &Context, old: &str, new: &str, why: &Why) -> Result<Applied> {
        let ns = context.ns;
        let held = self.tx.holders_of_key(ns, old)?;
        let renamed = held.len() as u64;
        for (id, number) in held {
            let Some(before) = self.tx.holder(ns, id, number)? else { continue };
            let mut holder = before.clone();
            holder.key = Some(new.to_owned());
            // The row by the old key follows from the old form, so that form is deleted and not overwritten.
            truth(self.tx).delete_holder(ns, id, &before)?;
            truth(self.tx).put_holder(ns, id, &holder)?;
            let (row, content) = self.load(ns, id)?;
            let mut vitals = row.clone();
            vitals.version += 1;
            self.store_row(context, id, Some((&row, &content)), vitals, &content)?;
            let delta = Delta { field: "key".to_owned(), before: old.into(), after: new.into() };
            self.journal(context, Op::Rename, Some((id, Some(number))), vec![delta], why.clone())?;
        }
        self.rename_in_tombstones(ns, old, new)?;
        Ok(Applied { renamed, ..Applied::default() })
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
