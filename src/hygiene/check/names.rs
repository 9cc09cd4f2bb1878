//! Names and numbers: the clock, namespaces, partitions, spaces, runs, policies, terms.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::hygiene::check::state::{Check, Tenant, seen};
use crate::hygiene::report::Code;
use crate::limits::{DIM_MAX, FORMAT_VERSION};
use crate::store::control::{Identity, NamespaceRow, SpaceRow, dropped_name};
use crate::store::keys;
use crate::store::{
    CLOCK, End, IDENTITY, NsId, PartId, Read, Rows, SIZE, SpaceId, Table, Walk, meta_of, space_of,
};

impl Check<'_> {
    /// Reads the names that keys are compared with, as far as they can be read.
    pub(super) fn learn_names(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let tenants = snapshot.walk(Table::Namespace, &Walk::all(), &mut |key, value| {
            if let Some(row) = seen(meta_of::<NamespaceRow>(Table::Namespace, key, value))? {
                let tenant = Tenant { next_part: row.next_part, dropping: row.dropping };
                self.tenants.entry(NsId(row.number)).or_insert(tenant);
            }
            Ok(ControlFlow::Continue(()))
        });
        seen(tenants)?;
        let parts = snapshot.walk(Table::PartitionName, &Walk::all(), &mut |key, _| {
            self.parts.extend(keys::PartitionName::parse(key).map(|row| (row.ns, row.part)));
            Ok(ControlFlow::Continue(()))
        });
        seen(parts)?;
        let numbers: Vec<NsId> = self.tenants.keys().copied().collect();
        for ns in numbers {
            for (path, is_whole) in seen(snapshot.meta_keys(ns))?.unwrap_or_default() {
                let known = if is_whole { &mut self.declared } else { &mut self.unfinished };
                known.entry(ns).or_default().push(path);
            }
        }
        let spaces = snapshot.walk(Table::Space, &Walk::all(), &mut |key, value| {
            let row = seen(space_of(key, value))?;
            self.spaces
                .extend(keys::Space::parse(key).zip(row).map(|(key, row)| (key.space, row.dim as usize)));
            Ok(ControlFlow::Continue(()))
        });
        seen(spaces).map(|_| ())
    }

    pub(super) fn meta(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key != IDENTITY {
            return Table::Meta.read_value(key, value);
        }
        let identity: Identity = meta_of(Table::Meta, key, value)?;
        if identity.format != FORMAT_VERSION {
            self.find(Code::Meta, Table::Meta, key, format!("file format {}", identity.format));
        }
        Ok(())
    }

    /// What must be there once, and what the clock names.
    pub(super) fn finish_meta(&mut self) -> Result<()> {
        for key in [IDENTITY, CLOCK] {
            if self.lacks(Table::Meta, key)? {
                self.find(Code::Meta, Table::Meta, key, "the row is missing");
            }
        }
        self.finish_size()?;
        let (policy, space) = (self.clock.policy, SpaceId(self.clock.space));
        if policy != 0 && self.lacks(Table::Policy, &keys::policy(policy))? {
            self.find(Code::Meta, Table::Meta, CLOCK, format!("policy {policy} is in force and not there"));
        }
        if space != SpaceId::NONE && self.lacks(Table::Space, &keys::space(space))? {
            self.find(Code::Meta, Table::Meta, CLOCK, format!("space {} is in use and not there", space.0));
        }
        Ok(())
    }

    /// What the rows take, as far as all were met.
    fn finish_size(&mut self) -> Result<()> {
        match seen(self.snapshot.size())? {
            Some(None) => self.find(Code::Size, Table::Meta, SIZE, "the row is missing"),
            Some(Some(size)) if self.walked && size.live != self.bytes => {
                let what = format!("{} bytes of keys and values, counted are {}", size.live, self.bytes);
                self.find(Code::Size, Table::Meta, SIZE, what);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn namespace(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: NamespaceRow = meta_of(Table::Namespace, key, value)?;
        if row.number == 0 || row.number >= self.clock.next_ns {
            let what = format!("number {} of 1 to {}", row.number, self.clock.next_ns - 1);
            self.find(Code::Namespace, Table::Namespace, key, what);
        }
        let hidden = dropped_name(NsId(row.number));
        if row.dropping != (key == hidden.as_bytes()) || (key.first() == Some(&0) && !row.dropping) {
            self.find(
                Code::Namespace,
                Table::Namespace,
                key,
                "a drop under way and a hidden name go together",
            );
        }
        if !self.numbers.insert(row.number) {
            self.find(Code::Namespace, Table::Namespace, key, format!("number {} twice", row.number));
        }
        Ok(())
    }

    pub(super) fn partition(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let part = PartId(meta_of(Table::Partition, key, value)?);
        let keys::Partition { ns, name } = keys::Partition::read(Table::Partition, key)?;
        // The row itself: a reader takes the name from here where it is missing.
        let stored = self.snapshot.meta::<String>(Table::PartitionName, &keys::ns_part(ns, part));
        if let Some(found) = seen(stored)?
            && found.as_deref() != Some(name.0)
        {
            let what = format!("number {} has the name {found:?}", part.0);
            self.find(Code::Partition, Table::Partition, key, what);
        }
        Ok(())
    }

    pub(super) fn partition_name(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let name: String = meta_of(Table::PartitionName, key, value)?;
        let keys::PartitionName { ns, part } = keys::PartitionName::read(Table::PartitionName, key)?;
        if let Some(found) = seen(self.snapshot.partition(ns, &name))?
            && found != Some(part)
        {
            let what = format!("the name {name:?} has another number: {found:?}");
            self.find(Code::Partition, Table::PartitionName, key, what);
        }
        let next = self.tenants.get(&ns).map_or(u32::MAX, |tenant| tenant.next_part);
        if part.0 == 0 || part.0 >= next {
            self.find(Code::Partition, Table::PartitionName, key, format!("{} of 1 to {}", part.0, next - 1));
        }
        Ok(())
    }

    pub(super) fn space(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: SpaceRow = meta_of(Table::Space, key, value)?;
        let number = keys::Space::read(Table::Space, key)?.space.0;
        if number == 0 || number >= self.clock.next_space {
            self.find(Code::Space, Table::Space, key, format!("number {number} was not given out"));
        }
        if !(1..=DIM_MAX).contains(&(row.dim as usize)) {
            self.find(Code::Space, Table::Space, key, format!("{} dimensions", row.dim));
        }
        Ok(())
    }

    pub(super) fn term(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let term: u32 = meta_of(Table::Term, key, value)?;
        let keys::Term { ns, sort, name } = keys::Term::read(Table::Term, key)?;
        if let Some(found) = seen(self.snapshot.term_name(ns, sort, term))?
            && found.as_deref() != Some(name.0)
        {
            self.find(Code::Term, Table::Term, key, format!("number {term} has the name {found:?}"));
        }
        if term >= self.clock.next_term {
            self.find(Code::Term, Table::Term, key, format!("number {term} was not given out"));
        }
        if self
            .lacks_any(Table::JunctionBack, &keys::junction_back_prefix(ns, End(sort, &term.to_be_bytes())))?
        {
            self.find(Code::TermUnused, Table::Term, key, format!("nothing names {:?}", name.0));
        }
        Ok(())
    }

    pub(super) fn term_name(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let name: String = meta_of(Table::TermName, key, value)?;
        let keys::TermName { ns, sort, term } = keys::TermName::read(Table::TermName, key)?;
        if let Some(found) = seen(self.snapshot.term(ns, sort, &name))?
            && found != Some(term)
        {
            let what = format!("the name {name:?} has another number: {found:?}");
            self.find(Code::Term, Table::TermName, key, what);
        }
        Ok(())
    }
}
