//! Holders, what they bring, and the junction rows of both directions.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::model::{Content, Holder, MemoryId, Vitals};
use crate::record::{At, decode_holder};
use crate::store::keys;
use crate::store::{End, Junction, JunctionRow, NsId, Rows, Table, holder_keys};

impl Check<'_> {
    /// The holders of a memory against its vitals and tags.
    pub(super) fn holders_of(
        &mut self,
        ns: NsId,
        id: MemoryId,
        key: &[u8],
        vitals: &Vitals,
        content: &Content,
    ) -> Result<()> {
        let Some(holders) = seen(self.snapshot.holders(ns, id))? else { return Ok(()) };
        let place = &vitals.place;
        if holders.is_empty() {
            self.find(Code::HolderMissing, Table::Vitals, key, "a memory without holders");
            return Ok(());
        }
        if usize::try_from(place.holders) != Ok(holders.len()) {
            let what = format!("{} holders counted, {} there", place.holders, holders.len());
            self.find(Code::HolderCount, Table::Vitals, key, what);
        }
        if let Some(holder) = holders.iter().find(|holder| holder.number >= place.next_holder) {
            let what = format!("holder {}, and the next is {}", holder.number, place.next_holder);
            self.find(Code::HolderNumber, Table::Vitals, key, what);
        }
        self.since_of(ns, id, vitals, &holders);
        if !holders.iter().any(Holder::wrote_row_text) {
            self.find(Code::TextWriter, Table::Holder, key, "no holder wrote the text");
        }
        if let Some(holder) = holders.iter().find(|holder| holder.follows && holder.text.is_some()) {
            let what = format!("holder {} has a text of its own and none", holder.number);
            self.find(Code::TextWriter, Table::Holder, key, what);
        }
        let tags: BTreeSet<&String> = holders.iter().flat_map(|holder| &holder.tags).collect();
        if !tags.iter().copied().eq(&content.tags) {
            let what = format!("tags {:?} where the holders brought {tags:?}", content.tags);
            self.find(Code::Tags, Table::Memory, key, what);
        }
        // What came without a write adds to the count (LIFE-18), so it may be more.
        let shares: u64 = holders.iter().map(|holder| u64::from(holder.share)).sum();
        if u64::from(vitals.reinforcement_count) < shares.min(u64::from(u32::MAX)).max(1) {
            let what = format!("{} where the shares are {shares}", vitals.reinforcement_count);
            self.find(Code::Reinforcement, Table::Vitals, key, what);
        }
        // In limbo nothing is joined: the rows come back with it.
        let joined = if vitals.times.removed_at.is_some() { &[] } else { holders.as_slice() };
        self.junctions_of(ns, id, joined)
    }

    /// A memory has a holder since no instant that is yet to come, and since none before the memory was there.
    fn since_of(&mut self, ns: NsId, id: MemoryId, vitals: &Vitals, holders: &[Holder]) {
        for holder in holders {
            let key = keys::holder(ns, id, holder.number);
            let what = if holder.since.as_millis() > self.clock.at_ms {
                "after the last commit"
            } else if holder.came_before(id, vitals.times.recorded_at) {
                "before the memory was there"
            } else {
                continue;
            };
            let what = format!("holder {} since {}, {what}", holder.number, holder.since);
            self.find(Code::Times, Table::Holder, &key, what);
        }
    }

    /// The junctions of a memory are the union of what its holders bring, and its sources.
    fn junctions_of(&mut self, ns: NsId, id: MemoryId, holders: &[Holder]) -> Result<()> {
        let Some(found) = seen(self.snapshot.junctions(ns, id))? else { return Ok(()) };
        let found: BTreeSet<JunctionRow> =
            found.into_iter().filter(|row| row.sort != Junction::Source).collect();
        let Some(brought) = seen(self.brought_by(ns, holders))? else { return Ok(()) };
        let missing =
            brought.difference(&found).map(|row| (row, Code::JunctionMissing, "a holder brings it"));
        let extra = found.difference(&brought).map(|row| (row, Code::JunctionExtra, "no holder brings it"));
        for (row, code, what) in missing.chain(extra) {
            let key = keys::junction(ns, id, row.end(), &row.role);
            self.find(code, Table::Junction, &key, what);
        }
        Ok(())
    }

    fn brought_by(&self, ns: NsId, holders: &[Holder]) -> Result<BTreeSet<JunctionRow>> {
        let mut brought = BTreeSet::new();
        for holder in holders {
            let categories = holder.categories.iter().map(|name| (Junction::Category, name, ""));
            let entities = holder.entities.iter().map(|e| (Junction::Entity, &e.name, e.role.as_str()));
            for (sort, name, role) in categories.chain(entities) {
                // A name that has no number is joined to nothing: no term has the last number.
                let term = self.snapshot.term(ns, sort, name)?.unwrap_or(u32::MAX);
                brought.insert(JunctionRow {
                    sort,
                    target: term.to_be_bytes().to_vec(),
                    role: role.to_owned(),
                });
            }
            for link in &holder.links {
                let target = link.to.as_bytes().to_vec();
                brought.insert(JunctionRow { sort: Junction::Link, target, role: link.relation.clone() });
            }
        }
        Ok(brought)
    }

    pub(super) fn holder(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let holder = decode_holder(At::new(Table::Holder.name(), key), value)?;
        let keys::Holder { ns, id, number } = keys::Holder::read(Table::Holder, key)?;
        self.belongs(Table::Holder, key)?;
        if holder.number != number {
            self.find(
                Code::ValueShape,
                Table::Holder,
                key,
                format!("holder {} says the value", holder.number),
            );
        }
        for (table, row) in holder_keys(ns, id, &holder) {
            if self.lacks(table, &row)? {
                let what = format!("holder {} of {id} is not found here", holder.number);
                self.find(Code::HolderIndexMissing, table, &row, what);
            }
        }
        Ok(())
    }

    pub(super) fn holder_key(&mut self, key: &[u8]) -> Result<()> {
        let keys::HolderKey { ns, key: name, id, number } = keys::HolderKey::read(Table::HolderKey, key)?;
        let name = name.0.to_owned();
        let fits = |holder: &Holder| holder.key.as_deref().unwrap_or_default() == name;
        self.holder_index(Table::HolderKey, key, ns, id, number, &fits)?;
        self.key_holder(key, ns, name, id)
    }

    /// A key belongs to at most one current memory of its namespace.
    fn key_holder(&mut self, key: &[u8], ns: NsId, name: String, id: MemoryId) -> Result<()> {
        let Some(now) = self.now.filter(|_| !name.is_empty()) else { return Ok(()) };
        let vitals = self.vitals_of(ns, id)?.flatten();
        let current = vitals.is_some_and(|vitals| vitals.times.is_current(now)).then_some(id);
        let held = match self.key_at.take() {
            Some((at, other, held)) if (at, &other) == (ns, &name) => held,
            _ => None,
        };
        if let (Some(held), Some(current)) = (held, current)
            && held != current
        {
            let what = format!("{name:?} belongs to {held} and to {current}");
            self.find(Code::KeyShared, Table::HolderKey, key, what);
        }
        self.key_at = Some((ns, name, held.or(current)));
        Ok(())
    }

    pub(super) fn holder_tag(&mut self, key: &[u8]) -> Result<()> {
        let keys::HolderTag { ns, tag, id, number } = keys::HolderTag::read(Table::HolderTag, key)?;
        let fits = |holder: &Holder| holder.tags.iter().any(|brought| brought == tag.0);
        self.holder_index(Table::HolderTag, key, ns, id, number, &fits)
    }

    pub(super) fn holder_run(&mut self, key: &[u8]) -> Result<()> {
        let keys::HolderRun { ns, run, id, number } = keys::HolderRun::read(Table::HolderRun, key)?;
        let fits = |holder: &Holder| holder.run == Some(run);
        self.holder_index(Table::HolderRun, key, ns, id, number, &fits)
    }

    /// A key, tag or run must find a holder that has it.
    fn holder_index(
        &mut self,
        table: Table,
        key: &[u8],
        ns: NsId,
        id: MemoryId,
        number: u32,
        fits: &dyn Fn(&Holder) -> bool,
    ) -> Result<()> {
        if let Some(found) = seen(self.snapshot.holder(ns, id, number))?
            && !found.as_ref().is_some_and(fits)
        {
            let what = format!("holder {number} of {id} does not have it");
            self.find(Code::HolderIndexExtra, table, key, what);
        }
        Ok(())
    }

    pub(super) fn junction(&mut self, key: &[u8]) -> Result<()> {
        self.belongs(Table::Junction, key)?;
        let keys::Junction { ns, id, end, role } = keys::Junction::read(Table::Junction, key)?;
        if self.lacks(Table::JunctionBack, &keys::junction_back(ns, end, id, role.0))? {
            self.find(Code::JunctionOneWay, Table::Junction, key, "the way back is missing");
        }
        self.target_of(key, ns, end)
    }

    /// The other end of a junction must be there; a source may be a tombstone.
    fn target_of(&mut self, key: &[u8], ns: NsId, End(sort, target): End<'_>) -> Result<()> {
        if let Ok(term) = target.try_into().map(u32::from_be_bytes) {
            if self.lacks(Table::TermName, &keys::term_name(ns, sort, term))? {
                self.find(Code::Term, Table::Junction, key, format!("number {term} has no name"));
            }
        } else if let Ok(id) = target.try_into().map(MemoryId::from_bytes) {
            let gone = self.lacks_row(ns, id)?;
            if sort == Junction::Link && gone {
                self.find(Code::LinkTarget, Table::Junction, key, format!("a link to {id}, which is gone"));
            } else if gone && self.lacks_tombstone(ns, id)? {
                self.find(
                    Code::SourceTarget,
                    Table::Junction,
                    key,
                    format!("made from {id}, which never was"),
                );
            }
        }
        Ok(())
    }

    pub(super) fn junction_back(&mut self, key: &[u8]) -> Result<()> {
        let keys::JunctionBack { ns, end, id, role } = keys::JunctionBack::read(Table::JunctionBack, key)?;
        if self.lacks(Table::Junction, &keys::junction(ns, id, end, role.0))? {
            self.find(Code::JunctionOneWay, Table::JunctionBack, key, "the way there is missing");
        }
        Ok(())
    }
}
