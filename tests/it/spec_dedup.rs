//! The write decision and the holders, by the vectors of the specification (DEDUP-4, DEDUP-55 to 58, MODEL-8).

use crate::world::{DIM, World, axis, holders, ms, revised, text};
use oubliette::memory::{Expiry, Significance, Tier};
use oubliette::{Decision, Draft, ErrorKind, Forget, Kind, Patch, Scope, State, WriteOptions};
use serde_json::json;
use std::sync::Barrier;

fn absorbing(builder: oubliette::Builder) -> oubliette::Builder {
    let mut policy = oubliette::policy::Policy::default();
    policy.write.normalized_match = oubliette::policy::NormalizedMatch::Absorb;
    builder.policy(policy)
}

fn on_key_error(builder: oubliette::Builder) -> oubliette::Builder {
    let mut policy = oubliette::policy::Policy::default();
    policy.write.on_key = oubliette::policy::OnKey::Error;
    builder.policy(policy)
}

fn on_key_reinforce(builder: oubliette::Builder) -> oubliette::Builder {
    let mut policy = oubliette::policy::Policy::default();
    policy.write.on_key = oubliette::policy::OnKey::Reinforce;
    builder.policy(policy)
}

/// Keys a and b with equal text: one row.
fn shared_row(world: &World) -> oubliette::MemoryId {
    let a = world.add(text("the same").key("a"));
    let b = world.add(text("the same").key("b"));
    assert_eq!((a.decision, b.decision, a.id), (Decision::Stored, Decision::Reinforced, b.id));
    a.id
}

#[test]
fn v80_equal_fingerprints_are_candidates_and_not_absorbed() {
    let world = World::new();
    let first = world.add(text("User   Likes\nTea "));
    let second = world.add(text("user likes tea"));
    assert_eq!((first.decision, second.decision), (Decision::Stored, Decision::Stored));
    assert_eq!(second.hints.iter().map(|hint| hint.id).collect::<Vec<_>>(), [first.id]);
    assert_eq!(world.row(first.id).text, "User   Likes\nTea ", "raw text as it was given");
}

#[test]
fn v198_content_of_a_superseded_row_is_stored_again() {
    let world = World::new();
    let old = world.add(text("first").key("k"));
    let new = world.add(text("second").key("k"));
    assert_eq!(revised(&new), old.id);
    let again = world.add(text("first"));
    assert_eq!(again.decision, Decision::Stored);
    assert_ne!(again.id, old.id);
}

#[test]
fn v200_two_writers_of_one_text_make_one_row() {
    let world = World::new();
    let barrier = Barrier::new(2);
    let mut decisions: Vec<_> = std::thread::scope(|scope| {
        let write = || {
            barrier.wait();
            world.add(text("at the same time")).decision.as_str()
        };
        [scope.spawn(write), scope.spawn(write)].map(|writer| writer.join().unwrap()).to_vec()
    });
    decisions.sort_unstable();
    assert_eq!(decisions, ["reinforced", "stored"]);
    let live = world.live();
    assert_eq!(live.len(), 1);
    let row = world.row(live[0]);
    assert_eq!(holders(&row), [(None, 2, 2, vec![])]);
    assert_eq!(row.reinforcement_count, 2);
}

#[test]
fn v241_a_key_is_forgotten_without_losing_the_record_of_another() {
    let world = World::new();
    let id = shared_row(&world);
    assert_eq!(world.row(id).reinforcement_count, 2);

    let answer = world.forget(&["b"]);
    assert_eq!((answer.forgotten, answer.detached, answer.missing()), (0, 1, 0));
    assert!(answer.tombstones.is_empty());
    let row = world.row("a");
    assert_eq!((row.id, row.state, row.text.as_str()), (id, State::Live, "the same"));
    assert_eq!(row.reinforcement_count, 1, "as before b");
    assert!(world.unknown("b"));
    let detached = world.ns.history("a").unwrap().events;
    assert!(
        detached.iter().any(|row| row.op == oubliette::report::Op::Detach && row.holder.is_some()),
        "the journal tells of it"
    );

    let answer = world.forget(&["a"]);
    assert_eq!((answer.forgotten, answer.detached), (1, 0));
    assert_eq!(answer.tombstones, [id]);
    assert_eq!(world.tombstone("a").id, id);
    assert_eq!(world.ns.explain("a").unwrap().id, id);
    assert_eq!(world.ns.tombstones(None, 10).unwrap().items.len(), 1, "one tombstone");
}

