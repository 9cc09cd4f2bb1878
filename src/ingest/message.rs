//! Messages of authors: families of repeats, and what is decided about a member.
//!
//! A family is found by the exact key of its first message, or by its SimHash. The decision depends on the author. The
//! repeat of a program is only an event, counted in an aggregate whose memory takes the place of the first message.
//! The repeat of a person reinforces the first message. A near repeat of a person is stored, with a hint. A slice of a
//! family takes members as long as the memory that stands for it is current.

use serde_json::Value;

use crate::error::{Error, Result, sound};
use crate::ingest::fields::{expire, not_counted};
use crate::ingest::likeness::{is_verbatim, owner_in, owner_of};
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, Context, Entry, MembersMax, Moves, NewRow, Recorded, statistics};
use crate::limits::CONTENT_BYTES_MAX;
use crate::model::{
    Access, AggregateId, AuthorKind, Content, Decision, Draft, EventDecision, EventId, Evidence, Hint,
    Holder, Kind, Life, MemoryId, Outcome, Parts, RuleId, Span, SupersedeMode, Tier, Time, Vitals,
};
use crate::store::{AggregateRow, EventRow, ExactKey, FamilyRow, Id, MessageRows, PartId, SimKey};
use crate::text::{
    Guard, Guards, MSG_ID, SIM_ID, attachment_signature, dup_key, fingerprint, hamming, normal_form, standing,
};

/// The number of holders of a memory that are asked what they brought.
const HOLDERS_MAX: usize = 8;

/// A message as its family compares it.
pub(super) struct Message {
    author: AuthorKind,
    channel: Option<String>,
    at: Time,
    normalized: String,
    attachment_sig: String,
    embed_sig: String,
    dup_key: [u8; 32],
    tokens: Vec<String>,
    simhash: Option<u64>,
    standing: Standing,
    /// What stands for the standing where families are found.
    print: [u8; 8],
}

impl Message {
    fn exact_key(&self) -> ExactKey<'_> {
        ExactKey { dup_key: &self.dup_key, standing: &self.print }
    }
}

/// What a message and the memory of a slice have in common besides their text, before the memory stands for the message.
pub(super) struct Standing {
    owner: String,
    tier: Tier,
    /// From when and until when it is true.
    valid: (Option<Time>, Option<Time>),
    life: Life,
    author_id: Option<String>,
}

impl Standing {
    pub(super) fn of(vitals: &Vitals, content: &Content, author_id: Option<String>) -> Self {
        Standing {
            owner: owner_of(&content.metadata),
            tier: vitals.tier,
            valid: (vitals.times.valid_from, vitals.times.valid_to),
            life: vitals.life(),
            author_id,
        }
    }

    /// What stands for it where families are found. A slice keeps that of the message which began it, so a memory that was changed
    /// since takes in no message that is like it only now.
    pub(super) fn print(&self) -> [u8; 8] {
        let end_of = self.life.is_promised_end().then_some(self.author_id.as_deref());
        standing(self.tier, self.valid, end_of, &self.owner)
    }

    /// Whether the memory may stand for the message. One author alone moves an end, by naming it again.
    fn takes(&self, message: &Standing) -> bool {
        let (here, there) = (self.life.is_promised_end(), message.life.is_promised_end());
        let ends_fit = here == there && (!here || self.author_id == message.author_id);
        ends_fit && (&self.owner, self.tier, self.valid) == (&message.owner, message.tier, message.valid)
    }
}

/// A slice of a family to which a message belongs.
struct FamilyMatch {
    slice: Id,
    row: FamilyRow,
    /// The distance of the SimHashes; none if the exact keys are equal.
    distance: Option<u32>,
}

impl FamilyMatch {
    fn rule(&self) -> RuleId {
        if self.distance.is_some() { RuleId::MESSAGE_NEAR } else { RuleId::MESSAGE_EXACT }
    }

    fn evidence(&self) -> Evidence {
        let signature = if self.distance.is_some() { "simhash" } else { "dup_key" };
        Evidence {
            score: self.distance.map(|distance| 1.0 - distance as f32 / 64.0),
            signature: Some(signature.to_owned()),
            members: vec![self.first()],
            transferred: None,
        }
    }

