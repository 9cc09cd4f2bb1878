//! What happened to messages and summaries in an interval, for whoever tells a person of it.
//!
//! A report is a function of what is stored and of its interval, so two reports of one interval are equal as long as
//! nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Result, sound};
use crate::model::{AggregateId, Content, GroupState, MemoryId, Op, Time};
use crate::policy::Report as Limits;
use crate::store::keys;
use crate::store::{
    AggregateRow, GroupRow, MessageRows, NsId, PlanRows, Rows, Snapshot, Table, Walk, last_id,
};

/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;

/// What happened to messages and summaries of a namespace in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GcReport {
    /// The first instant of the interval.
    pub since: Time,
    /// Its last instant. The next report begins a millisecond later.
    pub until: Time,
    /// Whether there is anything to tell.
    pub changed: bool,
    /// Families of messages that were repeated in the interval, those with the most members first.
    pub top_families: Vec<ReportedFamily>,
    /// Summaries that were put in the place of their sources in the interval, in the order of time.
    pub compacted: Vec<Compacted>,
    /// Their number.
    pub summaries_created: u64,
    /// Memories that made room for them.
    pub memories_deleted: u64,
    /// Signs of repeated messages that no summary and no family had before the interval.
    pub new_patterns: Vec<String>,
    /// Filters that would keep repeated messages out, the most useful first.
    pub suggested_filters: Vec<SuggestedFilter>,
    /// What automatic actors may remove, and have removed for summaries.
    pub budget: ReportedBudget,
    /// How often summaries were refused, by the rule.
    pub refusals: BTreeMap<String, u64>,
    /// Summaries that may tell of sources that were forgotten since.
    pub derived: Vec<ForgottenSources>,
}

/// A family of repeated messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedFamily {
    /// The aggregate that counts the messages.
    pub aggregate_id: AggregateId,
    /// The channel of the messages.
    pub channel: Option<String>,
    /// Messages of the family, in the slice of time of the aggregate.
    pub dup_count: u64,
    /// The sort of spam; `unclassified` until a caller sets it.
    pub classification: String,
    /// Signs by which the family is recognised.
    pub signals: Vec<String>,
    /// Beginnings of its messages.
    pub examples: Vec<String>,
}

/// A summary that was put in the place of its sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compacted {
    /// The summary.
    pub summary_id: MemoryId,
    /// What it is about.
    pub topic: Option<String>,
    /// The number of its sources.
    pub source_count: u64,
    /// Its sources.
    pub source_ids: Vec<MemoryId>,
    /// The channel of its sources, as long as the first of them can be read.
    pub channel: Option<String>,
}

/// A filter that would keep messages out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuggestedFilter {
    /// The channel of the messages.
    pub channel: Option<String>,
    /// The sign by which they are recognised.
    pub signal: String,
    /// Messages that the filter would keep out a day, from 0.
    pub messages_per_day: f64,
    /// Who sends them, if only machines do: subscriptions that could be dropped.
    pub subscriptions: Vec<String>,
}

/// The budget of automatic actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportedBudget {
    /// Memories that one run may remove now.
    pub allowed: u64,
    /// Memories that made room for summaries in the interval.
    pub used: u64,
}

/// A summary that may tell of forgotten sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ForgottenSources {
    /// The summary.
    pub summary_id: MemoryId,
    /// How many of its sources were forgotten.
    pub source_forgotten: u64,
}

impl GcReport {
    /// The report on a namespace to which nothing was written.
    pub(crate) fn empty([since, until]: [Time; 2]) -> Self {
        GcReport {
            since,
            until,
            changed: false,
            top_families: Vec::new(),
            compacted: Vec::new(),
            summaries_created: 0,
            memories_deleted: 0,
            new_patterns: Vec::new(),
            suggested_filters: Vec::new(),
            budget: ReportedBudget::default(),
            refusals: BTreeMap::new(),
            derived: Vec::new(),
        }
    }
}