#[test]
fn v242_new_text_through_one_key_leaves_the_row_of_the_other() {
    let world = World::new();
    let id = shared_row(&world);
    let b = world.add(text("something new").key("b"));
    assert_eq!(b.decision, Decision::Stored);
    assert_ne!(b.id, id);
    let a = world.row("a");
    assert_eq!((a.id, a.text.as_str(), a.state), (id, "the same", State::Live));
    assert_eq!(a.reinforcement_count, 1);
    assert_eq!(a.keys, ["a"], "b is no longer a key of the first");
    assert_eq!(world.row("b").text, "something new");
    assert_eq!(world.row("b").keys, ["b"]);
}

#[test]
fn v243_the_same_file_again_changes_nothing() {
    let world = World::new();
    let file = || {
        vec![
            text("equal").key("a").importance(0.3).tag("x"),
            text("equal").key("b").importance(0.8),
            text("other").key("c").metadata(json!({"note": 1, "deep": {"z": 1, "a": [1, null]}})),
            text("with a vector").key("d").vector(axis(1)),
        ]
    };
    let first = world.import(world.start_import(), file());
    assert_eq!(first[1].decision, Decision::Reinforced);
    let before = (world.db.stats().unwrap(), world.list_in(Scope::Any, State::Live));
    let second = world.import(world.start_import(), file());
    assert!(second.iter().all(|outcome| outcome.decision == Decision::Unchanged), "{second:?}");
    let after = (world.db.stats().unwrap(), world.list_in(Scope::Any, State::Live));
    assert_eq!(before.1, after.1, "rows as they were, versions included");
    let (mut before, mut after) = (before.0, after.0);
    (before.bytes, after.bytes) = (Default::default(), Default::default());
    (before.commit, after.commit) = (0, 0);
    assert_eq!(before, after, "no counter moved");
}

#[test]
fn v257_forgetting_a_tag_takes_the_holder_that_brought_it() {
    let world = World::new();
    world.add(text("same").key("a").tag("t1"));
    let id = world.add(text("same").key("b").tag("t2")).id;
    let row = world.row(id);
    assert_eq!((row.tags.clone(), row.reinforcement_count), (vec!["t1".into(), "t2".into()], 2));
    let answer = world.forget_tag("t2");
    assert_eq!((answer.forgotten, answer.detached), (0, 1));
    let row = world.row("a");
    assert_eq!((row.id, row.keys.clone()), (id, vec!["a".to_owned()]));
    assert_eq!((row.tags.clone(), row.reinforcement_count), (vec!["t1".to_owned()], 1));
    assert!(world.unknown("b"));
}

#[test]
fn v258_undoing_an_import_by_tag_leaves_what_was_there() {
    let world = World::new();
    let id = world.add(text("known before")).id;
    let before = world.row(id);
    let tag = "import:x:2026-01-01";
    world.import(world.start_import(), vec![text("known before").tag(tag)]);
    assert_eq!(world.row(id).reinforcement_count, 2);
    let answer = world.forget_tag(tag);
    assert_eq!((answer.forgotten, answer.detached), (0, 1));
    let after = world.row(id);
    assert_eq!((after.reinforcement_count, after.tags.len()), (1, 0));
    assert_eq!((after.text, after.keys, after.holders), (before.text, before.keys, before.holders));
}

