//! Memories of a snapshot out to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::engine::{Namespace, Snapshot};
use crate::error::{Error, Result, sound};
use crate::exchange::{
    NpyWriter, write_aggregate, write_context, write_event, write_goal, write_memory, write_run, write_step,
    write_tombstone,
};
use crate::hygiene::CheckReport;
use crate::limits::{EXPORT_LINE_BYTES_MAX, LINE_BYTES_MAX};
use crate::model::{
    Event, EventQuery, GoalId, Holder, Memory, MemoryId, NamespaceName, Page, PageRequest, RunId, Scope,
    State, Time, Tombstone, TombstoneReason, is_blank,
};

/// Rows that are read at a time.
const PAGE_ROWS: usize = 1_000;
/// Memories that are read at a time. Each may have a text of a megabyte, and metadata that take more in memory than in a line.
const PAGE_MEMORIES: usize = 100;
/// Superseders of which it is known whether they are shown.
const ASKED_MAX: usize = 100_000;
/// Steps of a run that are read at a time: each tells of as many memories as a slice of a pass works on.
const PAGE_STEPS: usize = 100;

/// Where the vectors of an export go.
#[derive(Debug)]
pub enum VectorsTo<'a, W> {
    /// Nowhere: the memories come back without vectors, but for those without text, which are nothing else.
    Nowhere,
    /// Into the lines.
    Lines,
    /// Into a NumPy file, a row for each line: zeros where a line has no vector. A vector of a former embedding space may have
    /// other dimensions, so it stands in its line.
    Npy(&'a mut NpyWriter<W>, usize),
}

/// An export: every line from one snapshot. Of a namespace memories stand in the order of partition, creation and id, the
/// shared partition first and then the agents by name, but for what was superseded: that stands behind the memory that
/// took its place. With [`Export::all_states`] the runs that can be taken back and the tombstones stand before the
/// memories, and the messages, the inclusion log and the goals behind them, so that each line names what stands before it; links and provenance may lead
/// ahead.
///
/// An export of all states is a backup: an import into an empty database puts everything back as it was, and another export gives the same bytes. One of what is visible names nothing that is not in it.
///
/// ```
/// use oubliette::{Database, Draft, NamespaceName};
/// use oubliette::exchange::{Export, VectorsTo};
/// # let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("m.oub"))?;
/// db.namespace("default")?.add(Draft::new("Ann prefers tea").key("ann"))?;
/// let mut lines = Vec::new();
/// let export = Export::new([NamespaceName::default()]);
/// let report = export.write(&db.snapshot()?, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines)?;
/// assert_eq!((report.memories, lines.iter().filter(|byte| **byte == b'\n').count()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Export {
    /// The namespaces, one after the other.
    pub namespaces: Vec<NamespaceName>,
    /// Also rows that are superseded, expired, in limbo, not yet or no longer valid, and tombstones, messages, runs and goals.
    pub all_states: bool,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Memories.
    pub memories: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Memories with a vector.
    pub vectors: u64,
    /// Memories whose vector was left out, because it is of a former embedding space and their text can be embedded anew.
    pub vectors_left_out: u64,
    /// Memories without some of their provenance, because the export does not show what they were made from. One of all states
    /// has it.
    pub provenance_left_out: u64,
    /// Runs of which something can be taken back.
    pub runs: u64,
    /// Families of messages in numbers.
    pub aggregates: u64,
    /// Messages.
    pub events: u64,
    /// Contexts of the inclusion log.
    pub contexts: u64,
    /// Goals.
    pub goals: u64,
    /// Memories, tombstones, messages and families that are damaged and were left out, with their namespaces; of a memory
    /// with a text, whose vector alone is damaged, only the vector is left out. A family takes its messages with it.
    #[serde(serialize_with = "with_namespaces")]
    pub damaged: Vec<(NamespaceName, MemoryId)>,
    /// Goals that are damaged and were left out, with their namespaces.
    #[serde(serialize_with = "with_namespaces")]
    pub damaged_goals: Vec<(NamespaceName, GoalId)>,
    /// Contexts of a language model that are damaged and were left out, with their namespaces.
    #[serde(serialize_with = "with_namespaces")]
    pub damaged_contexts: Vec<(NamespaceName, String)>,
    /// What a check of the snapshot finds in these namespaces, and in what all namespaces share. A damaged key can hide rows
    /// that no list leads to, so an export is known to be whole only where nothing is found.
    pub check: CheckReport,
}

