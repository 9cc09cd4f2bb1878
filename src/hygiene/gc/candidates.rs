//! Which memories may be summarized?

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::error::{Result, sound};
use crate::ingest::{Slice, owner_of};
use crate::model::{Access, Belonging, Kind, MemoryId, Time, Vitals};
use crate::policy::{GroupBy, Policy};
use crate::store::keys;
use crate::store::{
    ContextRows, GroupRow, MessageRows, NsId, PartId, Rows, Snapshot, SortedRows, Stamp, Walk,
};
use crate::summary::tokens_of;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Memories that are read before groups are made of them: about as many as most plans take. A run makes many plans, and
/// each reads what it does not take for nothing.
const READ_FIRST: usize = 1_024;
/// Memories whose vitals are kept before their contents are read.
const READ_AT_ONCE: usize = 4_096;
/// Steps from an answer to the message that began its chain, at most.
const REPLIES_MAX: usize = 64;

/// A memory that may be summarized.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) stamp: Stamp,
    pub(super) part: PartId,
    /// Whose memory it is.
    pub(super) owner: String,
    pub(super) created_at: Time,
    /// Its inclusions, decayed to now.
    pub(super) inclusion: f64,
    pub(super) tokens: u64,
    pub(super) key: GroupKey,
}

/// What the members of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum GroupKey {
    /// A family of repeated messages.
    Family(Vec<u8>),
    Thread(String),
    /// The message that began a chain of replies.
    Replies(MemoryId),
    /// A channel, and a UTC day by its number.
    ChannelDay(Option<String>, i64),
    /// What the policy groups by says nothing of the memory.
    Alone(MemoryId),
}

impl GroupKey {
    /// Whether memories that were made at an instant or later can have the key.
    pub(super) fn goes_on_at(&self, at: Time) -> bool {
        match self {
            GroupKey::Family(_) | GroupKey::Thread(_) | GroupKey::Replies(_) => true,
            GroupKey::ChannelDay(_, day) => *day >= day_of(at),
            GroupKey::Alone(_) => false,
        }
    }
}

/// The UTC day of an instant, by its number.
fn day_of(at: Time) -> i64 {
    at.as_millis().div_euclid(DAY_MS)
}

/// The memories of a namespace that may be summarized at an instant, read from the oldest on, as many as are asked for.
pub(super) struct Candidates {
    asked: Asked,
    /// What is past the least age, with the instant of its creation, the oldest last.
    unread: Vec<(Time, MemoryId)>,
    /// What was read and may be summarized, the oldest first.
    found: Vec<Candidate>,
    /// Those of them that plans have taken and that were not left out yet.
    taken: HashSet<MemoryId>,
    /// How much is read next.
    next: usize,
    /// Memories that were looked at, can't be read, and are left alone.
    damaged: u64,
}

