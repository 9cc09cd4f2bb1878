//! Names and numbers: the clock, namespaces, partitions, spaces, runs, policies, terms.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::hygiene::check::{Check, Tenant, address, seen};
use crate::hygiene::report::Code;
use crate::limits::{DIM_MAX, FORMAT_VERSION};
use crate::record::{At, decode_meta};
use crate::store::control::{
    Clock, Identity, NamespaceRow, RunRow, SizeRow, SpaceRow, UnfinishedRow, dropped_name,
};
use crate::store::keys::{self, Parts};
use crate::store::{CLOCK, IDENTITY, NsId, PartId, Read, Rows, SIZE, SpaceId, Table, Walk};

impl Check<'_> {
    /// Reads the names that keys are compared with, as far as they can be read.
    pub(super) fn learn_names(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let tenants = snapshot.walk(Table::Namespace, &Walk::all(), &mut |key, value| {
            let at = At::new(Table::Namespace.name(), key);
            if let Some(row) = seen(decode_meta::<NamespaceRow>(Table::Namespace.tag(), at, value))? {
                let tenant = Tenant { next_part: row.next_part, dropping: row.dropping };
                self.tenants.entry(NsId(row.number)).or_insert(tenant);
            }
            Ok(ControlFlow::Continue(()))
        });
        seen(tenants)?;
        let parts = snapshot.walk(Table::PartitionName, &Walk::all(), &mut |key, _| {
            let mut key = Parts(key);
            if let Some((ns, part)) = key.u32().zip(key.u32()) {
                self.parts.insert((NsId(ns), PartId(part)));
            }
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
            let at = At::new(Table::Space.name(), key);
            let row = seen(decode_meta::<SpaceRow>(Table::Space.tag(), at, value))?;
            if let (Some(row), Some(number)) = (row, Parts(key).take::<2>()) {
                self.spaces.insert(SpaceId(u16::from_be_bytes(number)), row.dim as usize);
            }
            Ok(ControlFlow::Continue(()))
        });
        seen(spaces).map(|_| ())
    }

    /// A declared index says how far it is, unless it is whole.
    pub(super) fn meta_key(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let at = At::new(Table::MetaKey.name(), key);
        decode_meta::<Option<UnfinishedRow>>(Table::MetaKey.tag(), at, value).map(|_| ())
    }

    pub(super) fn meta(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let at = At::new(Table::Meta.name(), key);
        if key == CLOCK {
            return decode_meta::<Clock>(Table::Meta.tag(), at, value).map(|_| ());
        }
        if key == SIZE {
            return decode_meta::<SizeRow>(Table::Meta.tag(), at, value).map(|_| ());
        }
        let identity: Identity = decode_meta(Table::Meta.tag(), at, value)?;
        if identity.format != FORMAT_VERSION {
            self.find(Code::Meta, Table::Meta, key, format!("file format {}", identity.format));
        }
        Ok(())
    }

    /// What must be there once, and what the clock names.
    pub(super) fn finish_meta(&mut self) -> Result<()> {
        for key in [IDENTITY, CLOCK] {
            if !self.has(Table::Meta, key)? {
                self.find(Code::Meta, Table::Meta, key, "the row is missing");
            }
        }
        self.finish_size()?;
        let (policy, space) = (self.clock.policy, SpaceId(self.clock.space));
        if policy != 0 && !self.has(Table::Policy, &keys::policy(policy))? {
            self.find(Code::Meta, Table::Meta, CLOCK, format!("policy {policy} is in force and not there"));
        }
        if space != SpaceId::NONE && !self.has(Table::Space, &keys::space(space))? {
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
        let at = At::new(Table::Namespace.name(), key);
        let row: NamespaceRow = decode_meta(Table::Namespace.tag(), at, value)?;
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
        let at = At::new(Table::Partition.name(), key);
        let part = PartId(decode_meta(Table::Partition.tag(), at, value)?);
        let mut parts = Parts(key);
        let (Some(ns), Some(name)) = (parts.u32().map(NsId), parts.rest()) else { return Ok(()) };
        if let Some(found) = seen(self.snapshot.partition_name(ns, part))?
            && found.as_deref() != Some(name)
        {
            let what = format!("number {} has the name {found:?}", part.0);
            self.find(Code::Partition, Table::Partition, key, what);
        }
        Ok(())
    }

    pub(super) fn partition_name(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let at = At::new(Table::PartitionName.name(), key);
        let name: String = decode_meta(Table::PartitionName.tag(), at, value)?;
        let mut parts = Parts(key);
        let Some((ns, part)) = parts.u32().zip(parts.u32()) else { return Ok(()) };
        if let Some(found) = seen(self.snapshot.partition(NsId(ns), &name))?
            && found != Some(PartId(part))
        {
            let what = format!("the name {name:?} has another number: {found:?}");
            self.find(Code::Partition, Table::PartitionName, key, what);
        }
        let next = self.tenants.get(&NsId(ns)).map_or(u32::MAX, |tenant| tenant.next_part);
        if part == 0 || part >= next {
            self.find(Code::Partition, Table::PartitionName, key, format!("{part} of 1 to {}", next - 1));
        }
        Ok(())
    }

    pub(super) fn space(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: SpaceRow = decode_meta(Table::Space.tag(), At::new(Table::Space.name(), key), value)?;
        let number = Parts(key).take::<2>().map_or(0, u16::from_be_bytes);
        if number == 0 || number >= self.clock.next_space {
            self.find(Code::Space, Table::Space, key, format!("number {number} was not given out"));
        }
        if !(1..=DIM_MAX).contains(&(row.dim as usize)) {
            self.find(Code::Space, Table::Space, key, format!("{} dimensions", row.dim));
        }
        Ok(())
    }

    pub(super) fn run(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        decode_meta::<RunRow>(Table::Run.tag(), At::new(Table::Run.name(), key), value).map(|_| ())
    }

    pub(super) fn policy(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        decode_meta::<String>(Table::Policy.tag(), At::new(Table::Policy.name(), key), value).map(|_| ())
    }

    pub(super) fn term(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let term: u32 = decode_meta(Table::Term.tag(), At::new(Table::Term.name(), key), value)?;
        let mut parts = Parts(key);
        let ns = parts.u32().map(NsId);
        let (Some(ns), Some(sort)) = (ns, address::term_sort(&mut parts)) else { return Ok(()) };
        let name = parts.rest().unwrap_or_default();
        if let Some(found) = seen(self.snapshot.term_name(ns, sort, term))?
            && found.as_deref() != Some(name)
        {
            self.find(Code::Term, Table::Term, key, format!("number {term} has the name {found:?}"));
        }
        if term >= self.clock.next_term {
            self.find(Code::Term, Table::Term, key, format!("number {term} was not given out"));
        }
        if !self.has_any(Table::JunctionBack, &keys::junction_back_prefix(ns, sort, &term.to_be_bytes()))? {
            self.find(Code::TermUnused, Table::Term, key, format!("nothing names {name:?}"));
        }
        Ok(())
    }

    pub(super) fn term_name(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let at = At::new(Table::TermName.name(), key);
        let name: String = decode_meta(Table::TermName.tag(), at, value)?;
        let mut parts = Parts(key);
        let ns = parts.u32().map(NsId);
        let (Some(ns), Some(sort)) = (ns, address::term_sort(&mut parts)) else { return Ok(()) };
        let term = parts.u32();
        if let Some(found) = seen(self.snapshot.term(ns, sort, &name))?
            && found != term
        {
            let what = format!("the name {name:?} has another number: {found:?}");
            self.find(Code::Term, Table::TermName, key, what);
        }
        Ok(())
    }
}
