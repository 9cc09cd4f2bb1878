//! Puts rows of an export back as they were, each part of the export in one transaction. Every part leaves a whole
//! store: an end that does not exist yet is left out and comes with a later part. Any other contradiction to the rows
//! around is an error.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::fields::given_by_code;
use crate::ingest::message::Standing;
use crate::ledger::{Change, Recreated};
use crate::model::{
    Aggregate, AggregateId, AggregateType, Decision, Event, EventId, Evidence, Family, Joint, JournalRow,
    Kept, Memory, MemoryId, Outcome, Parts, RuleId, Run, RunId, Time, Tombstone, check_content,
};
use crate::store::{AggregateRow, EventRow, FamilyRow, Id, MessageRows, Rows, Walk, keys};
use crate::text::normal_form;

/// What became of a part of an export.
#[derive(Clone, Debug, Default)]
pub(crate) struct PutBack {
    /// For each row, what became of the memory; none for a row that is not a memory.
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// The ends that were left out because they do not exist yet, with the position of the row that names
    /// them.
    pub(crate) ahead: Vec<(usize, Joint)>,
    /// The positions of rows whose memory exists and says something else, with the names of these fields.
    pub(crate) differing: Vec<(usize, Vec<&'static str>)>,
    /// The number of memories whose vector is of another space than those of the file: their text waits for a vector.
    pub(crate) vectors_left_out: u64,
    /// The number of memories without a text whose vector is of another space than those of the file: no search finds them.
    pub(crate) vectors_apart: u64,
}

/// The fields that uses and further writers change without a new version.
const UNVERSIONED: [&str; 4] = ["reinforcement_count", "expires_at", "expires_by", "confidence"];

/// A part being put back.
#[derive(Default)]
struct Part {
    /// The position of the present row.
    place: usize,
    /// The memories and tombstones that the part brings.
    memories: BTreeSet<MemoryId>,
    gone: BTreeSet<MemoryId>,
    ahead: Vec<(usize, Joint)>,
    differing: Vec<(usize, Vec<&'static str>)>,
    vectors_left_out: u64,
    vectors_apart: u64,
    /// Rows whose superseder did not exist when they were written.
    orphans: Vec<(usize, MemoryId, MemoryId)>,
    /// Rows whose world time ends before it begins.
    inverted: Vec<(usize, MemoryId)>,
    /// The runs that the part brings.
    runs: BTreeMap<RunId, RunBrought>,
    /// The aggregates that the part brings or adds members to.
    aggregates: BTreeMap<AggregateId, usize>,
    events: Vec<(usize, EventId)>,
    /// How many of their members aggregates still miss that count members which have ended.
    missing: BTreeMap<AggregateId, u64>,
}

/// A run that a part brings.
#[derive(Clone, Copy)]
struct RunBrought {
    /// The position of its row.
    place: usize,
    /// The number of its steps still to come.
    left: u64,
    /// Whether its steps are there already. Of a run that existed before, only the first step tells.
    has_steps: Option<bool>,
}

impl RunBrought {
    /// Refuses a run whose steps are not all there.
    fn check_whole(self, run: RunId) -> Result<()> {
        if self.left == 0 || self.has_steps == Some(true) {
            return Ok(());
        }
        let why = format!("must follow the run {run}, {} more", self.left);
        Err(Error::invalid("steps", why, "the end"))
    }
}

impl Part {
    fn of(rows: &[Kept]) -> Self {
        let mut part = Part::default();
        for row in rows {
            match row {
                Kept::Memory(memory) => drop(part.memories.insert(memory.id)),
                Kept::Tombstone(tombstone) => drop(part.gone.insert(tombstone.id)),
                _ => {}
            }
        }
        part
    }
}

/// Adds the position of a row to an error.
fn blame(place: usize) -> impl Fn(Error) -> Error {
    move |why| why.at_line(place as u64 + 1)
}

impl NamespaceWriter<'_, '_, '_> {
    /// Puts a part of an export back. Rows that exist already are left as they are, because the same file may
    /// come again.
    ///
    /// # Errors
    /// The errors of the first row that is not whole, as a line with its position counted from 1.
    pub(crate) fn put_back(&mut self, rows: &[Kept]) -> Result<PutBack> {
        for (place, row) in rows.iter().enumerate() {
            self.catch_up(row).map_err(blame(place))?;
        }
        self.context.now = self.ledger.now();
        let mut part = Part::of(rows);
        let mut outcomes = Vec::with_capacity(rows.len());
        for (place, row) in rows.iter().enumerate() {
            part.place = place;
            outcomes.push(self.put_row(&mut part, row).map_err(blame(place))?);
        }
        self.check_chains(&part)?;
        self.check_messages(&part)?;
        for (run, brought) in &part.runs {
            brought.check_whole(*run).map_err(blame(brought.place))?;
        }
        let Part { ahead, differing, vectors_left_out, vectors_apart, .. } = part;
        Ok(PutBack { outcomes, ahead, differing, vectors_left_out, vectors_apart })
    }

