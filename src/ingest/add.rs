//! The write ladder: what is decided about a draft. Step 6 is in [`near`](super::near).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::slice;

use crate::error::{Error, Result, sound};
use crate::ingest::ahead::Ahead;
use crate::ingest::fields::{expire, not_taken, replaces_from};
use crate::ingest::likeness::{Likeness, is_of_one_writer, is_verbatim, skips_content};
use crate::ingest::message::{FamilyStep, Message};
use crate::ingest::near::HINTS_MAX;
use crate::ingest::rules::Ruled;
use crate::ingest::{NamespaceWriter, Prepared, Replaces};
use crate::ledger::{Change, Entry, Moves, NewRow, Raise, given, note_vector, tags_fit, tier_ttl};
use crate::model::order::{Rank, canonical};
use crate::model::{
    Access, Content, Decision, Draft, Evidence, Hint, Holder, Link, MemoryId, Outcome, Parts, RuleId,
    RunSort, State, SupersedeMode, Time, Vitals,
};
use crate::policy::{NormalizedMatch, OnKey};
use crate::store::control::RunRow;
use crate::store::{PartId, Rows};
use crate::text::{ALIKE_BYTES, LIKENESS_BYTES, same_but_spacing_and_case};

/// What a candidate row means for a write.
pub(super) enum Match {
    /// The row stands for the write as well.
    Absorbs(RuleId, Rank),
    /// The row is near, and the write is stored.
    Near(&'static str),
    /// The row has nothing to do with the write.
    Other,
}

/// The largest number of rows with an equal text that a write reads in each way into their index.
pub(super) const EQUALS_MAX: usize = 8;

/// Why a row of equal content does not stand for a write: a row has no more tags than a draft may have.
const TAGS_FULL: &str = "equal content, tags full";

/// Why a row of equal content does not stand for a write: it ends, as its writer was promised, before the write may.
const ENDS_EARLIER: &str = "equal content, ends earlier";

/// Why a row of equal content does not stand for a write: it lives longer than one of the two writers was promised.
const ENDS_LATER: &str = "equal content, ends later";

/// A memory that a name means, and of a key the number of its holder.
pub(super) type Named = (MemoryId, Option<u32>);

/// What the index holds under the fingerprint of a draft.
#[derive(Default)]
pub(super) struct Equals {
    /// The row that can stand for the draft, and the rule by which it does.
    pub(super) absorber: Option<(Rank, RuleId)>,
    /// Rows that are near.
    pub(super) hints: Vec<Hint>,
    /// Whether one of the rows would stand for the draft, if it had room for the draft's tags or ended as the draft does.
    parted: bool,
}

impl NamespaceWriter<'_, '_, '_> {
    /// Decides about a draft, and carries the decision out.
    ///
    /// # Errors
    /// `KeyInOtherPartition`; `NotFound` for a memory that the draft is to supersede; `Invalid` for a link to a memory
    /// that does not exist; `Conflict` when `write.on_key = error`.
    pub(crate) fn add(&mut self, prepared: &Prepared) -> Result<Outcome> {
        self.check_draft(prepared)?;
        let outcome = match self.rule_step(prepared)? {
            Ruled::Ladder => self.ladder(prepared)?,
            ruled => self.add_ruled(prepared, ruled)?,
        };
        self.settled(outcome)
    }

    /// Steps 1 to 7, in the partition of the draft.
    pub(super) fn ladder(&mut self, prepared: &Prepared) -> Result<Outcome> {
        let part = self.open_partition(prepared.checked.partition())?;
        let mut message = self.message_of(prepared.checked.draft());
        let named = self.named_before(prepared.checked.draft())?;
        let is_said = self.is_said_already(prepared.checked.draft())?;
        let mut outcome = match self.key_step(prepared, part)? {
            Some(outcome) => outcome,
            None => self.keyless_steps(prepared, part, (message.as_ref(), &named))?,
        };
        if let Some(message) = &mut message {
            self.note_message(prepared, part, message, &mut outcome)?;
        }
        self.supersede_named(prepared.checked.draft(), (&named, is_said), outcome)
    }

