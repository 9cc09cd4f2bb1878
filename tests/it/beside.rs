//! What an outcome tells beside its decision: who goes on to say the text of before, and when the memory ends.

use crate::world::{World, span, text};
use oubliette::memory::{Expiry, SupersedeMode, Tier};
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

/// DEDUP-57: an end of life ends what the key said as well, and others go on to say it. A change that leaves the end, or takes it away,
/// ends nothing.
#[test]
fn dedup57_an_end_of_life_through_a_key_names_what_others_go_on_to_say() {
    fn patch(world: &World, patch: Patch) -> Outcome {
        world.ns.update("ann", patch).unwrap()
    }
    let ends: [Write; 6] = [
        ("ttl", |world| patch(world, Patch { expiry: Some(Expiry::After(span("2h"))), ..Patch::default() })),
        ("expiry", |world| {
            patch(world, Patch { expiry: Some(world.ahead("2h").into()), ..Patch::default() })
        }),
        ("touch", |world| world.ns.touch(["ann"], span("2h")).unwrap().remove(0).unwrap()),
        ("tier", |world| patch(world, Patch::new().tier(Tier::Working))),
        ("valid_to", |world| patch(world, Patch::new().valid_to(world.ahead("2h")))),
        ("add", |world| world.add(text("Ann likes tea").key("ann").expiry(Expiry::After(span("2h"))))),
    ];
    for (name, write) in ends {
        let world = World::new();
        let tea = world.add(text("Ann likes tea").key("ann")).id;
        world.add(text("Ann likes tea").key("chat"));
        world.advance("1s");
        let done = write(&world);
        let kept = KeptForOthers { id: tea, keys: vec!["chat".to_owned()], writers: 1 };
        assert_eq!((&done.decision, done.kept_for_others), (&Decision::Stored, vec![kept]), "{name}");
        world.check();
    }
    let stays: [Write; 3] = [
        ("importance", |world| patch(world, Patch::new().importance(0.9))),
        ("never", |world| patch(world, Patch { expiry: Some(Expiry::Never), ..Patch::default() })),
        ("later", |world| patch(world, Patch { expiry: Some(world.ahead("9d").into()), ..Patch::default() })),
    ];
    for (name, write) in stays {
        let world = World::new();
        let end = world.ahead("5d");
        for key in ["ann", "chat"] {
            world.add(text("Ann likes tea").key(key).expiry(Expiry::At(end)));
        }
        assert_eq!(world.live().len(), 1);
        let done = write(&world);
        assert_eq!((done.decision, done.kept_for_others), (Decision::Stored, Vec::new()), "{name}");
        world.check();
    }
}

/// DEDUP-57: a memory that is there and takes the places of others tells the same.
#[test]
fn dedup57_a_supersession_names_what_others_go_on_to_say() {
    let world = World::new();
    let drinks = ["tea", "milk", "water"];
    let ids = drinks.map(|drink| {
        let id = world.add(text(&format!("Ann likes {drink}")).key(drink)).id;
        if drink != "milk" {
            world.add(text(&format!("Ann likes {drink}")).key(format!("chat {drink}")));
        }
        id
    });
    let [coffee, cocoa] =
        ["coffee", "cocoa"].map(|key| world.add(text(&format!("Ann likes {key}")).key(key)).id);
    let kept =
        |at: usize| KeptForOthers { id: ids[at], keys: vec![format!("chat {}", drinks[at])], writers: 1 };
    let replaced = SupersedeMode::Replaced;
    let ahead = world.ns.supersede_all(["tea"], "cocoa", replaced, Some(world.ahead("1h"))).unwrap();
    assert_eq!((ahead.id, ahead.kept_for_others), (cocoa, vec![kept(0)]));
    let done = world.ns.supersede_all(["milk", "water"], "coffee", replaced, None).unwrap();
    assert_eq!((done.id, done.kept_for_others), (coffee, vec![kept(2)]));
    let all = world.db.batch(|batch| batch.supersede(world.ns.name(), ids, coffee, replaced, None));
    assert!(all.is_err(), "milk is superseded already");
    let all = world.ns.supersede_all([ids[0], ids[2]], coffee, replaced, None).unwrap();
    assert_eq!(all.kept_for_others, []);
    let mut live = [coffee, world.row("tea").id];
    live.sort_unstable();
    assert_eq!(world.live(), live);
    world.check();
}

/// DEDUP-57: the writers of a memory are those who said its text. Keys that only lead there are none, as far as they are asked.
#[test]
fn dedup57_keys_that_only_lead_to_a_text_are_none_of_its_writers() {
    for (led, keyless) in [(3, 0), (3, 2), (40, 0)] {
        let world = World::new();
        let tea = world.add(text("Ann likes tea").key("ann")).id;
        world.add(text("Ann likes tea").key("chat"));
        for tag in 0..keyless {
            world.add(text("Ann likes tea").tag(format!("t{tag}")));
        }
        for at in 0..led {
            let key = format!("old {at}");
            world.add(text(&format!("Ann liked {at}")).key(&key));
            world.ns.supersede_all([key], tea, SupersedeMode::Replaced, None).unwrap();
        }
        let done = world.ns.update("ann", change("Ann likes coffee")).unwrap();
        let [kept] = &done.kept_for_others[..] else { panic!("{done:?}") };
        assert_eq!((kept.id, &kept.keys[..]), (tea, &["chat".to_owned()][..]));
        assert!(kept.writers == 1 + keyless || led == 40 && kept.writers > 1, "{led} {keyless}: {kept:?}");
        world.check();
    }
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
