//! Holders, what they bring, and the junction rows of both directions.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::hygiene::check::rows::memory_of;
use crate::hygiene::check::{Check, address, seen};
use crate::hygiene::report::Code;
use crate::model::{Content, Holder, MemoryId, RunId, Vitals};
use crate::record::{At, decode_holder};
use crate::store::keys::{self, Parts};
use crate::store::{Junction, JunctionRow, NsId, Rows, Table};

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
            let key = keys::junction(ns, id, row.sort, &row.target, &row.role);
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
        let Some((ns, id)) = memory_of(key) else { return Ok(()) };
        self.belongs(Table::Holder, key)?;
        if *keys::holder(ns, id, holder.number) != *key {
            self.find(
                Code::ValueShape,
                Table::Holder,
                key,
                format!("holder {} says the value", holder.number),
            );
        }
        // A keyless holder stands under the empty key.
        let by_key = keys::holder_key(ns, holder.key.as_deref().unwrap_or_default(), id, holder.number);
        let mut found_by = vec![(Table::HolderKey, by_key)];
        for tag in &holder.tags {
            found_by.push((Table::HolderTag, keys::holder_key(ns, tag, id, holder.number)));
        }
        if let Some(run) = holder.run {
            found_by.push((Table::HolderRun, keys::holder_run(ns, run, id, holder.number)));
        }
        for (table, row) in found_by {
            if !self.has(table, &row)? {
                let what = format!("holder {} of {id} is not found here", holder.number);
                self.find(Code::HolderIndexMissing, table, &row, what);
            }
        }
        Ok(())
    }

    pub(super) fn holder_key(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((ns, name, id, number)) = found_by_text(key) else { return Ok(()) };
        let name = name.to_owned();
        let fits = |holder: &Holder| holder.key.as_deref().unwrap_or_default() == name;
        self.holder_index(Table::HolderKey, key, value, (ns, id, number), &fits)?;
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

    pub(super) fn holder_tag(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((ns, tag, id, number)) = found_by_text(key) else { return Ok(()) };
        let fits = |holder: &Holder| holder.tags.iter().any(|brought| brought == tag);
        self.holder_index(Table::HolderTag, key, value, (ns, id, number), &fits)
    }

    pub(super) fn holder_run(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut parts = Parts(key);
        let (ns, run, place) = (parts.u32(), parts.take::<16>(), parts.id().zip(parts.u32()));
        let (Some(ns), Some(run), Some((id, number))) = (ns, run, place) else { return Ok(()) };
        let fits = |holder: &Holder| holder.run == Some(RunId::from_bytes(run));
        self.holder_index(Table::HolderRun, key, value, (NsId(ns), id, number), &fits)
    }

    /// A key, tag or run must find a holder that has it.
    fn holder_index(
        &mut self,
        table: Table,
        key: &[u8],
        value: &[u8],
        (ns, id, number): (NsId, MemoryId, u32),
        fits: &dyn Fn(&Holder) -> bool,
    ) -> Result<()> {
        self.no_value(table, key, value);
        if let Some(found) = seen(self.snapshot.holder(ns, id, number))?
            && !found.as_ref().is_some_and(fits)
        {
            let what = format!("holder {number} of {id} does not have it");
            self.find(Code::HolderIndexExtra, table, key, what);
        }
        Ok(())
    }

    pub(super) fn junction(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::Junction, key, value);
        self.belongs(Table::Junction, key)?;
        let Some((ns, id)) = memory_of(key) else { return Ok(()) };
        let mut parts = Parts(key);
        let (_, _) = (parts.u32(), parts.id());
        let Some((sort, target)) = address::target(&mut parts) else { return Ok(()) };
        let role = parts.rest().unwrap_or_default();
        if !self.has(Table::JunctionBack, &keys::junction_back(ns, sort, target, id, role))? {
            self.find(Code::JunctionOneWay, Table::Junction, key, "the way back is missing");
        }
        self.target_of(key, ns, sort, target)
    }

    /// The other end of a junction must be there; a source may be a tombstone.
    fn target_of(&mut self, key: &[u8], ns: NsId, sort: Junction, target: &[u8]) -> Result<()> {
        if let Ok(term) = target.try_into().map(u32::from_be_bytes) {
            if !self.has(Table::TermName, &keys::term_name(ns, sort, term))? {
                self.find(Code::Term, Table::Junction, key, format!("number {term} has no name"));
            }
        } else if let Ok(id) = target.try_into().map(MemoryId::from_bytes) {
            let there = self.has_row(ns, id)?;
            if sort == Junction::Link && !there {
                self.find(Code::LinkTarget, Table::Junction, key, format!("a link to {id}, which is gone"));
            } else if !there && !self.has_tombstone(ns, id)? {
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

    pub(super) fn junction_back(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::JunctionBack, key, value);
        let mut parts = Parts(key);
        let ns = parts.u32().map(NsId);
        let (Some(ns), Some((sort, target))) = (ns, address::target(&mut parts)) else { return Ok(()) };
        let (Some(id), Some(role)) = (parts.id(), parts.rest()) else { return Ok(()) };
        if !self.has(Table::Junction, &keys::junction(ns, id, sort, target, role))? {
            self.find(Code::JunctionOneWay, Table::JunctionBack, key, "the way there is missing");
        }
        Ok(())
    }
}

/// Namespace, text, id and number of a key by which a holder is found.
fn found_by_text(key: &[u8]) -> Option<(NsId, &str, MemoryId, u32)> {
    let mut parts = Parts(key);
    Some((NsId(parts.u32()?), parts.text()?, parts.id()?, parts.u32()?))
}