/// What was left out, each as an object of its namespace and its id.
fn with_namespaces<T: Serialize, S: Serializer>(
    all: &[(NamespaceName, T)],
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(|(namespace, id)| json!({ "namespace": namespace, "id": id })))
}

impl ExportReport {
    /// Whether nothing of the namespaces is missing: the check found nothing, and nothing was left out.
    ///
    /// ```
    /// use oubliette::exchange::ExportReport;
    /// assert!(ExportReport::default().is_whole());
    /// ```
    pub fn is_whole(&self) -> bool {
        let left_out = self.damaged.len() + self.damaged_goals.len() + self.damaged_contexts.len();
        self.check.ok && left_out == 0
    }
}

impl Export {
    /// Of what is visible in some namespaces.
    ///
    /// ```
    /// use oubliette::NamespaceName;
    /// use oubliette::exchange::Export;
    /// let export = Export::new([NamespaceName::default()]);
    /// assert!(!export.all_states);
    /// ```
    pub fn new(namespaces: impl IntoIterator<Item = NamespaceName>) -> Self {
        Export { namespaces: namespaces.into_iter().collect(), all_states: false }
    }

    /// Writes every line to `out`; `path` is the name that an `Io` error gives. What is damaged is left out, and named in
    /// the report. The snapshot is checked before, as [`Database::check`](crate::Database::check) does.
    ///
    /// ```
    /// use oubliette::exchange::{Export, VectorsTo};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let (export, snapshot) = (Export::new([team.name().clone()]), db.snapshot()?);
    /// let mut lines = Vec::new();
    /// let report = export.write(&snapshot, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines)?;
    /// assert_eq!((report.memories, lines.last()), (1, Some(&b'\n')));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io`; `Corrupted`; `SnapshotExpired` where the lease of the snapshot is over, or the file was compacted meanwhile;
    /// `Invalid` for a line of more than 256 MiB, which no import reads: a memory that very many writes hold.
    pub fn write<W: Write + Seek>(
        &self,
        snapshot: &Snapshot,
        out: &mut dyn Write,
        path: impl AsRef<Path>,
        vectors: VectorsTo<'_, W>,
    ) -> Result<ExportReport> {
        let _lease = snapshot.keep()?;
        let (path, line) = (path.as_ref().to_owned(), Vec::new());
        let all_states = self.all_states;
        let report = ExportReport { check: self.found_in(snapshot)?, ..ExportReport::default() };
        let (written, hollow, replaced) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let asked = BTreeMap::new();
        let mut lines =
            Lines { out, path, vectors, all_states, line, written, hollow, replaced, asked, report };
        for name in &self.namespaces {
            let namespace = snapshot.namespace(name)?;
            if all_states {
                lines.runs(&namespace)?;
                lines.tombstones(&namespace)?;
            }
            lines.memories(&namespace)?;
            if !lines.report.check.ok {
                lines.missed(&namespace)?;
            }
            lines.written.clear();
            lines.asked.clear();
            if all_states {
                lines.messages(&namespace)?;
                lines.contexts(&namespace)?;
                lines.goals(&namespace)?;
            }
            lines.hollow.clear();
            lines.replaced.clear();
        }
        let Lines { out, path, mut report, .. } = lines;
        // More than one list can lead to the same row.
        let mut named = BTreeSet::new();
        report.damaged.retain(|one| named.insert(one.clone()));
        out.flush().map_err(|source| Error::io("write", path, source))?;
        Ok(report)
    }

    /// What a check finds that can concern the namespaces of the export.
    fn found_in(&self, snapshot: &Snapshot) -> Result<CheckReport> {
        let mut check = snapshot.check()?;
        check.findings.retain(|finding| match &finding.namespace {
            Some(of) => self.namespaces.iter().any(|name| name.as_str() == of),
            None => true,
        });
        check.ok = check.findings.is_empty() && check.more == 0;
        Ok(check)
    }
}

/// A namespace as it was at the instant of the export.
type Of = Namespace<Snapshot>;