#[test]
fn v259_keyless_writes_share_a_holder_in_each_run() {
    let world = World::new();
    let id = world.add(text("again")).id;
    world.add(text("again"));
    world.add(text("again"));
    world.import(world.start_import(), vec![text("again")]);
    let row = world.row(id);
    assert_eq!(holders(&row), [(None, 1, 1, vec![]), (None, 3, 3, vec![])]);
    assert_eq!(row.reinforcement_count, 4);
    let answer = world.forget_id(id);
    assert_eq!((answer.forgotten, answer.detached), (1, 0));
    assert!(world.live().is_empty());
}

#[test]
fn v262_a_tag_changes_the_holder_and_a_field_detaches_it() {
    let world = World::new();
    let id = shared_row(&world);
    let tagged = world.add(text("the same").key("b").tag("new"));
    assert_eq!((tagged.decision, tagged.id), (Decision::Updated, id));
    let row = world.row(id);
    assert_eq!(holders(&row), [(Some("a"), 1, 1, vec![]), (Some("b"), 1, 1, vec!["new"])]);
    assert_eq!(row.tags, ["new"]);

    let world = World::new();
    let id = shared_row(&world);
    let changed = world.add(text("the same").key("b").importance(0.9));
    assert_eq!(changed.decision, Decision::Stored);
    assert_ne!(changed.id, id);
    assert_eq!(world.row("b").importance, 0.9);
    assert_eq!((world.row("a").id, world.row("a").importance), (id, 0.5));
}

#[test]
fn v264_keys_answer_with_their_own_text() {
    let world = World::new();
    let a = world.add(text("Patrol 5: Quiet").key("a"));
    let b = world.add(text("Patrol 5: quiet").key("b"));
    assert_eq!((a.decision, b.decision), (Decision::Stored, Decision::Stored));
    assert_eq!(b.hints.len(), 1);
    assert_eq!((b.hints[0].id, b.hints[0].why), (a.id, "equal fingerprint"));
    assert_eq!(world.row("a").text, "Patrol 5: Quiet");
    assert_eq!(world.row("b").text, "Patrol 5: quiet");
    assert_eq!(world.duplicates(), 1);
}

#[test]
fn v265_absorb_takes_spacing_and_case_of_words_that_are_no_names() {
    let world = World::with(absorbing);
    let pairs = [
        ("The user likes tea", "the  user likes tea", Decision::Reinforced),
        ("US report", "us report", Decision::Stored),
        ("mc²", "mc2", Decision::Stored),
    ];
    for (at, (first, second, decision)) in pairs.into_iter().enumerate() {
        world.add(text(first).key(format!("{at}.1")));
        let outcome = world.add(text(second).key(format!("{at}.2")));
        assert_eq!(outcome.decision, decision, "{second:?} after {first:?}");
        assert_eq!(world.row(format!("{at}.1")).text, first);
        assert_eq!(world.row(format!("{at}.2")).text, second, "the key answers with its own text");
    }
    assert_eq!(world.row("0.1").id, world.row("0.2").id);
}

#[test]
fn v266_an_empty_normal_form_is_never_a_duplicate() {
    let world = World::new();
    for at in 0..3 {
        assert_eq!(world.add(text("").vector(axis(at))).decision, Decision::Stored);
    }
    for _ in 0..2 {
        assert_eq!(world.add(text("   ").vector([0.5; DIM])).decision, Decision::Stored);
    }
    assert_eq!(world.live().len(), 5);
    assert_eq!(world.duplicates(), 0);
}

#[test]
fn v267_kind_validity_identity_and_metadata_keep_rows_apart() {
    let first = || {
        let mut draft = text("same text").metadata(json!({"user_id": "u1", "note": "n"}));
        draft.fields.valid_from = Some("2020-01-01T00:00:00Z".parse().unwrap()).into();
        draft
    };
    let mut later = first();
    later.fields.valid_from = Some("2024-01-01T00:00:00Z".parse().unwrap()).into();
    let others = [
        ("kind", first().kind(Kind::System)),
        ("valid_from", later),
        ("identity", first().metadata(json!({"user_id": "u2", "note": "n"}))),
        ("metadata", first().metadata(json!({"user_id": "u1", "note": "m"}))),
    ];
    for (what, other) in others {
        let world = World::new();
        let one = world.add(first());
        let two = world.add(other);
        assert_eq!(two.decision, Decision::Stored, "{what}");
        assert_eq!(two.hints.iter().map(|hint| hint.id).collect::<Vec<_>>(), [one.id], "{what}: a hint");
        assert_eq!(world.add(first()).decision, Decision::Reinforced, "{what}: the first still absorbs");
    }
}