    /// Refuses drafts that no step would accept.
    pub(super) fn check_draft(&self, prepared: &Prepared) -> Result<()> {
        self.check_links(prepared.checked.draft())?;
        prepared.checked.draft().key.as_deref().map_or(Ok(()), |key| self.check_new_key(key))?;
        prepared.vector.as_ref().map_or(Ok(()), |vector| self.check_dim(vector.dim()))
    }

    /// Step 1: the caller's key.
    pub(super) fn key_step(&mut self, prepared: &Prepared, part: PartId) -> Result<Option<Outcome>> {
        let Some(key) = prepared.checked.key() else { return Ok(None) };
        let Some((id, number)) = self.held_in(key, part)? else {
            return match prepared.replaces {
                Some(replaces) => self.follow_past(prepared, part, key, replaces),
                None => Ok(None),
            };
        };
        if let Some(replaces @ Replaces::At(_)) = prepared.replaces {
            return self.take_place(prepared, (id, number), replaces).map(Some);
        }
        // What is to be stored as it was given is neither refused nor dropped for its key.
        let verbatim = is_verbatim(prepared.checked.draft());
        let on_key = if verbatim { OnKey::Revise } else { self.policy.write.on_key };
        if let Some(at) = self.replaces_ahead(prepared.checked.draft(), (id, number))?
            && on_key == OnKey::Revise
        {
            return match self.announced_already(prepared.checked.draft(), (id, number), at)? {
                Some((id, number)) => self.write_through_key(prepared, id, number, on_key).map(Some),
                None => self.announce(prepared, (key, part), at).map(Some),
            };
        }
        self.write_through_key(prepared, id, number, on_key).map(Some)
    }

    /// The instant ahead at which the text of a draft takes the place of what its key says until then, with the other memories that
    /// the draft names; none for a draft that says what is true now, and for the memory that begins at the instant.
    pub(super) fn replaces_ahead(
        &self,
        draft: &Draft,
        (id, number): (MemoryId, u32),
    ) -> Result<Option<Time>> {
        let from = replaces_from(draft).filter(|from| *from > self.now());
        // Mostly nothing lies ahead, and the row needs no look.
        let Some(from) = from else { return Ok(None) };
        let holder = self.holder(id, number)?;
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        let says_it = *holder.text.as_ref().unwrap_or(&content.text) == draft.text;
        Ok(Some(from).filter(|from| !says_it || vitals.times.from() < *from))
    }

    /// The row that is to take the place of what the key of a draft says at this instant, and says what the draft says: the write is
    /// repeated.
    pub(super) fn announced_already(
        &mut self,
        draft: &Draft,
        (id, number): (MemoryId, u32),
        at: Time,
    ) -> Result<Option<(MemoryId, u32)>> {
        let Some((next, own)) = self.own_at((id, number), at)?.pop() else { return Ok(None) };
        let (_, content) = self.ledger.load(self.ns(), next)?;
        let says_it = *own.text.as_ref().unwrap_or(&content.text) == draft.text;
        Ok(says_it.then_some((next, own.number)))
    }

    /// The rows that are to take the place of what a key says at this instant, one after the other, and that the key has written itself:
    /// others that its memory has by then may have announced a text for the same instant.
    pub(super) fn own_at(
        &mut self,
        (id, number): (MemoryId, u32),
        at: Time,
    ) -> Result<Vec<(MemoryId, Holder)>> {
        let (ahead, had) = (self.ahead_of(id)?, self.holder(id, number)?);
        let mut own = Vec::new();
        for (next, _) in ahead.iter().flat_map(Ahead::to_come).filter(|(_, begins)| *begins == at) {
            own.extend(self.own_ahead(next, &had)?.map(|holder| (next, holder)));
        }
        Ok(own)
    }

    /// Stores a text that is to take the place of what its key says at an instant ahead.
    fn announce(&mut self, prepared: &Prepared, (key, part): (&str, PartId), at: Time) -> Result<Outcome> {
        let old = self.named_alone(key)?;
        let held = self.held_in(key, part)?;
        let held = held.ok_or_else(|| Error::NotFound { what: "memory", name: key.to_owned() })?;
        let outcome = self.take_place(prepared, held, Replaces::At(at))?;
        self.supersede_in_run(vec![old], outcome.id, (SupersedeMode::Replaced, Some(at)))?;
        Ok(outcome)
    }

