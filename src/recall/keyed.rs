//! What memories say that are found by their keys, texts or entities, without all else that is known of them.

use std::collections::BTreeMap;

use crate::error::{Error, Result, sound};
use crate::model::{Entity, MemoryId, Tier, Time, Vitals};
use crate::recall::assemble::keys_of;
use crate::recall::{Reader, SHARED, Source};
use crate::store::keys;
use crate::store::{End, Junction, JunctionRow, NsId, Rows, Table, Walk, last_id};
use crate::text::normal_form;

/// How many memories of one entity are looked for first, where those of the smallest of several are wanted.
const JOINED_AT_ONCE: usize = 32;

/// What a memory says, and of whom.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) keys: Vec<String>,
    pub(crate) entities: Vec<Entity>,
    pub(crate) categories: Vec<String>,
    pub(crate) created_at: Time,
}

/// The memories that were looked for, in the order of creation, those of equal instants by id.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    pub(crate) memories: Vec<Said>,
    /// Those that can't be read, with what is known of their keys.
    pub(crate) damaged: Vec<(MemoryId, Vec<String>)>,
}

/// Which memories are looked for.
#[derive(Debug, Default)]
pub(crate) struct Sought<'s> {
    /// Those with one of these keys.
    pub(crate) keys: Vec<String>,
    /// Those with one of these texts that are joined to all entities beside it. Others of these entities may be found, too.
    pub(crate) texts: Vec<(String, Vec<&'s str>)>,
    /// Those that are joined to all entities of one of these lists.
    pub(crate) about: Vec<Vec<&'s str>>,
    /// The roles in which they are joined.
    pub(crate) roles: &'s [&'s str],
}

/// Names of categories and entities that were read before.
type Names = BTreeMap<(Junction, Vec<u8>), String>;