impl GcReport {
    fn tell_derived(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        section(f, "Summaries with forgotten sources", &self.derived, |f, summary| {
            write!(f, "{}: {}", summary.summary_id, summary.source_forgotten)
        })
    }
}

/// Reports on a namespace.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn gc_report(
    rows: &Snapshot,
    ns: NsId,
    [since, until]: [Time; 2],
    allowed: u64,
    limits: &Limits,
) -> Result<GcReport> {
    let is_within = |at: Time| at >= since && at <= until;
    let (mut signs, mut filters) = (Signs::default(), Vec::new());
    let (mut compacted, mut used) = (Vec::new(), 0);
    for Summary { at, id, content, group } in summaries(rows, ns, until)? {
        let patterns = patterns_of(&content);
        let found = patterns.iter().flat_map(|pattern| signs_of(&pattern.signals, &pattern.pattern));
        signs.see(found, is_within(at));
        if !is_within(at) {
            continue;
        }
        used += group.removed;
        let told = compacted_of(rows, ns, id, &content, &group)?;
        let days = content.time_range.map_or(1.0, |range| days(range.start, range.end));
        for Pattern { pattern, signals, count_estimate } in patterns {
            let Some(count) = count_estimate else { continue };
            let signal = signals.into_iter().next().unwrap_or(pattern);
            filters.push(filter(told.channel.clone(), signal, count as f64 / days, Vec::new()));
        }
        compacted.push(told);
    }
    let mut families = Vec::new();
    for (id, row) in aggregates(rows, ns)? {
        let first = row.snippets.first().cloned().unwrap_or_default();
        let [begun, ended] = [row.first_ts, row.last_ts].map(Time::from_millis);
        signs.see(signs_of(&row.signals, &first), begun >= since);
        if !is_within(ended) || row.dup_count < 2 {
            continue;
        }
        let signal = row.signals.first().cloned().unwrap_or(first);
        // The repeats of a person have no memory of their own, and nobody subscribes to a person.
        let subscriptions = if row.memory.is_some() { row.authors.clone() } else { Vec::new() };
        let a_day = row.dup_count as f64 / days(begun, ended);
        filters.push(filter(row.scope.clone(), signal, a_day, subscriptions));
        families.push((id, row));
    }
    families.sort_by(|(a, one), (b, other)| other.dup_count.cmp(&one.dup_count).then(a.cmp(b)));
    families.truncate(limits.top_families as usize);
    let refusals = refusals(rows, ns, [since, until])?;
    let new_patterns = signs.first_seen(limits.new_patterns as usize);
    Ok(GcReport {
        since,
        until,
        changed: !(compacted.is_empty()
            && families.is_empty()
            && refusals.is_empty()
            && new_patterns.is_empty()),
        top_families: families.into_iter().map(|(id, row)| family_told(id, row)).collect(),
        summaries_created: compacted.len() as u64,
        compacted,
        memories_deleted: used,
        new_patterns,
        suggested_filters: best(filters, limits.top_families as usize),
        budget: ReportedBudget { allowed, used },
        refusals,
        derived: derived(rows, ns, until)?,
    })
}

/// The current memories that were made from sources of which some were forgotten, whoever made them, in the order of time.
fn derived<R: MessageRows>(rows: &R, ns: NsId, until: Time) -> Result<Vec<ForgottenSources>> {
    let mut all = Vec::new();
    for id in rows.with_sources(ns)? {
        let source_forgotten = sound(rows.access(ns, id))?.map_or(0, |access| access.source_forgotten);
        if source_forgotten == 0 {
            continue;
        }
        let Some(vitals) = sound(rows.vitals(ns, id))?.flatten() else { continue };
        if vitals.times.is_current(until) && vitals.times.recorded_at <= until {
            all.push((vitals.times.recorded_at, ForgottenSources { summary_id: id, source_forgotten }));
        }
    }
    all.sort_by_key(|(at, one)| (*at, one.summary_id));
    Ok(all.into_iter().map(|(_, one)| one).collect())
}

/// A committed summary.
struct Summary {
    at: Time,
    id: MemoryId,
    content: Content,
    group: GroupRow,
}

