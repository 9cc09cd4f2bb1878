//! Rows that damage of a key has put where no row of the store can be.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::writer::{Ledger, truth};
use crate::store::control::DROPPED;
use crate::store::{NsId, Read, Rows, Table, Walk};

/// The rows of a namespace that is not there.
#[derive(Default)]
struct Stray {
    rows: Vec<(Table, Vec<u8>)>,
    /// Whether one of them fits its key, so that the row of the namespace is what is lost.
    is_lost: bool,
}

impl Ledger<'_, '_> {
    /// Removes rows whose keys are none of their table, rows of namespaces that are not there, and rows of limbo of memories that are
    /// not in limbo. Where a value fits the key
    /// that it stands under, the row stays: then the row of the namespace is lost, and its memories are not to go with it.
    pub(crate) fn drop_strays(&mut self) -> Result<()> {
        // Behind a damaged page of names there may be others, and nobody knows which numbers are given out.
        let Some(named) = sound(self.tx.namespaces())? else { return Ok(()) };
        let known: BTreeSet<NsId> = named.iter().map(|(_, row)| NsId(row.number)).collect();
        let mut strays: BTreeMap<Option<NsId>, Stray> = BTreeMap::new();
        for table in Table::ALL {
            let walked = self.tx.walk(*table, &Walk::all(), &mut |key, value| {
                let (address, is_built) = table.address(key);
                let is_there = |ns| known.contains(&ns) || ns == DROPPED && table.tells_of_drops();
                if is_built && address.ns.is_none_or(is_there) {
                    return Ok(ControlFlow::Continue(()));
                }
                let stray = strays.entry(address.ns.filter(|_| is_built)).or_default();
                match is_built && !table.is_all_key() && table.read_value(key, value).is_ok() {
                    true => stray.is_lost = true,
                    false => stray.rows.push((*table, key.to_vec())),
                }
                Ok(ControlFlow::Continue(()))
            });
            sound(walked)?;
        }
        for (table, key) in strays.into_values().filter(|stray| !stray.is_lost).flat_map(|stray| stray.rows) {
            truth(self.tx).delete(table, &key)?;
        }
        self.drop_limbo_of_others()
    }

    /// Removes what stands in limbo under a memory that is not there, or under an id that nothing else knows.
    fn drop_limbo_of_others(&mut self) -> Result<()> {
        let mut told = Vec::new();
        let walked = self.tx.walk(Table::Limbo, &Walk::all(), &mut |key, _| {
            told.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        });
        sound(walked)?;
        for key in told {
            let (address, _) = Table::Limbo.address(&key);
            let Some((ns, id)) = address.ns.zip(address.id) else { continue };
            // Without a hot part the row tells of a memory that is lost, as far as the row can be read.
            let says_nothing = match sound(self.tx.vitals(ns, id))? {
                Some(Some(vitals)) => vitals.times.removed_at.is_none(),
                Some(None) => sound(self.tx.limbo(ns, id))?.is_none(),
                None => false,
            };
            if says_nothing {
                truth(self.tx).delete(Table::Limbo, &key)?;
            }
        }
        Ok(())
    }
}
