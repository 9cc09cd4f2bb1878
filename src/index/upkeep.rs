//! The upkeep of a graph, step by step: which regime an index is in, how its tail gets into the graph, and how its
//! dead slots get out.
//!
//! Every function here reads a published state and returns an [`Edit`]. The caller writes the edit and publishes it
//! before it asks for the next. So any step can be the last one, and the next session continues where it ended,
//! because the remaining work is read from the rows themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hnsw::{Crew, Graph, level_of};
use crate::index::calibrate;
use crate::index::edit::Edit;
use crate::index::published::Published;
use crate::index::view::View;
use crate::policy::Policy;
use crate::record::slots_per_block;
use crate::store::control::{GraphHead, SlotHead};
use crate::store::{IndexId, Read, Rows, Table, keys};

/// The number of nodes that many threads link or mend in one go.
const BATCH: usize = 256;
/// A recall is measured again when the number of rows has changed by one part in this many.
const DRIFT: u32 = 5;

/// What a vector costs beside one byte a dimension: its one-bit code and the numbers that are read with it. A vector
/// of eight dimensions is not scanned in a fiftieth of the time of one of 384.
const BESIDE_CODE: u64 = 64;
/// An index whose size falls below this share of the bound loses its graph. Between the two sizes it keeps what it has.
const KEPT_PERCENT: u64 = 70;

/// The sizes at which an index changes its regime, and the allowed length of its tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Regimes {
    /// An index with more rows gets a graph.
    pub(crate) scanned_max: u64,
    /// The number of rows that any tail may have.
    pub(crate) tail_min: u32,
    /// The share of the rows that may lie in the tail.
    pub(crate) tail_share: f64,
}

/// What an index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing. The index is scanned as a whole, or its tail is empty.
    Nothing,
    /// This many rows are to be linked.
    Link(u32),
    /// The index has become small, and its graph is dropped.
    Drop,
}

/// The counts of an index, from its heads alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of rows with a vector.
    pub(crate) live: u32,
    /// The number of slots of nodes that are gone and not yet unlinked.
    pub(crate) dead: u32,
    /// The number of rows that are nodes.
    pub(crate) in_graph: u32,
    /// The number of rows beside the graph; 0 without a graph.
    pub(crate) tail: u32,
    /// Whether there is a graph.
    pub(crate) has_graph: bool,
}

impl Counts {
    /// The counts in the heads of an index.
    pub(crate) fn of(slots: &SlotHead, graph: Option<&GraphHead>) -> Self {
        let Some(graph) = graph else { return Counts { live: slots.used, ..Counts::default() } };
        let in_graph = graph.linked.saturating_sub(graph.dead);
        let tail = slots.used.saturating_sub(in_graph);
        Counts { live: slots.used, dead: graph.dead, in_graph, tail, has_graph: true }
    }

    /// Reads the counts.
    pub(crate) fn read(rows: &impl Rows, index: IndexId) -> Result<Self> {
        Ok(Counts::of(&rows.readable_slot_head(index)?, rows.graph_head(index)?.as_ref()))
    }
}

impl Regimes {
    /// As a policy has them, for an index of vectors with `dim` dimensions.
    pub(crate) fn of(policy: &Policy, dim: usize) -> Self {
        let index = &policy.index;
        Regimes {
            scanned_max: index.scan_max / (dim as u64 + BESIDE_CODE),
            tail_min: index.tail_min,
            tail_share: index.tail_share,
        }
    }

    /// What an index with these counts needs.
    pub(crate) fn need(&self, counts: Counts) -> Need {
        match counts.has_graph {
            true if u64::from(counts.live) * 100 < self.scanned_max * KEPT_PERCENT => Need::Drop,
            true if counts.tail > 0 => Need::Link(counts.tail),
            false if u64::from(counts.live) > self.scanned_max => Need::Link(counts.live),
            _ => Need::Nothing,
        }
    }

