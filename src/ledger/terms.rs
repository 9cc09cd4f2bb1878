//! Categories and entities: names with a number in their namespace. A name goes with the last memory that uses it.

use crate::error::Result;
use crate::ledger::writer::{Ledger, truth};
use crate::model::{Entity, Holder, Link, MemoryId};
use crate::store::{Junction, JunctionRow, NsId, Rows};

impl Ledger<'_, '_> {
    /// The junction rows that a holder brings. Names without a number get one.
    pub(super) fn junctions_for(&mut self, ns: NsId, holder: &Holder) -> Result<Vec<JunctionRow>> {
        junctions(holder, |sort, name| self.intern(ns, sort, name).map(Some))
    }

    /// The junction rows that a holder has brought. Nothing is joined to a name without a number.
    pub(super) fn junctions_of(&self, ns: NsId, holder: &Holder) -> Result<Vec<JunctionRow>> {
        junctions(holder, |sort, name| self.tx.term(ns, sort, name))
    }

    /// The number of a name; a new number for a new name.
    fn intern(&mut self, ns: NsId, sort: Junction, name: &str) -> Result<u32> {
        if let Some(term) = self.tx.term(ns, sort, name)? {
            return Ok(term);
        }
        let term = self.clock.next_term;
        self.clock.next_term += 1;
        truth(self.tx).put_term(ns, sort, name, term)?;
        Ok(term)
    }

    /// Joins a memory to the memories from which it was made. Provenance may point at a tombstone.
    pub(super) fn join_sources(&mut self, ns: NsId, id: MemoryId, sources: &[MemoryId]) -> Result<()> {
        for source in sources {
            let row = JunctionRow {
                sort: Junction::Source,
                target: source.as_bytes().to_vec(),
                role: String::new(),
            };
            truth(self.tx).put_junction(ns, id, &row)?;
        }
        Ok(())
    }

    /// Removes a junction row. The name at its other end is removed too if nothing else uses it.
    pub(super) fn unjoin(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<()> {
        // The junction goes before the question whether its name is used, so that it does not keep the name
        // itself.
        truth(self.tx).delete_junction(ns, id, row)?;
        let term = match row.sort {
            Junction::Category | Junction::Entity => {
                row.target.as_slice().try_into().map(u32::from_be_bytes).ok()
            }
            Junction::Link | Junction::Source => None,
        };
        if let Some(term) = term
            && !self.tx.is_joined_to(ns, row.sort, &row.target)?
        {
            truth(self.tx).delete_term(ns, row.sort, term)?;
        }
        Ok(())
    }
}

fn junctions(
    holder: &Holder,
    mut number: impl FnMut(Junction, &str) -> Result<Option<u32>>,
) -> Result<Vec<JunctionRow>> {
    let mut rows = Vec::new();
    for name in &holder.categories {
        rows.extend(number(Junction::Category, name)?.map(|term| joined(Junction::Category, term, "")));
    }
    for Entity { name, role } in &holder.entities {
        rows.extend(number(Junction::Entity, name)?.map(|term| joined(Junction::Entity, term, role)));
    }
    for Link { to, relation } in &holder.links {
        let target = to.as_bytes().to_vec();
        rows.push(JunctionRow { sort: Junction::Link, target, role: relation.clone() });
    }
    Ok(rows)
}

fn joined(sort: Junction, term: u32, role: &str) -> JunctionRow {
    JunctionRow { sort, target: term.to_be_bytes().to_vec(), role: role.to_owned() }
}
