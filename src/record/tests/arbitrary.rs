//! Any value of each type that a record is made of.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use crate::limits::{GRAPH_LEVEL_MAX, GRAPH_M, GRAPH_M0, TIME_MAX_MS, TIME_MIN_MS, USES_MAX};
use crate::model::{
    Access, Actor, Announced, Attachment, AuthorKind, Content, Counted, Delta, Embed, Entity, Evidence,
    ExpiresBy, Holder, JournalRow, Link, MemoryId, Overtaken, Place, RuleId, RunId, Significance,
    SupersedeMode, Supersession, Tier, Time, TimeRange, Times, Tombstone, TombstoneReason, Usage, Vitals,
};
use crate::record::{NODES_PER_BLOCK, SlotMeta};

pub(super) fn time() -> impl Strategy<Value = Time> {
    prop_oneof![TIME_MIN_MS..=TIME_MAX_MS, Just(TIME_MIN_MS), Just(TIME_MAX_MS), Just(0)]
        .prop_map(Time::from_millis)
}

fn id() -> impl Strategy<Value = MemoryId> {
    any::<[u8; 16]>().prop_map(MemoryId::from_bytes)
}

fn run() -> impl Strategy<Value = RunId> {
    any::<[u8; 16]>().prop_map(RunId::from_bytes)
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..24).prop_map(String::from_iter)
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![Just("global".to_owned()), Just("profile".to_owned()), text()]
}

fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
}

fn finite32() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite())
}

pub(super) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        finite().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    vec((text(), json()), 0..3).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn times() -> impl Strategy<Value = Times> {
    let superseded = (time(), id(), prop::sample::select(SupersedeMode::ALL), option::of(id()))
        .prop_map(|(at, by, mode, via)| Supersession { at, by, mode, via });
    (
        time(),
        [option::of(time()), option::of(time()), option::of(time())],
        option::of(superseded),
        [option::of(time()), option::of(time()), option::of(time())],
        option::of((time(), time()).prop_map(|(end, at)| Announced { end, at })),
    )
        .prop_map(
            |(recorded_at, [valid_from, valid_to, valid_to_before], superseded, [a, b, c], announced)| {
                Times {
                    recorded_at,
                    valid_from,
                    valid_from_recorded_at: c,
                    valid_to,
                    valid_to_before,
                    announced,
                    expires_at: a,
                    superseded,
                    removed_at: b,
                }
            },
        )
}

fn usage() -> impl Strategy<Value = Usage> {
    (0..=USES_MAX, any::<bool>(), any::<bool>()).prop_map(|(uses, is_promoted, is_consolidated)| Usage {
        uses,
        is_promoted,
        is_consolidated,
    })
}

fn place() -> impl Strategy<Value = Place> {
    let numbers = (any::<u32>(), any::<u16>(), any::<u32>(), any::<u32>());
    (
        numbers,
        option::of(any::<u32>()),
        option::of(any::<u32>()),
        (option::of(any::<[u8; 16]>()), any::<[u8; 12]>()),
        (prop::sample::select(Counted::ALL), any::<bool>(), usage()),
    )
        .prop_map(
            |(
                (partition, space, next_holder, holders),
                slot,
                doc,
                (fingerprint, likeness),
                (counted, payload, usage),
            )| Place {
                partition,
                space,
                slot,
                doc,
                fingerprint,
                likeness,
                payload,
                counted,
                next_holder,
                holders,
                usage,
            },
        )
}

pub(super) fn vitals() -> impl Strategy<Value = Vitals> {
    let codes = (
        prop_oneof![0_u8..20, Just(255)],
        prop::sample::select(Tier::ALL),
        prop::sample::select(Significance::ALL),
    );
    let floats = (0.0_f32..=1.0, option::of(0.0_f32..=1.0));
    let counts = (any::<u32>(), any::<u64>(), any::<u32>());
    let instants = (time(), time(), option::of(time()), option::of(time()));
    let overtaken = (id(), time(), time(), option::of(id()));
    let overtaken = vec(overtaken.prop_map(|(by, end, at, via)| Overtaken { by, end, at, via }), 0..3);
    (codes, floats, counts, any::<[bool; 5]>(), instants, (times(), overtaken), place()).prop_map(
        |(codes, floats, counts, flags, instants, (times, overtaken), place)| Vitals {
            kind_code: codes.0,
            tier: codes.1,
            significance: codes.2,
            importance: floats.0,
            confidence: floats.1,
            reinforcement_count: counts.0,
            pinned: flags[0],
            admin_locked: flags[1],
            system_locked: flags[2],
            deletes_source: flags[3],
            times,
            overtaken,
            expires_by: if flags[4] { ExpiresBy::Caller } else { ExpiresBy::Tier },
            created_at: instants.0,
            updated_at: instants.1,
            happened_at: instants.2,
            last_reinforced_at: instants.3,
            version: counts.1,
            content_bytes: counts.2,
            place,
        },
    )
}