    /// Whether an index is past its bounds, so that writers to it must help.
    pub(crate) fn is_pressed(&self, counts: Counts) -> bool {
        match self.need(counts) {
            Need::Nothing => false,
            Need::Drop => true,
            Need::Link(rows) => rows > self.tail_max(counts.live),
        }
    }

    /// The number of rows that may lie beside the graph of an index with `live` rows.
    pub(crate) fn tail_max(&self, live: u32) -> u32 {
        self.tail_min.max((f64::from(live) * self.tail_share) as u32)
    }
}

/// Links at most `most` rows of the tail, in the order of their slots; none if there is nothing to link.
///
/// # Errors
/// `Corrupted` if the rows of the graph are damaged. The graph must then be rebuilt.
pub(crate) fn link(
    published: &Published,
    index: IndexId,
    most: usize,
    crew: &mut Crew,
) -> Result<Option<Edit>> {
    let Upkeep { view, head, mut graph } = Upkeep::open(published, index)?;
    let slots: Vec<u32> = match head {
        Some(_) => view.tail_slots().take(most).collect(),
        None => (0..view.len()).filter(|slot| view.id(*slot).is_some()).take(most).collect(),
    };
    if slots.is_empty() {
        return Ok(None);
    }
    let mut edit = Edit::on(published, index, head.as_ref(), Arc::default())?;
    let level = |slot: &u32| view.id(*slot).map(|id| (*slot, level_of(id.as_bytes())));
    let nodes: Vec<(u32, u8)> = slots.iter().filter_map(level).collect();
    let mut loose = Vec::new();
    for batch in nodes.chunks(BATCH) {
        loose.extend(edit.take(&graph.insert_batch(&*view, batch, |slot| view.id(slot).is_some(), crew)));
    }
    loose.sort_unstable();
    // The slots of this step stand in `claims` already. Only earlier nodes that fell out are loose.
    loose.retain(|slot| slots.binary_search(slot).is_err());
    edit.claims = born(published, &view, index, &slots)?;
    edit.loose = born(published, &view, index, &loose)?;
    edit.graph = Some(Arc::new(graph));
    Ok(Some(edit))
}

/// The slots, with the commits that filled them.
fn born(published: &Published, view: &View, index: IndexId, slots: &[u32]) -> Result<Vec<(u32, u64)>> {
    let per = slots_per_block(view.dim()) as u32;
    let mut claims = Vec::with_capacity(slots.len());
    for slots in slots.chunk_by(|a, b| a / per == b / per) {
        let Some(number) = slots.first().map(|slot| slot / per) else { continue };
        let block = published.snapshot().slot_block(index, number, view.dim())?;
        for &slot in slots {
            let meta = block.as_ref().and_then(|block| block.meta((slot % per) as usize));
            let meta = meta.ok_or_else(|| {
                Error::corrupted(Table::Slot.name(), &keys::block(index, number), "a slot is gone")
            })?;
            claims.push((slot, meta.born));
        }
    }
    Ok(claims)
}

/// Drops the graph of an index; none if there is no graph. Damaged rows do not prevent it.
///
/// # Errors
/// `Corrupted` if the head or the list of dead slots is damaged.
pub(crate) fn unlink_all(published: &Published, index: IndexId) -> Result<Option<Edit>> {
    let rows = published.snapshot();
    let Some(head) = rows.graph_head(index)? else { return Ok(None) };
    let mut edit = Edit::on(published, index, Some(&head), Arc::default())?;
    // Without a graph no walk passes through a dead slot, so each of them can be used again.
    edit.freed = rows.dead_slots(index, usize::MAX)?;
    edit.graph = None;
    Ok(Some(edit))
}