#[test]
fn v268_absorbing_takes_the_later_expiry_and_the_higher_weights() {
    let world = World::at(10);
    let id = world.add(text("e").expiry(Expiry::At(ms(100)))).id;
    assert_eq!(world.add(text("e").expiry(Expiry::Never)).decision, Decision::Reinforced);
    assert_eq!(world.row(id).expires_at, None, "null is the latest");

    let id = world.add(text("s").significance(Significance::Routine)).id;
    world.add(text("s").significance(Significance::Core));
    assert_eq!(world.row(id).significance, Significance::Core);
    world.add(text("s").significance(Significance::Noteworthy));
    assert_eq!(world.row(id).significance, Significance::Core, "never lower");

    let id = world.add(text("i").importance(0.7)).id;
    world.add(text("i").importance(0.2));
    assert_eq!(world.row(id).importance, 0.7);
    world.add(text("i").importance(0.9));
    assert_eq!(world.row(id).importance, 0.9);
}

#[test]
fn v269_a_key_written_again() {
    let world = World::new();
    let draft = || text("t").key("k").tag("a").metadata(json!({"note": 1}));
    let id = world.add(draft()).id;
    let version = |world: &World| world.row("k").version;
    let same = world.add(draft());
    assert_eq!((same.decision, same.id, version(&world)), (Decision::Unchanged, id, 1));
    let tagged = world.add(draft().tag("b"));
    assert_eq!((tagged.decision, tagged.id, version(&world)), (Decision::Updated, id, 2));
    let noted = world.add(draft().tag("b").metadata(json!({"note": 2})));
    assert_eq!((noted.decision, noted.id, version(&world)), (Decision::Updated, id, 3));
    assert_eq!(world.row("k").metadata, json!({"note": 2}));
    assert_eq!(world.row("k").reinforcement_count, 1, "nothing is counted");
    // A field that the draft does not mention is equal.
    assert_eq!(world.add(text("t").key("k")).decision, Decision::Unchanged);
    assert_eq!(world.row("k").tags, ["a", "b"]);
}

#[test]
fn v270_a_message_without_an_author_kind_is_absorbed_as_any_text() {
    let world = World::new();
    let message = || text("deploy done").kind(Kind::Message);
    assert_eq!(world.add(message()).decision, Decision::Stored);
    assert_eq!(world.add(message()).decision, Decision::Reinforced);
    assert_eq!(world.live().len(), 1);
}

#[test]
fn v271_a_bot_message_with_a_key_is_absorbed_as_a_holder() {
    let world = World::new();
    let message = |key: &str| {
        let mut draft = text("deploy done").kind(Kind::Message).key(key);
        draft.fields.author_kind = Some(oubliette::memory::AuthorKind::Bot).into();
        draft
    };
    let a = world.add(message("a"));
    let b = world.add(message("b"));
    assert_eq!((a.decision, b.decision, b.id), (Decision::Stored, Decision::Reinforced, a.id));
    assert_eq!(world.row(a.id).keys, ["a", "b"]);
}

#[test]
fn v276_a_key_of_another_partition_is_refused_until_its_row_expires() {
    let world = World::at(100);
    world.add(text("mine").key("k").agent("x").expiry(Expiry::At(ms(200))));
    let before = world.list_in(Scope::Any, State::Live);
    let why = world.ns.add(text("yours").key("k")).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::KeyInOtherPartition);
    assert!(why.to_string().contains('x'), "{why}");
    assert_eq!(world.list_in(Scope::Any, State::Live), before, "nothing written");
    assert_eq!(world.refused(text("mine").key("k")), ErrorKind::KeyInOtherPartition, "equal text as well");
    world.set(200);
    assert_eq!(world.add(text("yours").key("k")).decision, Decision::Stored);
    assert_eq!(world.row("k").text, "yours", "the current holder comes first");
}