/// Content of which only the fields of a summary are set.
fn summary() -> impl Strategy<Value = Content> {
    let range = (time(), time()).prop_map(|(start, end)| TimeRange { start, end });
    let list = || option::of(json());
    (option::of(text()), option::of(range), list(), list(), list(), list()).prop_map(
        |(topic, time_range, bullet_events, decisions, open_loops, spam_patterns)| Content {
            topic,
            time_range,
            bullet_events,
            decisions,
            open_loops,
            spam_patterns,
            ..Content::default()
        },
    )
}

pub(super) fn content() -> impl Strategy<Value = Content> {
    let plain = || (text(), vec(text(), 0..4), metadata(), label(), label());
    let texts = vec(option::of(text()), 8);
    let ids = vec(option::of(id()), 3);
    let attachment = (text(), any::<u64>(), option::of(text()))
        .prop_map(|(media_type, size, blob_id)| Attachment { media_type, size, blob_id });
    let embed = (text(), option::of(text())).prop_map(|(url, title)| Embed { url, title });
    let lists = (vec(attachment, 0..3), vec(embed, 0..3), vec(id(), 0..3));
    let author = option::of(prop::sample::select(AuthorKind::ALL));
    let full = (plain(), texts, ids, lists, author, option::of(any::<u64>()), summary()).prop_map(
        |(plain, mut texts, ids, lists, author_kind, step, summary)| {
            let mut next = || texts.pop().flatten();
            Content {
                text: plain.0,
                tags: plain.1,
                metadata: plain.2,
                scope_label: plain.3,
                series: plain.4,
                custom_kind: next(),
                channel: next(),
                thread: next(),
                session: next(),
                author_id: next(),
                event_type: next(),
                agent_id: next(),
                resource: next(),
                reply_to: ids[0],
                family_id: ids[1],
                aggregate_id: ids[2],
                attachments: lists.0,
                embeds: lists.1,
                consolidated_from: lists.2,
                author_kind,
                step,
                ..summary
            }
        },
    );
    let plain = plain().prop_map(|(text, tags, metadata, scope_label, series)| Content {
        text,
        tags,
        metadata,
        scope_label,
        series,
        ..Content::default()
    });
    prop_oneof![plain, full, Just(Content::default())]
}

pub(super) fn access() -> impl Strategy<Value = Access> {
    let count = || prop_oneof![Just(0), any::<u64>()];
    let counts = (count(), count(), count(), count(), count());
    let steps = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(id()), any::<bool>());
    ((counts, steps), vec(option::of(time()), 7), finite(), finite32(), finite()).prop_map(
        |((counts, steps), times, sum, relevance_max, decay)| Access {
            retrieval_count: counts.0,
            last_retrieved: times[0],
            relevance_score_sum: sum,
            relevance_score_count: counts.1,
            relevance_max,
            included_count_total: counts.2,
            included_count_decay: decay,
            last_included_at: times[1],
            protected_until: times[2],
            summarized_at: times[3],
            promoted_at: times[4],
            last_consolidated_at: times[5],
            confidence_grown_at: times[6],
            access_seq: counts.3,
            source_forgotten: counts.4,
            last_retrieved_step: steps.0,
            consolidated_step: steps.1,
            cluster_id: steps.2,
            is_representative: steps.3,
        },
    )
}