/// One step towards freeing the dead slots of an index, of at most `most` rows. Twins of a dead node take its place,
/// or nodes that lost neighbours get others, or dead slots are freed. None if nothing is left of the slots that were
/// dead when the work began.
///
/// # Errors
/// As [`link`].
pub(crate) fn repair(
    published: &Published,
    index: IndexId,
    most: usize,
    work: &mut Work,
    crew: &mut Crew,
) -> Result<Option<Edit>> {
    if work.dead.is_none() {
        let dead = published.snapshot().dead_slots(index, usize::MAX)?;
        if dead.is_empty() {
            return Ok(None);
        }
        let Upkeep { view, graph, .. } = Upkeep::open(published, index)?;
        // A living slot in this list would keep the work from ever ending, because no node loses its links to
        // a living slot.
        if let Some((died, slot)) = dead.iter().find(|(_, slot)| view.id(*slot).is_some()) {
            let key = keys::slot_ended(index, *died, *slot);
            return Err(Error::corrupted(Table::SlotDead.name(), &key, "the slot of a living memory"));
        }
        work.begin(dead, &graph, published.snapshot().epoch());
    }
    let Upkeep { view, head, mut graph } = match work.left(published, index)? {
        Some(upkeep) => upkeep,
        None => return Ok(None),
    };
    let alive = |slot: u32| view.id(slot).is_some();
    let mut edit = Edit::on(published, index, head.as_ref(), Arc::default())?;
    let mut loose = Vec::new();
    let orphans = work.orphans(&graph, most, alive);
    if !orphans.is_empty() {
        let level = |slot: u32| view.id(slot).map_or(0, |id| level_of(id.as_bytes()));
        for batch in orphans.chunks(BATCH) {
            loose.extend(edit.take(&graph.inherit(&*view, batch, alive, level, crew)));
        }
    } else if let Some(batch) = work.torn(&graph, most, alive) {
        let batch: Vec<u32> =
            batch.into_iter().filter(|slot| alive(*slot) && graph.contains(*slot)).collect();
        for batch in batch.chunks(BATCH) {
            edit.touch(&graph.repair_batch(&*view, batch, alive, crew));
        }
    } else {
        work.leave_later_twins(&graph);
        // No living node leads to the slots that go now. Only other dead nodes may lead to them.
        edit.freed = work.dead.iter().flatten().rev().take(most).copied().collect();
        let slots: BTreeSet<u32> = edit.freed.iter().map(|(_, slot)| *slot).collect();
        let others: Vec<u32> = graph.nodes().filter(|slot| !alive(*slot) && !slots.contains(slot)).collect();
        edit.touch(&graph.remove(&slots, &others));
    }
    loose.extend(edit.take(&graph.reconnect(&*view, alive, crew)));
    edit.loose = born(published, &view, index, &loose)?;
    edit.graph = Some(Arc::new(graph));
    Ok(Some(edit))
}

/// What is known of the work on the dead slots of an index, from one step of [`repair`] to the next. Slots that die
/// meanwhile are left to the next run. Otherwise a writer as fast as the pass would keep it busy for ever.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// The slots that were dead at the beginning and are not freed yet, with the commits in which they died. Twins
    /// come last, because no host is freed before its twins. None before the beginning.
    dead: Option<Vec<(u64, u32)>>,
    /// The epoch of the file to which the slots belong.
    epoch: u64,
    /// The same slots.
    gone: BTreeSet<u32>,
    /// Nodes that are still to be mended in this round, the first of them last.
    torn: Vec<u32>,
    /// Whether no living node leads to a dead slot any more.
    is_clean: bool,
    mended: u64,
}

impl Work {
    /// The number of nodes that got other links, or a twin in their place.
    pub(crate) fn mended(&self) -> u64 {
        self.mended
    }

    fn begin(&mut self, mut dead: Vec<(u64, u32)>, graph: &Graph, epoch: u64) {
        self.epoch = epoch;
        dead.sort_by_key(|(died, slot)| (graph.host(*slot).is_some(), *died, *slot));
        self.gone = dead.iter().map(|(_, slot)| *slot).collect();
        self.dead = Some(dead);
    }