/// The summaries that stand in the place of their sources, in the order of time.
fn summaries(rows: &Snapshot, ns: NsId, until: Time) -> Result<Vec<Summary>> {
    let mut all = Vec::new();
    for (plan, row) in rows.gc_plans(ns)? {
        for (_, group) in rows.gc_groups(ns, plan, &row)? {
            let Some(id) = group.summary.filter(|_| group.state == GroupState::Committed) else { continue };
            let Some(vitals) = sound(rows.vitals(ns, id))?.flatten() else { continue };
            let at = vitals.times.recorded_at;
            if vitals.times.removed_at.is_some() || at > until {
                continue;
            }
            let Some(content) = sound(rows.content(ns, id))?.flatten() else { continue };
            all.push(Summary { at, id, content, group });
        }
    }
    all.sort_by_key(|summary| (summary.at, summary.id));
    Ok(all)
}

fn compacted_of(
    rows: &Snapshot,
    ns: NsId,
    summary_id: MemoryId,
    content: &Content,
    group: &GroupRow,
) -> Result<Compacted> {
    // The commit may have been of a part of the group.
    let sources: BTreeSet<MemoryId> = rows.sources(ns, summary_id)?.into_iter().collect();
    let source_ids: Vec<MemoryId> =
        group.sources.iter().map(|stamp| stamp.id).filter(|id| sources.contains(id)).collect();
    let first = source_ids.first().map(|id| sound(rows.content(ns, *id))).transpose()?.flatten().flatten();
    Ok(Compacted {
        summary_id,
        topic: content.topic.clone(),
        source_count: source_ids.len() as u64,
        source_ids,
        channel: first.and_then(|first| first.channel),
    })
}

/// A pattern as a summary has it. A caller may have written the summary, so the rest of it is of no matter.
#[derive(Deserialize)]
struct Pattern {
    pattern: String,
    #[serde(default)]
    signals: Vec<String>,
    #[serde(default)]
    count_estimate: Option<u64>,
}

/// The patterns that a summary has, as far as they have the form of a summarizer's.
fn patterns_of(content: &Content) -> Vec<Pattern> {
    let patterns = content.spam_patterns.as_ref().and_then(|patterns| patterns.as_array());
    let read = |pattern: &serde_json::Value| serde_json::from_value(pattern.clone()).ok();
    patterns.into_iter().flatten().filter_map(read).collect()
}

fn aggregates(rows: &Snapshot, ns: NsId) -> Result<Vec<(AggregateId, AggregateRow)>> {
    let ids = rows.each_key(Table::Aggregate, &Walk::prefix(&keys::ns(ns)), usize::MAX, |key| {
        last_id(Table::Aggregate, key)
    })?;
    let mut all = Vec::new();
    for id in ids {
        let row = sound(rows.aggregate(ns, id.as_bytes()))?.flatten();
        all.extend(row.map(|row| (AggregateId::from_bytes(*id.as_bytes()), row)));
    }
    Ok(all)
}

fn family_told(aggregate_id: AggregateId, row: AggregateRow) -> ReportedFamily {
    ReportedFamily {
        aggregate_id,
        channel: row.scope,
        dup_count: row.dup_count,
        classification: row.classification,
        signals: row.signals,
        examples: row.snippets,
    }
}

