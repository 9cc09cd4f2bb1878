//! Which consolidated memories are too old, or of too little use? The pass `prune`.
//!
//! Summaries of sessions and of chapters are read from a table of their own, by creation, so the pass costs nothing for the
//! memories of other kinds. Where the host counts steps, a level is looked at only so often. A score is worked out anew for
//! each plan, and a score by goals holds only as long as no goal of the agent changes.

mod facts;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::error::{Result, sound};
use crate::hygiene::goals::{GoalStamp, Goals, Relevance, final_score, stability};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned, PruneTarget};
use crate::hygiene::plan::{Action, Page, Pages, Plan, PruneReason, Pruning, Stop};
use crate::hygiene::told::details;
use crate::hygiene::uniqueness::{uniqueness, vector_of};
use crate::hygiene::utility::utility_of;
use crate::model::{Access, Content, Kind, MemoryId, Time, Vitals, is_zero};
use crate::policy::{Policy, PruneMode};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{Junction, Rows};
use facts::{Consolidated, Exempt, Facts, Level};

/// Rows of a page of a walk over memories of any kind.
const PAGE_ROWS: usize = 1_000;

/// The pass `prune`.
pub(crate) struct Prune;

/// Report of the pass `prune`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PruneReport {
    /// Memories that were too old.
    pub by_age: u64,
    /// Memories whose score was too low, or the lowest of too many.
    pub by_score: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Memories that went to limbo; 0 in a dry run.
    pub pruned: u64,
    /// Memories that stay because they are pinned or locked.
    #[serde(skip_serializing_if = "is_zero")]
    pub protected: u64,
    /// Memories that stay because a search found them lately.
    #[serde(skip_serializing_if = "is_zero")]
    pub cooling: u64,
    /// Memories about which no score decides because they answered very well once, or earned protection for a while.
    #[serde(skip_serializing_if = "is_zero")]
    pub earned: u64,
    /// Memories about which no score decides because they are too young.
    #[serde(skip_serializing_if = "is_zero")]
    pub young: u64,
    /// Memories that stay because they matter to a goal.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_goals: u64,
    /// Memories that stay because a goal of their agent waits for a vector, or is damaged.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale_goals: u64,
    /// The step at which summaries of sessions were looked at last, where the host counts steps.
    #[serde(skip)]
    last_step_l1: u64,
    /// The same of summaries of chapters.
    #[serde(skip)]
    last_step_l2: u64,
}

details!(PruneReport {
    numbers {
        by_age "by_age", by_score "by_score", bytes "bytes", pruned "pruned", protected "protected",
        cooling "cooling", earned "earned", young "young", for_goals "for_goals", stale_goals "stale_goals",
        last_step_l1 "plan.step_l1", last_step_l2 "plan.step_l2"
    }
    done { pruned = removed }
});

impl MaintenancePass for Prune {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let mut plan = Planning::new(input)?;
        let whole = match &input.selection.prune {
            Some(target) => plan.target(target, stop)?,
            None if !input.policy.prune.enabled => true,
            None => plan.levels(stop)?,
        };
        Ok(whole.then(|| Planned::actions(plan.plan, plan.scanned, plan.report)))
    }
}

/// Whether no score decides about a memory: a search found it lately, it answered very well once, it earned protection for a
/// while, or it is a summary too young to have been found.
pub(super) fn is_left_alone(
    vitals: &Vitals,
    access: &Access,
    policy: &Policy,
    now: Time,
    step: Option<u64>,
) -> bool {
    let level = Kind::level_of(vitals.kind_code).and_then(Level::of);
    let facts = Facts::of(level, vitals, access, None, now, step);
    facts.is_cooling(&policy.prune) || facts.is_exempt(&policy.prune).is_some()
}