    /// The index as it is now; none if nothing is left to do. If the file was opened again, its dead slots are left to
    /// the next run.
    fn left(&mut self, published: &Published, index: IndexId) -> Result<Option<Upkeep>> {
        if published.snapshot().epoch() != self.epoch {
            return Ok(None);
        }
        let Some(dead) = self.dead.as_mut().filter(|dead| !dead.is_empty()) else { return Ok(None) };
        let upkeep = Upkeep::open(published, index)?;
        // The slots that the last step freed stand at the end. If the step was not written, they are still dead and stay. A
        // dead slot that is no node, because the graph lost it with a host that nothing reached, is freed like the others.
        let rows = published.snapshot();
        while let Some((died, slot)) = dead.last()
            && !rows.look(Table::SlotDead, &keys::slot_ended(index, *died, *slot), &mut |_| Ok(()))?
        {
            dead.pop();
        }
        Ok((!dead.is_empty()).then_some(upkeep))
    }

    /// Leaves hosts of which a twin has died meanwhile to the next run: a host goes with its twins.
    fn leave_later_twins(&mut self, graph: &Graph) {
        let gone = &self.gone;
        let goes = |slot: u32| graph.twins(slot).iter().all(|twin| gone.contains(twin));
        self.dead.iter_mut().for_each(|dead| dead.retain(|(_, slot)| goes(*slot)));
    }

    /// At most `most` dead nodes whose place a twin must take.
    fn orphans(&mut self, graph: &Graph, most: usize, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        if self.is_clean {
            return Vec::new();
        }
        let mut orphans = graph.orphans(alive);
        orphans.retain(|host| self.gone.contains(host));
        orphans.truncate(most);
        self.mended += orphans.len() as u64;
        orphans
    }

    /// The next nodes with a link to a dead slot, at most `most`; none if there are none. If a step could not be
    /// written, its nodes are found again in the next round.
    fn torn(&mut self, graph: &Graph, most: usize, alive: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
        if self.torn.is_empty() && !self.is_clean {
            self.torn = graph.torn(|slot| !self.gone.contains(&slot));
            self.torn.retain(|slot| alive(*slot));
            self.torn.reverse();
            self.is_clean = self.torn.is_empty();
        }
        let batch = self.torn.split_off(self.torn.len().saturating_sub(most));
        self.mended += batch.len() as u64;
        (!batch.is_empty()).then_some(batch)
    }
}

/// Measures the recall of an index; none if the last measurement is still valid. With `always` the recall is measured
/// in any case.
///
/// # Errors
/// As [`link`].
pub(crate) fn calibrate(published: &Published, index: IndexId, always: bool) -> Result<Option<Edit>> {
    let Upkeep { view, head, graph } = Upkeep::open(published, index)?;
    let Some(head) = head.filter(|_| !graph.is_empty()) else { return Ok(None) };
    let live = published.snapshot().readable_slot_head(index)?.used;
    let drift = head.calibrated_at.abs_diff(live);
    if !always && !head.recall.is_empty() && drift <= head.calibrated_at / DRIFT {
        return Ok(None);
    }
    let recall = calibrate::measure(&view);
    let mut edit = Edit::on(published, index, Some(&head), Arc::new(graph))?;
    edit.recall = Some((recall, live));
    Ok(Some(edit))
}

/// An index whose graph is to be changed.
struct Upkeep {
    view: Arc<View>,
    head: Option<GraphHead>,
    /// The graph shares its chunks with that of the view until they change.
    graph: Graph,
}

impl Upkeep {
    fn open(published: &Published, index: IndexId) -> Result<Self> {
        let view = published.view(index)?;
        if let Some(why) = view.fault() {
            return Err(Error::corrupted(Table::Graph.name(), &keys::index(index), why));
        }
        let head = published.snapshot().graph_head(index)?;
        let graph = view.linked().map(|linked| (*linked.graph).clone()).unwrap_or_default();
        Ok(Upkeep { view, head, graph })
    }
}