impl<S: Source> Reader<'_, S> {
    /// The memories of the shared partition that a live read sees and that have a key with one of these beginnings, each with
    /// those keys. No other memory is read, and of these only the text and what they are joined to.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn keyed(&self, beginnings: &[&str]) -> Result<Keyed> {
        let Some(ns) = self.ns else { return Ok(Keyed::default()) };
        let mut named: BTreeMap<MemoryId, Vec<String>> = BTreeMap::new();
        for begins in beginnings {
            let walk = Walk::prefix(&keys::holder_keys_of(ns, begins));
            for (id, key) in self.held(&walk)? {
                named.entry(id).or_default().push(key);
            }
        }
        self.seen_of(ns, named, false)
    }

    /// The memories of the shared partition that a live read sees and that are sought, each with all its keys. Of an entity to which
    /// many memories are joined those alone are read that are sought.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn sought(&self, Sought { keys, texts, about, roles }: &Sought<'_>) -> Result<Keyed> {
        let Some(ns) = self.ns else { return Ok(Keyed::default()) };
        let mut named: BTreeMap<MemoryId, Vec<String>> = BTreeMap::new();
        for key in keys {
            for (id, key) in self.held(&Walk::prefix(&keys::holder_key_prefix(ns, key)))? {
                named.entry(id).or_default().push(key);
            }
        }
        let mut found = Vec::new();
        for (text, names) in texts {
            let Some(fingerprint) = normal_form(text).prefix() else { continue };
            for tier in Tier::ALL {
                let equal = keys::by_fingerprint_prefix(ns, SHARED, *tier, &fingerprint, &[]);
                let equal = (Table::ByFingerprint, Walk::prefix(&equal));
                found.extend(self.fewest_joined(ns, Some(equal), names, roles)?);
            }
            // What another memory replaces at an instant ahead takes in no equal text, and stands among those that are to end.
            let due = (Table::Due, Walk::prefix(&keys::ns(ns)));
            for id in self.fewest_joined(ns, Some(due), names, roles)? {
                // One that can't be read may say it.
                let vitals = sound(self.vitals(ns, id))?;
                let says = vitals.is_none_or(|vitals| vitals.place.fingerprint == Some(fingerprint));
                found.extend(says.then_some(id));
            }
        }
        for names in about {
            found.extend(self.fewest_joined(ns, None, names, roles)?);
        }
        for id in found {
            named.entry(id).or_default();
        }
        self.seen_of(ns, named, true)
    }

    /// The memories on a walk over keys, each beside its key.
    fn held(&self, walk: &Walk) -> Result<Vec<(MemoryId, String)>> {
        self.rows().each_key(Table::HolderKey, walk, usize::MAX, |key| {
            let keys::HolderKey { key: name, id, .. } = keys::HolderKey::read(Table::HolderKey, key)?;
            Ok((id, name.0.to_owned()))
        })
    }

    /// The memories of a walk, or those that are joined to one of some entities in one of some roles: whichever are the fewest. There
    /// are none if nothing is joined to one of the entities. All are looked at side by side, so that what is large costs no more than
    /// what is small.
    fn fewest_joined(
        &self,
        ns: NsId,
        of: Option<(Table, Walk)>,
        names: &[&str],
        roles: &[&str],
    ) -> Result<Vec<MemoryId>> {
        let mut walks = Vec::with_capacity(names.len() + 1);
        walks.extend(of);
        for name in names {
            let Some(term) = self.rows().term(ns, Junction::Entity, name)? else { return Ok(Vec::new()) };
            let end = term.to_be_bytes();
            let walk = Walk::prefix(&keys::junction_back_prefix(ns, End(Junction::Entity, &end)));
            walks.push((Table::JunctionBack, walk));
        }
        let wanted = |table: Table, key: &[u8]| {
            if table != Table::JunctionBack {
                return last_id(table, key).map(Some);
            }
            let row = keys::JunctionBack::read(table, key)?;
            Ok(Some(row.id).filter(|_| roles.contains(&row.role.0)))
        };
        let mut most = JOINED_AT_ONCE;
        while !walks.is_empty() {
            for (table, walk) in &walks {
                let all = self.rows().each_key(*table, walk, most, |key| wanted(*table, key))?;
                if all.len() < most {
                    return Ok(all.into_iter().flatten().collect());
                }
            }
            most = most.saturating_mul(2);
        }
        Ok(Vec::new())
    }

    /// Those of some memories that lie in the shared partition and that a live read sees. Where `all_keys` are wanted, a memory has
    /// the others beside the keys that are known, unless its holders can't be read.
    fn seen_of(&self, ns: NsId, named: BTreeMap<MemoryId, Vec<String>>, all_keys: bool) -> Result<Keyed> {
        let (mut rows, mut keyed, mut names) = (Vec::new(), Keyed::default(), Names::new());
        for (id, keys) in named {
            match sound(self.vitals(ns, id))? {
                Some(vitals) if vitals.place.partition == SHARED.0 && self.sees(id, &vitals)? => {
                    rows.push((id, vitals, keys));
                }
                Some(_) => {}
                None => keyed.damaged.push((id, keys)),
            }
        }
        rows.sort_unstable_by_key(|(id, vitals, _)| (vitals.created_at, *id));
        for (id, vitals, mut keys) in rows {
            if all_keys {
                match sound(self.holders(ns, id, &vitals))? {
                    Some(holders) => keys = keys_of(&holders),
                    // Nobody knows whether it has another key.
                    None if keys.is_empty() => {
                        keyed.damaged.push((id, keys));
                        continue;
                    }
                    None => {}
                }
            }
            match sound(self.what_it_says(ns, id, &vitals, &mut names))? {
                Some(said) => keyed.memories.push(Said { keys, ..said }),
                None => keyed.damaged.push((id, keys)),
            }
        }
        Ok(keyed)
    }

    /// What a memory says, without its keys.
    fn what_it_says(&self, ns: NsId, id: MemoryId, vitals: &Vitals, names: &mut Names) -> Result<Said> {
        let lost = || Error::corrupted("memory", &keys::memory(ns, id), "vitals without content");
        let text = self.rows().text(ns, id)?.ok_or_else(lost)?;
        let created_at = vitals.created_at;
        let (keys, entities, categories) = (Vec::new(), Vec::new(), Vec::new());
        let mut said = Said { text, keys, entities, categories, created_at };
        for row in self.rows().junctions(ns, id)? {
            if !row.sort.is_term() {
                continue;
            }
            let name = self.name(ns, id, &row, names)?;
            match row.sort {
                Junction::Entity => said.entities.push(Entity { name, role: row.role }),
                _ => said.categories.push(name),
            }
        }
        said.entities.sort_unstable();
        said.categories.sort_unstable();
        Ok(said)
    }

    /// The name that a junction row stands for, which is read once.
    fn name(&self, ns: NsId, id: MemoryId, row: &JunctionRow, names: &mut Names) -> Result<String> {
        let place = (row.sort, row.target.clone());
        if let Some(name) = names.get(&place) {
            return Ok(name.clone());
        }
        let name = self.term(ns, id, row)?;
        names.insert(place, name.clone());
        Ok(name)
    }
}