#[test]
fn dedup56_on_key_error_refuses_other_content() {
    let world = World::with(on_key_error);
    let id = world.add(text("first").key("k")).id;
    assert_eq!(world.refused(text("second").key("k")), ErrorKind::Conflict);
    assert_eq!((world.row("k").id, world.row("k").text), (id, "first".to_owned()));
    assert_eq!(world.add(text("first").key("k").tag("x")).decision, Decision::Updated, "fields may change");
}

#[test]
fn dedup56_on_key_reinforce_keeps_the_stored_content() {
    let world = World::with(on_key_reinforce);
    let id = world.add(text("first").key("k")).id;
    let second = world.add(text("second").key("k"));
    assert_eq!((second.decision, second.id), (Decision::Reinforced, id));
    let row = world.row("k");
    assert_eq!((row.text.as_str(), row.reinforcement_count), ("first", 2));
}

#[test]
fn dedup56_two_lines_with_one_key_are_two_writes_in_order() {
    let world = World::new();
    let drafts = vec![text("one").key("k"), text("two").key("k"), text("two").key("k")];
    let outcomes = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    assert_eq!(outcomes[0].decision, Decision::Stored);
    assert_eq!(revised(&outcomes[1]), outcomes[0].id);
    assert_eq!((outcomes[2].decision.clone(), outcomes[2].id), (Decision::Unchanged, outcomes[1].id));
    assert_eq!(world.row("k").text, "two");
}

#[test]
fn dedup55_another_tier_is_another_lifetime() {
    let world = World::new();
    let one = world.add(text("same"));
    let two = world.add(text("same").tier(Tier::Working));
    assert_eq!(two.decision, Decision::Stored);
    assert_ne!(one.id, two.id);
    // Partitions are apart as well (DEDUP-3), and so are namespaces.
    assert_eq!(world.add(text("same").agent("x")).decision, Decision::Stored);
    let other = world.db.namespace("other").unwrap();
    assert_eq!(other.add(text("same")).unwrap().decision, Decision::Stored);
    assert_eq!(world.duplicates(), 0, "duplicates are counted in a partition and tier");
}

#[test]
fn dedup55_absorbing_unites_tags_and_says_the_rule() {
    let world = World::new();
    let stored = world.add(text("t").tag("a"));
    assert_eq!(stored.rule.0, "DEDUP-55.7");
    let absorbed = world.add(text("t").tag("b"));
    assert_eq!((absorbed.decision, absorbed.rule.0), (Decision::Reinforced, "DEDUP-55.2"));
    assert_eq!(absorbed.key, None);
    assert_eq!(world.row(stored.id).tags, ["a", "b"]);
    assert_eq!(world.row(stored.id).holders.len(), 2, "other tags: another holder");
    let keyed = world.add(text("t").key("k"));
    assert_eq!((keyed.key.as_deref(), keyed.id), (Some("k"), stored.id));
}

#[test]
fn dedup58_rows_that_are_not_current_neither_absorb_nor_block() {
    let world = World::at(10);
    let gone = world.add(text("t").key("k").expiry(Expiry::At(ms(100))));
    world.set(100);
    let by_content = world.add(text("t"));
    assert_eq!(by_content.decision, Decision::Stored, "expired");
    assert_ne!(by_content.id, gone.id);
    let by_key = world.add(text("u").key("k"));
    assert_eq!(by_key.decision, Decision::Stored);
    world.forget_id(by_content.id);
    assert_eq!(world.add(text("t")).decision, Decision::Stored, "removed");
}

#[test]
fn dedup55_no_dedup_stores_equal_content_and_keys_still_decide() {
    let world = World::new();
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let all = world.ns.add_all(vec![text("t"), text("t"), text("t").key("k")], &how).unwrap();
    assert!(all.iter().all(|outcome| outcome.decision == Decision::Stored));
    assert_eq!(world.duplicates(), 2);
    let again = world.ns.add_all(vec![text("t").key("k")], &how).unwrap();
    assert_eq!(again[0].decision, Decision::Unchanged);
}