    /// Transaction times never lie ahead of the store. The times of a machine whose clock is ahead advance
    /// the store, as far as a clock may be wrong.
    fn catch_up(&mut self, row: &Kept) -> Result<()> {
        let most = self.now().plus(self.policy.stats.clock_warn);
        let clock = &mut self.ledger.clock;
        let mut reach = |field: &str, at: Option<Time>| {
            let Some(at) = at else { return Ok(()) };
            if at > most {
                let why = "must be at most stats.clock_warn ahead of the clock";
                return Err(Error::invalid(field, why, at));
            }
            clock.at_ms = clock.at_ms.max(at.as_millis());
            Ok(())
        };
        match row {
            Kept::Memory(memory) => {
                reach("recorded_at", Some(memory.recorded_at))?;
                reach("valid_from_recorded_at", memory.valid_from_recorded_at)?;
                memory.holders.iter().try_for_each(|holder| reach("holders.since", Some(holder.since)))?;
                reach("superseded_at", memory.superseded.map(|superseded| superseded.at))?;
                reach("removed_at", memory.removed_at)?;
                // A caller may give any instant of the last write, and nothing tells of a giver who has left.
                let is_ours = !memory.holders.iter().any(|holder| holder.gave_value("updated_at"));
                reach("updated_at", Some(memory.updated_at).filter(|at| is_ours && *at <= most))
            }
            Kept::Tombstone(tombstone) => reach("deleted_at", Some(tombstone.deleted_at)),
            Kept::Run(run) => reach("started_at", Some(run.started_at)),
            Kept::Step(step) => reach("at", Some(step.at)),
            Kept::Context(log) => reach("at", Some(log.at)),
            Kept::Goal(goal) => reach("set_at", Some(goal.set_at)),
            Kept::Aggregate(_) | Kept::Event(..) | Kept::Joint(_) => Ok(()),
        }
    }

    fn put_row(&mut self, part: &mut Part, row: &Kept) -> Result<Option<Outcome>> {
        match row {
            Kept::Memory(memory) => return self.recreate(part, memory).map(Some),
            Kept::Tombstone(tombstone) => drop(self.recreate_tombstone(tombstone)?),
            Kept::Run(run) => self.recreate_run(part, run)?,
            Kept::Step(step) => self.recreate_step(part, step)?,
            Kept::Aggregate(aggregate) => self.recreate_aggregate(part, aggregate)?,
            Kept::Event(event, family) => self.recreate_event(part, event, family.as_deref())?,
            Kept::Joint(joint) => self.rejoin(part, joint.clone())?,
            Kept::Context(log) => self.recreate_context(log)?,
            Kept::Goal(goal) => self.recreate_goal(goal)?,
        }
        Ok(None)
    }

    /// Puts a run back. A run over several namespaces has a row in each of them, so an import of all into one namespace
    /// brings several.
    fn recreate_run(&mut self, part: &mut Part, run: &Run) -> Result<()> {
        let known = self.ledger.tx.run(self.ns(), run.id)?.is_some();
        if !known {
            self.ledger.keep_run(&self.context, run)?;
        }
        let has_steps = (!known).then_some(false);
        let brought = RunBrought { place: part.place, left: run.steps, has_steps };
        part.runs.insert(run.id, brought).map_or(Ok(()), |before| before.check_whole(run.id))
    }