    /// The memory that a name means, which a supersession is to end: of a key the write of the key alone, in a row of its own.
    pub(crate) fn named_alone(&mut self, name: &str) -> Result<Named> {
        match self.find(name)? {
            (id, Some(number)) if !self.is_replaced_ahead(id)? => Ok((self.end_apart(id, number)?, None)),
            found => Ok(found),
        }
    }

    /// The text that follows one which was true under `key`, and is not any more.
    fn follow_past(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        key: &str,
        replaces: Replaces,
    ) -> Result<Option<Outcome>> {
        let Some(was) = self.meant_by_key(key)? else { return Ok(None) };
        if was.vitals.times.state(self.now()) != State::Live || was.vitals.place.partition != part.0 {
            return Ok(None);
        }
        self.take_place(prepared, (was.id, was.number), replaces).map(Some)
    }

    /// The row of a partition that a write under `key` changes, with the number of the holder.
    ///
    /// # Errors
    /// `KeyInOtherPartition`.
    pub(super) fn held_in(&self, key: &str, part: PartId) -> Result<Option<(MemoryId, u32)>> {
        let Some((id, number)) = self.holder_to_change(key)? else { return Ok(None) };
        let vitals = self.ledger.tx.vitals(self.ns(), id)?;
        let held = vitals.map_or(part, |vitals| PartId(vitals.place.partition));
        if held != part {
            let partition = self.partition_of(held)?.to_string();
            return Err(Error::KeyInOtherPartition { key: key.to_owned(), partition });
        }
        Ok(Some((id, number)))
    }

    /// Step 5 for messages of authors, which skip the other steps. For other drafts, all steps after the key.
    fn keyless_steps(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        (message, named): (Option<&Message>, &[Option<Named>]),
    ) -> Result<Outcome> {
        let hints = match message.map(|message| self.family_step(prepared, part, message)).transpose()? {
            Some(FamilyStep::Joined(outcome)) => return Ok(*outcome),
            Some(FamilyStep::Apart(hints)) => hints,
            None => Vec::new(),
        };
        let mut outcome = self.content_step(prepared, part, named)?;
        outcome.hints.extend(hints);
        Ok(outcome)
    }

    /// Steps 2 to 4, 6 and 7: byte-equal content absorbs the draft, or the draft is one more report of the same state,
    /// or it is stored.
    fn content_step(
        &mut self,
        prepared: &Prepared,
        part: PartId,
        named: &[Option<Named>],
    ) -> Result<Outcome> {
        let draft = prepared.checked.draft();
        let mut hints = Vec::new();
        // A row of others that stood for the draft would end for what is announced for the memories that the draft names.
        let is_apart = self.is_to_be_replaced(draft, named)?;
        if !self.no_dedup && !skips_content(draft) {
            let equal = self.equals(prepared, part)?;
            hints = equal.hints;
            let absorber = if is_apart { self.said_in_place(draft, part, named)? } else { equal.absorber };
            if let Some((rank, rule)) = absorber {
                hints.retain(|hint| hint.id != rank.id);
                let evidence = Evidence { signature: Some("content".to_owned()), ..Evidence::default() };
                return self.absorb(prepared, rank.id, rule, evidence, hints);
            }
            if let Some((rank, _)) = equal.absorber {
                note(&mut hints, rank.id, ENDS_LATER);
            }
            if let Some((id, (rule, evidence))) = self.operational_step(prepared, part)?
                && !is_apart
                && self.may_take(id, draft, &mut hints)?
            {
                return self.absorb(prepared, id, rule, evidence, hints);
            }
        }
        if let Some((id, evidence)) = self.vector_step(prepared, part, &mut hints)?
            && !is_apart
            && self.may_take(id, draft, &mut hints)?
        {
            return self.absorb(prepared, id, RuleId::VECTOR, evidence, hints);
        }
        let id = self.next_id()?;
        self.store(prepared, id, part, hints)
    }

    /// Whether a row can stand for a draft: it has room for its tags, and the end of neither moves. If not, a hint says so.
    fn may_take(&self, id: MemoryId, draft: &Draft, hints: &mut Vec<Hint>) -> Result<bool> {
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        let why = self.why_apart(draft, id, &vitals, &content)?;
        if let Some(why) = why {
            note(hints, id, why);
        }
        Ok(why.is_none())
    }