/// An export under way.
struct Lines<'a, W> {
    out: &'a mut dyn Write,
    path: PathBuf,
    vectors: VectorsTo<'a, W>,
    all_states: bool,
    line: Vec<u8>,
    /// The memories of the namespace that are written, and those that no line can tell of.
    written: BTreeSet<MemoryId>,
    /// The memories of the namespace without a text whose vectors can't be read: no line can tell of them.
    hollow: BTreeSet<MemoryId>,
    /// The memories of the namespace for which a tombstone stands in.
    replaced: BTreeSet<MemoryId>,
    /// The superseders of the namespace that were asked for, and whether the export shows them: all that one memory took the
    /// place of ask for the same one.
    asked: BTreeMap<MemoryId, bool>,
    report: ExportReport,
}

impl<W: Write + Seek> Lines<'_, W> {
    fn memories(&mut self, namespace: &Of) -> Result<()> {
        let agents = namespace.agents()?;
        let scopes: Vec<Scope> = std::iter::once(Ok(Scope::Shared))
            .chain(agents.iter().map(|agent| Scope::agent(agent)))
            .collect::<Result<_>>()?;
        let (begun, mut listed) = (self.report.memories, 0);
        for scope in &scopes {
            self.each(namespace, scope, &mut |lines, memory| {
                listed += 1;
                match lines.superseder(namespace, &memory)? {
                    None => lines.tree(namespace, memory),
                    Some(_) => Ok(()),
                }
            })?;
        }
        if self.report.memories - begun == listed {
            return Ok(());
        }
        // Where memories supersede each other in a circle no tree comes to them. Of what is written nobody asks: a chain of n
        // versions would be walked n times.
        for scope in &scopes {
            self.each(namespace, scope, &mut |lines, memory| {
                if !lines.written.contains(&memory.id) && lines.is_first_of_circle(namespace, &memory)? {
                    lines.tree(namespace, memory)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The memories that no list has led to. A key has no checksum, and a damaged key of an index hides what stands behind it,
    /// but a memory that can be read belongs to the export.
    fn missed(&mut self, namespace: &Of) -> Result<()> {
        let (mut missed, mut after) = (Vec::new(), None);
        // Behind a page that is damaged there is nothing more to find; what the lists have led to is written.
        while let Some(page) = sound(namespace.ids_after(after, self.all_states, PAGE_ROWS))? {
            after = page.last().copied();
            missed.extend(page.into_iter().filter(|id| !self.written.contains(id)));
            if after.is_none() {
                break;
            }
        }
        // Who superseded a memory stands before it. What then is left is superseded by what can't be read, or in a circle.
        for after_its_superseder in [true, false] {
            for id in &missed {
                let found = match self.get(namespace, *id) {
                    // The key of a row of its own is damaged: no look-up comes to it.
                    Err(Error::NotFound { .. }) => None,
                    found => found?,
                };
                let Some(memory) = found.filter(|_| !self.written.contains(id)) else { continue };
                let superseder = self.superseder(namespace, &memory)?;
                match superseder.is_none_or(|by| self.written.contains(&by)) {
                    true => self.tree(namespace, memory)?,
                    false if after_its_superseder => {}
                    false => self.memory(namespace, memory)?,
                }
            }
        }
        let named: BTreeSet<MemoryId> = self.report.damaged.iter().map(|(_, id)| *id).collect();
        missed.retain(|id| !self.written.contains(id) && !named.contains(id));
        self.note_damaged(namespace, missed);
        Ok(())
    }

    /// The memories of a scope, in the order of their creation. Behind a page of the index that can't be read the rows
    /// themselves are left.
    fn each(
        &mut self,
        namespace: &Of,
        scope: &Scope,
        visit: &mut dyn FnMut(&mut Self, Memory) -> Result<()>,
    ) -> Result<()> {
        let any_state = self.all_states;
        let read = |_: &mut Self, cursor, limit| {
            let scope = scope.clone();
            namespace.list(&PageRequest { scope, limit, cursor, any_state, ..PageRequest::default() })
        };
        self.pages(namespace, PAGE_MEMORIES, read, visit)
    }

    /// Visits the rows of a list, which `read` gives from a cursor on, at most so many. Where the check has found damage, a page of the
    /// file that can't be read ends the list and not the export; the rows before that page are read one by one.
    fn pages<T>(
        &mut self,
        namespace: &Of,
        rows: usize,
        mut read: impl FnMut(&mut Self, Option<String>, usize) -> Result<Page<T>>,
        mut visit: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        let (mut cursor, mut limit) = (None, rows);
        loop {
            let page = read(self, cursor.clone(), limit);
            let page = if self.report.check.ok { Some(page?) } else { sound(page)? };
            let Some(page) = page else {
                if limit == 1 {
                    return Ok(());
                }
                limit = 1;
                continue;
            };
            self.note_damaged(namespace, page.damaged);
            for row in page.items {
                visit(self, row)?;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The memory of the export that superseded this one.
    fn superseder(&mut self, namespace: &Of, memory: &Memory) -> Result<Option<MemoryId>> {
        let Some(by) = memory.superseded_by() else { return Ok(None) };
        if let Some(is_shown) = self.asked.get(&by) {
            return Ok(is_shown.then_some(by));
        }
        // One that is damaged is not shown, and what it took the place of stands for itself.
        let is_shown = self.has(namespace, by)? && self.get(namespace, by)?.is_some();
        if self.asked.len() == ASKED_MAX {
            self.asked.clear();
        }
        self.asked.insert(by, is_shown);
        Ok(is_shown.then_some(by))
    }

    /// A memory; none where it is gone, or damaged.
    fn get(&self, namespace: &Of, id: MemoryId) -> Result<Option<Memory>> {
        let found = sound(namespace.look_up(id, false))?;
        Ok(found.and_then(|found| found.into_memory()))
    }

    /// Whether a memory is among those that the export shows.
    fn has(&self, namespace: &Of, id: MemoryId) -> Result<bool> {
        if !self.all_states {
            return namespace.is_visible(id);
        }
        let state = namespace.state(id)?;
        Ok(state.is_some_and(|state| state != State::Tombstoned))
    }

    /// A memory, then what it took the place of, and so on: who superseded a memory stands before it.
    fn tree(&mut self, namespace: &Of, root: Memory) -> Result<()> {
        let first = root.id;
        let mut open = Vec::new();
        let mut at = Some(root);
        loop {
            if let Some(memory) = at.take() {
                // What an index that is damaged does not lead to is missed, and found by its own rows.
                let replaced = sound(namespace.replaces(memory.id))?.unwrap_or_default();
                open.extend(replaced.into_iter().rev());
                self.memory(namespace, memory)?;
            }
            let Some(next) = open.pop() else { return Ok(()) };
            if next != first && self.has(namespace, next)? {
                at = self.get(namespace, next)?;
            }
        }
    }

    /// Whether a memory lies on a circle of superseders and has the smallest id of it.
    fn is_first_of_circle(&self, namespace: &Of, memory: &Memory) -> Result<bool> {
        let (mut met, mut at) = (BTreeSet::new(), memory.superseded_by());
        while let Some(next) = at.filter(|next| met.insert(*next)) {
            if next == memory.id {
                return Ok(met.first() == Some(&memory.id));
            }
            let found = namespace.state(next)?.filter(|state| *state != State::Tombstoned);
            at = match found {
                Some(_) => self.get(namespace, next)?.and_then(|found| found.superseded_by()),
                None => None,
            };
        }
        Ok(false)
    }

    fn memory(&mut self, namespace: &Of, mut memory: Memory) -> Result<()> {
        if is_blank(&memory.text) || !matches!(self.vectors, VectorsTo::Nowhere) {
            self.read_vector(namespace, &mut memory)?;
        }
        let in_line = !matches!(self.vectors, VectorsTo::Npy(..)) || memory.is_of_former_space;
        self.written.insert(memory.id);
        if is_blank(&memory.text) && memory.vector.is_none() {
            self.hollow.insert(memory.id);
            self.note_damaged(namespace, vec![memory.id]);
            return Ok(());
        }
        if memory.has_payload {
            match sound(namespace.payload(memory.id))? {
                Some(found) => memory.payload = found,
                None => self.note_damaged(namespace, vec![memory.id]),
            }
        }
        if !self.all_states {
            self.leave_out(namespace, &mut memory)?;
            self.leave_keys_out(namespace, &mut memory)?;
        }
        if !self.report.check.ok {
            stand_in(&mut memory);
        }
        if let Some(superseded) = &memory.superseded {
            self.bury(namespace, superseded.by, superseded.at)?;
        }
        self.report.memories += 1;
        self.report.vectors += u64::from(memory.vector.is_some());
        write_memory(&memory, in_line, &mut self.line);
        self.end_line(memory.vector.as_deref().filter(|_| !memory.is_of_former_space))
    }

    /// Reads the vector of a memory. A vector of a former space goes along only where there is no text: a text waits for a
    /// vector of the present space, as it does after [`Database::reembed`](crate::Database::reembed).
    fn read_vector(&mut self, namespace: &Of, memory: &mut Memory) -> Result<()> {
        let Some(found) = sound(namespace.look_up(memory.id, true))? else {
            self.note_damaged(namespace, vec![memory.id]);
            return Ok(());
        };
        let Some(found) = found.into_memory() else { return Ok(()) };
        if found.is_of_former_space && !is_blank(&found.row_text) {
            self.report.vectors_left_out += 1;
            return Ok(());
        }
        memory.vector = found.vector;
        memory.embedding_space = found.embedding_space;
        memory.is_of_former_space = found.is_of_former_space;
        Ok(())
    }

    /// What is visible names nothing that is not: links, provenance and superseders that the export does not show are
    /// left out.
    fn leave_out(&mut self, namespace: &Of, memory: &mut Memory) -> Result<()> {
        let mut ends: BTreeSet<MemoryId> = memory.links.iter().map(|link| link.to).collect();
        ends.extend(memory.sources.iter().chain(&memory.consolidated_from));
        let mut shown = BTreeSet::new();
        for end in ends {
            if self.has(namespace, end)? {
                shown.insert(end);
            }
        }
        for links in memory.holders.iter_mut().map(|holder| &mut holder.links).chain([&mut memory.links]) {
            links.retain(|link| shown.contains(&link.to));
        }
        let made_from = memory.sources.len() + memory.consolidated_from.len();
        memory.sources.retain(|source| shown.contains(source));
        memory.consolidated_from.retain(|source| shown.contains(source));
        let is_less = memory.sources.len() + memory.consolidated_from.len() < made_from;
        self.report.provenance_left_out += u64::from(is_less);
        if self.superseder(namespace, memory)?.is_none() && memory.superseded.take().is_some() {
            (memory.valid_to_before, memory.announced) = (None, None);
            (memory.state, memory.also) = (State::Live, None);
        }
        let via = memory.superseded.and_then(|superseded| superseded.via);
        if let (Some(superseded), Some(via)) = (&mut memory.superseded, via)
            && !self.has(namespace, via)?
        {
            superseded.via = None;
        }
        for mut one in std::mem::take(&mut memory.overtaken) {
            let is_taken_back = match one.via {
                Some(via) if !self.has(namespace, via)? => {
                    one.via = None;
                    namespace.was_taken_back(via)?
                }
                _ => false,
            };
            if !is_taken_back && self.has(namespace, one.by)? {
                memory.overtaken.push(one);
            }
        }
        if let Some(also) = memory.also
            && !self.has(namespace, also)?
        {
            memory.also = None;
        }
        Ok(())
    }

    /// A key travels with the one memory of the export that answers to it: the memory whose place it will take at an
    /// instant ahead can hold the key too, and an import gives no key twice.
    fn leave_keys_out(&self, namespace: &Of, memory: &mut Memory) -> Result<()> {
        for key in std::mem::take(&mut memory.keys) {
            match namespace.visible_holder(&key)? {
                Some(other) if other != memory.id => {
                    let of_key = memory.holders.iter_mut().filter(|holder| holder.key.as_ref() == Some(&key));
                    of_key.for_each(|holder| holder.key = None);
                }
                _ => memory.keys.push(key),
            }
        }
        Ok(())
    }

    /// What taking a run back needs to know.
    fn runs(&mut self, namespace: &Of) -> Result<()> {
        for mut run in namespace.runs_left()? {
            if !self.report.check.ok {
                run.steps = steps_of(namespace, run.id)?;
            }
            self.report.runs += 1;
            write_run(namespace.name(), &run, &mut self.line);
            self.end_line(None)?;
            let mut after = None;
            loop {
                let steps = namespace.steps_left(run.id, after, PAGE_STEPS)?;
                let Some(last) = steps.last() else { break };
                after = Some(last.seq);
                for step in &steps {
                    write_step(namespace.name(), step, &mut self.line);
                    self.end_line(None)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a tombstone for a memory that other lines name and that no line can tell of: an import takes no line that names what
    /// is not there.
    fn bury(&mut self, namespace: &Of, id: MemoryId, at: Time) -> Result<()> {
        // A memory that has lost its vector since is in order, and still can't be told of.
        if (self.report.check.ok && self.hollow.is_empty()) || self.replaced.contains(&id) {
            return Ok(());
        }
        match namespace.look_up(id, false) {
            Ok(_) if !self.hollow.contains(&id) => return Ok(()),
            Ok(_) | Err(Error::Corrupted { .. } | Error::NotFound { .. }) => {}
            Err(why) => return Err(why),
        }
        self.replaced.insert(id);
        self.report.tombstones += 1;
        let stone = Tombstone::bare(id, at, TombstoneReason::Pruned);
        write_tombstone(namespace.name(), &stone, &mut self.line);
        self.end_line(None)
    }

    fn note_damaged(&mut self, namespace: &Of, ids: Vec<MemoryId>) {
        self.report.damaged.extend(ids.into_iter().map(|id| (namespace.name().clone(), id)));
    }

    fn tombstones(&mut self, namespace: &Of) -> Result<()> {
        let read =
            |_: &mut Self, cursor: Option<String>, limit| namespace.tombstones(cursor.as_deref(), limit);
        self.pages(namespace, PAGE_ROWS, read, |lines, tombstone| {
            // That of a memory in limbo stands in its line.
            if lines.has(namespace, tombstone.id)? {
                return Ok(());
            }
            lines.report.tombstones += 1;
            write_tombstone(namespace.name(), &tombstone, &mut lines.line);
            lines.end_line(None)
        })
    }

    /// Families of messages in numbers, each with its members behind it, then the messages of none.
    fn messages(&mut self, namespace: &Of) -> Result<()> {
        let read =
            |_: &mut Self, cursor: Option<String>, limit| namespace.aggregates(cursor.as_deref(), limit);
        self.pages(namespace, PAGE_ROWS, read, |lines, mut aggregate| {
            let members = EventQuery::of_aggregate(aggregate.id);
            if !lines.report.check.ok {
                // Those that can't be read are gone for an import.
                let mut left = BTreeSet::new();
                lines.each_event(namespace, &members, |_, event| {
                    left.insert(event.id);
                    Ok(())
                })?;
                aggregate.events_ended = aggregate.dup_count.saturating_sub(left.len() as u64);
                aggregate.example_event_ids.retain(|id| left.contains(id));
            }
            lines.report.aggregates += 1;
            write_aggregate(namespace.name(), &aggregate, &mut lines.line);
            lines.end_line(None)?;
            lines.each_event(namespace, &members, |lines, event| lines.event(namespace, &event))
        })?;
        self.each_event(namespace, &EventQuery::default(), |lines, event| match event.aggregate_id {
            None => lines.event(namespace, &event),
            Some(_) => Ok(()),
        })
    }

    fn each_event(
        &mut self,
        namespace: &Of,
        query: &EventQuery,
        visit: impl FnMut(&mut Self, Event) -> Result<()>,
    ) -> Result<()> {
        let read =
            |_: &mut Self, cursor, limit| namespace.events(&EventQuery { cursor, limit, ..query.clone() });
        self.pages(namespace, PAGE_ROWS, read, visit)
    }

    fn event(&mut self, namespace: &Of, event: &Event) -> Result<()> {
        let family = namespace.family(event.id)?;
        let first = family.as_ref().map(|family| family.first_memory);
        for memory in event.memory_id.into_iter().chain(event.origin_memory_id).chain(first) {
            self.bury(namespace, memory, event.ts)?;
        }
        self.report.events += 1;
        write_event(namespace.name(), event, family.as_ref(), &mut self.line);
        self.end_line(None)
    }

    /// What went into contexts; the memories have counted it.
    fn contexts(&mut self, namespace: &Of) -> Result<()> {
        let read = |lines: &mut Self, cursor: Option<String>, limit| {
            let (page, damaged) = namespace.contexts_left(cursor.as_deref(), limit)?;
            let named = damaged.into_iter().map(|context| (namespace.name().clone(), context));
            lines.report.damaged_contexts.extend(named);
            Ok(page)
        };
        self.pages(namespace, PAGE_ROWS, read, |lines, context| {
            lines.report.contexts += 1;
            write_context(namespace.name(), &context, &mut lines.line);
            lines.end_line(None)
        })
    }

    fn goals(&mut self, namespace: &Of) -> Result<()> {
        // At most a thousand, which one read gives or, where a page of the file is damaged, none.
        let goals = namespace.goals_left();
        let goals = if self.report.check.ok { Some(goals?) } else { sound(goals)? };
        let (goals, damaged) = goals.unwrap_or_default();
        self.report.damaged_goals.extend(damaged.into_iter().map(|id| (namespace.name().clone(), id)));
        for mut goal in goals {
            if matches!(self.vectors, VectorsTo::Nowhere) {
                (goal.vector, goal.embedding_space) = (None, None);
            }
            self.report.goals += 1;
            write_goal(namespace.name(), &goal, &mut self.line);
            self.end_line(None)?;
        }
        Ok(())
    }

    fn end_line(&mut self, vector: Option<&[f32]>) -> Result<()> {
        /// Of a line that is too long, enough to know it by.
        const HEAD_BYTES: usize = 60;
        let bytes = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        if bytes.len() > EXPORT_LINE_BYTES_MAX {
            let head = String::from_utf8_lossy(bytes.get(..HEAD_BYTES).unwrap_or_default());
            let why = format!("must be at most {EXPORT_LINE_BYTES_MAX} bytes");
            return Err(Error::invalid("line", why, format!("{} bytes: {head}", bytes.len())));
        }
        let written = self.out.write_all(&self.line);
        written.map_err(|source| Error::io("write", &self.path, source))?;
        self.line.clear();
        self.line.shrink_to(LINE_BYTES_MAX);
        match (&mut self.vectors, vector) {
            (VectorsTo::Npy(writer, _), Some(vector)) => writer.write_row(vector),
            (VectorsTo::Npy(writer, dim), None) => writer.write_row(&vec![0.0; *dim]),
            _ => Ok(()),
        }
    }
}

/// Puts a holder without a key in the place of those that are lost, with what only they can have brought: an import takes no
/// memory that nobody has written, nor a tag that no holder brings.
fn stand_in(memory: &mut Memory) {
    let held = &memory.holders;
    let used: BTreeSet<u32> = held.iter().map(|holder| holder.number).collect();
    let rest = Holder {
        number: (0..).find(|number| !used.contains(number)).unwrap_or_default(),
        count: 1,
        share: u32::from(held.is_empty()),
        since: memory.recorded_at,
        tags: unbrought(&mut memory.tags, held.iter().flat_map(|holder| &holder.tags)),
        categories: unbrought(&mut memory.categories, held.iter().flat_map(|holder| &holder.categories)),
        entities: unbrought(&mut memory.entities, held.iter().flat_map(|holder| &holder.entities)),
        links: unbrought(&mut memory.links, held.iter().flat_map(|holder| &holder.links)),
        ..Holder::default()
    };
    let brings = rest.tags.len() + rest.categories.len() + rest.entities.len() + rest.links.len();
    if brings > 0 || held.is_empty() {
        memory.next_holder = memory.next_holder.max(rest.number.saturating_add(1));
        memory.holders.push(rest);
        memory.holders.sort_unstable_by_key(|holder| holder.number);
    }
}

/// What a memory has and none of its holders brings. What they bring belongs to the memory.
fn unbrought<'h, T: Ord + Clone + 'h>(all: &mut Vec<T>, brought: impl Iterator<Item = &'h T>) -> Vec<T> {
    let brought: BTreeSet<T> = brought.cloned().collect();
    let rest = all.iter().filter(|one| !brought.contains(one)).cloned().collect();
    *all = all.drain(..).chain(brought).collect::<BTreeSet<T>>().into_iter().collect();
    rest
}

/// The number of steps of a run that can be read: an import waits for as many as the run says.
fn steps_of(namespace: &Of, run: RunId) -> Result<u64> {
    let (mut count, mut after) = (0, None);
    loop {
        let steps = namespace.steps_left(run, after, PAGE_STEPS)?;
        let Some(last) = steps.last() else { return Ok(count) };
        (count, after) = (count + steps.len() as u64, Some(last.seq));
    }
}
