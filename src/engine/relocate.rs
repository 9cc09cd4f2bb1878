//! Whole namespaces get another name or go into another namespace, and mixed namespaces are taken apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::engine::database::Database;
use crate::engine::session::Session;
use crate::error::{Error, Result};
use crate::ledger::Gaps;
use crate::model::{MemoryId, NamespaceName};
use crate::store::control::{CounterSort, TOTAL, dropped_name};
use crate::store::{NsId, Rows, SortedRows};

/// The key of the metadata that names the namespace that the line of an import had named.
pub(crate) const SOURCE_NAMESPACE: &str = "import_source_namespace";

/// The keys of the metadata by which a namespace is taken apart, unless a caller names others.
const SPLIT_KEYS: [&str; 5] = [SOURCE_NAMESPACE, "user_id", "agent_id", "run_id", "project"];

/// How memories change their namespace.
///
/// ```
/// use oubliette::maintain::RenamespaceOptions;
/// let dry = RenamespaceOptions { dry_run: true, ..RenamespaceOptions::default() };
/// assert!(!dry.drop_keys);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenamespaceOptions {
    /// Only say what would be done.
    pub dry_run: bool,
    /// A memory loses a key that a current memory of the other namespace holds. Otherwise nothing is moved then.
    pub drop_keys: bool,
}

/// What a move or a split came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RenamespaceReport {
    /// Memories that are in another namespace now, in every state.
    pub moved: u64,
    /// How many of them each namespace got.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, u64>,
    /// Memories that stayed.
    pub skipped: u64,
    /// Those of them that are damaged: nobody can say where they belong, or what of them would go. Not in JSON while there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<MemoryId>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// References from one memory to another that lead across a border now. A superseder or a source stays named by its id. A link is
    /// gone.
    pub cross_namespace_edges: u64,
    /// Keys that the memories lost.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub dropped_keys: BTreeSet<String>,
}

impl Database {
    /// Gives a namespace another name; if that is the name of a namespace, all memories go there, in every state, with everything that belongs to
    /// them: keys, vectors, tombstones, runs, messages, history. It is one transaction, so nobody sees a half of it.
    ///
    /// ```
    /// use oubliette::maintain::RenamespaceOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("ann")?.add("Ann prefers tea")?;
    /// db.namespace("team")?.add("Bob walks")?;
    /// let report = db.move_namespace("ann", "team", &RenamespaceOptions::default())?;
    /// assert_eq!(report.moved, 1);
    /// assert_eq!(db.namespace("team")?.list(&Default::default())?.items.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `NotFound` when there is no such namespace; `Invalid` for a text that is no name;
    /// - `Conflict` with the keys that current memories of both namespaces hold, and for an id that both have used;
    /// - `Corrupted` for a memory that can't be read as a whole: nothing is moved then.
    pub fn move_namespace<F, T>(
        &self,
        from: F,
        to: T,
        options: &RenamespaceOptions,
    ) -> Result<RenamespaceReport>
    where
        F: TryInto<NamespaceName, Error: Into<Error>>,
        T: TryInto<NamespaceName, Error: Into<Error>>,
    {
        let from: NamespaceName = from.try_into().map_err(Into::into)?;
        let to: NamespaceName = to.try_into().map_err(Into::into)?;
        let mut report = RenamespaceReport { dry_run: options.dry_run, ..RenamespaceReport::default() };
        if from == to {
            return Ok(report);
        }
        let mut left = None;
        self.unless_dry(options, &mut report, |session, report| {
            left = session.move_all(&from, &to, options.drop_keys, report)?;
            Ok(())
        })?;
        if let Some(ns) = left.filter(|_| !options.dry_run) {
            self.delete_rows(ns)?;
        }
        Ok(report)
    }

    /// Takes a mixed namespace apart: each memory goes to the namespace that the first of the `keys` names that its metadata has as a text. Without
    /// keys they are `import_source_namespace`, `user_id`, `agent_id`, `run_id` and `project`. A memory without any, whose text is empty, no name of a
    /// namespace or the name of this one, stays. So does a memory that can't be read as a whole, which the report names.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::maintain::RenamespaceOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let all = db.namespace("all")?;
    /// all.add(Draft::new("Ann prefers tea").metadata(serde_json::json!({ "user_id": "ann" })))?;
    /// all.add("the sky is blue")?;
    /// let report = db.split_namespace("all", &[], &RenamespaceOptions::default())?;
    /// assert_eq!((report.targets["ann"], report.skipped), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::move_namespace`], but that damage to single memories is none.
    pub fn split_namespace<F>(
        &self,
        from: F,
        keys: &[&str],
        options: &RenamespaceOptions,
    ) -> Result<RenamespaceReport>
    where
        F: TryInto<NamespaceName, Error: Into<Error>>,
    {
        let from: NamespaceName = from.try_into().map_err(Into::into)?;
        let keys = if keys.is_empty() { &SPLIT_KEYS } else { keys };
        let mut report = RenamespaceReport { dry_run: options.dry_run, ..RenamespaceReport::default() };
        self.unless_dry(options, &mut report, |session, report| {
            session.split(&from, keys, options.drop_keys, report)
        })?;
        Ok(report)
    }