/// DEDUP-55: a write that is absorbed says which of its fields its memory does not say.
#[test]
fn dedup55_an_absorbed_write_says_what_was_not_taken() {
    let world = World::new();
    let said = |key: &str, session: &str| text("Sounds good").key(key).session(session).importance(0.3);
    let first = world.add(said("s1", "one").channel("support"));
    assert_eq!((first.decision, first.not_taken.len()), (Decision::Stored, 0));
    let draft = said("s2", "two").channel("support").thread("t").happened_at(world.now());
    let second = world.add(draft.created_at(world.ago("1h")));
    assert_eq!(second.decision, Decision::Reinforced);
    assert_eq!(second.not_taken, ["created_at", "happened_at", "thread", "session"]);
    let again = world.add(said("s3", "one"));
    assert_eq!((again.decision, again.not_taken.len()), (Decision::Reinforced, 0));
    let apart = world.add(said("s4", "four").verbatim(true));
    assert_eq!((apart.decision, apart.not_taken.len()), (Decision::Stored, 0));
    let world = World::with(on_key_reinforce);
    world.add(said("s4", "four"));
    let other = world.add(text("Sounds bad").key("s4").session("five"));
    assert_eq!((other.decision, other.not_taken), (Decision::Reinforced, vec!["text", "session"]));
}

#[test]
fn model8_what_absorption_raised_stays_raised() {
    let world = World::new();
    let id = world.add(text("t").key("a").importance(0.2)).id;
    world.add(text("t").key("b").importance(0.9).significance(Significance::Core).expiry(Expiry::Never));
    world.forget(&["b"]);
    let row = world.row(id);
    assert_eq!((row.importance, row.significance), (0.9, Significance::Core));
}

#[test]
fn model8_update_by_key_is_one_holder_and_by_id_all() {
    let world = World::new();
    let id = shared_row(&world);
    let tags = |names: &[&str]| Patch {
        tags: Some(names.iter().map(ToString::to_string).collect()),
        ..Patch::default()
    };
    let one = world.ns.update("a", tags(&["one"])).unwrap();
    assert_eq!((one.decision, one.id), (Decision::Updated, id));
    assert_eq!(holders(&world.row(id)), [(Some("a"), 1, 1, vec!["one"]), (Some("b"), 1, 1, vec![])]);
    world.ns.update(id.to_string(), tags(&["all"])).unwrap();
    let row = world.row(id);
    assert_eq!(holders(&row), [(Some("a"), 1, 1, vec!["all"]), (Some("b"), 1, 1, vec!["all"])]);
    assert_eq!((row.tags, row.keys), (vec!["all".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn model8_new_text_by_id_moves_every_key() {
    let world = World::new();
    let old = shared_row(&world);
    let patch = Patch { text: Some("revised".to_owned()), ..Patch::default() };
    let outcome = world.ns.update(old.to_string(), patch).unwrap();
    assert_eq!(revised(&outcome), old);
    assert_eq!(world.row("a").id, outcome.id);
    assert_eq!(world.row("b").id, outcome.id);
    assert_eq!(world.row("b").text, "revised");
    assert_eq!(world.row(old).state, State::Superseded);
}

#[test]
fn model8_a_keyless_holder_is_left_when_the_key_goes() {
    let world = World::new();
    let id = world.add(text("t").key("k")).id;
    world.add(Draft::new("t"));
    let answer = world.forget(&["k"]);
    assert_eq!((answer.forgotten, answer.detached), (0, 1));
    assert_eq!(holders(&world.row(id)), [(None, 1, 1, vec![])]);
    assert!(world.unknown("k"));
    let missing = world.ns.forget(Forget::names(["k", "nobody"])).unwrap();
    assert_eq!((missing.forgotten, missing.detached, missing.missing()), (0, 0, 2));
}
