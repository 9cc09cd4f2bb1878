//! What the random tests found, each as a small test that tells what went wrong.

use crate::world::{DIM, World, axis, keeping, ms, text};
use oubliette::clock::Clock;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::{Field, Got, SupersedeMode};
use oubliette::policy::{Policy, Syntax};
use oubliette::{Decision, ErrorKind, PageRequest, Patch, Query, Span, State};

/// An update that brought a vector to a row without one put it into the embedding space 0, which is not there: no
/// search found it, and every later read of the row was `Corrupted`.
#[test]
fn a_row_gets_its_vector_later() {
    let world = World::new();
    let id = world.add(text("t").key("k")).id;
    assert_eq!(world.db.stats().unwrap().pending, 1);
    let patch = Patch { vector: Some(axis(1).to_vec()), ..Patch::default() };
    assert_eq!(world.ns.update("k", patch).unwrap().id, id);
    assert_eq!(world.find(axis(1), 1), [id]);
    assert_eq!(world.db.stats().unwrap().pending, 0);
    world.check();
    let again = world.add(text("u").key("u"));
    assert_eq!(world.add(text("u").key("u").vector(axis(2))).id, again.id);
    assert_eq!(world.find(axis(2), 1), [again.id]);
}

/// Superseding an expired row took its key along to the successor, although another current row had taken it since:
/// the key then named two.
#[test]
fn an_expired_row_gives_no_key_away() {
    let world = World::at_with(10, keeping);
    let old = world.add(text("old").key("k").expiry(Expiry::At(ms(100)))).id;
    world.set(100);
    let holder = world.add(text("holder").key("k")).id;
    let new = world.add(text("new")).id;
    let why = world.supersede(old, new, SupersedeMode::Correction, None).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Conflict);
    assert_eq!(world.row("k").id, holder);
    world.check();
}

/// The same with a row whose world time is over: it can be superseded, and its key stays where it is.
#[test]
fn a_row_past_its_world_time_gives_no_key_away() {
    let world = World::at(10);
    let mut past = text("past").key("k").tag("t");
    past.fields.valid_to = Some(ms(100)).into();
    let past = world.add(past).id;
    world.set(100);
    let holder = world.add(text("holder").key("k")).id;
    let new = world.add(text("new")).id;
    world.supersede(past, new, SupersedeMode::Correction, None).unwrap();
    assert_eq!(world.row("k").id, holder);
    assert!(world.row(new).keys.is_empty());
    world.check();
}