/// A memory that may go.
#[derive(Clone, Debug)]
struct Candidate {
    id: MemoryId,
    vitals: Vitals,
    access_seq: u64,
    /// The agent that the memory names.
    agent: Option<String>,
    facts: Facts,
    mus: f64,
    relevance: Relevance,
    /// The score that decides.
    score: f64,
    /// Whether the memory is so unique that it goes last of those with its score.
    is_unique: bool,
}

impl Candidate {
    /// The order in which they go: the lowest score first, of equal ones those that are like others, then by id.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(self.is_unique.cmp(&other.is_unique)).then(self.id.cmp(&other.id))
    }
}

/// A plan under way.
struct Planning<'s> {
    input: PlanInput<'s>,
    goals: Goals,
    plan: Plan,
    report: PruneReport,
    scanned: u64,
}

impl<'s> Planning<'s> {
    fn new(input: PlanInput<'s>) -> Result<Self> {
        let goals = Goals::read(input.published.snapshot(), input.field.ns)?;
        input.field.pass_over(goals.damaged());
        Ok(Planning { input, goals, plan: Plan::default(), report: PruneReport::default(), scanned: 0 })
    }

    fn mode(&self) -> PruneMode {
        self.input.policy.prune.mode
    }

    /// Whether the final score decides. A level is judged by its utility in the modes that name it; a target and the hybrid
    /// mode go by the final score.
    fn goes_by_goals(&self) -> bool {
        match self.input.selection.prune {
            Some(_) => self.mode() != PruneMode::Mus,
            None => self.mode() == PruneMode::Hybrid,
        }
    }

