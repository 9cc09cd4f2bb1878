//! Copies of the file, and what they do not carry over.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::builder::BUDGET_BYTES;
use crate::engine::database::Database;
use crate::engine::inner::{Inner, Opening};
use crate::engine::maintain::Sweep;
use crate::engine::options::MaintainOptions;
use crate::engine::session::Session;
use crate::engine::unfinished::clear_unfinished;
use crate::error::{Error, Result, sound};
use crate::hygiene::{CheckOptions, CheckReport, Finding, RetentionReport, erase_ended, locate};
use crate::ledger::{Change, Context, Entry, Loss, losses, lost_keys, lost_payloads, seem_vacant};
use crate::model::{
    Actor, ExpiresBy, MemoryId, NamespaceName, Pass, RuleId, RunId, RunSort, Span, Time, Vitals, random,
};
use crate::store::{Damaged, Durability, FileCopied, NsId, PlanRows, Rows, Store, Table, Traces, keys};

/// Expired rows that one transaction erases.
const ROWS_PER_SLICE: usize = 500;

/// What compaction or a backup did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompactReport {
    /// Length of the file before, in bytes.
    pub bytes_before: u64,
    /// Length of the new file, in bytes.
    pub bytes_after: u64,
    /// Rows copied, of all tables.
    pub rows: u64,
    /// Expired memories that were erased first: those of which a caller had set the end, and those that a tier had let
    /// expire longer ago than `undo.horizon`.
    pub expired: u64,
    /// Memories of limbo that were erased first: those past `undo.horizon`.
    pub limbo: u64,
    /// What was too old and went first, as in the pass `retention`.
    pub retention: RetentionReport,
    /// What is damaged in the file, as `check` names it, and what the copy met beside it; the check runs before the copy. What
    /// can't be read is left out: a memory where its text or its state is lost, and of one with several writers only
    /// the writer that is lost. Of rows that follow from others nothing is lost, and a row whose key has one damaged byte gets
    /// its key back, as the row of an embedding space its value.
    pub damaged: Vec<Finding>,
    /// How many more findings there are: of a check at most 1,000 are named.
    pub more: u64,
    /// The memories that the copy does not have because they are damaged.
    pub lost: Vec<MemoryId>,
    /// The keys of writers that the copy does not have because they are damaged. The copy has their memories, which other writers
    /// stand for.
    pub lost_keys: Vec<LostKey>,
    /// Whether `check` finds nothing in the copy. False only where something is damaged and what a store can't do without
    /// is lost, as the dimensions of its vectors: then the copy has all that can be read, and what is damaged as it stood.
    pub whole: bool,
    /// How many names beside its own (hard links) the file had that a compaction has replaced. Under these the old file is still
    /// there, with every byte that it had.
    pub other_names: u64,
}

/// A key that leads to nothing in a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostKey {
    /// The namespace of the key.
    pub namespace: NamespaceName,
    /// The key.
    pub key: String,
}

impl CompactReport {
    fn of(copied: FileCopied, mending: Mending, ended: Ended, other_names: u64) -> Self {
        let FileCopied { bytes_before, bytes_after, rows, .. } = copied;
        let Mending { found, lost, lost_keys, whole } = mending;
        let CheckReport { findings: damaged, more, .. } = found;
        let Ended { expired, limbo, retention } = ended;
        CompactReport {
            bytes_before,
            bytes_after,
            rows,
            expired,
            limbo,
            retention,
            damaged,
            more,
            lost,
            lost_keys,
            whole,
            other_names,
        }
    }
}

/// The number of names that a file has beside this one.
fn other_names(path: &Path) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map_or(0, |found| found.nlink().saturating_sub(1))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        0
    }
}

/// What went before a copy.
#[derive(Default)]
struct Ended {
    expired: u64,
    limbo: u64,
    retention: RetentionReport,
}

/// What became of a copy with damage.
struct Mending {
    found: CheckReport,
    lost: Vec<MemoryId>,
    lost_keys: Vec<LostKey>,
    whole: bool,
}

impl Mending {
    /// Of a file in which a check has found this.
    fn of(found: CheckReport) -> Self {
        Mending { whole: found.ok, found, lost: Vec::new(), lost_keys: Vec::new() }
    }

    /// Whether the copy is to be mended even where every row of the file can be read.
    fn is_needed(&self) -> bool {
        !self.found.ok
    }