/// A new end of life made an expired row current again beside the one that had taken its key.
#[test]
fn an_expired_row_does_not_come_back_beside_the_new_holder_of_its_key() {
    let world = World::at_with(10, keeping);
    let old = world.add(text("old").key("k").expiry(Expiry::At(ms(100)))).id;
    world.set(100);
    let revive =
        || world.ns.update(old.to_string(), Patch { expiry: Some(Expiry::Never), ..Patch::default() });
    let holder = world.add(text("holder").key("k")).id;
    assert_eq!(revive().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(world.row("k").id, holder);
    world.check();
    world.forget_id(holder);
    assert_eq!(revive().unwrap().decision, Decision::Updated);
    assert_eq!((world.row("k").id, world.row("k").state), (old, State::Live));
}

/// A use that came after the end of a short-term row made it live again.
#[test]
fn a_late_use_does_not_bring_a_row_back() {
    let world = World::with(keeping);
    let id = world.add(text("t").key("k").tier(oubliette::memory::Tier::Working)).id;
    world.advance("73h");
    world.ns.reinforce("k", 1).unwrap();
    assert_eq!(world.row(id).state, State::Expired);
    assert_eq!(world.row(id).reinforcement_count, 2);
}

/// A row that was valid from an instant on, and was replaced, stood in the list of what is due under an instant of the
/// past, and stayed there: every write and every `stats` settled it again, for ever.
#[test]
fn an_instant_that_is_over_is_not_due_again() {
    let world = World::at(1_000);
    let mut old = text("old");
    old.fields.valid_from = Some(ms(1_080)).into();
    let old = world.add(old).id;
    world.set(1_081);
    let new = world.add(text("new")).id;
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    let stats = world.db.stats().unwrap();
    assert_eq!((stats.pending_due, stats.memories.superseded, stats.memories.live), (0, 1, 1));
    // Replaced before it began to hold: seen from its beginning to the instant of the replacement.
    let mut soon = text("soon");
    soon.fields.valid_from = Some(ms(1_200)).into();
    let soon = world.add(soon).id;
    world.supersede(soon, new, SupersedeMode::Replaced, Some(1_300)).unwrap();
    let seen = |at: i64| {
        world.set(at);
        let stats = world.db.stats().unwrap();
        world.check();
        (stats.memories.ahead, stats.memories.live, stats.memories.superseded, world.is_live(soon))
    };
    assert_eq!(seen(1_199), (1, 1, 1, false));
    assert_eq!(seen(1_200), (0, 2, 1, true));
    assert_eq!(seen(1_300), (0, 1, 2, false));
}

/// A row stood for nothing but the holder that it had taken over. Giving that back left a row without a holder: nobody
/// could forget its text by a key any more. Its tombstone named the key of the holder, although the key had gone back: when
/// the memory itself was forgotten at the same instant, its key answered with the other.
#[test]
fn a_row_that_only_held_what_it_took_goes_when_it_is_given_back() {
    let world = World::at(10);
    let old = world.add(text("of both").key("a")).id;
    world.add(text("of both").key("b"));
    let patch = Patch { text: Some("of both, anew".to_owned()), ..Patch::default() };
    let new = world.ns.update(old.to_string(), patch).unwrap().id;
    assert_eq!(world.forget(&["a"]).detached, 1, "an update by id is a write of the other as well");
    world.ns.restore(old.to_string()).unwrap();
    assert_eq!((world.row("b").id, world.live()), (old, vec![old]));
    let stone = world.tombstone(new);
    assert_eq!((stone.replaced_by, stone.key_hashes.len()), (Some(old), 0));
    assert!(world.row(old).keys == ["b"]);
    world.forget(&["b"]);
    assert_eq!(world.tombstone("b").id, old);
    world.check();
}

/// A revision by id of a row whose first holder has no key moved that holder along and made it again: the new row stood
/// for one write more than the old one.
#[test]
fn revising_by_id_carries_each_holder_once() {
    let world = World::new();
    let first = world.add(text("the same words"));
    world.add(text("the same words").key("k"));
    let patch = Patch { text: Some("other words".to_owned()), ..Patch::default() };
    let new = world.ns.update(first.id.to_string(), patch).unwrap();
    let found = world.ns.look_up(new.id.to_string(), false).unwrap();
    let Got::Memory(memory) = found else { panic!("a memory") };
    assert_eq!(memory.holders.len(), 2, "the keyless write and the key (MODEL-21)");
    assert_eq!(memory.keys, ["k"]);
    world.check();
}

/// An absorbed write that brought a vector lost it, though the row that absorbed it had none and stayed pending.
#[test]
fn a_pending_row_takes_the_vector_of_an_equal_write() {
    let world = World::new();
    let first = world.add(text("no vector yet"));
    let again = world.add(text("no vector yet").key("k").vector(axis(1)));
    assert_eq!((again.decision, again.id), (Decision::Reinforced, first.id));
    assert_eq!(world.find(axis(1), 1), [first.id]);
    world.check();
}

/// V-284: reads and writes go by transaction time, so a clock that steps back makes nothing visible again: a key had two
/// visible rows, the one that had expired and the one that took its place.
#[test]
fn a_clock_that_steps_back_shows_nothing_again() {
    let world = World::at(1_000);
    let mut draft = text("version one").key("k");
    draft.expiry = Some(Expiry::At(ms(2_000)));
    let first = world.add(draft).id;
    world.set(3_000);
    world.add(text("something else"));
    world.set(1_400);
    assert!(!world.is_live(first));
    let snapshot = world.db.snapshot().unwrap();
    assert_eq!(
        snapshot.namespace(world.ns.name()).unwrap().list(&PageRequest::default()).unwrap().items.len(),
        1
    );
    let second = world.add(text("version two").key("k")).id;
    assert!(world.is_live(second) && !world.is_live(first), "it is seen at once, and alone");
    assert_eq!(world.row("k").recorded_at, ms(3_000));
    let third = world.add(text("version three").key("k")).id;
    assert!(world.is_live(third) && !world.is_live(second));
    let ended = world.row(second).superseded.unwrap().at;
    assert_eq!(ended, ms(3_000));
    let words = world.ns.search(Query::text("version")).unwrap().hits;
    assert_eq!(words.iter().map(|hit| hit.id).collect::<Vec<_>>(), [third]);
    world.check();
}

/// A supersession gives the newer row the beginning of its world time; a later write through the key that would end
/// before it is refused, and nothing of it is written.
#[test]
fn a_write_does_not_end_before_its_row_begins() {
    let world = World::new();
    let new = world.add(text("tea").key("k")).id;
    let old = world.add(text("coffee")).id;
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    let begins = world.row(new).valid_from.unwrap();
    let mut draft = text("water").key("k");
    draft.fields.valid_to = Field::Value(begins);
    let refused = world.ns.add(draft).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(world.row("k").text, "tea");
    world.check();
}

/// All memories of a graph were forgotten, or all but one that hung as a twin on a forgotten one, before those of the
/// tail were linked. The new nodes found no living neighbour, so they were linked only to each other: they left the tail,
/// and no walk came to them.
#[test]
fn new_nodes_are_reached_where_all_earlier_ones_are_forgotten() {
    // A partition of three rows gets a graph, one of two keeps it, and only maintenance links.
    let world = World::with(|builder| {
        let text = format!("[index]\nscan_max = {}\ntail_min = 100000", 2 * (DIM + 64));
        builder.policy(Policy::parse(&text, Syntax::Toml).unwrap())
    });
    let maintain = |pass| world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
    let gone = [0, 1, 2].map(|at| world.add(text(&format!("first {at}")).vector(axis(at))).id);
    maintain(Pass::Index);
    let left = [0, 3].map(|at| world.add(text(&format!("second {at}")).vector(axis(at))).id);
    for id in gone {
        world.forget_id(id);
    }
    for pass in [Pass::Index, Pass::Repair] {
        maintain(pass);
        let vectors = world.ns.stats().unwrap().vectors;
        assert_eq!((vectors.in_graph, vectors.tail), (2, 0));
        assert_eq!((world.find(axis(0), 1), world.find(axis(3), 1)), (vec![left[0]], vec![left[1]]));
        world.check();
    }
    assert_eq!(world.ns.stats().unwrap().vectors.dead, 0);
}

/// What a key announces was merged into a memory that ends before. A write through the key then was a conflict, because
/// that memory was to take the place of what the key says.
#[test]
fn a_write_under_a_key_whose_announced_text_was_merged_into_one_that_ends_before() {
    let world = World::new();
    let now = world.clock.now();
    let instant = |ahead| now.plus(Span::from_millis(ahead));
    world.add(text("tea").key("k"));
    let to_come =
        world.ns.replace(["k"], text("coffee"), SupersedeMode::Replaced, Some(instant(54))).unwrap().id;
    let mut other = text("water until then");
    other.fields.valid_to = Field::Value(instant(40));
    let other = world.add(other).id;
    world.supersede(to_come, other, SupersedeMode::Aggregate, None).unwrap();
    world.add(text("tea").key("k").expiry(Expiry::At(instant(20))));
    world.add(text("mint tea").key("k"));
    assert_eq!(world.row("k").text, "mint tea");
    world.check();
}

/// What a memory had superseded as an aggregate comes back when the memory goes, although no key has ever gone on to it.
#[test]
fn what_an_undone_aggregate_had_superseded_comes_back() {
    let world = World::new();
    let run = world.start_import();
    let aggregate = world.import(run, vec![text("tea")]).pop().unwrap().id;
    let old = world.add(text("Ann drinks tea").key("k")).id;
    world.supersede(old, aggregate, SupersedeMode::Aggregate, None).unwrap();
    assert!(!world.is_live(old));
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), [old]);
    world.check();
}

