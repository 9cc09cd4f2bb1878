//! Messages, their families and aggregates, by the vectors of the specification (DEDUP-25 to 41, MODEL-25 to 27, 30).

use crate::world::{World, axis};
use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{
    Aggregate, AggregateType, Attachment, AuthorKind, Event, EventDecision, EventQuery, Got, SupersedeMode,
    Tier,
};
use oubliette::policy::Syntax;
use oubliette::report::ErasedProbe;
use oubliette::{Decision, Draft, Kind, MemoryId, Outcome, Query, State, Time};
use proptest::prelude::*;

/// The clock of a new world, at 10:00 of a day.
fn start() -> Time {
    crate::world::START.parse().unwrap()
}

fn after(seconds: i64) -> Time {
    Time::from_millis(start().as_millis() + seconds * 1_000)
}

fn message(kind: AuthorKind, text: &str) -> Draft {
    let mut draft = Draft::new(text).kind(Kind::Message);
    draft.fields.author_kind = kind.into_field();
    draft.fields.channel = "c1".to_owned().into_field();
    draft
}

trait IntoField: Sized {
    fn into_field(self) -> oubliette::memory::Field<Self> {
        oubliette::memory::Field::from(Some(self))
    }
}
impl IntoField for AuthorKind {}
impl IntoField for String {}

fn bot(text: &str) -> Draft {
    message(AuthorKind::Bot, text)
}

fn human(text: &str) -> Draft {
    message(AuthorKind::Human, text)
}

fn in_channel(mut draft: Draft, channel: &str) -> Draft {
    draft.fields.channel = channel.to_owned().into_field();
    draft
}

fn events(world: &World, query: &EventQuery) -> Vec<Event> {
    world.ns.events(query).unwrap().items
}

fn all_events(world: &World) -> Vec<Event> {
    events(world, &EventQuery::default())
}

fn aggregates(world: &World) -> Vec<Aggregate> {
    world.ns.aggregates(None, 100).unwrap().items
}

/// Id of the aggregate that took a message.
fn aggregated(outcome: &Outcome) -> oubliette::memory::AggregateId {
    match outcome.decision {
        Decision::Aggregated { aggregate, event } => {
            assert_eq!(outcome.event, Some(event));
            aggregate
        }
        ref other => panic!("{other:?}"),
    }
}

fn sound(world: &World) {
    let report = world.db.check(&oubliette::report::CheckOptions { deep: true, erased: Vec::new() }).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
}

#[test]
fn v77_volatile_noise_of_a_bot_is_no_difference() {
    let world = World::new();
    world.add(bot("Build  done 12:34"));
    let again = world.add(bot("Build done 13:01"));
    let aggregate = world.ns.aggregate(aggregated(&again)).unwrap();
    assert_eq!((aggregate.dup_count, aggregate.aggregate_type), (2, AggregateType::Exact));
    assert_eq!(aggregate.example_snippets, ["Build  done 12:34", "Build done 13:01"]);
    sound(&world);
}