    /// The memory that the first message became.
    fn first(&self) -> MemoryId {
        MemoryId::from_bytes(self.row.first_memory)
    }
}

/// What step 5 did with a message.
pub(super) enum FamilyStep {
    /// The message joined a family.
    Joined(Box<Outcome>),
    /// The message stands alone; these memories are near.
    Apart(Vec<Hint>),
}

impl NamespaceWriter<'_, '_, '_> {
    /// What families need to know of a message; none for a write that is not a message of an author.
    pub(super) fn message_of(&self, draft: &Draft) -> Option<Message> {
        if draft.payload.is_some() || is_verbatim(draft) {
            return None;
        }
        let author = draft.fields.author_kind.value().copied()?;
        if !draft.fields.kind.clone().unwrap_or_default().is_message() {
            return None;
        }
        let channel = draft.fields.channel.value().map(String::as_str);
        let attachments = draft.fields.attachments.as_deref().unwrap_or_default();
        let embeds = draft.fields.embeds.as_deref().unwrap_or_default();
        let normalized = self.messages.normalize(&draft.text, Some(author), channel);
        let attachment_sig = attachment_signature(attachments);
        let embed_sig = self.messages.embed_signature(embeds, Some(author), channel);
        let scope = self.messages.scope_key(channel);
        let tokens = self.messages.tokens(&normalized, Some(author), channel, attachments, embeds);
        let mut parts = self.parts_of(draft);
        expire(&mut parts.vitals, draft.expiry.unwrap_or_default(), self.policy);
        let author_id = draft.fields.author_id.value().cloned();
        let standing = Standing::of(&parts.vitals, &parts.content, author_id);
        Some(Message {
            print: standing.print(),
            standing,
            author,
            at: draft.fields.created_at.unwrap_or(self.now()),
            dup_key: dup_key(author, scope, &normalized, &attachment_sig, &embed_sig),
            simhash: fingerprint(&tokens),
            channel: channel.map(str::to_owned),
            normalized,
            attachment_sig,
            embed_sig,
            tokens,
        })
    }

    /// Step 5: a message without a key joins its family or stands alone.
    pub(super) fn family_step(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        message: &Message,
    ) -> Result<FamilyStep> {
        if self.no_dedup || prepared.checked.key().is_some() {
            return Ok(FamilyStep::Apart(Vec::new()));
        }
        let exact = self.exact(message, part)?;
        let joined = match (exact, message.author) {
            (Some(found), AuthorKind::Human) => self.repeat(prepared, part, message, found)?,
            (Some(found), AuthorKind::Bot) => self.join(prepared, part, message, found)?,
            (None, AuthorKind::Bot) => match self.near_family(message, part)? {
                Some(found) => self.join(prepared, part, message, found)?,
                None => return Ok(FamilyStep::Apart(Vec::new())),
            },
            (None, AuthorKind::Human) => {
                let near = self.near_family(message, part)?;
                let hint = near.map(|found| self.hint_of(message, &found)).transpose()?;
                return Ok(FamilyStep::Apart(hint.into_iter().collect()));
            }
        };
        Ok(FamilyStep::Joined(Box::new(joined)))
    }

    /// The hint for a near repeat of a person. With other numbers it is no repeat, and the hint names the
    /// guard.
    fn hint_of(&self, message: &Message, found: &FamilyMatch) -> Result<Hint> {
        let event = self.ledger.tx.event(self.ns(), &found.slice)?;
        let first = event.and_then(|event| event.normalized).unwrap_or_default();
        let guards = self.guards.get_or_init(|| Guards::new(&self.policy.guards, &self.policy.collapse));
        let passes = guards.check(Guard::Digits, &first, &message.normalized);
        let guard = Some(Guard::Digits.as_str()).filter(|_| !passes);
        let score = found.evidence().score;
        Ok(Hint { score, guard, ..Hint::new(found.first(), "near message") })
    }

    /// Writes the event of a message that has a memory, and begins a family if there is none. The same write again, or
    /// a change of fields, is not a new message.
    pub(super) fn note_message(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        message: &mut Message,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let decision = match outcome.decision {
            _ if outcome.event.is_some() => return Ok(()),
            Decision::Stored | Decision::Revised { .. } => EventDecision::Stored,
            Decision::Reinforced => EventDecision::Reinforced,
            _ => return Ok(()),
        };
        let id = *self.next_id()?.as_bytes();
        let memory = outcome.id;
        // Through its key a message keeps what the memory before it was, and its repeats are like that.
        if matches!(outcome.decision, Decision::Stored | Decision::Revised { .. })
            && let Some((vitals, content)) = sound(self.ledger.load_there(self.ns(), memory))?.flatten()
        {
            message.standing = Standing::of(&vitals, &content, message.standing.author_id.take());
            message.print = message.standing.print();
        }
        let row =
            EventRow { memory: Some(*memory.as_bytes()), decision, ..self.event_of(prepared, part, message) };
        // A message with a key adds no member to an existing family. It may begin one (DEDUP-39).
        let may_be_there = self.no_dedup || prepared.checked.key().is_some();
        let begins =
            decision == EventDecision::Stored && !(may_be_there && self.has_family(message, part)?);
        let family = if begins { Some((id, self.begin(message, part, memory)?)) } else { None };
        let recorded = Recorded { event: id, row, family, aggregate: None, life: None };
        self.apply(outcome.rule, Change::Record(Box::new(recorded)))?;
        outcome.event = Some(EventId::from_bytes(id));
        Ok(())
    }

    fn has_family(&self, message: &Message, part: PartId) -> Result<bool> {
        if self.exact(message, part)?.is_some() {
            return Ok(true);
        }
        Ok(message.author == AuthorKind::Bot && self.near_family(message, part)?.is_some())
    }

    /// The first slice of a family, or the next slice of a family with the same exact key.
    fn begin(&self, message: &Message, part: PartId, memory: MemoryId) -> Result<FamilyRow> {
        let before = self.ledger.tx.last_family_of_key(self.ns(), part, message.exact_key())?;
        let before = before.filter(|row| (row.author, &*row.normalizer) == (message.author.code(), MSG_ID));
        let goes_on = before.as_ref().map_or(Ok(false), |row| self.goes_on(row, message, part))?;
        let before = before.filter(|_| goes_on);
        Ok(FamilyRow {
            family: before.map_or_else(|| self.next_id().map(|id| *id.as_bytes()), |row| Ok(row.family))?,
            part: part.0,
            author: message.author.code(),
            channel: message.channel.clone().unwrap_or_default(),
            first_ts: message.at.as_millis(),
            latest_ts: message.at.as_millis(),
            dup_key: message.dup_key,
            standing: message.print,
            simhash: message.simhash,
            tokens: message.tokens.clone(),
            normalizer: MSG_ID.to_owned(),
            sim_normalizer: SIM_ID.to_owned(),
            first_memory: *memory.as_bytes(),
            aggregate: None,
            count: 1,
        })
    }

    /// Whether a family goes on with a message that none of its slices takes in. Messages of two owners, tiers or validities
    /// are of two families, and a family of a bot has one slice in a slice of time.
    fn goes_on(&self, family: &FamilyRow, message: &Message, part: PartId) -> Result<bool> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        if message.author == AuthorKind::Bot {
            let slice = self.slice_of(message.at);
            let beside = tx.families_of_key(ns, part, message.exact_key(), slice.from, Some(slice.to))?;
            if beside.iter().any(|(_, other)| other.family == family.family) {
                return Ok(false);
            }
            // The memory of a slice stays when its messages have grown too old, and keeps its key.
            if self.has_aggregate_key(family, &slice)? {
                return Ok(false);
            }
        }
        // What is gone stood for no more than the text.
        let first = sound(self.ledger.load_there(ns, MemoryId::from_bytes(family.first_memory)))?.flatten();
        Ok(first
            .is_none_or(|(vitals, content)| Standing::of(&vitals, &content, None).takes(&message.standing)))
    }

    /// Whether a memory has the key that the memory of a family's aggregate would get. One that can't be read has it.
    fn has_aggregate_key(&self, family: &FamilyRow, slice: &Slice) -> Result<bool> {
        let key = aggregate_key(MemoryId::from_bytes(family.family), &slice.name);
        Ok(sound(self.current_holder(&key))? != Some(None))
    }

    /// The event of a message, not yet linked to anything.
    fn event_of(&self, prepared: &Prepared, part: PartId, message: &Message) -> EventRow {
        let draft = prepared.checked.draft();
        let fields = &draft.fields;
        EventRow {
            part: part.0,
            ts: message.at.as_millis(),
            author: message.author.code(),
            author_id: fields.author_id.value().cloned(),
            channel: message.channel.clone(),
            thread: fields.thread.value().cloned(),
            session: fields.session.value().cloned(),
            key: draft.key.clone(),
            payload: Some(draft.text.clone()),
            normalizer: MSG_ID.to_owned(),
            normalized: Some(message.normalized.clone()),
            attachment_sig: Some(message.attachment_sig.clone()),
            embed_sig: Some(message.embed_sig.clone()),
            dup_key: Some(message.dup_key),
            simhash: message.simhash,
            aggregate: None,
            memory: None,
            origin: None,
            run: self.context.run.map(|run| *run.as_bytes()),
            decision: EventDecision::Stored,
        }
    }

    /// The slice with the exact key of a message. For a bot it lies in the same slice of time, for a person in the
    /// window after its latest member. Of several slices the oldest.
    fn exact(&self, message: &Message, part: PartId) -> Result<Option<FamilyMatch>> {
        let tx = &*self.ledger.tx;
        let slice = self.slice_of(message.at);
        let window = self.policy.msg.exact_window;
        let is_bot = message.author == AuthorKind::Bot;
        let (from, until) =
            if is_bot { (slice.from, Some(slice.to)) } else { (message.at.minus(window), None) };
        let all = tx.families_of_key(self.ns(), part, message.exact_key(), from, until)?;
        let mut best: Option<FamilyMatch> = None;
        for (id, row) in all.into_iter().filter(|(_, row)| row.normalizer == MSG_ID) {
            let first = Time::from_millis(row.first_ts);
            let fits = if is_bot { first >= slice.from } else { first <= message.at.plus(window) };
            let older = best.as_ref().is_none_or(|best| (row.first_ts, id) < (best.row.first_ts, best.slice));
            if fits
                && older
                && row.author == message.author.code()
                && self.takes_members(id, &row, message)?
            {
                best = Some(FamilyMatch { slice: id, row, distance: None });
            }
        }
        Ok(best)
    }

    /// The slice whose first message is near enough: the nearest, and of several the oldest.
    fn near_family(&self, message: &Message, part: PartId) -> Result<Option<FamilyMatch>> {
        let Some(hash) = message.simhash else { return Ok(None) };
        let window = self.policy.sim.window;
        let (is_bot, slice) = (message.author == AuthorKind::Bot, self.slice_of(message.at));
        let mut from = message.at.minus(window);
        if is_bot {
            from = from.max(slice.from);
        }
        let channel = message.channel.as_deref().unwrap_or_default();
        let distance = self.policy.sim.max_hamming;
        let (author, standing) = (message.author.code(), &message.print);
        let like = SimKey { author, channel, standing, simhash: hash, distance };
        let until = Some(slice.to).filter(|_| is_bot);
        let mut all = Vec::new();
        for (id, row) in self.ledger.tx.families_near(self.ns(), part, like, from, until)? {
            let first = Time::from_millis(row.first_ts);
            let in_time = first <= message.at.plus(window) && (!is_bot || first >= slice.from);
            let found = row.simhash.map(|other| hamming(hash, other));
            if let Some(found) = found.filter(|found| *found <= distance)
                && in_time
                && row.channel == channel
                && (&*row.normalizer, &*row.sim_normalizer) == (MSG_ID, SIM_ID)
            {
                all.push(FamilyMatch { slice: id, row, distance: Some(found) });
            }
        }
        all.sort_unstable_by_key(|found| (found.distance, found.row.first_ts, found.slice));
        for found in all {
            if self.is_verified(message, &found)? && self.takes_members(found.slice, &found.row, message)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// In 64 bits unrelated short texts can be near, so the tokens or the texts must agree as well.
    fn is_verified(&self, message: &Message, found: &FamilyMatch) -> Result<bool> {
        let first = self.ledger.tx.event(self.ns(), &found.slice)?.and_then(|event| event.normalized);
        let Some(first) = first else { return Ok(false) };
        let (mine, other) = ((&*message.tokens, &*message.normalized), (&*found.row.tokens, &*first));
        Ok(self.messages.same_family_text(mine, other))
    }

    /// Whether the memory that stands for a slice is current, no record of its own, and may stand for a message. Other memories
    /// absorb nothing.
    fn takes_members(&self, slice: Id, row: &FamilyRow, message: &Message) -> Result<bool> {
        // An aggregate takes no key of another memory, so the message stands apart.
        let begins = row.aggregate.is_none() && message.author == AuthorKind::Bot;
        if begins && self.has_aggregate_key(row, &self.slice_of(message.at))? {
            return Ok(false);
        }
        // A damaged memory absorbs nothing either.
        let Some((vitals, content)) = self.stands_for(row)? else { return Ok(false) };
        if !vitals.times.is_current(self.now()) || content.verbatim {
            return Ok(false);
        }
        let first = sound(self.ledger.tx.event(self.ns(), &slice))?.flatten();
        let standing = Standing::of(&vitals, &content, first.and_then(|first| first.author_id));
        Ok(standing.takes(&message.standing))
    }

    /// The memory that stands for a slice; none if it is gone or damaged.
    pub(super) fn stands_for(&self, row: &FamilyRow) -> Result<Option<(Vitals, Content)>> {
        let mut memory = row.first_memory;
        if let Some(aggregate) = row.aggregate {
            let numbers = self.ledger.tx.aggregate(self.ns(), &aggregate)?;
            memory = numbers.and_then(|numbers| numbers.memory).unwrap_or(memory);
        }
        Ok(sound(self.ledger.load_there(self.ns(), MemoryId::from_bytes(memory)))?.flatten())
    }

    fn slice_of(&self, at: Time) -> Slice {
        Slice::of(at, self.policy.agg.slice)
    }

    /// Counts one more member. A family of more than one member has an aggregate. Returns the event as it is
    /// to be written, and both counts.
    fn count(
        &self,
        message: &Message,
        found: &FamilyMatch,
        id: &Id,
        mut event: EventRow,
    ) -> Result<(EventRow, (Id, AggregateRow), FamilyRow)> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let bound = |most: u32| usize::try_from(most).unwrap_or(usize::MAX);
        let agg = &self.policy.agg;
        let most = MembersMax { examples: bound(agg.max_examples), authors: bound(agg.max_authors) };
        let lost = |table, id: &Id| Error::corrupted(table, id, "a family names what is not there");
        let (aggregate, mut numbers) = match found.row.aggregate {
            Some(aggregate) => {
                (aggregate, tx.aggregate(ns, &aggregate)?.ok_or_else(|| lost("aggregate", &aggregate))?)
            }
            None => {
                let first = tx.event(ns, &found.slice)?.ok_or_else(|| lost("event", &found.slice))?;
                let mut numbers = AggregateRow {
                    part: found.row.part,
                    began: found.slice,
                    family: found.row.family,
                    scope: message.channel.clone(),
                    exact_hash: Some(found.row.dup_key),
                    simhash: found.row.simhash,
                    classification: "unclassified".to_owned(),
                    ..AggregateRow::default()
                };
                numbers.take(tx, ns, &found.slice, &first, most)?;
                (*self.next_id()?.as_bytes(), numbers)
            }
        };
        numbers.near |= found.distance.is_some();
        event.aggregate = Some(aggregate);
        numbers.take(tx, ns, id, &event, most)?;
        let mut family = found.row.clone();
        family.aggregate = Some(aggregate);
        family.count = numbers.dup_count;
        family.first_ts = family.first_ts.min(event.ts);
        family.latest_ts = family.latest_ts.max(event.ts);
        Ok((event, (aggregate, numbers), family))
    }

    /// A person repeats a message: the first message is reinforced, and the repeat is counted.
    fn repeat(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        message: &Message,
        found: FamilyMatch,
    ) -> Result<Outcome> {
        let (rule, evidence, first) = (found.rule(), found.evidence(), found.first());
        let id = *self.next_id()?.as_bytes();
        let event = EventRow {
            memory: Some(found.row.first_memory),
            decision: EventDecision::Reinforced,
            ..self.event_of(prepared, part, message)
        };
        let (row, aggregate, family) = self.count(message, &found, &id, event)?;
        let (vitals, content) = self.ledger.load(self.ns(), first)?;
        let life = vitals.life().absorbing(message.standing.life);
        let mut used = self.use_of(first, 1)?;
        if let Change::Reinforce { expires_at, .. } = &mut used
            && life.is_promised_end()
        {
            *expires_at = life.end;
        }
        self.apply_entry(Entry { change: used, rule, evidence: evidence.clone() })?;
        let family = Some((found.slice, family));
        let recorded = Recorded { event: id, row, family, aggregate: Some(aggregate), life: None };
        self.apply_entry(Entry {
            change: Change::Record(Box::new(recorded)),
            rule,
            evidence: evidence.clone(),
        })?;
        let row = Parts { vitals, content, access: Access::default() };
        let not_taken = not_counted(prepared.checked.draft(), &row, &self.brought(first)?);
        let event = Some(EventId::from_bytes(id));
        let outcome = self.outcome(prepared, first, Decision::Reinforced, rule, evidence, Vec::new());
        Ok(Outcome { event, not_taken, ..outcome })
    }

    /// What the first holders of a row brought, united.
    fn brought(&self, id: MemoryId) -> Result<Holder> {
        let (mut all, mut left) = (Holder::default(), HOLDERS_MAX);
        self.ledger.any_holder(self.ns(), id, &mut |holder| {
            self.ledger.unite_links(&mut all, holder);
            left -= 1;
            left == 0
        })?;
        Ok(all)
    }

    /// A program repeats a message: the repeat is an event, and the aggregate stands for all repeats.
    fn join(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        message: &Message,
        found: FamilyMatch,
    ) -> Result<Outcome> {
        let (rule, evidence, first) = (found.rule(), found.evidence(), found.first());
        let id = *self.next_id()?.as_bytes();
        let event =
            EventRow { decision: EventDecision::Aggregated, ..self.event_of(prepared, part, message) };
        let (row, (aggregate, mut numbers), family) = self.count(message, &found, &id, event)?;
        let standing = numbers.memory.map_or(first, MemoryId::from_bytes);
        let (vitals, _) = self.ledger.load(self.ns(), standing)?;
        let life = vitals.life().absorbing(message.standing.life);
        let begins = numbers.memory.is_none();
        if begins {
            let memory = self.next_id()?;
            numbers.memory = Some(*memory.as_bytes());
            numbers.slice = Some(self.slice_of(message.at).name);
            self.put_aggregate_memory(&aggregate, &numbers, &found, life, &evidence)?;
        }
        let memory = MemoryId::from_bytes(numbers.memory.unwrap_or_default());
        let (family, numbers) = (Some((found.slice, family)), Some((aggregate, numbers)));
        let recorded = Recorded { event: id, row, family, aggregate: numbers, life: Some(life) };
        self.apply_entry(Entry {
            change: Change::Record(Box::new(recorded)),
            rule,
            evidence: evidence.clone(),
        })?;
        // A memory that a caller protects stays as it is (MODEL-13).
        if begins && !vitals.is_protected() {
            let (mode, at) = (SupersedeMode::Aggregate, self.now());
            let change = Change::Supersede {
                old: first,
                new: memory,
                mode,
                at,
                moves: Moves::None,
                since: None,
                via: None,
            };
            self.apply_entry(Entry { change, rule, evidence: evidence.clone() })?;
        }
        let event = EventId::from_bytes(id);
        let decision = Decision::Aggregated { aggregate: AggregateId::from_bytes(aggregate), event };
        let mut outcome = self.outcome(prepared, memory, decision, rule, evidence, Vec::new());
        outcome.event = Some(event);
        Ok(outcome)
    }

    /// The memory of an aggregate: the normal form of the first message, with the numbers as its metadata. It takes
    /// the vector of the first message, or waits for a vector if the message has none.
    fn put_aggregate_memory(
        &mut self,
        aggregate: &Id,
        numbers: &AggregateRow,
        found: &FamilyMatch,
        life: Life,
        evidence: &Evidence,
    ) -> Result<()> {
        let ns = self.ns();
        let (first, content) = self.ledger.load(ns, found.first())?;
        let event = self.ledger.tx.event(ns, &found.slice)?;
        let text = event.and_then(|event| event.normalized);
        let text = text.filter(|text| !text.is_empty() && text.len() <= CONTENT_BYTES_MAX);
        let text = text.unwrap_or_else(|| content.text.clone());
        let mut parts = self.parts_of(&Draft::new(text).kind(Kind::Aggregate));
        parts.vitals.place.fingerprint = normal_form(&parts.content.text).prefix();
        parts.vitals.place.partition = first.place.partition;
        parts.vitals = Vitals {
            tier: first.tier,
            significance: first.significance,
            importance: first.importance,
            confidence: first.confidence,
            created_at: Time::from_millis(found.row.first_ts),
            ..parts.vitals
        };
        (parts.vitals.times.valid_from, parts.vitals.times.valid_to) =
            (first.times.valid_from, first.times.valid_to);
        parts.vitals.set_life(life);
        parts.content.scope_label.clone_from(&content.scope_label);
        parts.content.channel.clone_from(&content.channel);
        parts.content.author_kind = content.author_kind;
        parts.content.agent_id.clone_from(&content.agent_id);
        let family = MemoryId::from_bytes(found.row.family);
        parts.content.family_id = Some(family);
        parts.content.aggregate_id = Some(MemoryId::from_bytes(*aggregate));
        let mut metadata = owner_in(&content.metadata);
        metadata.extend(statistics(aggregate, numbers));
        parts.content.metadata = Value::Object(metadata);
        let vector = if self.policy.agg.embed { self.vector_of(found.first(), &first)? } else { None };
        if vector.is_some() {
            parts.vitals.place.space = first.place.space;
        }
        let key = aggregate_key(family, numbers.slice.as_deref().unwrap_or_default());
        let row = NewRow {
            id: MemoryId::from_bytes(numbers.memory.unwrap_or_default()),
            vitals: parts.vitals,
            content: parts.content,
            access: Access::default(),
            holder: Holder { key: Some(key), count: 1, share: 1, ..Holder::default() },
            vector,
            sources: Vec::new(),
            payload: None,
        };
        // The memory belongs to its members, not to the import of one member. Undoing that import removes its
        // member only.
        let context = Context { run: None, ..self.context.clone() };
        let change = Change::Insert(Box::new(row));
        let entry = Entry { change, rule: found.rule(), evidence: evidence.clone() };
        self.ledger.apply(&context, entry).map(|_| ())
    }
}

/// The key of the memory that stands for a family in a slice of time.
fn aggregate_key(family: MemoryId, slice: &str) -> String {
    format!("agg:{family}:{slice}")
}

/// A slice of time; the end is excluded.
pub(crate) struct Slice {
    from: Time,
    pub(crate) to: Time,
    /// The day, or the first instant if slices are not whole days.
    name: String,
}

impl Slice {
    /// The slice of this length in which an instant lies, counted from midnight UTC.
    pub(crate) fn of(at: Time, length: Span) -> Self {
        const DAY: i64 = 86_400_000;
        let length = length.as_millis().max(1);
        let whole_days = length % DAY == 0;
        let base = if length < DAY { at.as_millis().div_euclid(DAY) * DAY } else { 0 };
        let from = base + (at.as_millis() - base).div_euclid(length) * length;
        let mut to = from.saturating_add(length);
        if length < DAY {
            // The last slice of a day ends with the day.
            to = to.min(base + DAY);
        }
        let from = Time::from_millis(from);
        let name = if whole_days { from.day() } else { from.to_string() };
        Slice { from, to: Time::from_millis(to), name }
    }
}