    /// Takes up what the copy met, which knows more of a row than the check does.
    fn meet(&mut self, copy: &Store, damaged: &[Damaged]) -> Result<()> {
        self.whole = false;
        let mut met: Vec<Finding> = damaged
            .iter()
            .map(|row| Finding::corrupted(row.table.name(), &row.key, row.why.clone()))
            .collect();
        let rows: BTreeSet<(&str, &str)> = met.iter().map(|row| (row.table, row.key.as_str())).collect();
        self.found.findings.retain(|row| !rows.contains(&(row.table, row.key.as_str())));
        locate(&copy.snapshot()?, &mut met)?;
        // What else the check has found mostly follows from these rows.
        self.found.findings.splice(..0, met);
        Ok(())
    }

    /// Names the payloads that are lost of memories that stay. Of a page that can't be read nothing else tells which rows it had.
    fn miss_payloads(&mut self, rows: &impl Traces, ns: NsId, ids: &[MemoryId]) -> Result<()> {
        let table = Table::Payload.name();
        let missed = ids.iter().map(|id| keys::memory(ns, *id));
        let missed = missed.map(|key| Finding::corrupted(table, &key, "the payload is lost".to_owned()));
        let known: BTreeSet<String> =
            self.found.findings.iter().filter(|row| row.table == table).map(|row| row.key.clone()).collect();
        let mut missed: Vec<Finding> = missed.filter(|row| !known.contains(&row.key)).collect();
        locate(rows, &mut missed)?;
        self.found.findings.append(&mut missed);
        Ok(())
    }
}

impl Database {
    /// Rewrites the file without free space and without a byte of what was forgotten. What is past its end is erased first, as
    /// maintenance would: memories of limbo past `undo.horizon`, expired memories that are not protected, at once
    /// where a caller had set the end, else after `undo.horizon`, and what the pass `retention` removes. Writers wait for the copy, readers do not.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("The code is 1234").key("door"))?;
    /// team.forget("door")?;
    /// let report = db.compact()?; // No byte of the text is left.
    /// assert!(report.whole);
    /// db.clone().close()?;
    /// assert!(db.compact().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io` or `Retry` when the disk is full, which has to be made room on first: which of them, depends on the step of the copy that
    /// has no room. `Io` also when the disk refuses, or something that a killed process left can't be removed. The file is then as
    /// it was.
    pub fn compact(&self) -> Result<CompactReport> {
        self.inner.check_open()?;
        let unique = random()?;
        let _one = self.inner.upkeep.lock();
        // Of what is forgotten there must be no copy left either, such as half an export.
        clear_unfinished(self.path());
        let mut ended = Ended::default();
        past_damage(self.erase_ended(&mut ended))?;
        self.tidy_for_copy()?;
        let mut mending = Mending::of(self.check(&CheckOptions::default())?);
        self.inner.queue.alone(|| {
            let is_damaged = mending.is_needed();
            let other_names = other_names(self.path());
            let mut mend = |copy: Store, damaged: &[Damaged]| self.mend_copy(copy, damaged, &mut mending);
            let copied = self.inner.store.compact(&unique, is_damaged, &mut mend);
            // One that failed late has replaced the file as well.
            self.inner.catch_up();
            copied.map(|copied| CompactReport::of(copied, mending, ended, other_names))
        })
    }