    /// Puts a step of a run back. The steps of one row come in one part, so all of them are there where the first one is.
    fn recreate_step(&mut self, part: &mut Part, step: &JournalRow) -> Result<()> {
        let brought = step.run.and_then(|run| part.runs.get_mut(&run)).filter(|brought| brought.left > 0);
        let Some(brought) = brought else {
            let why = "must follow its run, as many times as the run says";
            let run = step.run.map_or_else(|| "none".to_owned(), |run| run.to_string());
            return Err(Error::invalid("run_id", why, run));
        };
        brought.left -= 1;
        let has_steps = match (brought.has_steps, step.subject) {
            (Some(has_steps), _) => has_steps,
            (None, Some(id)) => self.has_step(id, step)?,
            // Of no memory there is nothing to undo, and the next step tells.
            (None, None) => return Ok(()),
        };
        brought.has_steps = Some(has_steps);
        if has_steps { Ok(()) } else { self.ledger.keep_step(&self.context, step) }
    }

    /// Whether the journal tells the step of its memory already. What a step says may have been redacted since.
    fn has_step(&self, id: MemoryId, step: &JournalRow) -> Result<bool> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let told: BTreeSet<u64> =
            tx.journal_numbers(&Walk::prefix(&keys::memory(ns, id)))?.into_iter().collect();
        let rows = tx.journal_rows(ns, told.iter().copied().collect())?;
        let is_step = |row: &JournalRow| (row.run, row.op, row.at) == (step.run, step.op, step.at);
        // A row of the journal that can't be read may be the step.
        Ok(rows.len() < told.len() || rows.iter().any(is_step))
    }

    fn recreate(&mut self, part: &mut Part, memory: &Memory) -> Result<Outcome> {
        let (ns, id) = (self.ns(), memory.id);
        let key = memory.keys.first().cloned();
        let known = self.ledger.tx.vitals(ns, id)?;
        match &known {
            Some(row) if row.version == memory.version => {
                self.rejoin_all(part, memory)?;
                let fields = self.differing(memory)?;
                part.differing.extend((!fields.is_empty()).then_some((part.place, fields)));
            }
            Some(_) => {}
            None => self.write_memory(part, memory.clone())?,
        }
        self.settled(Outcome {
            id,
            key,
            partition: memory.partition.clone(),
            decision: if known.is_some() { Decision::Unchanged } else { Decision::Stored },
            rule: RuleId::IMPORT_ROW,
            policy_rule: None,
            event: None,
            evidence: Evidence::default(),
            hints: Vec::new(),
            not_taken: Vec::new(),
            kept_for_others: Vec::new(),
            expires_at: None,
            valid_to: None,
            pending: false,
            policy_number: self.context.policy_number,
        })
    }

    fn write_memory(&mut self, part: &mut Part, mut memory: Memory) -> Result<()> {
        let id = memory.id;
        memory.check_whole()?;
        check_content(&memory.row_text, memory.vector.is_some())?;
        self.check_keys(&memory)?;
        let place = self.open_partition(&memory.partition)?;
        let mut parts = memory.parts();
        parts.vitals.place.partition = place.0;
        parts.vitals.place.fingerprint = normal_form(&memory.row_text).prefix();
        if let Some(vector) = &memory.vector {
            match self.space_of_export(&memory, vector.len())? {
                Some(space) => {
                    parts.vitals.place.space = space.0;
                    // One of a former space was found by no search before.
                    let is_apart = space.0 != self.ledger.clock.space && !memory.is_of_former_space;
                    part.vectors_apart += u64::from(is_apart);
                }
                None => {
                    memory.vector = None;
                    part.vectors_left_out += 1;
                }
            }
        }
        if let Some(by) = memory.superseded_by()
            && !self.is_there(by)?
        {
            part.orphans.push((part.place, id, by));
        }
        if is_inverted(&memory) {
            part.inverted.push((part.place, id));
        }
        if memory.removed_at.is_none() {
            self.hold_back(part, &mut memory)?;
        }
        given_by_code(&mut memory.holders, &parts.fields(), self.ledger.secret);
        let Memory { holders, vector, sources, limbo, payload, .. } = memory;
        let row = Recreated { id, parts, holders, vector, sources, limbo, payload };
        self.apply(RuleId::IMPORT_ROW, Change::Recreate(Box::new(row))).map(|_| ())
    }

