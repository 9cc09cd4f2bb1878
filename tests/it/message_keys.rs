//! A message knows the key under which it was written, and goes with what that key said, wherever it is told by then (MODEL-30).

use std::collections::BTreeMap;

use crate::growth::exported;
use crate::world::{World, axis, text};
use oubliette::exchange::{Import, LineReader};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{AuthorKind, EventQuery, Expiry, Field, Partition, Tier};
use oubliette::policy::Syntax;
use oubliette::{Draft, Filter, Forget, Kind, MemoryId, Scope, WriteOptions};
use serde_json::json;

/// A message of its own author and channel under a key, with a tag of the name of the key.
fn said(key: &str, words: &str) -> Draft {
    let mut draft = text(words).kind(Kind::Message).key(key).tag(format!("by-{key}")).vector(axis(0));
    draft.fields.author_kind = Field::from(Some(AuthorKind::Human));
    draft.fields.author_id = Field::from(Some(format!("author-{key}")));
    draft.fields.channel = Field::from(Some(format!("channel-{key}")));
    draft
}

/// What the messages say that were not forgotten, by the author.
fn told(world: &World) -> BTreeMap<String, String> {
    let events = world.ns.events(&EventQuery::default()).unwrap().items;
    let told = events.into_iter().filter_map(|event| Some((event.author_id?, event.payload?)));
    told.collect()
}

fn keys_told(world: &World) -> Vec<String> {
    told(world).into_keys().map(|author| author.replace("author-", "")).collect()
}

/// Ends and erases what was superseded, unites what is near.
fn pass(world: &World, passes: &[Pass]) {
    world.db.maintain_with(&MaintainOptions::live().passes(passes.to_vec())).unwrap();
}

const TEXTS: [&str; 3] = ["the cat sat on the mat", "the cat sat on the mat.", "the cat sat on the mat!"];

fn add_apart(world: &World, draft: Draft) -> MemoryId {
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(vec![draft], &apart).unwrap()[0].id
}

/// Three messages k0, k1, k2 that a pass has united one after the other; the rows that went are erased.
fn chained(world: &World) -> Vec<MemoryId> {
    world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
    let mut ids = Vec::new();
    for (at, words) in TEXTS.iter().enumerate() {
        ids.push(add_apart(world, said(&format!("k{at}"), words)));
        world.advance("1h");
        pass(world, &[Pass::VectorDuplicates]);
        world.advance("20d");
        pass(world, &[Pass::Superseded, Pass::Limbo]);
    }
    assert_eq!(world.live().len(), 1, "all were united");
    ids
}

fn by(how: &str, key: &str) -> Forget {
    let scope = Scope::Any;
    match how {
        "filter" => Forget::filter(Filter::parse(&json!({"key": key}).to_string()).unwrap(), scope),
        "tag" => Forget::tag(format!("by-{key}")),
        _ => Forget::names([key]),
    }
}

#[test]
fn a_message_goes_with_its_key_through_a_chain_of_memories_that_are_gone() {
    for how in ["key", "filter", "tag"] {
        for (at, others) in [["k1", "k2"], ["k0", "k2"], ["k0", "k1"]].into_iter().enumerate() {
            let world = World::new();
            chained(&world);
            assert_eq!(keys_told(&world), ["k0", "k1", "k2"]);
            world.ns.forget(by(how, &format!("k{at}"))).unwrap();
            assert_eq!(keys_told(&world), others, "by {how}, k{at}");
            world.check();
            for other in others {
                world.ns.forget(by(how, other)).unwrap();
            }
            assert!(told(&world).is_empty() && world.live().is_empty(), "by {how}, k{at}");
            world.check();
        }
    }
}