/// How often summaries were refused in an interval, by the rule.
fn refusals(rows: &Snapshot, ns: NsId, [since, until]: [Time; 2]) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    rows.journal_back(ns, &mut |row| {
        let Some(row) = row else { return Ok(ControlFlow::Continue(())) };
        if row.at < since {
            return Ok(ControlFlow::Break(()));
        }
        if row.op == Op::Refuse && row.at <= until {
            *all.entry(row.evidence.signature.unwrap_or_default()).or_default() += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(all)
}

/// Signs of repeated messages: those seen before an interval, and those first seen in it.
#[derive(Default)]
struct Signs {
    before: BTreeSet<String>,
    within: Vec<String>,
}

impl Signs {
    fn see(&mut self, signs: impl IntoIterator<Item = String>, is_within: bool) {
        match is_within {
            true => self.within.extend(signs),
            false => self.before.extend(signs),
        }
    }

    fn first_seen(self, most: usize) -> Vec<String> {
        let Signs { before: mut seen, within } = self;
        within.into_iter().filter(|sign| seen.insert(sign.clone())).take(most).collect()
    }
}

/// The signs of a pattern. One without signs is its own.
fn signs_of(signals: &[String], pattern: &str) -> Vec<String> {
    let signs = if signals.is_empty() { vec![pattern.to_owned()] } else { signals.to_vec() };
    signs.into_iter().filter(|sign| !sign.is_empty()).collect()
}

/// Days of an interval, at least one.
fn days(start: Time, end: Time) -> f64 {
    (end.as_millis().saturating_sub(start.as_millis()) as f64 / DAY_MS).max(1.0)
}

fn filter(
    channel: Option<String>,
    signal: String,
    a_day: f64,
    subscriptions: Vec<String>,
) -> SuggestedFilter {
    // Tenths are enough for an expectation.
    SuggestedFilter { channel, signal, messages_per_day: (a_day * 10.0).round() / 10.0, subscriptions }
}

/// The most useful filters, one for each channel and signal.
fn best(mut filters: Vec<SuggestedFilter>, most: usize) -> Vec<SuggestedFilter> {
    filters.retain(|filter| !filter.signal.is_empty());
    filters.sort_by(|a, b| {
        let by_use = b.messages_per_day.total_cmp(&a.messages_per_day);
        by_use.then_with(|| (&a.channel, &a.signal).cmp(&(&b.channel, &b.signal)))
    });
    let mut seen = BTreeSet::new();
    filters.retain(|filter| seen.insert((filter.channel.clone(), filter.signal.clone())));
    filters.truncate(most);
    filters
}

/// A short text for a person.
impl fmt::Display for GcReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.since, self.until)?;
        if !self.changed {
            f.write_str(": nothing has changed")?;
            return self.tell_derived(f);
        }
        let (summaries, gone) = (self.summaries_created, self.memories_deleted);
        write!(f, "\nSummaries: {summaries}, in the place of {gone} memories")?;
        for Compacted { summary_id, topic, source_count, channel, .. } in &self.compacted {
            let topic = topic.as_deref().unwrap_or("without a topic");
            write!(f, "\n  {topic} ({source_count} memories{}): {summary_id}", In(channel))?;
        }
        section(f, "Most repeated", &self.top_families, |f, family| {
            let example = family.examples.first().map_or("", String::as_str);
            write!(f, "{} × {example}{} ({})", family.dup_count, In(&family.channel), family.classification)
        })?;
        section(f, "New signs", &self.new_patterns, |f, sign| f.write_str(sign))?;
        section(f, "Filters worth having", &self.suggested_filters, |f, filter| {
            let SuggestedFilter { channel, signal, messages_per_day, subscriptions } = filter;
            write!(f, "{signal}{}: {messages_per_day} messages a day", In(channel))?;
            if subscriptions.is_empty() { Ok(()) } else { write!(f, ", from {}", subscriptions.join(", ")) }
        })?;
        section(f, "Refused", &self.refusals, |f, (rule, count)| write!(f, "{count} × {rule}"))?;
        self.tell_derived(f)
    }
}

/// The channel of something, if it has one.
struct In<'c>(&'c Option<String>);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |channel| write!(f, " in {channel}"))
    }
}

/// A heading and a line for each item; nothing without items.
fn section<I: IntoIterator>(
    f: &mut fmt::Formatter<'_>,
    heading: &str,
    items: I,
    mut line: impl FnMut(&mut fmt::Formatter<'_>, I::Item) -> fmt::Result,
) -> fmt::Result {
    for (number, item) in items.into_iter().enumerate() {
        if number == 0 {
            write!(f, "\n{heading}:")?;
        }
        f.write_str("\n  ")?;
        line(f, item)?;
    }
    Ok(())
}