impl Candidates {
    /// Those that no plan has. Of the namespace, only the index by creation is read.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn of(
        rows: &Snapshot,
        ns: NsId,
        now: Time,
        policy: Policy,
        taken: &BTreeSet<MemoryId>,
    ) -> Result<Self> {
        let mut unread = Vec::new();
        let parts = rows.partitions(ns)?.into_iter().map(|(_, part)| part);
        let from = now.minus(policy.gc.age_min);
        for part in std::iter::once(PartId(0)).chain(parts) {
            let end = keys::by_time(ns, part, from, MemoryId::from_bytes([0; 16]));
            let walk = Walk::prefix(&keys::ns_part(ns, part)).before(&end);
            rows.ids_by_time(&walk, &mut |at, id| {
                unread.extend(Some((at, id)).filter(|(_, id)| !taken.contains(id)));
                Ok(())
            })?;
        }
        unread.sort_unstable_by(|a, b| b.cmp(a));
        let asked = Asked { ns, now, kinds: Kinds::of(&policy), policy };
        let (found, taken) = (Vec::new(), HashSet::new());
        Ok(Candidates { asked, unread, found, taken, next: READ_FIRST, damaged: 0 })
    }

    /// What they are asked by.
    pub(super) fn policy(&self) -> &Policy {
        &self.asked.policy
    }

    /// Whether the sources of groups may be summarized still, and are as they were read.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(super) fn are_as_read(&self, rows: &Snapshot, now: Time, groups: &[GroupRow]) -> Result<bool> {
        let ns = self.asked.ns;
        for stamp in groups.iter().flat_map(|group| &group.sources) {
            let vitals = sound(rows.vitals(ns, stamp.id))?.flatten();
            let access = sound(rows.access(ns, stamp.id))?;
            let is_as_read = vitals.zip(access).is_some_and(|(vitals, access)| {
                vitals.version == stamp.version
                    && self.asked.qualifies(&vitals, now)
                    && access.access_seq == stamp.access_seq
                    && access.protected_until.is_none_or(|until| until <= now)
            });
            if !is_as_read {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads as many memories as were read before, and those of the same instant as the last of them.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(super) fn read(&mut self, rows: &Snapshot) -> Result<()> {
        let mut from = self.unread.len().saturating_sub(self.next);
        if let Some((last, _)) = self.unread.get(from).copied() {
            from = self.unread.partition_point(|(at, _)| *at > last);
        }
        self.next += self.unread.len() - from;
        let mut ids: Vec<MemoryId> = self.unread.drain(from..).map(|(_, id)| id).collect();
        // Rows are read in the order of their keys.
        ids.sort_unstable();
        let known = self.found.len();
        for ids in ids.chunks(READ_AT_ONCE) {
            self.damaged += self.asked.candidates(rows, ids, &mut self.found)?;
        }
        if let Some(new) = self.found.get_mut(known..) {
            new.sort_unstable_by(|a, b| {
                let by_time = a.created_at.cmp(&b.created_at);
                by_time.then(a.inclusion.total_cmp(&b.inclusion)).then(a.stamp.id.cmp(&b.stamp.id))
            });
        }
        join_replies(&mut self.found);
        Ok(())
    }

    /// Notes what the groups of a plan take.
    pub(super) fn take(&mut self, groups: &[GroupRow]) {
        self.taken.extend(groups.iter().flat_map(|group| &group.sources).map(|stamp| stamp.id));
        self.next = READ_FIRST;
    }

    /// The number of memories that were looked at and can't be read.
    pub(super) fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Leaves out what plans have taken.
    pub(super) fn leave_out_taken(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.found.retain(|one| !taken.contains(&one.stamp.id));
    }

    /// What was read, and the creation of the oldest memory that was not.
    pub(super) fn found(&self) -> (&[Candidate], Option<Time>) {
        (&self.found, self.unread.last().map(|(at, _)| *at))
    }
}

/// Whether a summary may have the words of a memory. It would keep them past the end that a caller set, and tell as true what is
/// not true yet, or not any more.
pub(super) fn may_be_told(vitals: &Vitals, now: Time) -> bool {
    let times = &vitals.times;
    !vitals.life().is_promised_end() && times.valid_to.is_none() && times.visible_live(now)
}

/// Kinds by their codes, custom ones by their names.
struct Kinds {
    codes: BTreeSet<u8>,
    customs: BTreeSet<String>,
}

impl Kinds {
    fn of(policy: &Policy) -> Self {
        let gc = &policy.gc;
        let never = |kind: &&String| {
            let nested = gc.allow_nested && **kind == Kind::Summary.to_string();
            !gc.never_kinds.contains(kind) || nested
        };
        let nested = gc.allow_nested.then(|| Kind::Summary.to_string());
        let kinds = gc.kinds.iter().filter(never).chain(&nested).filter_map(|kind| kind.parse::<Kind>().ok());
        let mut all = Kinds { codes: BTreeSet::new(), customs: BTreeSet::new() };
        for kind in kinds {
            all.codes.insert(kind.code());
            if let Kind::Custom(name) = kind {
                all.customs.insert(name);
            }
        }
        all
    }
}

/// A memory that may be summarized as far as it is known.
struct Seen {
    stamp: Stamp,
    part: PartId,
    created_at: Time,
    kind_code: u8,
    content_bytes: u32,
    /// Its inclusions, decayed to now.
    inclusion: f64,
    was_included: bool,
}

impl Seen {
    /// By its vitals alone, which say nothing of its use.
    fn of(id: MemoryId, vitals: &Vitals) -> Self {
        let at_ms = vitals.happened_at.unwrap_or(vitals.created_at).as_millis();
        Seen {
            stamp: Stamp { id, version: vitals.version, access_seq: 0, at_ms },
            part: PartId(vitals.place.partition),
            created_at: vitals.created_at,
            kind_code: vitals.kind_code,
            content_bytes: vitals.content_bytes,
            inclusion: 0.0,
            was_included: false,
        }
    }
}

fn ids_of(seen: &[Seen]) -> Vec<MemoryId> {
    seen.iter().map(|seen| seen.stamp.id).collect()
}

struct Asked {
    ns: NsId,
    now: Time,
    policy: Policy,
    kinds: Kinds,
}

impl Asked {
    /// Adds those of some memories that may be summarized. A memory with a damaged row is left alone; returns how many these are.
    fn candidates(&self, rows: &Snapshot, ids: &[MemoryId], all: &mut Vec<Candidate>) -> Result<u64> {
        let mut damaged = 0;
        let mut seen: Vec<Seen> = Vec::with_capacity(ids.len());
        rows.each_vitals(self.ns, ids, &mut |id, vitals| {
            damaged += u64::from(vitals.is_none());
            let vitals = vitals.filter(|vitals| self.qualifies(vitals, self.now));
            seen.extend(vitals.map(|vitals| Seen::of(id, &vitals)));
            Ok(())
        })?;
        let mut used: BTreeMap<MemoryId, Option<Access>> = BTreeMap::new();
        rows.each_access(self.ns, &ids_of(&seen), &mut |id, access| {
            damaged += u64::from(access.is_none());
            used.insert(id, access);
            Ok(())
        })?;
        let unused = Access::default();
        seen.retain_mut(|seen| {
            let access = used.get(&seen.stamp.id).map_or(Some(&unused), Option::as_ref);
            access.is_some_and(|access| {
                seen.inclusion = access.included_count_at(self.now, self.policy.access.tau_days);
                seen.was_included = access.included_count_total > 0;
                seen.stamp.access_seq = access.access_seq;
                self.is_unused(access, seen.inclusion)
            })
        });
        let ids = ids_of(&seen);
        let mut left = seen.into_iter();
        rows.each_belonging(self.ns, &ids, &mut |id, content| {
            // Both come in the order of their ids, and a memory that has no content is met in one of them alone.
            let seen = left.find(|seen| seen.stamp.id == id);
            damaged += u64::from(content.is_none());
            if let Some((seen, content)) = seen.zip(content) {
                let candidate = sound(self.candidate(rows, seen, &content))?;
                damaged += u64::from(candidate.is_none());
                all.extend(candidate.flatten());
            }
            Ok(())
        })?;
        Ok(damaged)
    }

    /// Whether a memory may be summarized, by its vitals.
    fn qualifies(&self, vitals: &Vitals, now: Time) -> bool {
        self.kinds.codes.contains(&vitals.kind_code) && !vitals.is_protected() && may_be_told(vitals, now)
    }

    /// Whether a memory may be summarized, by its use.
    fn is_unused(&self, access: &Access, inclusion: f64) -> bool {
        let gc = &self.policy.gc;
        let rests = |at: Time| at.plus(gc.resummarize_after) >= self.now;
        inclusion < gc.access_threshold
            && !access.summarized_at.is_some_and(rests)
            && access.protected_until.is_none_or(|until| until <= self.now)
    }

    fn candidate(&self, rows: &Snapshot, seen: Seen, content: &Belonging) -> Result<Option<Candidate>> {
        let custom = content.custom_kind.as_ref();
        // No pass unites a verbatim memory with others.
        if content.verbatim
            || custom.is_some_and(|name| !self.kinds.customs.contains(name))
            || content.tags.iter().any(|tag| self.policy.gc.never_tags.contains(tag))
        {
            return Ok(None);
        }
        let Some(key) = self.key_of(rows, &seen, content)? else { return Ok(None) };
        Ok(Some(Candidate {
            owner: owner_of(&content.metadata),
            tokens: self.tokens(rows, &seen)?,
            stamp: seen.stamp,
            part: seen.part,
            created_at: seen.created_at,
            inclusion: seen.inclusion,
            key,
        }))
    }

    /// The tokens that a memory took in its last context, or else those that its text is estimated to have.
    fn tokens(&self, rows: &Snapshot, seen: &Seen) -> Result<u64> {
        let id = seen.stamp.id;
        let last = if seen.was_included { rows.contexts_of(self.ns, id, None, 1)? } else { Vec::new() };
        if let Some((_, context)) = last.first()
            && let Some(context) = sound(rows.context(self.ns, context))?.flatten()
        {
            let items = context.items.iter().filter(|item| item.id == Some(id));
            return Ok(items.map(|item| u64::from(item.tokens)).sum());
        }
        Ok(tokens_of(seen.content_bytes as usize))
    }

    /// What groups a memory; none for an aggregate whose slice of time goes on.
    fn key_of(&self, rows: &Snapshot, seen: &Seen, content: &Belonging) -> Result<Option<GroupKey>> {
        let mut family = content.family_id.map(|family| family.as_bytes().to_vec());
        if seen.kind_code == Kind::Aggregate.code() {
            let aggregate =
                content.aggregate_id.map(|id| rows.aggregate(self.ns, id.as_bytes())).transpose()?;
            let Some(aggregate) = aggregate.flatten() else { return Ok(None) };
            let slice = Slice::of(Time::from_millis(aggregate.first_ts), self.policy.agg.slice);
            if slice.to > self.now {
                return Ok(None);
            }
            // Slices of one family have one exact key.
            family = Some(aggregate.exact_hash.map_or(aggregate.family.to_vec(), |hash| hash.to_vec()));
        }
        for by in &self.policy.gc.group_by {
            let found = match by {
                GroupBy::Family => family.clone().map(GroupKey::Family),
                GroupBy::Thread => match (&content.thread, content.reply_to) {
                    (Some(thread), _) => Some(GroupKey::Thread(thread.clone())),
                    (None, Some(to)) => Some(GroupKey::Replies(self.root_of(rows, to)?)),
                    (None, None) => None,
                },
                GroupBy::ChannelDay => {
                    Some(GroupKey::ChannelDay(content.channel.clone(), day_of(seen.created_at)))
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(Some(GroupKey::Alone(seen.stamp.id)))
    }

    fn root_of(&self, rows: &Snapshot, mut id: MemoryId) -> Result<MemoryId> {
        for _ in 0..REPLIES_MAX {
            let content = sound(rows.content(self.ns, id))?.flatten();
            let Some(to) = content.and_then(|content| content.reply_to) else { break };
            id = to;
        }
        Ok(id)
    }
}

/// Lets the messages that began chains of replies stand in their own chains.
fn join_replies(all: &mut [Candidate]) {
    let roots = all.iter().filter_map(|one| match one.key {
        GroupKey::Replies(root) => Some((root, one.part)),
        _ => None,
    });
    let roots: HashMap<MemoryId, PartId> = roots.collect();
    for one in all {
        let begins = roots.get(&one.stamp.id).is_some_and(|part| *part == one.part);
        if begins && matches!(one.key, GroupKey::ChannelDay(..) | GroupKey::Alone(_)) {
            one.key = GroupKey::Replies(one.stamp.id);
        }
    }
}