/// Whoever names a memory that is gone by its id means what was written there, and nothing that went on with it.
#[test]
fn the_id_of_a_memory_that_is_gone_takes_its_writers_alone() {
    let world = World::new();
    let ids: Vec<MemoryId> = TEXTS[..2]
        .iter()
        .enumerate()
        .map(|(at, words)| add_apart(&world, said(&format!("k{at}"), words)))
        .collect();
    pass(&world, &[Pass::VectorDuplicates]);
    let united = world.live()[0];
    world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
    world.advance("20d");
    pass(&world, &[Pass::Superseded, Pass::Limbo]);
    add_apart(&world, said("k2", TEXTS[2]));
    world.advance("1h");
    pass(&world, &[Pass::VectorDuplicates]);
    let gone = *ids.iter().find(|id| **id != united).unwrap();
    let (first, second) = if gone == ids[0] { ("k0", "k1") } else { ("k1", "k0") };
    assert_eq!(world.live().len(), 1);
    assert_eq!(world.forget_id(gone).forgotten, 1);
    let live = world.row(world.live()[0]);
    let mut left = [second.to_owned(), "k2".to_owned()];
    left.sort();
    assert_eq!(live.keys, left, "{first} alone was asked for");
    assert_eq!(keys_told(&world), left);
    world.check();
}

/// Two say the same: the message of one goes with its author and channel, and that of the other stays.
#[test]
fn a_message_goes_although_another_has_said_the_same() {
    for how in ["key", "filter", "tag"] {
        let world = World::new();
        world.add(said("k0", TEXTS[0]));
        world.add(said("k1", TEXTS[0]));
        assert_eq!(world.live().len(), 1);
        world.ns.forget(by(how, "k0")).unwrap();
        assert_eq!(keys_told(&world), ["k1"], "by {how}");
        assert_eq!((world.live().len(), world.row("k1").text), (1, TEXTS[0].to_owned()));
        world.check();
    }
}

/// Who says something else takes the messages of before to the memory of before.
#[test]
fn a_message_goes_apart_with_its_writer() {
    for (goes, stays) in [("k0", "k1"), ("k1", "k0")] {
        let world = World::new();
        world.add(said("k0", TEXTS[0]));
        add_apart(&world, said("k1", TEXTS[1]));
        pass(&world, &[Pass::VectorDuplicates]);
        let mut other = text("dogs bark at night").key("k0").vector(axis(1));
        other.fields.kind = Some(Kind::Message);
        world.add(other);
        world.forget(&[goes]);
        assert_eq!(keys_told(&world), [stays]);
        world.check();
    }
}

/// A new key takes the messages along, and an export and an import do.
#[test]
fn a_message_is_found_by_another_key_and_in_another_file() {
    let world = World::new();
    world.add(said("k0", TEXTS[0]).expiry(Expiry::At(world.ahead("1h"))));
    world.db.set_policy("ttl.working = '2h'", Syntax::Toml).unwrap();
    let mut ends = said("k1", "a note of today").vector(axis(1));
    ends.fields.tier = Some(Tier::Working);
    world.add(ends);
    world.ns.rename_key("k1", "k9").unwrap();
    world.advance("30d");
    pass(&world, &[Pass::Expire, Pass::Limbo]);
    assert_eq!(told(&world).into_keys().collect::<Vec<_>>(), ["author-k1"], "a promised end took the other");
    assert_eq!(world.forget(&["k1"]).missing(), 1, "nothing answers to the old key");
    let copy = World::new();
    copy.set(world.now().as_millis());
    let lines = exported(&world);
    Import::default().run(&copy.db, LineReader::new(lines.as_slice(), "lines"), &mut ()).unwrap();
    for world in [&world, &copy] {
        assert_eq!(world.forget(&["k9"]).forgotten, 1);
        assert!(told(world).is_empty());
        world.check();
    }
}

