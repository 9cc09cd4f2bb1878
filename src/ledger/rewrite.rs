//! What is lost of memories whose texts are not: their writers, and what limbo says of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Entity, Evidence, Holder, Link, MemoryId, Op, RuleId, TombstoneReason};
use crate::store::control::LimboRow;
use crate::store::{Junction, JunctionRow, NsId, Rows, Table, Traces, keys, last_id_and_number};

impl Ledger<'_, '_> {
    /// Gives a memory its lost writers again, as far as keys, tags and runs still lead to them; if nothing does, one without a
    /// key. What no other writer brings, they bring: tags, categories, entities and links. Whether a lost writer had a text of its
    /// own is not known, so it stands for the text of the memory.
    pub(crate) fn rewrite(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let ns = context.ns;
        let (mut vitals, mut content) = self.load(ns, id)?;
        self.recount.insert(ns);
        let mut holders = self.readable_holders(ns, id)?;
        let mut lost = self.named_holders(ns, id, &holders)?;
        for number in self.tx.holder_numbers(ns, id)? {
            if holders.iter().all(|holder| holder.number != number) {
                truth(self.tx).delete(Table::Holder, &keys::holder(ns, id, number))?;
            }
        }
        if lost.is_empty() && !holders.iter().any(Holder::wrote_row_text) {
            let number = vitals.place.next_holder;
            lost.insert(number, Holder { number, count: 1, ..Holder::default() });
        }
        let in_limbo = vitals.times.removed_at.is_some();
        if let Some(mut first) = lost.first_entry() {
            let first = first.get_mut();
            let brought: BTreeSet<&String> = holders.iter().flat_map(|holder| &holder.tags).collect();
            first.tags.extend(content.tags.iter().filter(|tag| !brought.contains(tag)).cloned());
            if !in_limbo {
                self.bring_joined(ns, id, &holders, first)?;
            }
        }
        let shares = holders.iter().map(|holder| holder.share).fold(0, u32::saturating_add);
        let mut free = vitals.reinforcement_count.saturating_sub(shares);
        for holder in lost.values_mut() {
            holder.tags.sort_unstable();
            holder.tags.dedup();
            (holder.share, holder.since) = (free.min(1), vitals.times.recorded_at);
            free -= holder.share;
            match in_limbo {
                true => truth(self.tx).put_holder(ns, id, holder)?,
                false => self.put_holder(ns, id, holder)?,
            }
        }
        let count = lost.len();
        holders.extend(lost.into_values());
        vitals.place.holders = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        let last = holders.iter().map(|holder| holder.number).max().unwrap_or_default();
        vitals.place.next_holder = vitals.place.next_holder.max(last.saturating_add(1));
        vitals.version += 1;
        content.tags = self.tags_of(ns, id)?;
        truth(self.tx).put_vitals(ns, id, &vitals)?;
        truth(self.tx).put_content(ns, id, &content)?;
        let delta = Delta { field: "holders".to_owned(), before: "damaged".into(), after: count.into() };
        let why = Why { rule: RuleId::REINDEX, evidence: Evidence::default() };
        self.journal(context, Op::Update, Some((id, None)), vec![delta], why)
    }

    /// Gives a memory that waits in limbo its lost row of limbo again. The tombstone says why the memory was removed, and by which
    /// run. Its vector and what it was made from are lost with the row.
    pub(crate) fn rewrite_limbo(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let ns = context.ns;
        let (mut vitals, _) = self.load(ns, id)?;
        let Some(removed_at) = vitals.times.removed_at else { return Ok(()) };
        self.recount.insert(ns);
        let stone = sound(self.tx.tombstone(ns, id))?.flatten();
        let replaced_by = stone.as_ref().and_then(|stone| stone.replaced_by);
        let row = LimboRow {
            run: stone.as_ref().and_then(|stone| stone.run),
            reason: stone.map_or(TombstoneReason::Pruned, |stone| stone.reason),
            replaced_by,
            replaced: replaced_by.is_some() && vitals.times.superseded_by() == replaced_by,
            ..LimboRow::default()
        };
        truth(self.tx).put_limbo(ns, id, removed_at, &row)?;
        vitals.version += 1;
        truth(self.tx).put_vitals(ns, id, &vitals)?;
        let delta = Delta { field: "limbo".to_owned(), before: "damaged".into(), after: "mended".into() };
        let why = Why { rule: RuleId::REINDEX, evidence: Evidence::default() };
        self.journal(context, Op::Update, Some((id, None)), vec![delta], why)
    }

    /// The holders that keys, tags and runs lead to, and that can't be read, by number.
    fn named_holders(&self, ns: NsId, id: MemoryId, readable: &[Holder]) -> Result<BTreeMap<u32, Holder>> {
        let known: BTreeSet<u32> = readable.iter().map(|holder| holder.number).collect();
        let mut named: BTreeMap<u32, Holder> = BTreeMap::new();
        for table in [Table::HolderKey, Table::HolderTag, Table::HolderRun] {
            for (key, name) in self.tx.holder_places(table, ns, id, None)? {
                let (_, number) = last_id_and_number(table, &key)?;
                if known.contains(&number) {
                    continue;
                }
                let holder =
                    named.entry(number).or_insert_with(|| Holder { number, count: 1, ..Holder::default() });
                match table {
                    Table::HolderKey => holder.key = name.filter(|name| !name.is_empty()),
                    Table::HolderTag => holder.tags.extend(name),
                    _ => holder.run = keys::HolderRun::parse(&key).map(|row| row.run),
                }
            }
        }
        Ok(named)
    }

    /// Lets a holder bring what the memory is joined to and none of these holders brings.
    fn bring_joined(&self, ns: NsId, id: MemoryId, others: &[Holder], holder: &mut Holder) -> Result<()> {
        let mut brought = BTreeSet::new();
        for other in others {
            brought.extend(self.junctions_of(ns, other)?);
        }
        for row in self.tx.junctions(ns, id)?.into_iter().filter(|row| !brought.contains(row)) {
            let JunctionRow { sort, target, role } = row;
            let term = target.as_slice().try_into().map(u32::from_be_bytes).ok();
            let name = match (sort, term) {
                (Junction::Category | Junction::Entity, Some(term)) => {
                    sound(self.tx.term_name(ns, sort, term))?.flatten()
                }
                _ => None,
            };
            match (sort, name) {
                (Junction::Category, Some(name)) => holder.categories.push(name),
                (Junction::Entity, Some(name)) => holder.entities.push(Entity { name, role }),
                (Junction::Link, _) => {
                    let to = target.as_slice().try_into().map(MemoryId::from_bytes);
                    holder.links.extend(to.map(|to| Link { to, relation: role }));
                }
                _ => {}
            }
        }
        holder.categories.sort_unstable();
        holder.entities.sort_unstable();
        holder.links.sort_unstable();
        Ok(())
    }
}