    /// Why a row of equal content can not stand for a draft.
    fn why_apart(
        &self,
        draft: &Draft,
        id: MemoryId,
        vitals: &Vitals,
        content: &Content,
    ) -> Result<Option<&'static str>> {
        if !tags_fit(&content.tags, draft.tags.as_deref().unwrap_or_default()) {
            return Ok(Some(TAGS_FULL));
        }
        let mut write = self.parts_of(draft).vitals;
        expire(&mut write, draft.expiry.unwrap_or_default(), self.policy);
        let (kept, given) = (vitals.life(), write.life());
        if kept.agrees_with(given) {
            return Ok(None);
        }
        // An end that a caller set is a promise. The write of another would move it, and the row would not go back to
        // it when that other write is forgotten. Only the writer itself moves it, by an end that is named.
        let repeats = !kept.promises_less_than(given)
            && is_of_one_writer(&*self.ledger.tx, self.ns(), id, draft, self.context.run)?;
        let why = if kept.longer(given) == kept { ENDS_LATER } else { ENDS_EARLIER };
        Ok((!repeats).then_some(why))
    }

    /// The current rows of a partition with the fingerprint of a draft.
    pub(super) fn equals(&self, prepared: &Prepared, part: PartId) -> Result<Equals> {
        let draft = prepared.checked.draft();
        let tier = draft.fields.tier.unwrap_or_default();
        let mut equals = Equals::default();
        let Some(fingerprint) = prepared.normal.prefix() else { return Ok(equals) };
        let likeness = Likeness::of_draft(draft).key(&draft.text);
        let begins = |bytes: usize| likeness.get(..bytes).unwrap_or_default();
        let (tx, ns) = (&*self.ledger.tx, self.ns());
        // First byte-equal rows, then rows that are alike, then all others. Each group has its own way into the index,
        // and of each group only the first rows are read, however many there are.
        for bytes in [LIKENESS_BYTES, ALIKE_BYTES, 0] {
            let mut left = EQUALS_MAX;
            tx.by_fingerprint(ns, part, tier, &fingerprint, begins(bytes), &mut |id| {
                self.weigh(draft, id, &mut equals, &mut left)
            })?;
        }
        // If these rows have no room for the tags, or other ends, one of the last rows may do: it was written when the
        // others could not stand for its write.
        if equals.parted && equals.absorber.is_none() {
            let mut left = EQUALS_MAX;
            tx.latest_by_fingerprint(ns, part, tier, &fingerprint, begins(LIKENESS_BYTES), &mut |id| {
                self.weigh(draft, id, &mut equals, &mut left)
            })?;
        }
        Ok(equals)
    }

    /// Notes how a row relates to a draft, as long as more rows may be read.
    fn weigh(
        &self,
        draft: &Draft,
        id: MemoryId,
        equals: &mut Equals,
        left: &mut usize,
    ) -> Result<ControlFlow<()>> {
        match self.compare(draft, id)? {
            Match::Absorbs(rule, rank) => {
                // Equal rows can stand side by side where dedup was off. The canonical one absorbs.
                let first = |(other, _): &(Rank, RuleId)| canonical(&rank, other).is_lt();
                if equals.absorber.as_ref().is_none_or(first) {
                    equals.absorber = Some((rank, rule));
                }
            }
            Match::Near(why) => {
                equals.parted |= [TAGS_FULL, ENDS_EARLIER, ENDS_LATER].contains(&why);
                note(&mut equals.hints, id, why);
            }
            // Rows that have ended leave the index in bounded steps, so some may still be met here.
            Match::Other => return Ok(ControlFlow::Continue(())),
        }
        *left -= 1;
        Ok(if *left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn compare(&self, draft: &Draft, id: MemoryId) -> Result<Match> {
        // A damaged row stands for nothing.
        let Some((vitals, content)) = sound(self.ledger.load(self.ns(), id))? else {
            return Ok(Match::Other);
        };
        if !vitals.times.is_current(self.now()) {
            return Ok(Match::Other);
        }
        self.match_of(draft, (id, &vitals, &content))
    }

    /// What a current row means for a draft.
    pub(super) fn match_of(
        &self,
        draft: &Draft,
        (id, vitals, content): (MemoryId, &Vitals, &Content),
    ) -> Result<Match> {
        let equal = content.text == draft.text;
        let Some(alike) = sound(self.is_alike(draft, (id, vitals, content)))? else {
            return Ok(Match::Other);
        };
        let rule = match (equal, alike) {
            (true, true) => RuleId::CONTENT,
            (true, false) => return Ok(Match::Near("equal content")),
            (false, true) if self.absorbs_spacing(&draft.text, &content.text) => RuleId::NORMALIZED,
            (false, _) => return Ok(Match::Near("equal fingerprint")),
        };
        let Some(apart) = sound(self.why_apart(draft, id, vitals, content))? else {
            return Ok(Match::Other);
        };
        Ok(apart.map_or_else(|| Match::Absorbs(rule, vitals.rank(id)), Match::Near))
    }

    /// Whether a row has the kind, the validity and the metadata of a draft. A draft that gives no beginning says what is true now, as
    /// a row that began when it took the place of another one.
    fn is_alike(&self, draft: &Draft, (id, vitals, content): (MemoryId, &Vitals, &Content)) -> Result<bool> {
        let (said, there) = (Likeness::of_draft(draft), Likeness::of_row(vitals, content));
        let begins = vitals.times.valid_from.filter(|begins| *begins <= self.now());
        if said == there || begins.is_none() || draft.fields.valid_from.value().is_some() {
            return Ok(said == there);
        }
        Ok(said.beginning(begins) == there && self.is_said_without_beginning(id)?)
    }

    /// Whether one of the first writers of a row has said its text without a beginning.
    fn is_said_without_beginning(&self, id: MemoryId) -> Result<bool> {
        let (mut left, mut found) = (EQUALS_MAX, false);
        self.ledger.tx.any_holder(self.ns(), id, &mut |holder| {
            found = holder.has_text() && !holder.gave("valid_from");
            left -= 1;
            found || left == 0
        })?;
        Ok(found)
    }

    fn absorbs_spacing(&self, new: &str, old: &str) -> bool {
        if self.policy.write.normalized_match != NormalizedMatch::Absorb {
            return false;
        }
        let stopwords: Vec<&str> = self.policy.collapse.stopwords.iter().map(String::as_str).collect();
        same_but_spacing_and_case(new, old, &stopwords)
    }

    /// Lets the row stand for this write as well. The row gets a holder more, and whatever else the write
    /// adds.
    pub(super) fn absorb(
        &mut self,
        prepared: &Prepared,
        id: MemoryId,
        rule: RuleId,
        evidence: Evidence,
        hints: Vec<Hint>,
    ) -> Result<Outcome> {
        let draft = prepared.checked.draft();
        let mut holder = self.holder_of(draft);
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        if content.text != draft.text {
            holder.text = Some(draft.text.clone());
            note_vector(&mut holder, prepared.vector.as_ref(), self.ledger.secret);
        }
        let mut raise = self.raise(draft, id, &vitals)?;
        // A row that waits for a vector takes the vector that comes with the same content. That of a near text is none of its
        // own, and would outlive whoever brought it.
        if let (None, Some(vector)) = (vitals.place.slot, &prepared.vector)
            && content.text == draft.text
        {
            raise.vector = Some((self.open_space_of(vector.dim(), prepared.space())?, vector.clone()));
        }
        let change = Change::Hold { id, holder: Box::new(holder), raise };
        self.apply_entry(Entry { change, rule, evidence: evidence.clone() })?;
        let outcome = self.outcome(prepared, id, Decision::Reinforced, rule, evidence, hints);
        let row = Parts { vitals, content, access: Access::default() };
        Ok(Outcome { not_taken: not_taken(&draft.fields, &row), ..outcome })
    }

    /// What absorbing a write raises in the row.
    fn raise(&self, draft: &Draft, id: MemoryId, vitals: &Vitals) -> Result<Raise> {
        let mut parts = self.parts_of(draft);
        expire(&mut parts.vitals, draft.expiry.unwrap_or_default(), self.policy);
        let tier = vitals.tier.max(parts.vitals.tier);
        let slid = vitals.life().slid(self.now(), tier_ttl(tier, &self.policy.ttl));
        Ok(Raise {
            life: Some(slid.absorbing(parts.vitals.life())),
            significance: draft.fields.significance,
            tier: Some(tier),
            importance: draft.fields.importance,
            confidence: self.grown(id, vitals)?,
            vector: None,
            last_reinforced_at: Some(self.now()),
        })
    }

    /// Step 7: a memory of its own.
    pub(super) fn store(
        &mut self,
        prepared: &Prepared,
        id: MemoryId,
        part: PartId,
        hints: Vec<Hint>,
    ) -> Result<Outcome> {
        let draft = prepared.checked.draft();
        self.check_sources(draft.sources.as_deref().unwrap_or_default())?;
        let mut parts = self.parts_of(draft);
        expire(&mut parts.vitals, draft.expiry.unwrap_or_default(), self.policy);
        parts.vitals.place.partition = part.0;
        parts.vitals.place.fingerprint = prepared.normal.prefix();
        if let Some(vector) = &prepared.vector {
            parts.vitals.place.space = self.open_space_of(vector.dim(), prepared.space())?.0;
        }
        let holder = Holder { share: parts.vitals.reinforcement_count, ..self.holder_of(draft) };
        let row = NewRow {
            id,
            holder,
            vitals: parts.vitals,
            content: parts.content,
            access: parts.access,
            vector: prepared.vector.clone(),
            sources: draft.sources.clone().unwrap_or_default(),
            payload: draft.payload.clone(),
        };
        let evidence = kept_apart(&hints);
        let change = Change::Insert(Box::new(row));
        self.apply_entry(Entry { change, rule: RuleId::STORE, evidence: evidence.clone() })?;
        Ok(self.outcome(prepared, id, Decision::Stored, RuleId::STORE, evidence, hints))
    }

    /// The row that a draft becomes when nothing absorbs it.
    pub(super) fn parts_of(&self, draft: &Draft) -> Parts {
        let mut parts = Parts::new(&draft.text, self.now());
        parts.apply(&draft.fields);
        self.believe(&mut parts.vitals, &draft.fields);
        if parts.vitals.confidence.is_none() && !parts.vitals.tier.is_short_term() {
            parts.vitals.confidence = Some(self.seed());
        }
        parts
    }

    /// The holder that a draft becomes.
    pub(super) fn holder_of(&self, draft: &Draft) -> Holder {
        let fields = given(&draft.fields, draft.expiry, draft.sources.as_deref(), self.ledger.secret);
        let share = draft.fields.reinforcement_count.unwrap_or(1).max(1);
        Holder {
            number: 0,
            key: draft.key.clone(),
            count: 1,
            share: u32::try_from(share).unwrap_or(u32::MAX),
            since: self.now(),
            tags: draft.tags.clone().unwrap_or_default(),
            categories: draft.categories.clone().unwrap_or_default(),
            entities: draft.entities.clone().unwrap_or_default(),
            links: draft.links.clone().unwrap_or_default(),
            fields,
            run: self.context.run,
            text: None,
            from: None,
            follows: false,
        }
    }

    pub(super) fn outcome(
        &self,
        prepared: &Prepared,
        id: MemoryId,
        decision: Decision,
        rule: RuleId,
        evidence: Evidence,
        hints: Vec<Hint>,
    ) -> Outcome {
        Outcome {
            id,
            key: prepared.checked.key().map(str::to_owned),
            partition: prepared.checked.partition().clone(),
            decision,
            rule,
            policy_rule: None,
            event: None,
            evidence,
            hints,
            not_taken: Vec::new(),
            kept_for_others: Vec::new(),
            expires_at: None,
            valid_to: None,
            pending: false,
            policy_number: self.context.policy_number,
        }
    }

    /// Checks that the other ends of all links exist.
    pub(super) fn check_link_targets(&self, links: &[Link]) -> Result<()> {
        for link in links {
            if !self.ledger.tx.has_row(self.ns(), link.to)? {
                return Err(Error::invalid(
                    "links.to",
                    "must be the id of a memory of the namespace",
                    link.to,
                ));
            }
        }
        Ok(())
    }

    fn check_links(&self, draft: &Draft) -> Result<()> {
        self.check_link_targets(draft.links.as_deref().unwrap_or_default())
    }

    /// Provenance may name a tombstone, but never an id of which nothing is known.
    pub(super) fn check_sources(&self, sources: &[MemoryId]) -> Result<()> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        for source in sources {
            if !tx.has_row(ns, *source)?
                && sound(tx.tombstone(ns, *source))?.is_some_and(|stone| stone.is_none())
            {
                return Err(Error::invalid("sources", "must be ids of memories of the namespace", source));
            }
        }
        Ok(())
    }

    /// The memories that the names of a draft mean before its write: the key of the draft may take the key of another along. None for
    /// a name that means none yet.
    pub(super) fn named_before(&self, draft: &Draft) -> Result<Vec<Option<Named>>> {
        let find = |name: &String| match self.find(name) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        };
        draft.supersedes.iter().map(find).collect()
    }

    /// Supersedes the memories that the draft names, with what they meant before its write. What this row already stands for, by an
    /// earlier run of the same import, is done. A write of what its key says already, whatever fields come with it, replaces nothing of
    /// what a key has said since. Returns where the write stands now.
    pub(super) fn supersede_named(
        &mut self,
        draft: &Draft,
        (named, is_said): (&[Option<Named>], bool),
        wrote: Outcome,
    ) -> Result<Outcome> {
        let is_again = is_said
            && match wrote.decision.settled() {
                Decision::Unchanged | Decision::Updated => true,
                _ => wrote.rule == RuleId::DETACH,
            };
        let new = wrote.id;
        let mut old = Vec::new();
        for (name, named) in draft.supersedes.iter().zip(named) {
            let found = match named {
                // A key that has left its memory with the write means what was written.
                Some((id, Some(number))) if self.ledger.tx.holder(self.ns(), *id, *number)?.is_none() => None,
                found => *found,
            };
            let found = found.map_or_else(|| self.find(name), Ok)?;
            if !(self.is_in_place_of(new, found.0)?
                || is_again && self.has_gone_on((name, found), (draft, new))?)
            {
                old.push(found);
            }
        }
        if old.is_empty() {
            return Ok(wrote);
        }
        let how = (draft.supersede_mode.unwrap_or_default(), draft.fields.valid_from.value().copied());
        let writer = self.ledger.holder_of_key(self.ns(), new, draft.key.as_deref())?;
        let id = self.apart_from_others(&old, (new, writer.map(|writer| writer.number)), how.1)?;
        self.supersede_in_run(old, id, how)?;
        let detached = |wrote| Outcome { id, decision: Decision::Stored, rule: RuleId::DETACH, ..wrote };
        Ok(if id == new { wrote } else { detached(wrote) })
    }

    /// [`Self::supersede_each`], which the run counts that writes.
    fn supersede_in_run(
        &mut self,
        old: Vec<Named>,
        new: MemoryId,
        (mode, at): (SupersedeMode, Option<Time>),
    ) -> Result<()> {
        let changed = self.supersede_each(old, new, mode, at)?;
        let run = self.context.run.filter(|_| changed > 0);
        run.map_or(Ok(()), |run| {
            self.ledger.note_part(&self.context, run, RunSort::Import, [(RunRow::SUPERSEDED, changed)])
        })
    }

    /// Lets one memory take the place of those that some names mean. Without an instant, the world changed now. A key, of which the
    /// number of the holder is given, stands for its own write alone: other writers of the same text keep it. Of several names of one
    /// memory, the first does it for all. Returns how many memories were superseded.
    pub(crate) fn supersede_each(
        &mut self,
        old: impl IntoIterator<Item = Named>,
        new: MemoryId,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<u64> {
        let at = at.unwrap_or(self.now());
        let old: Vec<Named> = old.into_iter().collect();
        // By then another memory may have taken the place of the one that is named. A row that is to take its own place is refused as it
        // is.
        let is_own = old.iter().any(|(id, _)| *id == new);
        let by_then = if is_own { None } else { self.ahead_of(new)?.map(|ahead| ahead.by(at).0) };
        let new = by_then.unwrap_or(new);
        self.check_lives(new, mode, at)?;
        let (places, mut plans) = self.places_by(old, new, at)?;
        // All keys come back before the first of them moves.
        plans.iter_mut().try_for_each(|plan| self.bring_back(plan))?;
        let mut done = BTreeSet::new();
        for (old, apart) in places {
            if done.contains(&old) {
                continue;
            }
            let old = apart.map_or(Ok(old), |number| self.end_apart(old, number))?;
            done.insert(old);
            let change = Change::Supersede { old, new, mode, at, moves: Moves::All, since: None, via: None };
            self.apply(RuleId::SUPERSEDE, change)?;
        }
        let own = if plans.is_empty() { None } else { self.ahead_of(new)? };
        // What has taken the places may be replaced itself later on. Then one comes after the other.
        if own.as_ref().is_none_or(|own| mode != SupersedeMode::Aggregate && own.is_after(at)) {
            self.replace_ahead(&plans, (new, own.as_ref()))?;
        } else {
            plans.iter().try_for_each(|plan| self.replace_ahead(slice::from_ref(plan), (new, None)))?;
        }
        Ok(done.len() as u64)
    }

    /// # Errors
    /// `Invalid` for a memory that ends before the instant ahead at which it is to take a place.
    fn check_lives(&self, new: MemoryId, mode: SupersedeMode, at: Time) -> Result<()> {
        if mode != SupersedeMode::Replaced || at <= self.now() {
            return Ok(());
        }
        let (vitals, _) = self.ledger.load(self.ns(), new)?;
        vitals.times.expires_at.filter(|end| *end <= at).map_or(Ok(()), |end| {
            let bound = format!("must lie before {end}, when the memory that takes the place ends");
            Err(Error::invalid("at", bound, at))
        })
    }

    /// The memories that are to be superseded at an instant, with the numbers of the writers that get rows of their own before, and what
    /// was to take the places of these memories after that.
    fn places_by(&mut self, old: Vec<Named>, new: MemoryId, at: Time) -> Result<(Vec<Named>, Vec<Ahead>)> {
        let (mut places, mut plans) = (Vec::new(), Vec::new());
        // What several names mean is read once.
        let (mut known, mut planned) = (BTreeMap::new(), BTreeSet::new());
        for (through, number) in old {
            let Some(number) = number.filter(|_| through != new) else {
                places.push((through, None));
                continue;
            };
            let place = match known.get(&through) {
                Some(place) => *place,
                None => {
                    let found = self.place_by(through, new, at)?;
                    let place = found.as_ref().map(|(old, _)| *old);
                    let plan = found.and_then(|(_, plan)| plan);
                    plans.extend(plan.filter(|_| place.is_some_and(|old| planned.insert(old))));
                    known.insert(through, place);
                    place
                }
            };
            places.extend(place.map(|old| (old, Some(number).filter(|_| old == through))));
        }
        Ok((places, plans))
    }

    /// What a key means by an instant, and what is to take the place of that then; none if the new memory takes this place already.
    fn place_by(
        &mut self,
        through: MemoryId,
        new: MemoryId,
        at: Time,
    ) -> Result<Option<(MemoryId, Option<Ahead>)>> {
        let Some(later) = self.ahead_beside(through, Some(new))? else { return Ok(Some((through, None))) };
        if let Some(since) = later.begins(new).filter(|since| *since <= at) {
            return if since == at { Ok(None) } else { Err(taken_already(through, new, "an earlier")) };
        }
        // What is true by then can be another memory, to which the key leads.
        let (old, ahead) = later.by(at);
        if ahead.as_ref().is_some_and(|ahead| ahead.comes_next(new)) {
            return Err(taken_already(old, new, "a later"));
        }
        Ok(Some((old, ahead)))
    }
}

/// The error of a memory that is to take a place which it takes at another instant.
fn taken_already(old: MemoryId, new: MemoryId, when: &str) -> Error {
    let why = format!("that memory takes its place already, at {when} instant");
    Error::Conflict { what: format!("supersede {old} with {new}"), why }
}

/// Adds a near row to the hints, once, as long as there is room.
fn note(hints: &mut Vec<Hint>, id: MemoryId, why: &'static str) {
    if hints.len() < HINTS_MAX && hints.iter().all(|hint| hint.id != id) {
        hints.push(Hint::new(id, why));
    }
}

/// The evidence when a guard keeps a row apart from another row that its vector reaches.
fn kept_apart(hints: &[Hint]) -> Evidence {
    let guarded = hints.iter().find_map(|hint| hint.guard.map(|guard| (hint, guard)));
    guarded.map_or_else(Evidence::default, |(hint, guard)| Evidence {
        score: hint.score,
        signature: Some(format!("guard {guard}")),
        members: vec![hint.id],
        transferred: None,
    })
}