#[test]
fn v78_an_attachment_makes_another_key() {
    let world = World::new();
    world.add(human("look"));
    let mut draft = human("look");
    draft.fields.attachments =
        Some(vec![Attachment { media_type: "image/png".to_owned(), size: 5, blob_id: None }]);
    assert_eq!(world.add(draft).decision, Decision::Stored);
    let keys: Vec<_> = all_events(&world).iter().map(|event| event.dup_key).collect();
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn v79_a_persons_window_ends_after_an_hour() {
    let world = World::new();
    let first = world.add(human("good morning").created_at(start()));
    let again = world.add(human("good morning").created_at(after(3_600)));
    assert_eq!((again.decision, again.id), (Decision::Reinforced, first.id));
    let late = world.add(human("good morning").created_at(after(3_600 + 3_601)));
    assert_eq!(late.decision, Decision::Stored, "a new slice of the family");
    let once_more = world.add(human("good morning").created_at(after(3_600 + 3_602)));
    assert_eq!((once_more.decision, once_more.id), (Decision::Reinforced, late.id));
    let families: Vec<_> = aggregates(&world).iter().map(|aggregate| aggregate.family_id).collect();
    assert_eq!(families.len(), 2);
    assert_eq!(families[0], families[1], "linked by the same key");
    sound(&world);
}

#[test]
fn v90_v92_bots_within_the_window_are_one_family() {
    let world = World::new();
    let first = world.add(bot("Build 123 failed on main").created_at(start()));
    let near = world.add(bot("Build 456 failed on main").created_at(after(599)));
    let aggregate = world.ns.aggregate(aggregated(&near)).unwrap();
    assert_eq!((aggregate.dup_count, aggregate.aggregate_type), (2, AggregateType::Near));
    assert_eq!(near.evidence.score, Some(1.0), "distance 0");
    assert_eq!(near.evidence.members, [first.id]);
    assert_eq!(aggregate.time_span, 599_000);
    let late = world.add(bot("Build 789 failed on main").created_at(after(599 + 601)));
    assert_eq!(late.decision, Decision::Stored, "601 s after the latest member");
    let elsewhere = in_channel(bot("Build 456 failed on main"), "c2").created_at(after(600));
    assert_eq!(world.add(elsewhere).decision, Decision::Stored);
    sound(&world);
}

#[test]
fn v91_a_persons_near_repeat_is_stored_with_a_hint() {
    let world = World::new();
    let first = world.add(human("Build 123 failed on main"));
    let second = world.add(human("Build 456 failed on main"));
    assert_eq!(second.decision, Decision::Stored);
    let hints: Vec<_> = second.hints.iter().map(|hint| (hint.id, hint.why, hint.guard)).collect();
    assert_eq!(hints, [(first.id, "near message", Some("digits"))]);
    assert_eq!(world.live().len(), 2);
    sound(&world);
}

#[test]
fn v93_v94_other_words_are_apart() {
    let world = World::new();
    for text in ["user prefers dark mode", "user prefers light mode", "今日は雨です", "明日は晴れ"]
    {
        assert_eq!(world.add(bot(text)).decision, Decision::Stored, "{text}");
    }
}

#[test]
fn v86_to_v89_texts_without_tokens_are_near_to_nothing() {
    let world = World::new();
    assert_eq!(world.add(bot("x y z")).decision, Decision::Stored);
    let other = world.add(bot("!!! ..."));
    assert_eq!(other.decision, Decision::Stored);
    assert_eq!(all_events(&world).iter().map(|event| event.simhash).collect::<Vec<_>>(), [None, None]);
    sound(&world);
}

#[test]
fn v96_twelve_equal_bot_messages() {
    let world = World::new();
    let first = world.add(bot("disk is full").key("m1").vector(axis(0)));
    let mut last = None;
    for hour in 1..12 {
        last = Some(world.add(bot("disk is full").created_at(after(hour * 3_600))));
    }
    let last = last.unwrap();
    let all = aggregates(&world);
    let aggregate = &all[0];
    assert_eq!((all.len(), aggregate.dup_count, aggregate.example_event_ids.len()), (1, 12, 10));
    let listed = all_events(&world);
    assert_eq!(listed.len(), 12);
    let earliest: Vec<_> = listed.iter().take(10).map(|event| event.id).collect();
    assert_eq!(aggregate.example_event_ids, earliest);
    assert_eq!((aggregate.first_event_id, aggregate.last_event_id), (listed[0].id, listed[11].id));
    assert_eq!(aggregate.example_snippets, ["disk is full"]);
    assert_eq!(aggregate.classification, "unclassified");
    assert_eq!(aggregate.slice.as_deref(), Some("2026-01-02"));
    assert_eq!(world.live(), [last.id], "1 visible memory");
    let memory = world.row(last.id);
    assert_eq!((memory.kind, memory.text.as_str()), (Kind::Aggregate, "disk is full"));
    assert_eq!(memory.metadata["dup_count"], 12);
    assert_eq!(memory.family_id, Some(aggregate.family_id));
    assert_eq!(memory.keys, [format!("agg:{}:2026-01-02", aggregate.family_id)]);
    assert_eq!(memory.created_at, start());
    let old = world.row(first.id);
    assert_eq!(old.superseded.map(|s| (s.by, s.mode)), Some((last.id, SupersedeMode::Aggregate)));
    assert_eq!(world.row("m1").text, "disk is full", "the first message keeps its key and answers to it");
    // The vector of the first message stands for the aggregate.
    let found = world.ns.search(Query::vector(axis(0))).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [last.id]);
    assert_eq!(events(&world, &EventQuery::of_aggregate(aggregate.id)), listed);
    assert_eq!(events(&world, &EventQuery::of_memory(last.id)), listed);
    assert_eq!(events(&world, &EventQuery::of_memory(first.id)), listed[..1]);
    let stats = world.ns.stats().unwrap();
    assert_eq!((stats.events, stats.aggregates, stats.memories.superseded), (12, 1, 1));
    for name in [first.id, last.id] {
        let family = world.ns.explain(name.to_string()).unwrap().family;
        assert_eq!(family.as_ref(), Some(aggregate));
    }
    sound(&world);
}

