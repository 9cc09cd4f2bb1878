//! What an outcome tells beside its decision: who goes on to say the text of before, and when the memory ends.

use crate::world::{World, span, text};
use oubliette::memory::{Expiry, SupersedeMode};
use oubliette::report::KeptForOthers;
use oubliette::{Decision, Draft, Outcome, Patch};

/// A write by its name, and how it is made.
type Write = (&'static str, fn(&World) -> Outcome);

fn change(to: &str) -> Patch {
    Patch { text: Some(to.to_owned()), ..Patch::default() }
}

/// DEDUP-57: a key stands for its own write (MODEL-8), and the answer names the memory that others keep, with their keys and their
/// number. The id of that memory takes it along.
#[test]
fn dedup57_a_write_through_a_key_names_what_others_go_on_to_say() {
    let writes: [Write; 5] = [
        ("update", |world| world.ns.update("ann", change("Ann likes coffee")).unwrap()),
        ("add", |world| world.add(text("Ann likes coffee").key("ann"))),
        ("supersede", |world| world.ns.supersede("ann", text("Ann likes coffee")).unwrap()),
        ("replace", |world| {
            let coffee = text("Ann likes coffee").verbatim(true);
            world.ns.replace(["ann"], coffee, SupersedeMode::Replaced, None).unwrap()
        }),
        ("contradict", |world| world.ns.contradict("ann", None).unwrap()),
    ];
    for (name, write) in writes {
        let world = World::new();
        let tea = world.add(text("Ann likes tea").key("ann")).id;
        world.add(text("Ann likes tea").key("chat"));
        world.add(text("Ann likes tea"));
        world.advance("1s");
        let done = write(&world);
        let kept = KeptForOthers { id: tea, keys: vec!["chat".to_owned()], writers: 2 };
        assert_eq!(done.kept_for_others, [kept], "{name}: {done:?}");
        let all = world.ns.update(tea, change("Ann likes milk")).unwrap();
        assert_eq!(all.kept_for_others, [], "{name}: {all:?}");
        world.check();
    }
}

/// DEDUP-57: nobody keeps what one call takes the place of as a whole, and a change that leaves the text is none of it.
#[test]
fn dedup57_a_text_that_ends_for_all_its_writers_is_kept_for_nobody() {
    let world = World::new();
    world.add(text("Ann likes tea").key("ann"));
    world.add(text("Ann likes tea").key("chat"));
    let pinned = world.ns.pin("ann", true).unwrap();
    assert_eq!(pinned.kept_for_others, [], "{pinned:?}");
    let coffee = text("Ann likes coffee").verbatim(true);
    let done = world.ns.replace(["ann", "chat"], coffee, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(done.kept_for_others, [], "{done:?}");
    assert_eq!(world.live(), [done.id]);
    world.add(text("Bob likes tea").key("bob"));
    let revised = world.add(text("Bob likes milk").key("bob"));
    assert!(matches!(revised.decision, Decision::Revised { .. }) && revised.kept_for_others.is_empty());
    world.check();
}

/// DEDUP-57: what is told in a batch is told of the write that did it.
#[test]
fn dedup57_each_write_of_a_batch_names_its_own() {
    let world = World::new();
    for name in ["a", "b"] {
        world.add(text("Ann likes tea").key(name));
    }
    let all: Vec<Draft> = vec![text("Ann likes milk").key("a"), text("Cy plays chess"), text("Dan runs")];
    let done = world.ns.add_all(all, &oubliette::WriteOptions::default()).unwrap();
    assert_eq!(done.iter().map(|one| one.kept_for_others.len()).collect::<Vec<_>>(), [1, 0, 0]);
    world.ns.supersede_all(["b"], "a", SupersedeMode::Correction, None).unwrap();
    assert_eq!(world.add(text("Eve sings")).kept_for_others, []);
    world.check();
}

/// DEDUP-57: the outcome says when the memory ends, also where the write takes an end over.
#[test]
fn dedup57_an_outcome_tells_the_ends_of_its_memory() {
    let world = World::new();
    let end = world.now().plus(span("5d"));
    let first = world.add(text("Ann is away").key("away").expiry(Expiry::At(end)));
    assert_eq!((first.expires_at, first.valid_to), (Some(end), None));
    let kept = world.add(text("Ann is ill").key("away"));
    assert_eq!((kept.expires_at, kept.valid_to), (Some(end), None), "the end of the text before");
    let until = world.now().plus(span("2d"));
    let mut patch = Patch { expiry: Some(Expiry::Never), ..Patch::default() };
    patch.fields.valid_to = Some(until).into();
    let never = world.ns.update("away", patch).unwrap();
    assert_eq!((never.expires_at, never.valid_to), (None, Some(until)));
    let row = world.ns.get("away").unwrap().unwrap();
    assert_eq!((row.expires_at, row.valid_to), (None, Some(until)));
}
