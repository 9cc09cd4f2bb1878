//! Which rows do the indexes not know well enough yet? The pass `index`: graphs, postings, and declared indexes of metadata.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, sound};
use crate::hnsw::Crew;
use crate::hygiene::pass::{Applied, DueInput, Job, MaintenancePass, PlanInput, Planned, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::{PassReport, details};
use crate::index::text::upkeep::{self as texts, POST_BYTES, TextEdit};
use crate::index::upkeep::{self, Counts, Need, Regimes};
use crate::index::{Edit, Published, Written};
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{Pass, RuleId, is_zero};
use crate::store::control::TextHead;
use crate::store::{IndexId, Read, Rows, Snapshot, TextId, TextRows};

/// Documents that are posted in one commit while others write: few make many blocks, which are to be joined again.
const POST_MIN: usize = 256;
/// Blocks of an index that are read for joining in one commit.
const JOIN_BLOCKS: usize = 1_024;
/// Texts of the indexes whose blocks are joined in one commit; of one index there may be more.
const JOIN_TEXTS: usize = 1_024;

/// The pass `index`.
pub(crate) struct Index;

impl MaintenancePass for Index {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let (rows, ns) = (input.published.snapshot(), input.field.ns);
        let mut jobs: Vec<Box<dyn Job>> = Vec::new();
        for partition in partitions(input)? {
            let regimes = Regimes::of(input.policy, input.published.dim(partition.index.space)?);
            let need = partition.counts.map_or(Need::Nothing, |counts| regimes.need(counts));
            let state = Linking { partition, regimes, need, changed: 0, begun: false, dropped: false };
            jobs.push(Box::new(state));
        }
        let texts = rows.text_heads(Some(ns))?;
        if !texts.is_empty() {
            jobs.push(Box::new(Posting::new(&texts)));
        }
        for (path, _) in rows.meta_keys(ns)?.into_iter().filter(|(_, is_whole)| !is_whole) {
            jobs.push(Box::new(Declaring::new(path)));
        }
        Ok(Some(Planned::Jobs(jobs)))
    }

    fn is_due(&self, _: &DueInput<'_>) -> Result<bool> {
        Ok(true)
    }
}

/// Report of the pass `index`. Its counts in [`PassReport`] are those of vectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexReport {
    /// Partitions with vectors.
    #[serde(skip_serializing_if = "is_zero")]
    pub partitions: u64,
    /// Graphs that were begun.
    #[serde(skip_serializing_if = "is_zero")]
    pub built: u64,
    /// Graphs of partitions that became small.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Texts of the full-text indexes.
    #[serde(skip_serializing_if = "is_zero")]
    pub texts: u64,
    /// Texts that wait for their postings.
    #[serde(skip_serializing_if = "is_zero")]
    pub unposted: u64,
    /// Texts whose postings were written.
    #[serde(skip_serializing_if = "is_zero")]
    pub posted: u64,
    /// Blocks of postings that were joined.
    #[serde(skip_serializing_if = "is_zero")]
    pub joined: u64,
    /// Declared indexes of metadata that were not whole.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished_indexes: u64,
}

// Its jobs add to it by themselves.
details!(IndexReport {});

/// The vectors of a partition in one space, as a pass finds them.
pub(super) struct Partition {
    pub(super) index: IndexId,
    /// None where the head of the graph is damaged.
    pub(super) counts: Option<Counts>,
    /// Whether its image fits into the memory budget.
    fits: bool,
    crew: Option<Crew>,
    /// Whether the recall was looked at.
    calibrated: bool,
}

/// The partitions of a namespace that have vectors.
///
/// # Errors
/// Damage.
pub(super) fn partitions(input: PlanInput<'_>) -> Result<Vec<Partition>> {
    let (published, mut all) = (input.published, Vec::new());
    for (index, head) in published.snapshot().slot_heads(Some(input.field.ns))? {
        let counts = match published.snapshot().graph_head(index) {
            Ok(graph) => Some(Counts::of(&head, graph.as_ref())),
            Err(Error::Corrupted { .. }) => None,
            Err(other) => return Err(other),
        };
        let fits = published.has_room_for(&head, published.dim(index.space)?);
        all.push(Partition { index, counts, fits, crew: None, calibrated: false });
    }
    Ok(all)
}

impl Partition {
    /// Whether it can be worked on, with so many rows that need it.
    pub(super) fn is_workable(&self, work: u64) -> bool {
        self.counts.is_some_and(|counts| (self.fits || work == 0) && (counts.has_graph || work > 0))
    }

    pub(super) fn crew(&mut self, threads: usize) -> &mut Crew {
        self.crew.get_or_insert_with(|| Crew::new(threads))
    }