#[test]
fn v97_a_persons_repeat_is_an_event_and_reinforces() {
    let world = World::new();
    let first = world.add(human("the build is broken"));
    world.advance("5m");
    let again = world.add(human("the build is broken"));
    assert_eq!((again.decision, again.id), (Decision::Reinforced, first.id));
    assert!(again.event.is_some() && again.event != first.event);
    let memory = world.row(first.id);
    assert_eq!((memory.reinforcement_count, memory.holders.len()), (2, 1));
    let linked = events(&world, &EventQuery::of_memory(first.id));
    assert_eq!(linked.len(), 2);
    assert_eq!(linked[1].decision, EventDecision::Reinforced);
    let all = aggregates(&world);
    assert_eq!((all.len(), all[0].dup_count, all[0].memory_id), (1, 2, None));
    sound(&world);
}

/// DEDUP-57: the repeat of a person names what only its event has.
#[test]
fn dedup57_a_persons_repeat_names_what_was_not_taken() {
    let world = World::new();
    let said = |session: &str, author: &str, category: &str| {
        let mut draft = human("Thanks!").session(session).tag("chat");
        draft.categories = Some(vec![category.to_owned()]);
        draft.fields.author_id = author.to_owned().into_field();
        draft
    };
    let first = world.add(said("s1", "ann", "talk").importance(0.3));
    assert!(first.not_taken.is_empty(), "{first:?}");
    let same = world.add(said("s1", "ann", "talk"));
    assert_eq!((same.id, &same.decision, same.not_taken.len()), (first.id, &Decision::Reinforced, 0));
    let other = world.add(said("s2", "bob", "thanks").importance(0.9).tag("team"));
    assert_eq!((other.id, &other.decision), (first.id, &Decision::Reinforced));
    assert_eq!(other.not_taken, ["importance", "session", "author_id", "tags", "categories"]);
    let memory = world.row(first.id);
    assert_eq!((memory.session.as_deref(), memory.tags.len(), memory.importance), (Some("s1"), 1, 0.3));
    let run = world.start_import();
    assert_eq!(world.import(run, vec![said("s3", "cy", "talk")])[0].not_taken, ["session", "author_id"]);
    sound(&world);
}

#[test]
fn v199_a_bots_repeat_is_aggregated() {
    let world = World::new();
    assert_eq!(world.add(bot("ping")).decision, Decision::Stored);
    let again = world.add(bot("ping"));
    aggregated(&again);
    assert_eq!(again.decision.as_str(), "aggregated");
}

#[test]
fn v245_a_clock_time_of_a_person_is_a_fact() {
    let world = World::new();
    world.add(human("Meeting at 14:30"));
    assert_eq!(world.add(human("Meeting at 15:30")).decision, Decision::Stored);
    assert_eq!(world.live().len(), 2);
}

#[test]
fn v246_a_clock_time_of_a_bot_is_noise() {
    let world = World::new();
    world.add(bot("backup done 14:30"));
    let again = world.add(bot("backup done 15:30"));
    assert_eq!(world.live(), [again.id]);
    assert_eq!(world.row(again.id).text, "backup done <time>");
    assert_eq!(all_events(&world).len(), 2);
    assert_eq!(world.ns.aggregate(aggregated(&again)).unwrap().dup_count, 2);
}

