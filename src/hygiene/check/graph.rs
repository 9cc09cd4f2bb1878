//! Graphs of the vector indexes: links, heads, dead slots, and whether every live node is found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::hnsw::level_of;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::check::tallies::{ABSENT, Mesh, PER, TWIN, Tally};
use crate::hygiene::report::Code;
use crate::index::found_by_themselves;
use crate::model::MemoryId;
use crate::record::{At, GraphBlockRef, GraphNodeRef, NODES_PER_BLOCK, SlotMeta, slots_per_block};
use crate::store::control::GraphHead;
use crate::store::keys;
use crate::store::{IndexId, Read, Rows, Table, Walk, meta_of};

/// Share of a sample that a search has to find: what the default effort promises, with room for chance.
const FOUND_MIN: f64 = 0.98;

impl Check<'_> {
    /// Reads which slots are nodes, as far as that can be read: links are compared with it.
    pub(super) fn learn_graphs(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let blocks = snapshot.walk(Table::Graph, &Walk::all(), &mut |key, value| {
            let Some(keys::Graph { index, block }) = keys::Graph::parse(key) else {
                return Ok(ControlFlow::Continue(()));
            };
            let mesh = self.meshes.entry(index).or_default();
            match seen(GraphBlockRef::open(At::new(Table::Graph.name(), key), value))? {
                Some(found) => {
                    let mut levels = [ABSENT; NODES_PER_BLOCK];
                    for (place, node) in levels.iter_mut().zip(found.nodes()) {
                        *place = node.map_or(ABSENT, |node| match node.host() {
                            Some(_) => TWIN,
                            None => node.level() as u8,
                        });
                    }
                    mesh.levels.insert(block, levels);
                }
                None => mesh.blind = true,
            }
            Ok(ControlFlow::Continue(()))
        });
        // Where the walk itself met damage, nobody knows whose rows are missing.
        if seen(blocks)?.is_none() {
            self.meshes.values_mut().for_each(|mesh| mesh.blind = true);
        }
        let heads = snapshot.walk(Table::GraphHead, &Walk::all(), &mut |key, value| {
            if let Some(keys::GraphHead { index }) = keys::GraphHead::parse(key) {
                self.graphs.insert(index, seen(meta_of(Table::GraphHead, key, value))?);
            }
            Ok(ControlFlow::Continue(()))
        });
        seen(heads).map(|_| ())
    }

    /// With `deep` the node of a memory has the level that follows from the id, so that whoever builds the graph again
    /// comes to the same one. A twin is on no level but the lowest.
    pub(super) fn level_of_node(&mut self, key: &[u8], index: IndexId, slot: u32, id: MemoryId) {
        let mesh = self.meshes.get(&index).filter(|mesh| !mesh.is_twin(slot));
        let found = mesh.and_then(|mesh| mesh.level(slot));
        let wanted = usize::from(level_of(id.as_bytes()));
        if let Some(level) = found.filter(|level| self.deep && *level != wanted) {
            let what = format!("the node of slot {slot} has level {level}, by its memory it is {wanted}");
            self.find(Code::GraphLevel, Table::Slot, key, what);
        }
    }

    /// A slot of an index with a graph whose memory is gone.
    pub(super) fn dead_slot(&mut self, key: &[u8], index: IndexId, slot: u32, meta: &SlotMeta) {
        if meta.born > meta.died || meta.died > self.clock.commit {
            let what = format!("dead slot {slot} lived from commit {} to {}", meta.born, meta.died);
            self.find(Code::SlotBorn, Table::Slot, key, what);
        }
        if (meta.from, meta.until) != (0, 0) {
            let what = format!("dead slot {slot} keeps the instants of its memory");
            self.find(Code::SlotTimes, Table::Slot, key, what);
        }
        let mesh = self.meshes.entry(index).or_default();
        if !mesh.blind && mesh.level(slot).is_none() {
            let what = format!("dead slot {slot} is no node of the graph");
            self.find(Code::GraphNode, Table::Slot, key, what);
        }
    }

    pub(super) fn slot_dead(&mut self, key: &[u8]) -> Result<()> {
        let keys::SlotDead { index, died, slot } = keys::SlotDead::read(Table::SlotDead, key)?;
        let tally = self.slots.entry(index).or_default();
        let twice = !tally.listed.insert(slot);
        let what = match tally.dead.get(&slot) {
            _ if twice => "stands here twice".to_owned(),
            None if tally.blind => return Ok(()),
            None => "is not dead".to_owned(),
            Some(commit) if *commit != died => format!("died by commit {commit}"),
            Some(_) => return Ok(()),
        };
        self.find(Code::SlotDead, Table::SlotDead, key, format!("slot {slot} {what}"));
        Ok(())
    }

    pub(super) fn graph_block(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let links = GraphBlockRef::open(At::new(Table::Graph.name(), key), value)?;
        let keys::Graph { index, block } = keys::Graph::read(Table::Graph, key)?;
        if !self.graphs.contains_key(&index) {
            self.find(Code::GraphHead, Table::Graph, key, "links of an index without the head of a graph");
        }
        if links.nodes().all(|node| node.is_none()) {
            self.find(Code::GraphNode, Table::Graph, key, "a block without a node");
        }
        let len = self.len_of(Table::Graph, key, index);
        let slots = (0..u64::from(PER)).map(|at| u64::from(block) * u64::from(PER) + at);
        for (slot, node) in slots.zip(links.nodes()) {
            let Some(node) = node else { continue };
            let tally = self.slots.entry(index).or_default();
            let holds = match u32::try_from(slot) {
                Ok(slot) => slot_holds(tally, slot, len),
                Err(_) => false,
            };
            if !holds {
                let what = format!("slot {slot} is a node and holds neither a memory nor the code of one");
                self.find(Code::GraphNode, Table::Graph, key, what);
            }
            match node.host() {
                Some(host) => self.twin(key, index, slot, host)?,
                None => self.links_of(key, index, slot, node),
            }
        }
        Ok(())
    }

    /// The host of a twin is another node, which has links, and with `deep` the same code.
    fn twin(&mut self, key: &[u8], index: IndexId, slot: u64, host: u32) -> Result<()> {
        let mesh = self.meshes.entry(index).or_default();
        let what = match mesh.level(host) {
            _ if u64::from(host) == slot => "itself".to_owned(),
            None if !mesh.blind => format!("slot {host}, which is no node"),
            Some(_) if mesh.is_twin(host) => format!("slot {host}, which is a twin"),
            Some(_) if self.deep && !self.same_codes(index, slot, host)? => {
                format!("slot {host}, which has another code")
            }
            _ => return Ok(()),
        };
        self.find(Code::GraphLink, Table::Graph, key, format!("slot {slot} hangs on {what}"));
        Ok(())
    }

    /// Whether two slots have the same code, as far as that can be read.
    fn same_codes(&self, index: IndexId, slot: u64, host: u32) -> Result<bool> {
        let Some(dim) = self.spaces.get(&index.space).copied().filter(|dim| *dim > 0) else {
            return Ok(true);
        };
        let per = slots_per_block(dim);
        let code = |slot: u64| {
            let Ok(number) = u32::try_from(slot / per as u64) else { return Ok(None) };
            let block = seen(self.snapshot.slot_block(index, number, dim))?.flatten();
            let at = (slot % per as u64) as usize;
            Ok::<_, Error>(block.and_then(|block| block.code(at).map(<[i8]>::to_vec)))
        };
        let (own, other) = (code(slot)?, code(u64::from(host))?);
        Ok(own.is_none() || other.is_none() || own == other)
    }

    /// The links of a node go to other nodes of their level, each once.
    fn links_of(&mut self, key: &[u8], index: IndexId, slot: u64, node: GraphNodeRef<'_>) {
        for level in 0..=node.level() {
            let links: Vec<u32> =
                if level == 0 { node.bottom().collect() } else { node.upper(level).collect() };
            let mut met = BTreeSet::new();
            for link in links {
                let mesh = self.meshes.entry(index).or_default();
                let what = match mesh.level(link) {
                    _ if u64::from(link) == slot => "itself".to_owned(),
                    _ if !met.insert(link) => format!("slot {link} twice"),
                    None if !mesh.blind => format!("slot {link}, which is no node"),
                    Some(_) if mesh.is_twin(link) => format!("slot {link}, which is a twin"),
                    Some(highest) if highest < level => format!("slot {link}, whose level is {highest}"),
                    _ => continue,
                };
                let what = format!("slot {slot} is linked on level {level} to {what}");
                self.find(Code::GraphLink, Table::Graph, key, what);
            }
        }
    }

    pub(super) fn graph_head(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let head: GraphHead = meta_of(Table::GraphHead, key, value)?;
        if head.recall.iter().any(|point| point.recall > 10_000) {
            self.find(Code::GraphHead, Table::GraphHead, key, "a recall above 1");
        }
        Ok(())
    }

    /// What only the whole of a graph can say: its size, its entry, and with `deep` whether all of it is reached.
    /// Comes before the tallies of the slots are taken apart.
    pub(super) fn finish_graphs(&mut self) -> Result<()> {
        for (index, head) in std::mem::take(&mut self.graphs) {
            let mesh = self.meshes.remove(&index).unwrap_or_default();
            let tally = self.slots.entry(index).or_default();
            let dropping = self.tenants.get(&index.ns).is_none_or(|tenant| tenant.dropping);
            let Some(head) = head.filter(|_| !dropping && !mesh.blind && !tally.blind) else { continue };
            let key = keys::index(index);
            let (linked, dead) = mesh.nodes().fold((0_u64, 0_u64), |(linked, dead), (slot, _)| {
                (linked + 1, dead + u64::from(tally.dead.contains_key(&slot)))
            });
            if (u64::from(head.linked), u64::from(head.dead)) != (linked, dead) {
                let what = format!(
                    "{} nodes and {} dead ones counted, {linked} and {dead} there",
                    head.linked, head.dead
                );
                self.find(Code::GraphHead, Table::GraphHead, &key, what);
            }
            let top = mesh.nodes().map(|(_, level)| level).max();
            if head.entry.map(|entry| mesh.level(entry)) != top.map(Some) {
                let what = format!("the entry is {:?} where the highest level is {top:?}", head.entry);
                self.find(Code::GraphHead, Table::GraphHead, &key, what);
            }
            if self.deep && self.reach(index, &head, &mesh)? {
                self.recall(index)?;
            }
        }
        Ok(())
    }

    /// From the entry a path over the links of the lowest level leads to every live node, or to its host. Says whether that
    /// is so.
    fn reach(&mut self, index: IndexId, head: &GraphHead, mesh: &Mesh) -> Result<bool> {
        let mut reached: BTreeMap<u32, u16> = BTreeMap::new();
        let mut mark = |slot: u32| {
            let bits = reached.entry(slot / PER).or_default();
            let fresh = mesh.level(slot).is_some() && *bits & (1 << (slot % PER)) == 0;
            *bits |= 1 << (slot % PER);
            fresh
        };
        let mut open: Vec<u32> = head.entry.into_iter().filter(|entry| mark(*entry)).collect();
        while let Some(slot) = open.pop() {
            let key = keys::block(index, slot / PER);
            let found = self.snapshot.row(Table::Graph, &key, |at, bytes| {
                let node = GraphBlockRef::open(at, bytes)?.nodes().nth((slot % PER) as usize).flatten();
                Ok(node.map(|node| node.bottom().collect::<Vec<_>>()))
            });
            let links = seen(found)?.flatten().flatten().unwrap_or_default();
            open.extend(links.into_iter().filter(|link| mark(*link)));
        }
        let is_met =
            |slot: u32| reached.get(&(slot / PER)).is_some_and(|bits| bits & (1 << (slot % PER)) != 0);
        let mut all = true;
        for (slot, _) in mesh.nodes().filter(|(slot, _)| !is_met(*slot)) {
            let live = self.slots.get(&index).is_none_or(|tally| !tally.dead.contains_key(&slot));
            let key = keys::block(index, slot / PER);
            if !live || (mesh.is_twin(slot) && self.host_of(&key, slot)?.is_none_or(is_met)) {
                continue;
            }
            all = false;
            self.find(Code::GraphReach, Table::Graph, &key, format!("no search comes to slot {slot}"));
        }
        Ok(all)
    }

    /// The host of a twin, as far as that can be read.
    fn host_of(&self, key: &[u8], slot: u32) -> Result<Option<u32>> {
        let found = self.snapshot.row(Table::Graph, key, |at, bytes| {
            let node = GraphBlockRef::open(at, bytes)?.nodes().nth((slot % PER) as usize).flatten();
            Ok(node.and_then(|node| node.host()))
        });
        Ok(seen(found)?.flatten().flatten())
    }

    /// Nodes of a sample are found by their own vectors at the default effort. Damage to codes is reported by their table.
    fn recall(&mut self, index: IndexId) -> Result<()> {
        let Some(dim) = self.spaces.get(&index.space).copied().filter(|dim| *dim > 0) else { return Ok(()) };
        let Some((found, sampled)) = seen(found_by_themselves(self.snapshot, index, dim))? else {
            return Ok(());
        };
        if (found as f64) < sampled as f64 * FOUND_MIN {
            let what = format!("of {sampled} nodes, searches for their own vectors find {found}");
            self.find(Code::GraphRecall, Table::GraphHead, &keys::index(index), what);
        }
        Ok(())
    }
}

/// Whether a slot holds a memory or is dead, as far as the walk of the slots could tell.
fn slot_holds(tally: &Tally, slot: u32, len: u64) -> bool {
    tally.blind || (u64::from(slot) < len && !tally.vacant.contains(&slot))
}