    /// Leaves out ends that do not exist: links, and sources without even a tombstone.
    fn hold_back(&self, part: &mut Part, memory: &mut Memory) -> Result<()> {
        let (ns, id, tx) = (self.ns(), memory.id, &*self.ledger.tx);
        let mut ahead = Vec::new();
        for holder in &mut memory.holders {
            let mut links = Vec::with_capacity(holder.links.len());
            for link in holder.links.drain(..) {
                if part.memories.contains(&link.to) || tx.vitals(ns, link.to)?.is_some() {
                    links.push(link);
                } else {
                    ahead.push(Joint {
                        id,
                        number: Some(holder.number),
                        to: link.to,
                        relation: link.relation,
                    });
                }
            }
            holder.links = links;
        }
        let mut sources = Vec::with_capacity(memory.sources.len());
        for to in memory.sources.drain(..) {
            if part.memories.contains(&to) || part.gone.contains(&to) || self.is_there(to)? {
                sources.push(to);
            } else {
                ahead.push(Joint { id, number: None, to, relation: String::new() });
            }
        }
        memory.sources = sources;
        part.ahead.extend(ahead.into_iter().map(|joint| (part.place, joint)));
        Ok(())
    }

    /// The names of the fields that a row of an export says otherwise than the memory of its id and version, so that somebody
    /// has edited the row. What changes without a new version is not compared.
    fn differing(&self, memory: &Memory) -> Result<Vec<&'static str>> {
        let Some((vitals, content)) = sound(self.ledger.load_there(self.ns(), memory.id))?.flatten() else {
            return Ok(Vec::new());
        };
        let parts = memory.parts();
        let mut fields = Vec::new();
        fields.extend((parts.content.text != content.text).then_some("text"));
        fields.extend((parts.content.tags != content.tags).then_some("tags"));
        let there = Parts { vitals, content, access: parts.access.clone() };
        let pairs = there.journaled().into_iter().zip(parts.journaled());
        let others = pairs.filter(|(there, here)| there != here).map(|(_, (name, _))| name);
        fields.extend(others.filter(|name| !UNVERSIONED.contains(name)));
        Ok(fields)
    }

    /// Joins a memory that an interrupted import had left without its ends.
    fn rejoin_all(&mut self, part: &mut Part, memory: &Memory) -> Result<()> {
        let id = memory.id;
        for holder in &memory.holders {
            let Some(found) = self.ledger.tx.holder(self.ns(), id, holder.number)? else { continue };
            for link in holder.links.iter().filter(|link| !found.links.contains(link)) {
                let (number, relation) = (Some(holder.number), link.relation.clone());
                self.rejoin(part, Joint { id, number, to: link.to, relation })?;
            }
        }
        for to in &memory.sources {
            self.rejoin(part, Joint { id, number: None, to: *to, relation: String::new() })?;
        }
        Ok(())
    }

    fn rejoin(&mut self, part: &mut Part, joint: Joint) -> Result<()> {
        let there = match joint.number {
            Some(_) => self.ledger.tx.vitals(self.ns(), joint.to)?.is_some(),
            None => self.is_there(joint.to)?,
        };
        if there {
            self.ledger.join(self.context.ns, &joint)?;
        } else {
            part.ahead.push((part.place, joint));
        }
        Ok(())
    }

    /// Whether an id has a row or a tombstone.
    fn is_there(&self, id: MemoryId) -> Result<bool> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        Ok(tx.vitals(ns, id)?.is_some() || tx.tombstone(ns, id)?.is_some())
    }

    fn check_keys(&self, memory: &Memory) -> Result<()> {
        if !memory.times().is_current(self.now()) {
            return Ok(());
        }
        for key in &memory.keys {
            if let Some((other, _)) = self.current_holder(key)? {
                return Err(Error::Conflict {
                    what: format!("key {key}"),
                    why: format!(
                        "memory {other} has it here; a line without id and holders revises what the key says (`jq -c \
                         '{{text,key,tags,metadata}}'` makes such lines), and `--skip-bad` leaves this one out"
                    ),
                });
            }
        }
        Ok(())
    }

    /// Puts a tombstone of an export back.
    fn recreate_tombstone(&mut self, tombstone: &Tombstone) -> Result<bool> {
        let ns = self.ns();
        if self.ledger.tx.vitals(ns, tombstone.id)?.is_some() {
            let why = "the memory is still here, and the line of an export takes nothing away: `forget` of the id does, and \
                       `--skip-bad` leaves the line out"
                .to_owned();
            return Err(Error::Conflict { what: format!("tombstone {}", tombstone.id), why });
        }
        self.ledger.keep_tombstone(&self.context, tombstone)
    }

    /// Every chain of superseders ends, and world time ends before it begins only where a supersession moved the end.
    fn check_chains(&self, part: &Part) -> Result<()> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let mut settled = BTreeSet::new();
        for (place, id, by) in &part.orphans {
            if !self.is_there(*by)? {
                let why = "must be a memory or a tombstone of an earlier line or of the same part";
                return Err(blame(*place)(Error::invalid("superseded_by", why, by)));
            }
            let (mut path, mut at) = (BTreeSet::from([*id]), Some(*by));
            while let Some(next) = at.filter(|next| !settled.contains(next)) {
                if !path.insert(next) {
                    let why = "must not lead back to the memory itself";
                    return Err(blame(*place)(Error::invalid("superseded_by", why, by)));
                }
                at = tx.vitals(ns, next)?.and_then(|row| row.times.superseded_by());
            }
            settled.append(&mut path);
        }
        for (place, id) in &part.inverted {
            if tx.superseded_by(ns, *id)?.is_empty() {
                let why = "must lie after valid_from";
                return Err(blame(*place)(Error::invalid("valid_to", why, id)));
            }
        }
        Ok(())
    }

    fn recreate_aggregate(&mut self, part: &mut Part, shown: &Aggregate) -> Result<()> {
        let (ns, id) = (self.ns(), *shown.id.as_bytes());
        if self.ledger.tx.aggregate(ns, &id)?.is_some() {
            return Ok(());
        }
        if shown.ts_first > shown.ts_last {
            return Err(Error::invalid("ts_last", "must not lie before ts_first", shown.ts_last));
        }
        let row = AggregateRow {
            part: self.open_partition(&shown.partition)?.0,
            family: *shown.family_id.as_bytes(),
            near: shown.aggregate_type == AggregateType::Near,
            scope: shown.scope.clone(),
            slice: shown.slice.clone(),
            first_event: *shown.first_event_id.as_bytes(),
            last_event: *shown.last_event_id.as_bytes(),
            first_ts: shown.ts_first.as_millis(),
            last_ts: shown.ts_last.as_millis(),
            began: *shown.first_event_id.as_bytes(),
            dup_count: shown.dup_count,
            ended: shown.events_ended,
            authors: shown.authors_seen.clone(),
            examples: shown.example_event_ids.iter().map(|id| *id.as_bytes()).collect(),
            snippets: shown.example_snippets.clone(),
            exact_hash: shown.normalized_fingerprint.exact_hash,
            simhash: shown.normalized_fingerprint.simhash,
            classification: shown.classification.clone(),
            signals: shown.recognition_signals.clone(),
            memory: shown.memory_id.map(|id| *id.as_bytes()),
        };
        part.aggregates.insert(shown.id, part.place);
        self.ledger.keep_aggregate(ns, &id, &row)
    }

    fn recreate_event(&mut self, part: &mut Part, shown: &Event, family: Option<&Family>) -> Result<()> {
        let (ns, id) = (self.ns(), *shown.id.as_bytes());
        if self.ledger.tx.event(ns, &id)?.is_some() || self.has_ended(part, shown)? {
            return Ok(());
        }
        let row = EventRow {
            part: self.open_partition(&shown.partition)?.0,
            ts: shown.ts.as_millis(),
            author: shown.author_kind.code(),
            author_id: shown.author_id.clone(),
            channel: shown.channel.clone(),
            thread: shown.thread.clone(),
            session: shown.session.clone(),
            key: shown.key.clone(),
            payload: shown.payload.clone(),
            normalizer: shown.normalizer_id.clone(),
            normalized: shown.normalized.clone(),
            attachment_sig: shown.attachment_sig.clone(),
            embed_sig: shown.embed_sig.clone(),
            dup_key: shown.dup_key,
            simhash: shown.simhash,
            aggregate: shown.aggregate_id.map(|id| *id.as_bytes()),
            memory: shown.memory_id.map(|id| *id.as_bytes()),
            origin: shown.origin_memory_id.map(|id| *id.as_bytes()),
            run: shown.run.map(|run| *run.as_bytes()),
            decision: shown.decision,
        };
        let mut family = family.map(|family| family_row(&row, family)).transpose()?;
        if let Some(family) = &mut family
            && let Some((vitals, content)) = self.stands_for(family)?
        {
            family.standing = Standing::of(&vitals, &content, row.author_id.clone()).print();
        }
        part.events.push((part.place, shown.id));
        if let Some(aggregate) = shown.aggregate_id {
            part.aggregates.entry(aggregate).or_insert(part.place);
        }
        self.ledger.keep_event(ns, &id, &row, family.as_ref())
    }

    /// Whether an event is one that has ended here since: its aggregate counts such events, and has all of the others.
    fn has_ended(&self, part: &mut Part, shown: &Event) -> Result<bool> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let Some(id) = shown.aggregate_id else { return Ok(false) };
        if let Some(missing) = part.missing.get_mut(&id) {
            let is_full = *missing == 0;
            *missing = missing.saturating_sub(1);
            return Ok(is_full);
        }
        let Some(row) = tx.aggregate(ns, id.as_bytes())?.filter(|row| row.ended > 0) else {
            return Ok(false);
        };
        let there = tx.events_of(ns, id.as_bytes(), usize::MAX)?.len() as u64;
        let missing = row.dup_count.saturating_sub(row.ended).saturating_sub(there);
        part.missing.insert(id, missing.saturating_sub(1));
        Ok(missing == 0)
    }

    /// Messages, families and aggregates name rows that exist, and count each other.
    fn check_messages(&self, part: &Part) -> Result<()> {
        for (aggregate, place) in &part.aggregates {
            self.check_aggregate(*aggregate).map_err(blame(*place))?;
        }
        for (place, event) in &part.events {
            self.check_event(*event).map_err(blame(*place))?;
        }
        Ok(())
    }

    fn check_aggregate(&self, id: AggregateId) -> Result<()> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let Some(row) = tx.aggregate(ns, id.as_bytes())? else {
            return Err(Error::invalid("aggregate_id", "must be an aggregate of an earlier line", id));
        };
        self.check_memory("memory_id", row.memory)?;
        let members = BTreeSet::from_iter(tx.events_of(ns, id.as_bytes(), usize::MAX)?);
        if (members.len() as u64).checked_add(row.ended) != Some(row.dup_count) {
            let why = format!("must be the number of its events, {}, and of events_ended", members.len());
            return Err(Error::invalid("dup_count", why, row.dup_count));
        }
        // The first and the last event may be among those that have ended.
        let ends = [row.first_event, row.last_event].into_iter().filter(|_| row.ended == 0);
        for event in ends.chain(row.examples.iter().copied()) {
            if !members.contains(&event) {
                let why = "must be events of the aggregate";
                return Err(Error::invalid("example_event_ids", why, EventId::from_bytes(event)));
            }
        }
        self.check_derived(&row, &members)
    }

    /// What an aggregate tells of its events is what they say: who wrote them, when, and how they begin.
    fn check_derived(&self, row: &AggregateRow, members: &BTreeSet<Id>) -> Result<()> {
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut authors: BTreeSet<&String> = row.authors.iter().collect();
        let mut snippets: BTreeSet<&String> = row.snippets.iter().collect();
        for id in members {
            let Some(event) = self.ledger.tx.event(self.ns(), id)? else { continue };
            (first, last) = (first.min(event.ts), last.max(event.ts));
            event.author_id.iter().for_each(|author| {
                authors.remove(author);
            });
            match &event.payload {
                Some(text) => snippets.retain(|snippet| !text.starts_with(snippet.as_str())),
                // Its text is gone, and the beginning may be of that text.
                None => snippets.clear(),
            }
        }
        let shown = Time::from_millis;
        // What has ended may be the first, the last, by other authors, and in the snippets.
        if row.ended > 0 {
            if !members.is_empty() && (row.first_ts > first || row.last_ts < last) {
                let why = format!("must include its events, {} to {}", shown(first), shown(last));
                return Err(Error::invalid("ts_first", why, shown(row.first_ts)));
            }
            return Ok(());
        }
        if !members.is_empty() && (row.first_ts, row.last_ts) != (first, last) {
            let why = format!(
                "must be the instants of the first and the last event, {} and {}",
                shown(first),
                shown(last)
            );
            return Err(Error::invalid("ts_first", why, shown(row.first_ts)));
        }
        if let Some(author) = authors.first() {
            return Err(Error::invalid("authors_seen", "must be authors of the events", author));
        }
        if let Some(snippet) = snippets.first() {
            return Err(Error::invalid("example_snippets", "must be beginnings of the events", snippet));
        }
        Ok(())
    }

    fn check_event(&self, id: EventId) -> Result<()> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let Some(row) = tx.event(ns, id.as_bytes())? else { return Ok(()) };
        self.check_memory("memory_id", row.memory)?;
        if let Some(run) = row.run.map(RunId::from_bytes)
            && tx.run(ns, run)?.is_none()
        {
            return Err(Error::invalid("run", "must be a run of an earlier line", run));
        }
        let Some(family) = tx.family(ns, id.as_bytes())? else { return Ok(()) };
        self.check_memory("family.first_memory", Some(family.first_memory))?;
        let numbers = match &family.aggregate {
            None => None,
            Some(aggregate) => Some(tx.aggregate(ns, aggregate)?.ok_or_else(|| {
                let shown = AggregateId::from_bytes(*aggregate);
                Error::invalid("family.aggregate_id", "must be an aggregate of an earlier line", shown)
            })?),
        };
        let count = numbers.map_or(1, |numbers| numbers.dup_count);
        if family.count != count {
            return Err(Error::invalid("family.count", format!("must be {count}"), family.count));
        }
        Ok(())
    }

    fn check_memory(&self, field: &str, memory: Option<Id>) -> Result<()> {
        let Some(memory) = memory.map(MemoryId::from_bytes) else { return Ok(()) };
        if self.is_there(memory)? {
            return Ok(());
        }
        Err(Error::invalid(field, "must be a memory or a tombstone of an earlier line", memory))
    }
}