#[test]
fn v252_v253_the_next_day_is_a_new_slice_of_the_family() {
    let world = World::new();
    world.add(bot("nightly run").created_at(start()));
    let same_day = world.add(bot("nightly run").created_at(after(7_200)));
    let today = aggregated(&same_day);
    let next_day = world.add(bot("nightly run").created_at(after(24 * 3_600)));
    assert_eq!(next_day.decision, Decision::Stored, "a new family slice");
    let again = world.add(bot("nightly run").created_at(after(24 * 3_600 + 5)));
    let families: Vec<_> =
        [today, aggregated(&again)].iter().map(|id| world.ns.aggregate(*id).unwrap().family_id).collect();
    assert_eq!(families[0], families[1]);
    assert_ne!(same_day.id, again.id, "one memory a slice");
    // V-272: a late arrival joins the slice that its instant falls in (DEDUP-33).
    world.advance("26h");
    let late = world.add(bot("nightly run").created_at(after(60)));
    assert_eq!(aggregated(&late), today);
    let aggregate = world.ns.aggregate(today).unwrap();
    assert_eq!((aggregate.dup_count, aggregate.example_event_ids[1]), (3, late.event.unwrap()));
    sound(&world);
}

#[test]
fn a_message_with_a_key_is_never_an_event_only() {
    // DEDUP-39
    let world = World::new();
    let first = world.add(bot("hello").key("a"));
    let second = world.add(bot("hello").key("b"));
    assert_eq!((second.decision, second.id), (Decision::Reinforced, first.id), "byte equality adds a holder");
    assert_eq!(world.add(bot("hello").key("a")).decision, Decision::Unchanged);
    assert_eq!(all_events(&world).len(), 2, "the same write again is no message");
    assert_eq!(aggregates(&world), [], "neither is a member");
    let repeat = world.add(bot("hello"));
    let aggregate = world.ns.aggregate(aggregated(&repeat)).unwrap();
    assert_eq!((aggregate.dup_count, aggregate.first_event_id), (2, first.event.unwrap()));
    let third = world.add(bot("hello").key("c"));
    assert_eq!(third.decision, Decision::Stored, "what is superseded absorbs nothing");
    assert_eq!(world.ns.aggregate(aggregate.id).unwrap().dup_count, 2);
    assert_eq!(world.row("a").state, State::Superseded);
    sound(&world);
}

#[test]
fn without_an_author_there_is_no_event() {
    // DEDUP-32
    let world = World::new();
    world.add(Draft::new("hello").kind(Kind::Message));
    let again = world.add(Draft::new("hello").kind(Kind::Message));
    assert_eq!((again.decision, again.event), (Decision::Reinforced, None));
    assert_eq!(all_events(&world), []);
}

#[test]
fn a_family_whose_memory_is_not_current_takes_no_member() {
    // DEDUP-58
    let world = World::new();
    let first = world.add(bot("status ok").key("k"));
    world.add(bot("status bad").key("k"));
    let again = world.add(bot("status ok"));
    assert_eq!(again.decision, Decision::Stored, "{:?} is superseded", first.id);
    sound(&world);
}

#[test]
fn forgetting_a_memory_erases_what_its_messages_said() {
    // MODEL-30
    let world = World::new();
    let mut secret = bot("the passphrase is xylophone-seven");
    secret.fields.author_id = "robot-4711".to_owned().into_field();
    let first = world.add(secret);
    let again = world.add(bot("the passphrase is xylophone-seven"));
    let report = world.forget_id(first.id);
    assert_eq!(report.derived, [again.id], "its aggregate may still carry the fact");
    let listed = all_events(&world);
    let erased = &listed[0];
    assert_eq!(
        (&erased.payload, &erased.normalized, &erased.dup_key, &erased.simhash, &erased.author_id),
        (&None, &None, &None, &None, &None)
    );
    assert_eq!(listed[1].payload.as_deref(), Some("the passphrase is xylophone-seven"));
    let aggregate = world.ns.aggregate(aggregated(&again)).unwrap();
    assert_eq!((aggregate.dup_count, aggregate.authors_seen), (2, vec![]));
    assert_eq!(aggregate.normalized_fingerprint.exact_hash, None);
    sound(&world);
    let report = world.forget_id(again.id);
    assert_eq!(report.derived, []);
    assert!(all_events(&world).iter().all(|event| event.payload.is_none() && event.dup_key.is_none()));
    assert_eq!(aggregates(&world)[0].example_snippets, Vec::<String>::new());
    sound(&world);
    // The next one begins anew, and no byte of the old ones is left once the file is rewritten.
    world.db.compact().unwrap();
    let probe = ErasedProbe {
        texts: vec!["the passphrase is xylophone-seven".to_owned()],
        vector: None,
        keys: vec!["robot-4711".to_owned()],
    };
    let options = oubliette::report::CheckOptions { deep: true, erased: vec![probe] };
    let report = world.db.check(&options).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    assert_eq!(world.add(bot("the passphrase is xylophone-seven")).decision, Decision::Stored);
    sound(&world);
}