    /// Measures the recall again where it no longer holds, once.
    pub(super) fn calibrate(
        &mut self,
        input: StepInput<'_>,
        always: bool,
        rule: RuleId,
    ) -> Result<Option<Step<'static>>> {
        if std::mem::replace(&mut self.calibrated, true) {
            return Ok(None);
        }
        Ok(upkeep::calibrate(input.published, self.index, always)?.map(|edit| write(edit, rule)))
    }

    /// Tells what there was, and with `work` how many rows need something. False where nothing more is to be told.
    pub(super) fn tell(
        &self,
        rows: &Snapshot,
        report: &mut PassReport,
        work: impl Fn(Counts) -> u64,
    ) -> Result<bool> {
        let Some(counts) = self.counts else {
            report.skipped += 1;
            return Ok(false);
        };
        report.scanned += u64::from(counts.live);
        report.planned += work(counts);
        if work(counts) > 0 && !self.fits {
            (report.skipped, report.left) = (report.skipped + 1, report.left + work(counts));
        } else {
            report.left += work(Counts::read(rows, self.index)?);
        }
        Ok(true)
    }
}

/// Writes a step of the upkeep of a graph.
pub(crate) fn write(edit: Edit, rule: RuleId) -> Step<'static> {
    Box::new(move |slice| {
        let Written::Done(linked) = slice.ledger.derive(&slice.context, &edit, rule)? else {
            return Ok(Applied::if_fresh(false, 0));
        };
        slice.linked.insert(edit.index, linked);
        Ok(Applied::rows(edit.rows()))
    })
}

/// Writes a step of the upkeep of full-text indexes. It is stale where each of them has changed.
pub(crate) fn write_texts(edits: Vec<TextEdit>) -> Step<'static> {
    Box::new(move |slice| {
        let mut rows = 0;
        for edit in &edits {
            rows += if slice.ledger.post(&slice.context, edit)? { edit.rows() } else { 0 };
        }
        Ok(Applied::if_fresh(rows > 0, rows))
    })
}

/// The graph of a partition.
struct Linking {
    partition: Partition,
    regimes: Regimes,
    /// What it needed when the pass began: a writer as fast as the pass would keep it here for ever.
    need: Need,
    changed: u64,
    begun: bool,
    dropped: bool,
}

impl Linking {
    fn work(need: Need, counts: Counts) -> u64 {
        match need {
            Need::Link(rows) => u64::from(rows),
            Need::Drop => u64::from(counts.in_graph),
            Need::Nothing => 0,
        }
    }
}

impl Job for Linking {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        let (index, rule) = (self.partition.index, RuleId::of_pass(Pass::Index));
        let Some(counts) = self.partition.counts else { return Ok(None) };
        if self.dropped || !self.partition.is_workable(Linking::work(self.need, counts)) {
            return Ok(None);
        }
        self.begun = true;
        match self.need {
            Need::Drop => {
                let edit = upkeep::unlink_all(input.published, index)?;
                self.dropped = edit.is_none();
                self.changed += u64::from(self.dropped) * u64::from(counts.in_graph);
                return Ok(edit.map(|edit| write(edit, rule)));
            }
            Need::Link(waiting) if self.changed < u64::from(waiting) => {
                let crew = self.partition.crew(input.threads);
                if let Some(edit) = upkeep::link(input.published, index, input.rows, crew)? {
                    return Ok(Some(write(edit, rule)));
                }
            }
            Need::Link(_) | Need::Nothing => {}
        }
        self.partition.calibrate(input, false, rule)
    }

    fn applied(&mut self, applied: Applied) {
        if matches!(self.need, Need::Link(_)) {
            self.changed += applied.count;
        }
    }

    fn tell(&self, rows: &Snapshot, report: &mut PassReport) -> Result<()> {
        let work = |counts| Linking::work(self.regimes.need(counts), counts);
        if !self.partition.tell(rows, report, work)? {
            return Ok(());
        }
        report.changed += self.changed;
        let had_graph = self.partition.counts.is_some_and(|counts| counts.has_graph);
        let built = self.begun && !had_graph && matches!(self.need, Need::Link(_));
        let details = report.report.of::<IndexReport>();
        details.partitions += 1;
        details.built += u64::from(built);
        details.dropped += u64::from(self.dropped);
        Ok(())
    }

    fn may_be_left_out(&self) -> bool {
        true
    }
}

/// The full-text indexes of a namespace. Small ones share a step, because a commit costs more than the postings of a few
/// texts. The counters of the pass are those of vectors; texts have their own in its report.
struct Posting {
    /// Indexes with a tail, and where the tail ended when the pass began: a writer as fast as the pass would keep it here
    /// for ever.
    to_post: VecDeque<(TextId, u32)>,
    to_join: VecDeque<TextId>,
    /// The indexes of the step that was worked out last.
    step: Vec<TextId>,
    /// Whether a step has one index, because one of several in a step is damaged.
    is_apart: bool,
    damaged: u64,
    used: u64,
    waiting: u64,
    posted: u64,
    joined: u64,
}