/// What is restored has the key of what had corrected it, also while something is announced that will take the place of the
/// correction. The key was on both until the instant, and a second announcement made it the key of two.
#[test]
fn a_restored_memory_has_its_key_alone_while_another_text_is_announced() {
    let world = World::new();
    let at = world.clock.now().plus(Span::from_millis(50));
    let first = world.add(text("tea").key("k")).id;
    let corrected = Patch { text: Some("Tea".to_owned()), ..Patch::default() };
    let corrected = world.ns.update(first.to_string(), corrected).unwrap().id;
    let announce =
        |what: &str| world.ns.replace(["k"], text(what), SupersedeMode::Replaced, Some(at)).unwrap();
    announce("coffee");
    world.ns.restore(first.to_string()).unwrap();
    assert_eq!((world.row("k").id, world.live()), (first, vec![first]));
    assert_eq!(world.row(corrected).superseded.map(|by| by.by), Some(first));
    world.check();
    announce("water");
    announce("milk");
    world.check();
    assert_eq!(world.row("k").id, first);
    world.set(at.as_millis());
    assert_eq!(world.row("k").text, "milk");
    world.check();
}

/// A memory was to take the place of another, its own writer left it, and then the key of the other said something new: with the
/// key everything went from the memory, and the write found it no more.
#[test]
fn what_was_to_come_goes_when_its_only_key_says_something_else() {
    let world = World::new();
    let at = world.clock.now().plus(Span::from_millis(9));
    let later = world.add(text("Ann lives in Bonn").key("later")).id;
    let apart = text("Ann lives in Bonn").key("now").expiry(Expiry::At(at));
    let now = world.add(apart).id;
    assert_ne!(now, later);
    world.supersede(now, later, SupersedeMode::Replaced, Some(at.as_millis())).unwrap();
    world.add(text("tea").key("later"));
    world.add(text("water").key("now"));
    assert_eq!(world.row("now").text, "water");
    world.check();
}

/// A caller led a key to another memory with the same text in the instant in which an import began, and what the key had said counted as
/// led by the import: its line left no version, and an undo brought nothing back (MODEL-8, MODEL-33).
#[test]
fn model_8_a_key_is_led_in_the_instant_in_which_an_import_begins() {
    let world = World::at(1_000);
    let old = world.add(text("the deploy waits").key("k1")).id;
    let other = world.add(text("the deploy waits").expiry(Expiry::At(ms(9_000)))).id;
    world.supersede(old, other, SupersedeMode::Correction, None).unwrap();
    assert_eq!(world.row("k1").id, other);

    let run = world.start_import();
    let told = world.import(run, vec![text("the build is green").key("k1")]).remove(0);
    assert!(matches!(told.decision, Decision::Revised { .. }), "{told:?}");
    world.ns.undo(run).unwrap();
    let back = world.row("k1");
    assert_eq!((back.text.as_str(), back.state), ("the deploy waits", State::Live));
    world.check();
}