#[test]
fn undoing_an_import_takes_its_messages_back() {
    // MODEL-33
    let world = World::new();
    let first = world.add(bot("cron finished"));
    let run = world.start_import();
    let drafts = vec![bot("cron finished"), bot("cron finished"), human("hello"), human("hello")];
    let done = world.import(run, drafts);
    assert_eq!(world.row(done[2].id).reinforcement_count, 2);
    let own = world.add(bot("cron finished"));
    assert_eq!(world.ns.aggregate(aggregated(&own)).unwrap().dup_count, 4);
    world.ns.undo(run).unwrap();
    sound(&world);
    let aggregate = world.ns.aggregate(aggregated(&own)).unwrap();
    assert_eq!(aggregate.dup_count, 2, "the members of others stay");
    assert_eq!(world.row(own.id).metadata["dup_count"], 2);
    assert_eq!(all_events(&world).len(), 2);
    assert_eq!(world.live(), [own.id]);
    assert_eq!(world.row(first.id).state, State::Superseded);
}

/// MODEL-33: what others wrote stays, or is named.
#[test]
fn undoing_an_import_leaves_a_message_that_repeats_one_of_it() {
    let world = World::new();
    let run = world.start_import();
    world.import(run, vec![bot("cron finished")]);
    let own = world.add(bot("cron finished"));
    let undone = world.ns.undo(run).unwrap();
    assert_eq!(undone.lost, [""; 0]);
    assert_eq!(world.live(), [own.id]);
    assert_eq!(world.ns.aggregate(aggregated(&own)).unwrap().dup_count, 1);
    sound(&world);
    assert_eq!(world.forget_id(own.id).forgotten, 1);
    assert!(all_events(&world).iter().all(|event| event.payload.is_none()));
    sound(&world);

    let world = World::new();
    let run = world.start_import();
    world.import(run, vec![human("hello")]);
    world.add(human("hello"));
    let undone = world.ns.undo(run).unwrap();
    let named = "messages of others that repeated one of the run, gone with its memory: 1";
    assert_eq!((undone.lost, world.live()), (vec![named.to_owned()], Vec::new()));
    sound(&world);
}

/// The same where the first message's memory is gone for good: what is left is told by the memory of the aggregate alone.
#[test]
fn undoing_an_import_leaves_a_message_whose_memory_maintenance_has_erased() {
    let world = World::new();
    world.add(bot("cron finished"));
    let run = world.start_import();
    world.import(run, vec![bot("cron finished")]);
    world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
    world.advance("20d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded, Pass::Limbo])).unwrap();
    world.ns.undo(run).unwrap();
    let [left] = world.live()[..] else { panic!("one memory tells of it") };
    assert_eq!(world.row(left).kind, Kind::Aggregate);
    assert!(all_events(&world)[0].payload.is_some());
    sound(&world);
}

#[test]
fn undoing_the_only_repeats_brings_the_first_message_back() {
    let world = World::new();
    let first = world.add(bot("cron finished"));
    let run = world.start_import();
    let done = world.import(run, vec![bot("cron finished")]);
    assert_eq!(world.live(), [done[0].id]);
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), [first.id]);
    assert_eq!((aggregates(&world).len(), all_events(&world).len()), (0, 1));
    sound(&world);
    aggregated(&world.add(bot("cron finished")));
    sound(&world);
}

/// A message that revises what its key said keeps the tier of that, and so its repeats are of that tier (DEDUP-39).
#[test]
fn repeats_join_a_message_that_keeps_what_its_key_was() {
    let world = World::new();
    let procedural = |mut draft: Draft| {
        draft.fields.tier = Some(oubliette::memory::Tier::Procedural);
        draft
    };
    world.add(procedural(Draft::new("first text").key("k")));
    world.add(bot("Backup done at 10:01").key("k"));
    let joined = aggregated(&world.add(procedural(bot("Backup done at 10:01"))));
    assert_eq!(joined, aggregated(&world.add(procedural(bot("Backup done at 10:01")))));
    assert_eq!(world.live().len(), 1);
    sound(&world);
}