    /// Does the work in one transaction, which a dry run gives up at its end: so the dry run meets what the work would meet.
    fn unless_dry(
        &self,
        options: &RenamespaceOptions,
        report: &mut RenamespaceReport,
        mut work: impl FnMut(&mut Session<'_, '_, '_>, &mut RenamespaceReport) -> Result<()>,
    ) -> Result<()> {
        self.inner.check_open()?;
        if !options.dry_run {
            // What waits to be counted stands under the names of now.
            self.flush_access()?;
        }
        // A pass that works on the namespace would find its rows gone.
        let _one = self.inner.upkeep.lock();
        let clean = report.clone();
        let unit = |session: &mut Session<'_, '_, '_>| {
            *report = clean.clone();
            work(session, report)?;
            // Memories come as they were, so that a move back is one.
            session.forget_nothing();
            Ok(())
        };
        if options.dry_run { self.inner.rehearse(unit) } else { self.inner.run_alone(unit) }
    }
}

impl Session<'_, '_, '_> {
    /// Moves a namespace, and says which rows are left over, hidden.
    fn move_all(
        &mut self,
        from: &NamespaceName,
        to: &NamespaceName,
        drop_keys: bool,
        report: &mut RenamespaceReport,
    ) -> Result<Option<NsId>> {
        let mut row = self.row_of(from)?;
        let ns = NsId(row.number);
        if self.ledger.tx.namespace(to.as_str())?.is_none() {
            let count = |sort: CounterSort| {
                self.ledger.tx.counter(ns, TOTAL, sort as u8, "").map(|counter| counter.rows)
            };
            let rows =
                count(CounterSort::Vectors)? + count(CounterSort::Pending)? + count(CounterSort::Limbo)?;
            report.moved = rows.unsigned_abs();
            self.ledger.tx.delete_namespace(from.as_str())?;
            self.ledger.tx.put_namespace(to.as_str(), &row)?;
            report.targets.insert(to.to_string(), report.moved);
            return Ok(None);
        }
        let ids = self.ledger.ids_of(ns)?;
        let brought = self.writer(to, None, false)?.bring(&row, &ids, drop_keys, true)?;
        report.moved = ids.len() as u64;
        report.targets.insert(to.to_string(), report.moved);
        report.cross_namespace_edges = brought.edges;
        report.dropped_keys = brought.lost;
        self.ledger.tx.delete_namespace(from.as_str())?;
        row.dropping = true;
        self.ledger.tx.put_namespace(&dropped_name(ns), &row)?;
        self.ledger.counters.forget(ns);
        self.dropped.push(ns);
        Ok(Some(ns))
    }

    fn split(
        &mut self,
        from: &NamespaceName,
        keys: &[&str],
        drop_keys: bool,
        report: &mut RenamespaceReport,
    ) -> Result<()> {
        let row = self.row_of(from)?;
        let ns = NsId(row.number);
        let ids = self.ledger.ids_of(ns)?;
        let targets = self.targets_of(ns, &ids, keys, from, &mut report.damaged)?;
        let mut places = BTreeMap::new();
        for (target, ids) in &targets {
            let mut writer = self.writer(target, None, false)?;
            let brought = writer.bring(&row, ids, drop_keys, false)?;
            places.extend(ids.iter().map(|id| (*id, writer.ns())));
            report.moved += ids.len() as u64;
            report.targets.insert(target.to_string(), ids.len() as u64);
            report.cross_namespace_edges += brought.edges;
            report.dropped_keys.extend(brought.lost);
        }
        report.skipped = ids.len() as u64 - report.moved;
        let (context, gaps) = (self.context(ns, None), Gaps::of(&*self.ledger.tx, ns)?);
        // Neighbours in a table go one after the other.
        let away: Vec<MemoryId> = places.keys().copied().collect();
        if report.skipped == 0 {
            self.reset.extend(self.ledger.send_all_away(&context, &away, &gaps)?);
        } else {
            for id in &away {
                self.ledger.send_away(&context, *id, &gaps)?;
            }
        }
        self.ledger.part_journal(ns, &places)?;
        // Only when all are away it is clear what still refers to them.
        if self.ledger.names_memories(ns)? {
            for id in &away {
                self.ledger.stand_in_if_named(&context, *id)?;
            }
        }
        self.opened.insert(from.clone());
        Ok(())
    }

    /// The memories that the metadata leads to another namespace, by its name. What can't be read is led nowhere, and goes to
    /// `damaged`.
    fn targets_of(
        &self,
        ns: NsId,
        ids: &[MemoryId],
        keys: &[&str],
        from: &NamespaceName,
        damaged: &mut Vec<MemoryId>,
    ) -> Result<BTreeMap<NamespaceName, Vec<MemoryId>>> {
        let (tx, mut targets) = (&*self.ledger.tx, BTreeMap::<NamespaceName, Vec<MemoryId>>::new());
        tx.each_belonging(ns, ids, &mut |id, row| {
            let Some(metadata) = row.map(|row| row.metadata) else {
                damaged.push(id);
                return Ok(());
            };
            let texts = keys.iter().filter_map(|key| metadata.get(key)?.as_str());
            let named = texts.map(str::trim).find(|text| !text.is_empty());
            let target = named.and_then(|name| name.parse().ok()).filter(|target| target != from);
            match target {
                Some(target) if self.ledger.can_relocate(ns, id)? => {
                    targets.entry(target).or_default().push(id)
                }
                Some(_) => damaged.push(id),
                None => {}
            }
            Ok(())
        })?;
        Ok(targets)
    }

    fn row_of(&self, namespace: &NamespaceName) -> Result<crate::store::control::NamespaceRow> {
        let row = self.ledger.tx.namespace(namespace.as_str())?;
        row.ok_or_else(|| Error::NotFound { what: "namespace", name: namespace.to_string() })
    }
}