    /// Plans both levels by the rules of the policy. False when `stop` ended it.
    fn levels(&mut self, stop: Stop<'_>) -> Result<bool> {
        for level in Level::ALL {
            if !self.is_due(level)? {
                continue;
            }
            let mut rows = Vec::new();
            for id in self.input.published.snapshot().of_level(self.input.field.ns, level.number())? {
                if stop(1) {
                    return Ok(false);
                }
                self.scanned += 1;
                rows.extend(self.candidate(id, Some(level), None)?);
            }
            let before = self.report.by_age;
            if self.mode() != PruneMode::Mus {
                rows = self.take_aged(rows, level)?;
            }
            let aged = self.report.by_age - before;
            if self.mode() != PruneMode::Age && !self.take_low(rows, level, aged, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether enough steps of the host have passed since the last look at a level; always without steps.
    fn is_due(&mut self, level: Level) -> Result<bool> {
        let rows = self.input.published.snapshot();
        let row = rows.pass(self.input.field.ns, crate::model::Pass::Prune.as_str())?.unwrap_or_default();
        let (name, last) = match level {
            Level::Session => ("plan.step_l1", &mut self.report.last_step_l1),
            Level::Chapter => ("plan.step_l2", &mut self.report.last_step_l2),
        };
        let before = row.report.iter().find(|(kept, _)| kept == name).map_or(0, |(_, step)| *step);
        *last = before;
        let Some(step) = self.input.selection.step else { return Ok(true) };
        // A host that counts from the beginning again is looked at.
        if before > 0
            && (before..before.saturating_add(level.every_steps(&self.input.policy.prune))).contains(&step)
        {
            return Ok(false);
        }
        *last = step;
        Ok(true)
    }

    /// Plans to remove the memories of a kind that score lowest, as many as there are too many. False when `stop` ended it.
    fn target(&mut self, target: &PruneTarget, stop: Stop<'_>) -> Result<bool> {
        let Some(rows) = self.of_kind(target, stop)? else { return Ok(false) };
        let count = rows.len() as u64;
        let excess = count.saturating_sub(target.count);
        self.take_lowest(rows, excess, |_, _| Ok(None), stop)
    }

    /// The visible memories of a kind; none when `stop` ended it.
    fn of_kind(&mut self, target: &PruneTarget, stop: Stop<'_>) -> Result<Option<Vec<Option<Candidate>>>> {
        let (field, published) = (self.input.field, self.input.published);
        let (code, level) = (target.kind.code(), Kind::level_of(target.kind.code()).and_then(Level::of));
        let mut ids = Vec::new();
        if let Some(level) = level {
            ids = published.snapshot().of_level(field.ns, level.number())?;
        } else {
            let mut pages = Pages::new(field, PAGE_ROWS);
            let wanted = |row: &Vitals| row.kind_code == code && row.times.visible_live(field.now);
            loop {
                match pages.turn(published.snapshot(), &mut *stop, wanted)? {
                    Page::Stopped => return Ok(None),
                    Page::End => break,
                    Page::Rows(rows) => ids.extend(rows.into_iter().map(|(id, _)| id)),
                }
            }
        }
        let mut rows = Vec::new();
        for id in ids {
            if stop(1) {
                return Ok(None);
            }
            self.scanned += 1;
            let Some(content) = field.sound(published.snapshot().content(field.ns, id))?.flatten() else {
                continue;
            };
            let vitals = field.sound(published.snapshot().vitals(field.ns, id))?.flatten();
            if !vitals.is_some_and(|vitals| vitals.times.visible_live(field.now)) {
                continue;
            }
            let is_of_agent = target.agent.is_none() || target.agent == content.agent_id;
            if content.kind(code) == target.kind && is_of_agent {
                rows.push(self.candidate(id, level, Some(content))?);
            }
        }
        Ok(Some(rows))
    }

    /// A visible memory that may go; none of one that stays whatever its score is, which the report counts.
    fn candidate(
        &mut self,
        id: MemoryId,
        level: Option<Level>,
        content: Option<Content>,
    ) -> Result<Option<Candidate>> {
        let PlanInput { field, published, policy, selection, .. } = self.input;
        let (ns, rows) = (field.ns, published.snapshot());
        let Some(vitals) = field.sound(rows.vitals(ns, id))?.flatten() else { return Ok(None) };
        if !vitals.times.visible_live(field.now) {
            return Ok(None);
        }
        if vitals.is_protected() {
            self.report.protected += 1;
            return Ok(None);
        }
        let Some(access) = field.access(rows, id)? else { return Ok(None) };
        let consolidated = match level {
            Some(Level::Session) => self.consolidated(id, &access)?,
            _ => None,
        };
        let mut facts = Facts::of(level, &vitals, &access, consolidated, field.now, selection.step);
        if facts.is_cooling(&policy.prune) {
            self.report.cooling += 1;
            return Ok(None);
        }
        let (mut agent, mut relevance) = (None, Relevance::default());
        let by_goals = self.goes_by_goals();
        let by_steps =
            selection.step.filter(|_| level.is_some_and(|level| level.max_steps(&policy.prune) > 0));
        if by_goals || by_steps.is_some() || policy.prune.stability_gain > 0.0 {
            let content = match content {
                Some(content) => Some(content),
                None => field.sound(rows.content(ns, id))?.flatten(),
            };
            let then = content.as_ref().and_then(|content| content.step);
            facts.age_steps = by_steps.zip(then).map(|(now, then)| now.saturating_sub(then));
            agent = content.and_then(|content| content.agent_id);
        }
        if by_goals && !self.goals.is_empty() {
            let vector = field.sound(vector_of(published, ns, &vitals))?.flatten();
            relevance = self.goals.relevance(agent.as_deref(), vector.as_ref());
            relevance = self.goals.judged(self.input.judge, id, agent.as_deref(), relevance);
        }
        if self.mode() == PruneMode::Hybrid {
            if relevance.is_stale {
                self.report.stale_goals += 1;
                return Ok(None);
            }
            if relevance.grs >= policy.prune.protect_goal {
                self.report.for_goals += 1;
                return Ok(None);
            }
        }
        let mus = utility_of(&access, field.now, policy);
        let access_seq = access.access_seq;
        let (score, is_unique) = (mus, false);
        Ok(Some(Candidate { id, vitals, access_seq, agent, facts, mus, relevance, score, is_unique }))
    }

    /// When a summary of a session went into one of a chapter: by its own stamps, or by the earliest visible summary of a
    /// chapter that names it as its source.
    fn consolidated(&self, id: MemoryId, access: &Access) -> Result<Option<Consolidated>> {
        let own = Consolidated { at: access.last_consolidated_at, step: access.consolidated_step };
        if own.at.is_some() || own.step.is_some() {
            return Ok(Some(own));
        }
        let PlanInput { field, published, .. } = self.input;
        let (ns, rows) = (field.ns, published.snapshot());
        let mut first: Option<Consolidated> = None;
        for (summary, _) in rows.joined_to(ns, Junction::Source, id.as_bytes())? {
            let Some(vitals) = sound(rows.vitals(ns, summary))?.flatten() else { continue };
            let is_chapter = Kind::level_of(vitals.kind_code) == Some(Level::Chapter.number());
            let is_earlier = first.is_none_or(|first| Some(vitals.created_at) < first.at);
            if is_chapter && is_earlier && vitals.times.visible_live(field.now) {
                let step = sound(rows.content(ns, summary))?.flatten().and_then(|content| content.step);
                first = Some(Consolidated { at: Some(vitals.created_at), step });
            }
        }
        Ok(first)
    }

    /// Plans to remove what is too old, and gives the rest.
    fn take_aged(&mut self, rows: Vec<Candidate>, level: Level) -> Result<Vec<Candidate>> {
        let (aged, rest): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.facts.is_aged(&self.input.policy.prune));
        for row in aged {
            self.report.by_age += 1;
            self.prune(row, PruneReason::Age { level: level.number() })?;
        }
        Ok(rest)
    }

    /// Plans to remove what scores too low, if the level is large enough; `aged` of it go already. False when `stop` ended it.
    fn take_low(&mut self, rows: Vec<Candidate>, level: Level, aged: u64, stop: Stop<'_>) -> Result<bool> {
        let (field, prune) = (self.input.field, &self.input.policy.prune);
        let kind = match level {
            Level::Session => Kind::ConsolidatedSummary,
            Level::Chapter => Kind::ChapterSummary,
        };
        let snapshot = self.input.published.snapshot();
        let counter = snapshot.counter(field.ns, TOTAL, CounterSort::Kind as u8, &kind.to_string())?;
        let (count, bytes) = (counter.rows.max(0).unsigned_abs(), counter.bytes.max(0).unsigned_abs());
        let is_large = |size: u64, most: u64| most > 0 && size >= most;
        let any_size = prune.max_rows == 0 && prune.max_bytes == 0;
        if !any_size && !is_large(count, prune.max_rows) && !is_large(bytes, prune.max_bytes) {
            return Ok(true);
        }
        let bottom = level.bottom(prune);
        let mut excess = count.saturating_sub(prune.target_count).saturating_sub(aged);
        if bottom > 0.0 {
            excess = excess.min((count as f64 * bottom).floor() as u64);
        }
        let base = level.threshold(prune);
        let threshold = |planning: &Planning<'_>, row: &Candidate| {
            if bottom > 0.0 {
                return Ok(None);
            }
            let (input, policy) = (planning.input, &planning.input.policy.prune);
            let agent = input.hash_of(row.agent.as_deref());
            let stable = match policy.stability_gain > 0.0 {
                true => stability(input.published.snapshot(), field.ns, agent, field.now)?,
                false => 0.0,
            };
            Ok(Some(row.facts.threshold(base, stable, policy)))
        };
        self.take_lowest(rows.into_iter().map(Some).collect(), excess, threshold, stop)
    }

    /// Plans to remove at most `excess` of the memories that score lowest, below the threshold of each if it has one. False
    /// when `stop` ended it.
    fn take_lowest(
        &mut self,
        rows: Vec<Option<Candidate>>,
        excess: u64,
        threshold: impl Fn(&Planning<'_>, &Candidate) -> Result<Option<f64>>,
        stop: Stop<'_>,
    ) -> Result<bool> {
        let policy = self.input.policy;
        let by_goals = self.goes_by_goals();
        let mut low = Vec::new();
        for mut row in rows.into_iter().flatten() {
            match row.facts.is_exempt(&policy.prune) {
                Some(Exempt::Relevant | Exempt::Shielded) => self.report.earned += 1,
                Some(Exempt::Young) => self.report.young += 1,
                None => {
                    row.score =
                        if by_goals { final_score(row.mus, row.relevance.grs, policy) } else { row.mus };
                    let below = threshold(self, &row)?;
                    if below.is_none_or(|below| row.score < below) {
                        low.push((row, below));
                    }
                }
            }
        }
        low.sort_unstable_by(|(a, _), (b, _)| a.order(b));
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        if self.mode() == PruneMode::Hybrid && !self.set_apart_unique(&mut low, excess, stop)? {
            return Ok(false);
        }
        low.truncate(excess);
        for (row, below) in low {
            self.report.by_score += 1;
            let replaced = row.relevance.replaced.filter(|_| by_goals);
            let built_in = replaced.map(|grs| final_score(row.mus, grs, policy));
            let reason = PruneReason::Score { score: row.score, threshold: below, by_goals, built_in };
            self.prune(row, reason)?;
        }
        Ok(true)
    }

    /// Lets unique memories go last of those with equal scores, as far as a memory that goes has an equal. False when `stop`
    /// ended it.
    fn set_apart_unique(
        &self,
        low: &mut [(Candidate, Option<f64>)],
        excess: usize,
        stop: Stop<'_>,
    ) -> Result<bool> {
        let PlanInput { published, field, policy, .. } = self.input;
        let mut begin = 0;
        for equal in low.chunk_by_mut(|(a, _), (b, _)| a.score.total_cmp(&b.score).is_eq()) {
            if begin >= excess {
                break;
            }
            begin += equal.len();
            if equal.len() < 2 {
                continue;
            }
            for (row, _) in &mut *equal {
                if stop(1) {
                    return Ok(false);
                }
                let sus = uniqueness(published, field.ns, row.id, &row.vitals, policy, field.now);
                row.is_unique = field.sound(sus)?.is_some_and(|sus| sus >= policy.prune.unique_last);
            }
            equal.sort_unstable_by(|(a, _), (b, _)| a.order(b));
        }
        Ok(true)
    }

    fn prune(&mut self, row: Candidate, reason: PruneReason) -> Result<()> {
        let Candidate { id, vitals, access_seq, agent, .. } = row;
        let by_goals = matches!(reason, PruneReason::Score { by_goals: true, .. });
        let goals: Option<GoalStamp> = match by_goals || self.mode() == PruneMode::Hybrid {
            true => {
                let (rows, ns) = (self.input.published.snapshot(), self.input.field.ns);
                Some(self.goals.stamp(rows, ns, self.input.hash_of(agent.as_deref()))?)
            }
            false => None,
        };
        self.report.bytes += u64::from(vitals.content_bytes);
        let version = vitals.version;
        self.plan.actions.push(Action::Prune(Pruning { id, version, access_seq, reason, goals }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u8, score: f64, is_unique: bool) -> Candidate {
        let facts =
            Facts::of(None, &Vitals::new("x", Time::EPOCH), &Access::default(), None, Time::EPOCH, None);
        Candidate {
            id: MemoryId::from_bytes([id; 16]),
            vitals: Vitals::new("x", Time::EPOCH),
            access_seq: 0,
            agent: None,
            facts,
            mus: 0.0,
            relevance: Relevance::default(),
            score,
            is_unique,
        }
    }

    #[test]
    fn v254_of_equal_scores_the_unique_goes_last() {
        let [a, b, c] = [candidate(1, 0.0, true), candidate(2, 0.0, false), candidate(3, 0.1, false)];
        let mut all = [c, a, b];
        all.sort_unstable_by(Candidate::order);
        assert_eq!(all.map(|row| row.id.as_bytes()[0]), [2, 1, 3]);
    }
}