#[test]
fn listings_have_bounds_and_pages() {
    let world = World::new();
    for second in 0..5 {
        world.add(bot("tick").created_at(after(second)));
    }
    let window = EventQuery { from: Some(after(1)), to: Some(after(4)), ..EventQuery::default() };
    assert_eq!(events(&world, &window).len(), 3);
    let aggregate = aggregates(&world)[0].id;
    for whole in [EventQuery::default(), EventQuery::of_aggregate(aggregate)] {
        let (mut seen, mut query) = (Vec::new(), EventQuery { limit: 2, ..whole });
        loop {
            let page = world.ns.events(&query).unwrap();
            seen.extend(page.items);
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all_events(&world));
    }
    let one = EventQuery::one(all_events(&world)[3].id);
    assert_eq!(events(&world, &one), all_events(&world)[3..4]);
    assert!(world.ns.events(&EventQuery { limit: 0, ..EventQuery::default() }).is_err());
    let nobody = oubliette::memory::AggregateId::from_bytes([9; 16]);
    assert!(world.ns.aggregate(nobody).is_err());
}

/// DEDUP-36 without an index: every family is looked at.
#[derive(Debug)]
struct Slice {
    memory: MemoryId,
    simhash: u64,
    words: Vec<usize>,
    first: i64,
    latest: i64,
}

fn brute(slices: &[Slice], simhash: u64, words: &[usize], at: i64) -> Option<usize> {
    let jaccard = |a: &[usize], b: &[usize]| {
        let (a, b): (std::collections::BTreeSet<_>, std::collections::BTreeSet<_>) =
            (a.iter().collect(), b.iter().collect());
        a.intersection(&b).count() as f64 / a.union(&b).count() as f64
    };
    let near = slices.iter().enumerate().filter(|(_, slice)| {
        slice.latest >= at - 600 && slice.first <= at + 600 && jaccard(words, &slice.words) >= 0.80
    });
    let near = near.map(|(place, slice)| ((slice.simhash ^ simhash).count_ones(), slice.first, place));
    near.filter(|(distance, _, _)| *distance <= 6).min().map(|(_, _, place)| place)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// DEDUP-37: candidates by bands are those of a look at every family within the window.
    #[test]
    fn bands_find_what_looking_at_all_finds(
        messages in prop::collection::vec((0..3_usize, prop::collection::vec(0..40_usize, 0..3), 0..4_000_i64), 1..40)
    ) {
        let world = World::new();
        let mut slices: Vec<Slice> = Vec::new();
        for (base, swaps, at) in messages {
            // Long texts of one topic that differ in up to two words.
            let mut words: Vec<usize> = (0..40).map(|word| base * 100 + word).collect();
            for swap in &swaps {
                words[*swap] += 1_000;
            }
            let text = words.iter().map(|word| format!("w{}x", letters(*word))).collect::<Vec<_>>().join(" ");
            let outcome = world.add(bot(&text).created_at(after(at)));
            let event = events(&world, &EventQuery::one(outcome.event.unwrap())).remove(0);
            let simhash = event.simhash.unwrap();
            let exact = slices.iter().position(|slice| slice.words == words);
            match exact.or_else(|| brute(&slices, simhash, &words, at)) {
                Some(place) => {
                    prop_assert_eq!(&outcome.evidence.members, &[slices[place].memory]);
                    prop_assert_eq!(outcome.decision.as_str(), "aggregated");
                    slices[place].first = slices[place].first.min(at);
                    slices[place].latest = slices[place].latest.max(at);
                }
                None => {
                    prop_assert_eq!(outcome.decision, Decision::Stored);
                    slices.push(Slice { memory: outcome.id, simhash, words, first: at, latest: at });
                }
            }
        }
        sound(&world);
    }
}

/// A number as letters, so that it is no number to the normal form.
fn letters(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(b'g' + (digit - b'0'))).collect()
}

