//! Which memories may be summarized?

use std::collections::{BTreeSet, HashMap};

use crate::error::{Result, sound};
use crate::ingest::owner_of;
use crate::model::{Access, Content, Kind, MemoryId, Time, Vitals};
use crate::policy::{GroupBy, Policy};
use crate::store::keys;
use crate::store::{ContextRows, MessageRows, NsId, PartId, Stamp, Walk};
use crate::summary::token_estimate;

/// Steps from an answer to the message that began its chain, at most.
const REPLIES_MAX: usize = 64;

/// A memory that may be summarized.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) stamp: Stamp,
    pub(crate) part: PartId,
    /// Whose memory it is.
    pub(crate) owner: String,
    pub(crate) created_at: Time,
    /// Its inclusions, decayed to now.
    pub(crate) inclusion: f64,
    pub(crate) tokens: u64,
    pub(crate) key: GroupKey,
}

/// What the members of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupKey {
    /// A family of repeated messages.
    Family(Vec<u8>),
    Thread(String),
    /// The message that began a chain of replies.
    Replies(MemoryId),
    /// A channel, and a UTC day.
    ChannelDay(Option<String>, String),
    /// What the policy groups by says nothing of the memory.
    Alone(MemoryId),
}

/// The memories of a namespace that may be summarized at an instant, those that a plan has already left out. Only rows
/// past the least age are read, in the order of their creation.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn candidates<R: MessageRows>(
    rows: &R,
    ns: NsId,
    now: Time,
    policy: &Policy,
    taken: &BTreeSet<MemoryId>,
) -> Result<Vec<Candidate>> {
    let asked = Asked { ns, now, policy, kinds: Kinds::of(policy) };
    let mut all = Vec::new();
    let parts = rows.partitions(ns)?.into_iter().map(|(_, part)| part);
    let from = now.minus(policy.gc.age_min);
    for part in std::iter::once(PartId(0)).chain(parts) {
        let end = keys::by_time(ns, part, from, MemoryId::from_bytes([0; 16]));
        let walk = Walk::prefix(&keys::ns_part(ns, part)).before(&end);
        let mut ids = Vec::new();
        rows.ids_by_time(&walk, &mut |id| {
            ids.push(id);
            Ok(())
        })?;
        for id in ids.into_iter().filter(|id| !taken.contains(id)) {
            // A damaged row is left alone.
            all.extend(sound(asked.candidate(rows, id))?.flatten());
        }
    }
    join_replies(&mut all);
    Ok(all)
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

struct Asked<'p> {
    ns: NsId,
    now: Time,
    policy: &'p Policy,
    kinds: Kinds,
}

impl Asked<'_> {
    fn candidate<R: MessageRows>(&self, rows: &R, id: MemoryId) -> Result<Option<Candidate>> {
        let Some(vitals) = rows.vitals(self.ns, id)? else { return Ok(None) };
        if !self.kinds.codes.contains(&vitals.kind_code)
            || vitals.is_protected()
            || !vitals.times.visible_live(self.now)
        {
            return Ok(None);
        }
        let access = rows.access(self.ns, id)?;
        let inclusion = access.included_count_at(self.now, self.policy.access.tau_days);
        let gc = &self.policy.gc;
        let rests = |at: Time| at.plus(gc.resummarize_after) >= self.now;
        if inclusion >= gc.access_threshold
            || access.summarized_at.is_some_and(rests)
            || access.protected_until.is_some_and(|until| until > self.now)
        {
            return Ok(None);
        }
        let Some(content) = rows.content(self.ns, id)? else { return Ok(None) };
        let custom = content.custom_kind.as_ref();
        // No pass unites a verbatim memory with others.
        if content.verbatim
            || custom.is_some_and(|name| !self.kinds.customs.contains(name))
            || content.tags.iter().any(|tag| gc.never_tags.contains(tag))
        {
            return Ok(None);
        }
        let Some(key) = self.key_of(rows, id, &vitals, &content)? else { return Ok(None) };
        let at = vitals.happened_at.unwrap_or(vitals.created_at);
        let access_seq = access.access_seq;
        let stamp = Stamp { id, version: vitals.version, access_seq, at_ms: at.as_millis() };
        Ok(Some(Candidate {
            stamp,
            part: PartId(vitals.place.partition),
            owner: owner_of(&content.metadata),
            created_at: vitals.created_at,
            inclusion,
            tokens: self.tokens(rows, id, &access, &content)?,
            key,
        }))
    }

    /// The tokens that a memory took in its last context, or else those that its text is estimated to have.
    fn tokens<R: MessageRows>(
        &self,
        rows: &R,
        id: MemoryId,
        access: &Access,
        content: &Content,
    ) -> Result<u64> {
        let was_included = access.included_count_total > 0;
        let last = if was_included { rows.contexts_of(self.ns, id, None, 1)? } else { Vec::new() };
        if let Some((_, context)) = last.first()
            && let Some(context) = sound(rows.context(self.ns, context))?.flatten()
        {
            let items = context.items.iter().filter(|item| item.id == Some(id));
            return Ok(items.map(|item| u64::from(item.tokens)).sum());
        }
        Ok(token_estimate(&content.text))
    }

    /// What groups a memory; none for an aggregate whose slice of time goes on.
    fn key_of<R: MessageRows>(
        &self,
        rows: &R,
        id: MemoryId,
        vitals: &Vitals,
        content: &Content,
    ) -> Result<Option<GroupKey>> {
        let mut family = content.family_id.map(|family| family.as_bytes().to_vec());
        if vitals.kind_code == Kind::Aggregate.code() {
            let aggregate =
                content.aggregate_id.map(|id| rows.aggregate(self.ns, id.as_bytes())).transpose()?;
            let Some(aggregate) = aggregate.flatten() else { return Ok(None) };
            let slice = self.policy.agg.slice.as_millis().max(1);
            let end = aggregate.first_ts.div_euclid(slice).saturating_add(1).saturating_mul(slice);
            if end > self.now.as_millis() {
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
                    Some(GroupKey::ChannelDay(content.channel.clone(), vitals.created_at.day()))
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(Some(GroupKey::Alone(id)))
    }

    fn root_of<R: MessageRows>(&self, rows: &R, mut id: MemoryId) -> Result<MemoryId> {
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
