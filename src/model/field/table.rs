//! The table of the fields that a caller may set: one row for each field. Every list of fields is made from this table.

/// Hands the rows to the macro `$with`, which lives where a list of fields is needed.
///
/// A row reads `number name: Option<Type> = default, place, bound, json, journal, merge, sample;`
///
/// - `number` names the field on disk, in the cold parts of a row and in a holder. Numbers ascend within a part. A number
///   is below 240, and is never given to another field.
/// - An `Option` can't be cleared and has a default. A `Field` can be null.
/// - `default` is the value of a new memory when the caller gives none.
/// - `place` is where the field stands in its part of a row. `vitals` are read by every filter and ranking, `content`
///   is read when the memory is shown, `access` holds counters of use.
/// - `bound` names the check of `bound.rs`. The bound `name` also says that the type is text.
/// - JSON shows an `always` field even without a value, a `given` field when its value differs from the default, and an
///   `apart` field under another name.
/// - The journal tells of each change of a `journaled` field, and of no change of a `silent` field.
/// - `merge` says which value a row has after it has taken in a duplicate: its own value (`keep`), the larger of both
///   (`larger`), or the value of the duplicate where the row has none (`fill`).
/// - `sample` is the argument of the builders in their examples.
///
/// The value of an `own` field is not stored as it is given. The code that stores it is written by hand.
macro_rules! memory_fields {
    ($with:ident) => {
        $with! {
            own {
                /// The kind of the memory.
                1 kind: Option<Kind> = Kind::default(), kind_code, free, apart, journaled, keep, "Kind::Profile";
                /// How many observations the memory stands for. At least 1; a smaller imported number counts as 1.
                2 reinforcement_count: Option<i64> = 1, reinforcement_count, free, apart, journaled, keep, "3";
            }
            vitals {
                /// When the memory was created; the transaction time by default.
                3 created_at: Option<Time> = Time::EPOCH, created_at, free, always, journaled, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// When a caller last wrote the memory; the transaction time by default.
                4 updated_at: Option<Time> = Time::EPOCH, updated_at, free, always, silent, keep, r#""2026-01-02T11:00:00Z".parse()?"#;
                /// When the event that the text tells of happened.
                5 happened_at: Field<Time> = None, happened_at, free, always, journaled, keep, r#""2025-12-24T18:00:00Z".parse()?"#;
                /// World time from which the text is true.
                6 valid_from: Field<Time> = None, times.valid_from, free, always, journaled, keep, r#""2026-01-01T00:00:00Z".parse()?"#;
                /// World time until which the text is true, exclusive; after `valid_from`.
                7 valid_to: Field<Time> = None, times.valid_to, free, always, journaled, keep, r#""2099-01-01T00:00:00Z".parse()?"#;
                /// How long the memory is meant to live.
                8 tier: Option<Tier> = Tier::default(), tier, free, always, journaled, larger, "Tier::Episodic";
                /// How much the memory matters, in four steps.
                9 significance: Option<Significance> = Significance::default(), significance, free, always, journaled, keep, "Significance::Core";
                /// How much the memory matters to a ranking, 0 to 1.
                10 importance: Option<f32> = 0.5, importance, unit, always, journaled, keep, "0.9";
                /// How sure the writer was, 0 to 1.
                11 confidence: Field<f32> = None, confidence, unit, always, journaled, keep, "0.7";
                /// When the memory was last reinforced.
                12 last_reinforced_at: Field<Time> = None, last_reinforced_at, free, given, silent, larger, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// Protected from automatic actors; the same as the tag `pinned`.
                13 pinned: Option<bool> = false, pinned, free, always, journaled, keep, "true";
                /// Protected by an administrator.
                14 admin_locked: Option<bool> = false, admin_locked, free, given, journaled, keep, "true";
                /// Protected by the host.
                15 system_locked: Option<bool> = false, system_locked, free, given, journaled, keep, "true";
            }
            content {
                /// A JSON object.
                16 metadata: Option<Value> = Value::Object(Default::default()), metadata, metadata, always, journaled, keep, r#"json!({"user": 7})"#;
                /// Label for statistics.
                17 scope_label: Option<String> = "global".to_owned(), scope_label, name, given, journaled, keep, r#""project""#;
                /// Channel of a message.
                18 channel: Field<String> = None, channel, name, always, journaled, keep, r#""general""#;
                /// Thread of a message.
                19 thread: Field<String> = None, thread, name, always, journaled, keep, r#""t-17""#;
                /// Session of a message.
                20 session: Field<String> = None, session, name, given, journaled, keep, r#""s-4""#;
                /// The message that this message answers.
                21 reply_to: Field<MemoryId> = None, reply_to, free, given, silent, keep, "MemoryId::from_bytes([7; 16])";
                /// Whether a human or a bot wrote the memory.
                22 author_kind: Field<AuthorKind> = None, author_kind, free, apart, journaled, keep, "AuthorKind::Human";
                /// Id of the author; never part of a dedup key.
                23 author_id: Field<String> = None, author_id, name, apart, journaled, keep, r#""ann""#;
                /// Type of an event.
                24 event_type: Field<String> = None, event_type, name, given, journaled, keep, r#""deploy""#;
                /// A logical time of the caller, such as the number of a step.
                25 step: Field<u64> = None, step, free, given, journaled, keep, "12";
                /// The agent that the pruning rules mean.
                26 agent_id: Field<String> = None, agent_id, name, given, journaled, keep, r#""crawler""#;
                /// Attachments of a message.
                27 attachments: Option<Vec<Attachment>> = Vec::new(), attachments, attachments, given, silent, keep, r#"vec![Attachment { media_type: "image/png".into(), size: 512, blob_id: None }]"#;
                /// Link previews of a message.
                28 embeds: Option<Vec<Embed>> = Vec::new(), embeds, embeds, given, silent, keep, r#"vec![Embed { url: "https://example.org".into(), title: None }]"#;
                /// The family of repeated messages to which the message belongs.
                29 family_id: Field<MemoryId> = None, family_id, free, given, silent, keep, "MemoryId::from_bytes([7; 16])";
                /// The aggregate of that family.
                30 aggregate_id: Field<MemoryId> = None, aggregate_id, free, given, silent, keep, "MemoryId::from_bytes([7; 16])";
                /// Of a summary: its topic in a few words.
                31 topic: Field<String> = None, topic, name, given, silent, keep, r#""the move to Bruges""#;
                /// Of a summary: the world time that it covers.
                32 time_range: Field<TimeRange> = None, time_range, range, given, silent, keep, r#"TimeRange { start: "2026-01-01T00:00:00Z".parse()?, end: "2026-01-31T00:00:00Z".parse()? }"#;
                /// Of a summary: the events, as the summarizer wrote them.
                33 bullet_events: Field<Value> = None, bullet_events, array, given, silent, keep, r#"json!(["Ann moved"])"#;
                /// Of a summary: the decisions taken.
                34 decisions: Field<Value> = None, decisions, array, given, silent, keep, r#"json!(["Keep the flat in Ghent"])"#;
                /// Of a summary: the questions still open.
                35 open_loops: Field<Value> = None, open_loops, array, given, silent, keep, r#"json!(["Who has the keys?"])"#;
                /// Of a summary: the patterns of spam seen.
                36 spam_patterns: Field<Value> = None, spam_patterns, array, given, silent, keep, r#"json!(["You have won"])"#;
                /// Series of a snapshot.
                37 series: Option<String> = "profile".to_owned(), series, name, given, journaled, keep, r#""weather""#;
                /// The source object in the caller's world.
                38 resource: Field<String> = None, resource, name, given, journaled, fill, r#""ticket-81""#;
                /// The memories that were merged into this memory.
                39 consolidated_from: Option<Vec<MemoryId>> = Vec::new(), consolidated_from, ids, given, silent, keep, "vec![MemoryId::from_bytes([7; 16])]";
                /// A record of its own, stored as it was given: no rule, no dedup and no pass unites it with another.
                52 verbatim: Option<bool> = false, verbatim, free, given, journaled, keep, "true";
            }
            access {
                /// How often a search returned the memory.
                40 retrieval_count: Option<u64> = 0, retrieval_count, free, always, silent, keep, "5";
                /// When a search last returned the memory.
                41 last_retrieved: Field<Time> = None, last_retrieved, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// Sum of the recorded relevances.
                42 relevance_score_sum: Option<f64> = 0.0, relevance_score_sum, amount, given, silent, keep, "2.5";
                /// Number of the recorded relevances.
                43 relevance_score_count: Option<u64> = 0, relevance_score_count, free, given, silent, keep, "4";
                /// Highest recorded relevance.
                44 relevance_max: Option<f32> = 0.0, relevance_max, unit, given, silent, keep, "0.8";
                /// How often the memory was included in a context.
                45 included_count_total: Option<u64> = 0, included_count_total, free, always, silent, keep, "2";
                /// The same count, decayed by the age of each inclusion.
                46 included_count_decay: Option<f64> = 0.0, included_count_decay, amount, given, silent, keep, "1.5";
                /// When the memory was last included in a context.
                47 last_included_at: Field<Time> = None, last_included_at, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// Until when pruning leaves the memory alone.
                48 protected_until: Field<Time> = None, protected_until, free, given, silent, keep, r#""2099-01-01T00:00:00Z".parse()?"#;
                /// When a summary last covered the memory.
                49 summarized_at: Field<Time> = None, summarized_at, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// When the memory was promoted.
                50 promoted_at: Field<Time> = None, promoted_at, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// When the memory was last consolidated.
                51 last_consolidated_at: Field<Time> = None, last_consolidated_at, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// When a use last raised the confidence.
                60 confidence_grown_at: Field<Time> = None, confidence_grown_at, free, given, silent, keep, r#""2026-01-02T10:00:00Z".parse()?"#;
                /// Of a summary: sources that were forgotten after it was made. It may still tell what they said.
                61 source_forgotten: Option<u64> = 0, source_forgotten, free, given, silent, keep, "1";
                /// The step of the host at which a search last returned the memory.
                70 last_retrieved_step: Field<u64> = None, last_retrieved_step, free, given, silent, keep, "12";
                /// The step of the host at which the memory was last consolidated.
                71 consolidated_step: Field<u64> = None, consolidated_step, free, given, silent, keep, "12";
                /// The memory that stands for the cluster in which the last clustering found the memory.
                72 cluster_id: Field<MemoryId> = None, cluster_id, free, given, silent, keep, "MemoryId::from_bytes([7; 16])";
                /// Whether the memory stands for the other members of its cluster.
                73 is_representative: Option<bool> = false, is_representative, free, given, silent, keep, "true";
            }
        }
    };
}

/// The type by which a row keeps a field.
macro_rules! stored {
    (Option, $ty:ty) => { $ty };
    (Field, $ty:ty) => { Option<$ty> };
}

pub(crate) use {memory_fields, stored};