/// Whether world time ends before it begins, without the cut of a supersession.
fn is_inverted(memory: &Memory) -> bool {
    let times = memory.times();
    times.valid_from.zip(times.own_end()).is_some_and(|(from, to)| from >= to)
}

/// The slice of the family that a message began. What the texts of its members have in common is stored with the message; the rest
/// is that of its memory.
fn family_row(event: &EventRow, family: &Family) -> Result<FamilyRow> {
    if family.ts_first > family.ts_last {
        return Err(Error::invalid("family.ts_last", "must not lie before ts_first", family.ts_last));
    }
    let Some(dup_key) = event.dup_key else {
        return Err(Error::invalid("dup_key", "is required of a message that began a family", "nothing"));
    };
    Ok(FamilyRow {
        family: *family.id.as_bytes(),
        part: event.part,
        author: event.author,
        channel: event.channel.clone().unwrap_or_default(),
        first_ts: family.ts_first.as_millis(),
        latest_ts: family.ts_last.as_millis(),
        dup_key,
        standing: Default::default(),
        simhash: event.simhash,
        tokens: family.tokens.clone(),
        normalizer: event.normalizer.clone(),
        sim_normalizer: family.sim_normalizer.clone(),
        first_memory: *family.first_memory.as_bytes(),
        aggregate: family.aggregate_id.map(|id| *id.as_bytes()),
        count: family.count,
    })
}