pub(super) fn holder() -> impl Strategy<Value = Holder> {
    let entity = (text(), text()).prop_map(|(name, role)| Entity { name, role });
    let link = (id(), text()).prop_map(|(to, relation)| Link { to, relation });
    let lists = (vec(text(), 0..4), vec(text(), 0..4), vec(entity, 0..4), vec(link, 0..4));
    let fields = vec((any::<u8>(), any::<[u8; 8]>()), 0..5);
    let options = (option::of(text()), option::of(run()), option::of(text()), option::of(id()));
    (any::<(u32, u32, u32, bool)>(), time(), lists, fields, options).prop_map(
        |(
            (number, count, share, follows),
            since,
            (tags, categories, entities, links),
            fields,
            (key, run, text, from),
        )| {
            let lists = Holder { tags, categories, entities, links, fields, ..Holder::default() };
            Holder { number, key, count, share, since, run, text, from, follows, ..lists }
        },
    )
}

pub(super) fn journal() -> impl Strategy<Value = JournalRow> {
    let delta = (text(), json(), json()).prop_map(|(field, before, after)| Delta { field, before, after });
    let evidence =
        (option::of(finite32()), option::of(text()), vec(id(), 0..3), option::of(any::<u32>())).prop_map(
            |(score, signature, members, transferred)| Evidence { score, signature, members, transferred },
        );
    let actor = prop::sample::select(&[Actor::Caller, Actor::Tool, Actor::Sweeper][..]);
    let codes = (actor, prop::sample::select(crate::model::Op::ALL), prop::sample::select(RuleId::ALL));
    let options = (option::of(run()), option::of(id()), option::of(any::<u32>()));
    (any::<(u64, u64, [u8; 8])>(), time(), codes, options, vec(delta, 0..3), evidence).prop_map(
        |((seq, policy_number, policy_hash), at, codes, options, deltas, evidence)| JournalRow {
            seq,
            at,
            actor: codes.0,
            op: codes.1,
            rule: codes.2,
            run: options.0,
            subject: options.1,
            holder: options.2,
            deltas,
            evidence,
            policy_number,
            policy_hash,
        },
    )
}

pub(super) fn tombstone() -> impl Strategy<Value = Tombstone> {
    let reason = (0_u8..12).prop_map(|code| TombstoneReason::from_code(code).unwrap());
    let options = (option::of(run()), option::of(id()), option::of(run()));
    let lists = (vec(id(), 0..4), vec(any::<[u8; 32]>(), 0..4));
    let rows = (prop_oneof![Just(1), any::<u64>()], option::of(time()), option::of(time()));
    (id(), time(), reason, options, lists, any::<[u8; 32]>(), rows).prop_map(
        |(id, deleted_at, reason, options, lists, content_hash, (rows, erased_at, forgotten_at))| Tombstone {
            id,
            deleted_at,
            reason,
            run: options.0,
            replaced_by: options.1,
            made_by: options.2,
            merged_from: lists.0,
            key_hashes: lists.1,
            content_hash,
            rows,
            erased_at,
            forgotten_at,
        },
    )
}

pub(super) fn slot() -> impl Strategy<Value = SlotMeta> {
    (id(), time(), time(), any::<(u64, u64)>(), finite32(), finite32()).prop_map(
        |(id, from, until, (born, died), scale, residual)| SlotMeta {
            id,
            from: from.as_millis(),
            until: until.as_millis(),
            born,
            died,
            scale,
            residual,
        },
    )
}

/// Bottom and upper lists of a node, or its host.
pub(super) type Lists = (Vec<u32>, Vec<Vec<u32>>, Option<u32>);

/// The lists of at most 16 nodes.
pub(super) fn graph_nodes() -> impl Strategy<Value = Vec<Option<Lists>>> {
    let links = |most: usize| vec(any::<u32>(), 0..=most);
    let level = prop_oneof![Just(0), 0..=GRAPH_LEVEL_MAX];
    let upper = level.prop_flat_map(move |level| vec(links(GRAPH_M), level));
    let linked = (links(GRAPH_M0), upper).prop_map(|(bottom, upper)| (bottom, upper, None));
    let twin = any::<u32>().prop_map(|host| (Vec::new(), Vec::new(), Some(host)));
    vec(option::of(prop_oneof![3 => linked, 1 => twin]), 0..=NODES_PER_BLOCK)
}

pub(super) fn vector(dim: usize) -> impl Strategy<Value = Vec<f32>> {
    vec(finite32(), dim).prop_filter("not zero", |v| v.iter().any(|x| x.to_bits() != 0))
}