/// A caller's memory keeps its key, also where that is the key of an aggregate (DEDUP-40).
#[test]
fn an_aggregate_takes_no_key_of_another_memory() {
    let world = World::new();
    world.add(bot("disk is full"));
    world.add(bot("disk is full"));
    let family = aggregates(&world)[0].family_id;
    world.advance("1d");
    world.add(bot("disk is full"));
    let key = format!("agg:{family}:2026-01-03");
    let mine = world.add(Draft::new("mine").key(key.as_str())).id;
    assert_eq!(world.add(bot("disk is full")).decision, Decision::Stored, "it stands apart");
    assert_eq!(world.row(&key).id, mine);
    world.check();
    let next = world.add(bot("disk is full"));
    assert!(matches!(next.decision, Decision::Aggregated { .. }), "{next:?}");
    assert_eq!(world.row(&key).id, mine);
}

/// MODEL-26, MODEL-30: what somebody asks to forget is gone from its messages too, although maintenance has erased the memory.
#[test]
fn a_message_whose_memory_maintenance_has_erased_can_still_be_forgotten() {
    let keyed = |key: &str| human(&format!("the patient {key} is called Ann")).key(key).tier(Tier::Working);
    let payloads = |world: &World| -> Vec<bool> {
        all_events(world).iter().map(|event| event.payload.is_some()).collect()
    };
    let erase = |world: &World| {
        for _ in 0..2 {
            world.advance("10d");
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire, Pass::Limbo])).unwrap();
        }
    };
    for by_key in [true, false] {
        let world = World::new();
        let ids = ["k1", "k2"].map(|key| world.add(keyed(key)).id);
        erase(&world);
        assert_eq!(payloads(&world), [true, true], "messages have their own retention");
        let done = match by_key {
            true => world.forget(&["k1"]),
            false => world.forget_id(ids[0]),
        };
        assert_eq!((done.forgotten, done.missing()), (1, 0), "by key: {by_key}");
        assert_eq!(payloads(&world), [false, true], "that of another stays");
        assert_eq!(world.forget(&["k1"]).missing(), 1, "it is gone by now");
        sound(&world);
    }
    // Of the memory of an aggregate all messages go.
    let world = World::new();
    let drafts = || bot("cron finished").tier(Tier::Working);
    world.add(drafts());
    let told = world.add(drafts()).id;
    world.add(drafts());
    erase(&world);
    assert!(matches!(world.get(told), Ok(Got::Tombstone(_))));
    assert_eq!(world.forget_id(told).forgotten, 1);
    assert!(all_events(&world).iter().all(|event| event.payload.is_none()));
    sound(&world);
}

/// The messages of a summary are those of its sources, each of which can be forgotten by itself.
#[test]
fn a_summarized_message_is_forgotten_without_the_others() {
    let world = World::new();
    let texts =
        ["The boiler broke on 3 March.", "The plumber asks for 480 euros.", "Who pays the sewer bill?"];
    for (key, text) in ["k0", "k1", "k2"].iter().zip(texts) {
        let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
        world.add(human(&format!("{text} {rest}")).key(*key));
    }
    world.advance("15d");
    let run = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!(run.sources, 3, "{:?}", run.failures);
    world.advance("8d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    let done = world.forget(&["k1"]);
    assert_eq!((done.forgotten, done.derived.len()), (1, 1));
    let left = |world: &World| -> Vec<bool> {
        all_events(world).iter().map(|event| event.payload.is_some()).collect()
    };
    assert_eq!(left(&world), [true, false, true]);
    world.forget_id(done.derived[0]);
    assert_eq!(left(&world), [false, false, false]);
    sound(&world);
}

/// Of united messages each belongs to its writer, also when the memory of one is gone for good.
#[test]
fn a_writer_of_united_messages_takes_no_message_of_another_along() {
    let world = World::new();
    for (at, key) in ["k1", "k2"].into_iter().enumerate() {
        let mut vector = axis(0);
        vector[1] = 0.01 * at as f32;
        let text = format!("the cat sat on the mat{}", ".".repeat(at));
        world.add(human(&text).key(key).vector(vector));
    }
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
    assert_eq!(world.live().len(), 1);
    world.advance("40d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
    for (key, left) in [("k1", [false, true]), ("k2", [false, false])] {
        world.forget(&[key]);
        let texts: Vec<bool> = all_events(&world).iter().map(|event| event.payload.is_some()).collect();
        assert_eq!(texts, left, "{key}");
        sound(&world);
    }
}