impl Posting {
    fn new(heads: &[(TextId, TextHead)]) -> Self {
        let tails = heads.iter().filter(|(_, head)| texts::waiting(head) > 0);
        Posting {
            to_post: tails.map(|(text, head)| (*text, head.len)).collect(),
            to_join: heads.iter().map(|(text, _)| *text).collect(),
            step: Vec::new(),
            is_apart: false,
            damaged: 0,
            used: heads.iter().map(|(_, head)| u64::from(head.used)).sum(),
            waiting: heads.iter().map(|(_, head)| u64::from(texts::waiting(head))).sum(),
            posted: 0,
            joined: 0,
        }
    }

    /// The postings of about `most` texts, of as many indexes as have them.
    fn post(&mut self, published: &Published, most: usize) -> Result<Vec<TextEdit>> {
        let (mut edits, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while let Some((text, end)) = self.to_post.get(edits.len()).copied()
            && rows < most
            && bytes < POST_BYTES
            && (!self.is_apart || edits.is_empty())
        {
            let post = || match published.snapshot().readable_text_head(text)? {
                Some(head) if head.posted < end => texts::post(published, text, most - rows),
                _ => Ok(None),
            };
            match sound(post())? {
                Some(Some(edit)) => {
                    (rows, bytes) = (rows + edit.rows() as usize, bytes + edit.bytes());
                    edits.push(edit);
                }
                Some(None) => drop(self.to_post.remove(edits.len())),
                None => self.leave_out(text),
            }
        }
        Ok(edits)
    }

    /// The next indexes whose blocks are to be joined, of about [`JOIN_TEXTS`] texts.
    fn loose(&mut self, rows: &Snapshot) -> Result<Vec<TextId>> {
        let (mut loose, mut posted) = (Vec::new(), 0);
        while let Some(text) = self.to_join.get(loose.len()).copied()
            && posted < JOIN_TEXTS
            && (!self.is_apart || loose.is_empty())
        {
            match sound(rows.text_head(text))? {
                Some(Some(head)) if texts::is_loose(&head) => {
                    posted += head.posted as usize;
                    loose.push(text);
                }
                Some(_) => drop(self.to_join.remove(loose.len())),
                None => self.leave_out(text),
            }
        }
        Ok(loose)
    }

    fn leave_out(&mut self, damaged: TextId) {
        self.damaged += 1;
        self.to_post.retain(|(text, _)| *text != damaged);
        self.to_join.retain(|text| *text != damaged);
    }
}

impl Job for Posting {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        let edits = self.post(input.published, input.rows.max(POST_MIN).min(input.rows_left).max(1))?;
        if !edits.is_empty() {
            self.step = edits.iter().map(|edit| edit.text).collect();
            return Ok(Some(write_texts(edits)));
        }
        self.step = self.loose(input.published.snapshot())?;
        let texts = &self.step;
        let join = || -> Step<'s> {
            Box::new(move |slice| {
                let mut count = 0;
                for text in texts {
                    count += slice.ledger.join_postings(&slice.context, *text, JOIN_BLOCKS)?;
                }
                Ok(Applied { count, ..Applied::default() })
            })
        };
        Ok((!texts.is_empty()).then(join))
    }

    fn applied(&mut self, applied: Applied) {
        // Blocks are joined at no cost to the budget, texts are rows of it.
        let joins = applied.rows == 0;
        *(if joins { &mut self.joined } else { &mut self.posted }) += applied.count;
    }

    fn met_damage(&mut self) -> bool {
        self.is_apart = self.step.len() > 1;
        if let &[damaged] = self.step.as_slice() {
            self.leave_out(damaged);
        }
        true
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.skipped += self.damaged;
        let details = report.report.of::<IndexReport>();
        details.texts += self.used;
        // The numbers of texts that are gone wait as well, but their words are nowhere.
        details.unposted += self.waiting.saturating_sub(self.posted).min(self.used);
        details.posted += self.posted.min(self.used);
        details.joined += self.joined;
        Ok(())
    }
}

/// A declared index of metadata that is not whole, or not gone.
pub(crate) struct Declaring {
    path: Arc<str>,
    is_over: bool,
    /// Memories that stand in it.
    pub(crate) rows: u64,
}

impl Declaring {
    pub(crate) fn new(path: Arc<str>) -> Self {
        Declaring { path, is_over: false, rows: 0 }
    }
}

impl Job for Declaring {
    fn next<'s>(&'s mut self, _: StepInput<'s>) -> Result<Option<Step<'s>>> {
        let path = &self.path;
        let go_on = || -> Step<'s> {
            Box::new(move |slice| {
                let at = slice.ledger.go_on_declared(&slice.context, path, SLICE_ROWS_MAX)?;
                let (is_last, count) = match at {
                    ControlFlow::Continue(()) => (false, 0),
                    ControlFlow::Break(rows) => (true, rows),
                };
                Ok(Applied { count, is_last, ..Applied::default() })
            })
        };
        Ok((!self.is_over).then(go_on))
    }

    fn applied(&mut self, applied: Applied) {
        (self.is_over, self.rows) = (applied.is_last, applied.count);
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.changed += self.rows;
        report.report.of::<IndexReport>().unfinished_indexes += 1;
        Ok(())
    }
}