    /// Writes a compact copy to `target`, which must not exist. Of what was forgotten before the call it has no byte: what is
    /// left of it in the file goes before or, where this handle can't write, from the copy, which takes twice as long then. Only
    /// its owner can read it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let copy = folder.path().join("copy.oub");
    /// assert!(db.backup(&copy)?.whole);
    /// assert!(db.backup(&copy).is_err()); // A backup never replaces a file.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Conflict` when there is something by that name; `Io` or `Retry` when the disk is full, as
    /// [`Database::compact`] says; `Io`.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<CompactReport> {
        if self.inner.is_closed() {
            return Err(Error::Closed);
        }
        self.inner.check_outside()?;
        self.inner.store.make_room(target.as_ref())?;
        let is_tidy = self.could_tidy() || self.is_tidy()?;
        let mut mending = Mending::of(self.check(&CheckOptions::default())?);
        let is_damaged = mending.is_needed();
        let mut mend = |copy: Store, damaged: &[Damaged]| match is_damaged || !damaged.is_empty() {
            true => self.mend_copy(copy, damaged, &mut mending),
            false => self.of_copy(copy).and_then(|copy| {
                copy.tidy_for_copy()?;
                copy.close()
            }),
        };
        let copied =
            self.inner.store.backup(target.as_ref(), &random()?, is_damaged || !is_tidy, &mut mend)?;
        Ok(CompactReport::of(copied, mending, Ended::default(), 0))
    }

    /// Whether this handle has taken out of the file what no copy is to have. A file that can't be written to, on a full disk
    /// perhaps, can be copied all the same.
    fn could_tidy(&self) -> bool {
        if self.inner.check_open().is_err() {
            return false;
        }
        let _one = self.inner.upkeep.lock();
        let tidied = self.tidy_for_copy();
        if let Err(why) = &tidied {
            tracing::warn!(%why, "what is left of memories that are gone stays in the file");
        }
        tidied.is_ok()
    }

    /// A handle of a copy that has no name yet.
    fn of_copy(&self, copy: Store) -> Result<Database> {
        let inner = Inner::open(Opening {
            store: copy,
            durability: Durability::Fast,
            budget_bytes: BUDGET_BYTES,
            clock: Arc::clone(&self.inner.clock),
            ids: Arc::clone(&self.inner.ids),
            policy: self.inner.own_policy.clone(),
            instructions: None,
            lease: self.inner.lease,
            actor: Actor::Sweeper,
            read_only: false,
            track: false,
        })?;
        Ok(Database::from_inner(inner))
    }

    /// Makes a whole store of a copy with damage, and says what is not in it.
    fn mend_copy(&self, copy: Store, damaged: &[Damaged], mending: &mut Mending) -> Result<()> {
        mending.meet(&copy, damaged)?;
        let copy = self.of_copy(copy)?;
        copy.inner.run_alone(|session| session.ledger.drop_strays())?;
        for (namespace, ns) in copy.tenants(None)? {
            let published = copy.inner.state()?;
            let losses = losses(&**published.snapshot(), ns)?;
            let keys = lost_keys(&**published.snapshot(), ns, &losses)?;
            let payloads = lost_payloads(&**published.snapshot(), ns)?;
            mending.miss_payloads(&**published.snapshot(), ns, &payloads)?;
            drop(published);
            let lost = keys.into_iter().map(|key| LostKey { namespace: namespace.clone(), key });
            mending.lost_keys.extend(lost);
            mending.lost.extend(losses.iter().filter_map(|loss| match loss {
                Loss::Gone(Change::Remove { id, .. }) => Some(*id),
                _ => None,
            }));
            for some in losses.chunks(ROWS_PER_SLICE) {
                copy.inner.run_alone(|session| {
                    if !session.stands(&namespace, ns)? {
                        return Ok(());
                    }
                    let context = session.context(ns, None);
                    some.iter().try_for_each(|loss| match loss {
                        Loss::Writers(id) => session.ledger.rewrite(&context, *id),
                        Loss::Limbo(id) => session.ledger.rewrite_limbo(&context, *id),
                        Loss::Gone(change) => {
                            let entry = Entry::new(RuleId::REINDEX, change.clone());
                            session.ledger.apply(&context, entry).map(drop)
                        }
                    })
                })?;
            }
        }
        copy.reindex()?;
        copy.tidy_for_copy()?;
        // Of what is lost as a whole only those tell that it had superseded.
        copy.maintain_with(&MaintainOptions::live().passes([Pass::Supersession]))?;
        let report = copy.check(&CheckOptions { deep: true, ..CheckOptions::default() })?;
        mending.whole = report.ok;
        for finding in &report.findings {
            tracing::error!(?finding, "a copy is not whole although it was mended");
        }
        copy.close()
    }

    /// Takes away what stands in the file of memories that are gone, and of plans that are late: codes in graphs, probes, names of
    /// agents.
    fn tidy_for_copy(&self) -> Result<()> {
        past_damage(self.repair_all())?;
        for (namespace, ns) in self.tenants(None)? {
            past_damage(self.end_late_plans(&namespace, ns))?;
        }
        self.drop_vacant()
    }

    /// Whether nothing stands in the file that [`tidy_for_copy`](Self::tidy_for_copy) would take away, as far as it can be read.
    fn is_tidy(&self) -> Result<bool> {
        let published = self.inner.state()?;
        let (snapshot, now) = (published.snapshot(), self.inner.instant(&published));
        if sound(snapshot.has_dead_slots())?.unwrap_or(false) {
            return Ok(false);
        }
        for (_, ns) in self.tenants(None)? {
            let vacant = sound(seem_vacant(&**snapshot, ns))?.unwrap_or_default();
            let late = sound(snapshot.late_gc_plans(ns, now))?.unwrap_or_default();
            if !vacant.is_empty() || !late.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the plans of a namespace whose time is over, so that no copy has their probes.
    fn end_late_plans(&self, namespace: &NamespaceName, ns: NsId) -> Result<()> {
        let published = self.inner.state()?;
        if published.snapshot().late_gc_plans(ns, self.inner.instant(&published))?.is_empty() {
            return Ok(());
        }
        self.inner.run_alone(|session| {
            if session.stands(namespace, ns)? {
                session.ledger.tx.end_late_gc_plans(ns, session.ledger.now())?;
            }
            Ok(())
        })
    }

    /// Takes away the partitions in which nothing is left, with the names of their agents.
    fn drop_vacant(&self) -> Result<()> {
        for (namespace, ns) in self.tenants(None)? {
            past_damage(self.drop_vacant_of(&namespace, ns))?;
        }
        Ok(())
    }

    fn drop_vacant_of(&self, namespace: &NamespaceName, ns: NsId) -> Result<()> {
        if seem_vacant(&**self.inner.state()?.snapshot(), ns)?.is_empty() {
            return Ok(());
        }
        self.inner.run_alone(|session| {
            if session.stands(namespace, ns)? {
                session.reset.extend(session.ledger.drop_vacant(ns)?);
            }
            Ok(())
        })
    }

    /// Erases what no copy carries over, in slices: expired memories, memories of limbo past their horizon, and what the pass
    /// `retention` removes. Counts them.
    fn erase_ended(&self, ended: &mut Ended) -> Result<()> {
        let options = MaintainOptions::live();
        let run = self.inner.new_run()?;
        let mut sweep = Sweep::new(run, RunSort::Compact, None, &options);
        for (namespace, ns) in self.tenants(None)? {
            let mut after = None;
            loop {
                let expired = self.expired_after(ns, after, ROWS_PER_SLICE)?;
                let Some(last) = expired.last() else { break };
                after = Some(*last);
                sweep.enter(&self.inner, &namespace, ns, run);
                ended.expired +=
                    self.inner.run_alone(|session| erase(session, &namespace, ns, run, &expired))?;
            }
        }
        ended.limbo = self.run_pass(Pass::Limbo, &options, &mut sweep)?.changed;
        let report = self.run_pass(Pass::Retention, &options, &mut sweep)?.report;
        ended.retention = report.get().cloned().unwrap_or_default();
        self.end_runs(&sweep);
        Ok(())
    }

    /// Memories of a namespace that expired and are to be erased, behind `after` by id, at most `most`.
    fn expired_after(&self, ns: NsId, after: Option<MemoryId>, most: usize) -> Result<Vec<MemoryId>> {
        let horizon = self.inner.in_force().policy.undo.horizon;
        let published = self.inner.state()?;
        let now = self.inner.instant(&published);
        let mut all = Vec::new();
        published.snapshot().vitals_after(ns, after, &mut |id, vitals| {
            if vitals.is_some_and(|vitals| is_over(vitals, now, horizon)) {
                all.push(id);
            }
            Ok(if all.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(all)
    }
}

/// Lets a copy go on where a row is damaged: the copy goes past it, and names it.
fn past_damage(step: Result<()>) -> Result<()> {
    match step {
        Err(why @ Error::Corrupted { .. }) => {
            tracing::warn!(%why, "damage is left to the copy");
            Ok(())
        }
        other => other,
    }
}

/// Whether a memory expired and nothing is to bring it back: what a tier let expire can be asked for until
/// `undo.horizon` is over.
fn is_over(vitals: &Vitals, now: Time, horizon: Span) -> bool {
    let waits = match vitals.expires_by {
        ExpiresBy::Caller => Span::ZERO,
        ExpiresBy::Tier => horizon,
    };
    let end = vitals.times.expires_at.map(|end| end.plus(waits));
    !vitals.waits_for_horizon() && !vitals.is_protected() && end.is_some_and(|end| end <= now)
}

/// Erases expired memories that still are, and raises the purge horizons.
fn erase(
    session: &mut Session<'_, '_, '_>,
    namespace: &NamespaceName,
    ns: NsId,
    run: RunId,
    expired: &[MemoryId],
) -> Result<u64> {
    let asked = session.context(ns, Some(run));
    let context = Context { actor: Actor::Sweeper, ..asked.clone() };
    let horizon = session.in_force.policy.undo.horizon;
    // A namespace that was dropped meanwhile has no row to erase from.
    let Some(mut row) = session.ledger.tx.namespace(namespace.as_str())?.filter(|row| row.number == ns.0)
    else {
        return Ok(0);
    };
    let mut erased = 0;
    for id in expired {
        let vitals = session.ledger.tx.vitals(ns, *id)?;
        let Some(vitals) = vitals.filter(|vitals| is_over(vitals, context.now, horizon)) else { continue };
        erase_ended(session.ledger, &context, &mut row, *id, &vitals)?;
        erased += 1;
    }
    session.ledger.tx.put_namespace(namespace.as_str(), &row)?;
    session.ledger.note_part(&asked, run, RunSort::Compact, [("expired", erased)])?;
    Ok(erased)
}