/// Without a key, the memory into which it was written tells whose a message is.
#[test]
fn a_message_without_a_key_goes_with_those_who_wrote_into_its_memory() {
    for (goes, stays) in [("k0", "k1"), ("k1", "k0")] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
        for key in ["k0", "k1"] {
            let mut draft = said(key, TEXTS[0]);
            draft.key = None;
            add_apart(&world, draft);
        }
        pass(&world, &[Pass::VectorDuplicates]);
        world.advance("20d");
        pass(&world, &[Pass::Superseded, Pass::Limbo]);
        assert_eq!((world.live().len(), keys_told(&world).len()), (1, 2));
        world.forget_tag(&format!("by-{goes}"));
        assert_eq!(keys_told(&world), [stays]);
        world.check();
    }
}

/// What a key said before goes with the key as well, though others have said the same, and whoever says that the key goes.
#[test]
fn the_messages_of_before_go_with_the_key_in_whatever_way() {
    for how in ["key", "filter", "tag"] {
        let world = World::new();
        world.add(said("k0", TEXTS[0]));
        world.add(said("k1", TEXTS[0]));
        world.advance("1h");
        world.add(said("k0", "dogs bark at night").vector(axis(1)));
        assert_eq!(world.ns.events(&EventQuery::default()).unwrap().items.len(), 3);
        world.ns.forget(by(how, "k0")).unwrap();
        assert_eq!(keys_told(&world), ["k1"], "by {how}");
        world.check();
    }
}

/// A key that a memory of the other namespace holds is the key of another record: whoever forgets that record means none of the
/// messages that come.
#[test]
fn a_message_that_lost_its_key_on_the_way_is_not_forgotten_with_it() {
    let world = World::new();
    world.add(said("k0", TEXTS[0]));
    let there = world.db.namespace("there").unwrap();
    there.add(said("k0", "dogs bark at night").vector(axis(1))).unwrap();
    let how = RenamespaceOptions { dry_run: false, drop_keys: true };
    world.db.move_namespace("default", "there", &how).unwrap();
    let keys = || {
        let events = there.events(&EventQuery::default()).unwrap().items;
        events.into_iter().filter_map(|event| Some((event.payload?, event.key))).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(keys()[TEXTS[0]], None);
    assert_eq!(there.forget(Forget::names(["k0"])).unwrap().forgotten, 1);
    assert_eq!(keys().into_keys().collect::<Vec<_>>(), [TEXTS[0]]);
    world.check();
}

/// A message whose memory has ended and is erased.
fn outlived(mut message: Draft) -> World {
    let world = World::new();
    message.fields.tier = Some(Tier::Working);
    world.add(message);
    world.advance("30d");
    pass(&world, &[Pass::Expire]);
    world.advance("20d");
    pass(&world, &[Pass::Limbo]);
    world
}

/// An undo withdraws the messages of its import. What a key had said before stays said, also where the memory that told it is gone.
#[test]
fn an_undo_forgets_no_message_of_before() {
    let world = outlived(said("k0", TEXTS[0]));
    assert_eq!((world.live().len(), keys_told(&world)), (0, vec!["k0".to_owned()]));
    let run = world.start_import();
    world.import(run, vec![text("dogs bark at night").key("k0").vector(axis(1))]);
    world.ns.undo(run).unwrap();
    assert_eq!(keys_told(&world), ["k0"]);
    world.check();
}

/// What is asked for in the part of one agent takes no message of another.
#[test]
fn a_message_of_another_agent_with_the_same_key_stays() {
    let of = |agent: &str, words: &str| said("k0", words).agent(agent);
    let world = outlived(of("a", TEXTS[0]));
    world.add(of("b", "dogs bark at night"));
    let Partition::Agent(name) = Partition::agent("b").unwrap() else { unreachable!() };
    let scope = Scope::Agent(name);
    world.ns.forget(Forget::filter(Filter::parse(r#"{"key":"k0"}"#).unwrap(), scope)).unwrap();
    assert_eq!(told(&world).into_values().collect::<Vec<_>>(), [TEXTS[0]]);
    world.check();
}
