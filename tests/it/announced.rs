//! What is told or announced again, announced for two keys that meet, and announced where an import is undone (LIFE-6, DEDUP-56,
//! MODEL-33).

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, text};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::SupersedeMode;
use oubliette::policy::Syntax;
use oubliette::{Decision, Draft, Memory, MemoryId, Patch, Time};
use serde_json::json;

const REPLACED: SupersedeMode = SupersedeMode::Replaced;

fn texts(world: &World) -> BTreeSet<String> {
    world.live().iter().map(|id| world.row(id).text).collect()
}

fn said<const N: usize>(all: [&str; N]) -> BTreeSet<String> {
    all.map(str::to_owned).into_iter().collect()
}

/// A write of a text that takes the place of what some keys say, from an instant on.
fn plan(key: &str, say: &str, old: &[&str], at: Time) -> Draft {
    let supersedes = old.iter().map(|name| (*name).to_owned()).collect();
    Draft { supersedes, ..text(say).key(key).valid_from(at) }
}

/// A plan for one instant changes, and changes back. What was announced last is true then, and to say that again changes nothing.
#[test]
fn life_6_a_plan_that_changes_back_is_what_it_was_at_first() {
    let world = World::new();
    world.add(text("the price is 10").key("price"));
    let at = world.ahead("30d");
    let announce = |price: &str| {
        world.advance("1h");
        world.add(plan("price", &format!("the price is {price}"), &["price"], at)).decision
    };
    for price in ["12", "14", "12", "14", "12"] {
        assert_eq!((announce(price), announce(price)), (Decision::Stored, Decision::Unchanged), "{price}");
    }
    world.check();
    world.advance("31d");
    assert_eq!(texts(&world), said(["the price is 12"]));
}

/// A file that plans for one instant is told night after night: with two keys of one memory, and with two lines of one key. It stores its
/// lines once, whatever it names beside (LIFE-6, DEDUP-56).
#[test]
fn dedup_56_plans_for_one_instant_told_again_are_stored_once() {
    // The keys of the lines, the order in which one call tells them, and what is true from the instant on.
    let files: [(&[&str], &str); 5] = [
        (&["a", "b"], "plan 1"),
        (&["b", "a"], "plan 1"),
        (&["a", "a"], "plan 1"),
        (&["a", "b", "a"], "plan 2"),
        (&["a", "a", "a"], "plan 2"),
    ];
    for ((keys, last), beside) in files.into_iter().flat_map(|file| [(file, None), (file, Some("x"))]) {
        let world = World::new();
        for key in ["a", "b", "x"] {
            world.add(text(&format!("{key} now")).key(key));
        }
        world.ns.supersede_all(["b"], "a", REPLACED, None).unwrap();
        let at = world.ahead("30d");
        let lines = || -> Vec<Draft> {
            let line = |(place, key): (usize, &&str)| {
                let old: Vec<&str> = [*key].into_iter().chain(beside).collect();
                plan(key, &format!("plan {place}"), &old, at)
            };
            keys.iter().enumerate().map(line).collect()
        };
        for night in 0..4 {
            world.advance("1d");
            let told = world.import(world.start_import(), lines());
            let is_again = told.iter().all(|told| told.decision == Decision::Unchanged);
            assert_eq!(is_again, night > 0, "{keys:?} {beside:?} night {night}: {told:?}");
            world.check();
        }
        world.advance("30d");
        assert!(texts(&world).contains(last), "{keys:?} {beside:?}: {:?}", texts(&world));
        assert_eq!(world.row("a").text, last, "{keys:?} {beside:?}");
    }
}

/// What was announced is said before its instant. The plan, told again, hides nothing of that, with or without others that it names.
#[test]
fn life_6_a_plan_is_told_again_where_its_text_is_true_already() {
    for old in [&["a"][..], &["a", "x"], &["x", "a"], &["x"]] {
        let world = World::new();
        world.add(text("old").key("a"));
        world.add(text("of x").key("x"));
        let at = world.ahead("30d");
        world.add(plan("a", "new", old, at));
        world.advance("1d");
        world.add(text("new").key("a"));
        for _ in 0..3 {
            world.add(plan("a", "new", old, at));
            world.check();
            assert_eq!(texts(&world), said(["new", "of x"]), "{old:?}");
        }
        world.advance("31d");
        let stays = if old.contains(&"x") { said(["new"]) } else { said(["new", "of x"]) };
        assert_eq!((texts(&world), world.row("a").text), (stays, "new".to_owned()), "{old:?}");
        world.check();
    }
}

/// A line that is told again hides nothing that a key which it had replaced has said since, now or from its instant on.
#[test]
fn dedup_56_a_line_told_again_leaves_what_a_key_says_since() {
    for ahead in [None, Some("30d")] {
        let world = World::new();
        world.add(text("a old").key("a"));
        let line = || text("b text").key("b").supersedes("a");
        let at = ahead.map(|ahead| world.ahead(ahead));
        let line = || at.map_or(line(), |at| line().valid_from(at));
        let import = |draft: Draft| {
            world.advance("1h");
            let told = world.import(world.start_import(), vec![draft]);
            world.check();
            told[0].decision.clone()
        };
        import(line());
        world.advance("31d");
        world.add(text("a new").key("a"));
        for _ in 0..2 {
            assert_eq!(import(line()), Decision::Unchanged);
            assert_eq!(texts(&world), said(["a new", "b text"]), "{ahead:?}");
        }
        world.add(line());
        assert_eq!((texts(&world), world.row("a").text), (said(["a new", "b text"]), "a new".to_owned()));
        world.check();
    }
}

/// What a supersession has said without a key is said again without an instant: it is the same memory. What a writer has given an
/// instant, and what is not true yet, is not (DEDUP-55).
#[test]
fn dedup_55_what_a_supersession_has_said_is_said_again() {
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent")).id;
    world.advance("60d");
    let replace =
        |old: MemoryId, say: &str| world.ns.replace([old.to_string()], text(say), REPLACED, None).unwrap().id;
    let bruges = replace(ghent, "Ann lives in Bruges");
    let begins = world.row(bruges).valid_from;
    for _ in 0..2 {
        world.advance("30d");
        let told = world.add(text("Ann lives in Bruges"));
        assert_eq!((told.id, told.decision), (bruges, Decision::Reinforced));
        assert_eq!(world.row(bruges).valid_from, begins);
        world.check();
    }
    world.add(text("Ann lives in Bruges").key("ann:home"));
    assert_eq!(world.live(), [bruges]);
    world.advance("30d");
    replace(bruges, "Ann lives in Antwerp");
    assert_eq!(texts(&world), said(["Ann lives in Antwerp"]));
    world.check();

    // Who names an instant says something else by leaving it out.
    let (since, later) = (world.now(), world.ahead("10d"));
    let dated = world.add(text("Bob has a dog").valid_from(since)).id;
    let ahead = world.add(text("Bob has a cat")).id;
    world.ns.replace([ahead.to_string()], text("Bob has a bird"), REPLACED, Some(later)).unwrap();
    for say in ["Bob has a dog", "Bob has a bird"] {
        let told = world.add(text(say));
        assert_eq!(told.decision, Decision::Stored, "{say}");
    }
    assert_eq!(world.row(dated).reinforcement_count, 1);
    world.check();
}

/// What a line says again may come with the tag of the day, or with a field that has changed.
#[test]
fn dedup_56_a_line_told_again_with_other_fields_leaves_what_a_key_says_since() {
    let tag = |draft: Draft, day: u8| draft.tag(format!("import:nightly:{day}"));
    let counts = |draft: Draft, day: u8| draft.metadata(json!({ "day": day }));
    let stories: [fn(Draft, u8) -> Draft; 2] = [tag, counts];
    for gives in stories {
        for (ahead, beside) in [(None, false), (Some("30d"), false), (None, true), (Some("30d"), true)] {
            let world = World::new();
            world.add(text("a old").key("a"));
            let at = ahead.map(|ahead| world.ahead(ahead));
            let line = |key: &str, day| {
                let line = text("b text").key(key);
                gives(at.map_or(line.clone(), |at| line.valid_from(at)), day)
            };
            let import = |draft: Draft| {
                world.advance("1h");
                world.import(world.start_import(), vec![draft]).remove(0)
            };
            let first = import(line("b", 1).supersedes("a")).id;
            // Another key may say the same, so that other fields part the two.
            if beside {
                assert_eq!(import(line("c", 1)).id, first);
            }
            world.advance("31d");
            world.add(text("a new").key("a"));
            for day in 2..5 {
                let told = import(line("b", day).supersedes("a"));
                assert!(beside || told.decision == Decision::Updated, "{told:?}");
                assert_eq!(
                    (texts(&world), world.row("a").text),
                    (said(["a new", "b text"]), "a new".to_owned()),
                    "{ahead:?} {beside} {day}"
                );
                world.check();
            }
        }
    }
}

/// A key that only led to a text says it for the first time: that is no write again.
#[test]
fn dedup_56_a_line_that_says_what_its_key_led_to_replaces_what_it_names() {
    let world = World::new();
    for key in ["a", "b", "c"] {
        world.add(text(&format!("{key} text")).key(key));
    }
    world.ns.supersede_all(["b"], "c", REPLACED, None).unwrap();
    world.advance("1h");
    world.add(text("a new").key("a"));
    world.advance("1h");
    world.add(text("c text").key("b").supersedes("a"));
    assert_eq!(texts(&world), said(["c text"]));
    world.check();
}

/// The text whose place a line had taken may be gone: forgotten by its id, or by a pass.
#[test]
fn dedup_56_a_line_told_again_leaves_what_a_key_says_since_its_old_text_is_gone() {
    let goes: [fn(&World, MemoryId); 2] = [
        |world, old| drop(world.forget_id(old)),
        |world, _| {
            world.db.set_policy("[sweeper]\ntombstone_ttl = \"30d\"", Syntax::Toml).unwrap();
            world.advance("40d");
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
        },
    ];
    for go in goes {
        let world = World::new();
        let old = world.add(text("a old").key("a")).id;
        let line = || text("b text").key("b").supersedes("a");
        world.advance("1h");
        world.import(world.start_import(), vec![line()]);
        world.advance("1h");
        world.add(text("a new").key("a"));
        world.advance("1h");
        go(&world, old);
        assert!(world.get(old).unwrap().into_memory().is_none());
        for draft in [line(), line().tag("import:nightly:2")] {
            world.advance("1h");
            world.import(world.start_import(), vec![draft]);
            assert_eq!((texts(&world), world.row("a").text), (said(["a new", "b text"]), "a new".to_owned()));
            world.check();
        }
    }
    // A name that a line has for the first time is of no text that is gone.
    let world = World::new();
    world.add(text("b text").key("b"));
    world.advance("1h");
    world.add(text("a text").key("a"));
    world.advance("1h");
    world.add(text("b text").key("b").supersedes("a"));
    assert_eq!((texts(&world), world.row("a").text), (said(["b text"]), "b text".to_owned()));
}

/// What is true by each of these hours from now.
fn by_hours<const N: usize>(world: &World, hours: [&str; N]) -> [BTreeSet<String>; N] {
    let now = world.now();
    hours.map(|hours| {
        world.advance(hours);
        let said = texts(world);
        world.clock.set(now);
        said
    })
}

/// A memory with a plan takes the place of a key that is to say a step of this plan: the steps after that stand.
#[test]
fn life_6_a_memory_that_takes_the_place_of_a_step_of_its_plan_keeps_the_later_steps() {
    let world = World::new();
    for key in ["a", "b"] {
        world.add(text(&format!("{key} now")).key(key));
    }
    let (ten, at, end) = (world.ahead("10h"), world.ahead("15h"), world.ahead("20h"));
    world.ns.replace(["b", "a"], text("then").key("a"), REPLACED, Some(at)).unwrap();
    world.add(text("then").key("c").valid_from(at));
    world.ns.replace(["a"], text("in the end"), REPLACED, Some(end)).unwrap();
    world.advance("1h");
    world.ns.supersede_all(["c"], "b", REPLACED, Some(ten)).unwrap();
    world.check();
    assert_eq!(
        by_hours(&world, ["11h", "16h", "21h"]),
        [said(["a now", "b now"]), said(["then"]), said(["in the end"])]
    );
    world.advance("21h");
    assert_eq!(["a", "b", "c"].map(|key| world.row(key).text), ["in the end"; 3]);
    world.check();
}

/// What a key says today is forgotten by its id. A text written through the key is true until the first text comes that was announced, whether
/// the key only leads there or has announced the text itself, and whatever follows that.
#[test]
fn life_6_a_text_in_the_place_of_a_forgotten_one_ends_for_the_first_step_of_a_plan() {
    for leads in [true, false] {
        for follows in [true, false] {
            let world = World::new();
            let a = world.add(text("a now").key("a")).id;
            let b = world.add(text("b now").key("b")).id;
            let (at, end) = (world.ahead("15h"), world.ahead("20h"));
            world.ns.replace(["a", "b"], text("then").key("a"), REPLACED, Some(at)).unwrap();
            if follows {
                world.ns.replace(["a"], text("in the end"), REPLACED, Some(end)).unwrap();
            }
            world.advance("1h");
            let (gone, key, stays) = if leads { (b, "b", "a now") } else { (a, "a", "b now") };
            world.forget_id(gone);
            world.add(text("meanwhile").key(key));
            world.check();
            let last = if follows { "in the end" } else { "then" };
            assert_eq!(
                by_hours(&world, ["1h", "15h", "21h"]),
                [said(["meanwhile", stays]), said(["then"]), said([last])],
                "{leads} {follows}"
            );
            world.advance("21h");
            assert_eq!(["a", "b"].map(|key| world.row(key).text), [last; 2]);
            world.check();
        }
    }
}

/// What the line had replaced may be said again, by a retry or by an edited file: then it is replaced again.
#[test]
fn dedup_56_a_line_told_again_replaces_what_its_file_says_before_it() {
    let world = World::new();
    let lines = |a: &str, b: &str| [text(a).key("a"), text(b).key("b").supersedes("a")];
    let import = |a: &str, b: &str, way: usize| {
        world.advance("1h");
        match way {
            0 => drop(world.import(world.start_import(), lines(a, b).to_vec())),
            1 => {
                let run = world.start_import();
                lines(a, b).into_iter().for_each(|line| drop(world.import(run, vec![line])));
            }
            _ => lines(a, b).into_iter().for_each(|line| drop(world.add(line))),
        }
        world.check();
        texts(&world)
    };
    for way in 0..3 {
        for a in ["a old", "a old"] {
            assert_eq!(import(a, "b text", way), said(["b text"]), "{way}");
        }
    }
    for way in 0..2 {
        assert_eq!(import(&format!("a edited {way}"), "b text", way), said(["b text"]), "{way}");
    }
    // A line that has gone on itself is told again, and leaves what the key says since.
    import("a old", "b more", 0);
    world.add(text("a new").key("a"));
    world.advance("1h");
    let told = world.add(text("b more").key("b").supersedes("a"));
    assert_eq!((told.decision, texts(&world)), (Decision::Unchanged, said(["a new", "b more"])));
}

/// Two keys have announced a text each, and one of them is led to the other: what both have announced comes, each at its instant, for the
/// memory of both, whatever is written meanwhile (MODEL-8).
#[test]
fn life_6_two_plans_of_one_memory_come_one_after_the_other() {
    for first in ["a", "b"] {
        let world = World::new();
        for key in ["a", "b"] {
            announce(&world, key, if key == first { "10d" } else { "20d" });
            world.advance("1h");
        }
        world.ns.supersede_all(["a"], "b", REPLACED, None).unwrap();
        world.check();
        world.ns.update("b", Patch::new().importance(0.7)).unwrap();
        world.check();
        let second = if first == "a" { "b" } else { "a" };
        for says in ["b now".to_owned(), format!("{first} later"), format!("{second} later")] {
            assert_eq!(texts(&world), BTreeSet::from([says]));
            assert_eq!(world.row("a").id, world.row("b").id);
            world.advance("10d");
        }
        world.check();
    }
}

/// A text for two keys comes before what one of them has announced: the other key goes on there as well, whatever is written meanwhile.
#[test]
fn life_6_both_keys_of_a_text_go_on_to_what_one_of_them_has_announced() {
    for writes in [None, Some("a"), Some("c")] {
        let world = World::new();
        for key in ["a", "c"] {
            world.add(text(&format!("{key} now")).key(key));
        }
        world.ns.replace(["a"], text("a later"), REPLACED, Some(world.ahead("20d"))).unwrap();
        world.advance("1h");
        world.ns.replace(["a"], text("of both").key("c"), REPLACED, Some(world.ahead("10d"))).unwrap();
        world.check();
        if let Some(key) = writes {
            world.ns.update(key, Patch::new().importance(0.7)).unwrap();
            world.check();
        }
        for says in [["a now", "c now"], ["of both"; 2], ["a later"; 2]] {
            assert_eq!(
                (texts(&world), ["a", "c"].map(|key| world.row(key).text)),
                (said(says), says.map(str::to_owned))
            );
            world.advance("10d");
        }
        world.check();
    }
}

/// A memory takes the place of another one and is itself to be replaced: the key goes along.
#[test]
fn life_6_a_key_goes_on_to_what_replaces_the_memory_to_which_it_leads() {
    let world = World::new();
    for key in ["a", "b"] {
        world.add(text(&format!("{key} now")).key(key));
    }
    world.ns.replace(["a"], text("a later"), REPLACED, Some(world.ahead("10d"))).unwrap();
    world.advance("1h");
    world.ns.supersede_all(["b"], "a", REPLACED, None).unwrap();
    world.check();
    world.advance("11d");
    assert_eq!((world.row("a").text, world.row("b").id), ("a later".to_owned(), world.row("a").id));
}

/// What is true day after day, with the keys that answer with it.
fn days(world: &World) -> Vec<BTreeMap<String, Vec<String>>> {
    let now = world.now();
    let mut days = Vec::new();
    for _ in 0..40 {
        let rows = world.live().into_iter().map(|id| world.row(id));
        days.push(rows.map(|row| (row.text.clone(), answering(world, &row))).collect());
        world.advance("1d");
    }
    world.clock.set(now);
    days
}

fn answering(world: &World, row: &Memory) -> Vec<String> {
    row.keys.iter().filter(|key| world.row(key).id == row.id).cloned().collect()
}

/// What a key says, and what it is to say from a day on.
fn announce(world: &World, key: &str, days: &str) {
    world.add(text(&format!("{key} now")).key(key));
    let later = text(&format!("{key} later"));
    world.ns.replace([key], later, REPLACED, Some(world.ahead(days))).unwrap();
}

/// What a caller does before an import or after it.
type Act = fn(&World);

/// An import of one line, with what is there before and what a caller does between it and its undo.
struct Undone {
    before: Act,
    line: fn(&World) -> Draft,
    between: Act,
}

impl Undone {
    /// What is true day after day, with the import undone or without the import, and what the undo has told.
    fn told(&self, imports: bool) -> (Vec<BTreeMap<String, Vec<String>>>, Vec<String>) {
        let world = World::new();
        (self.before)(&world);
        world.advance("1h");
        let run = imports.then(|| world.start_import());
        if let Some(run) = run {
            world.import(run, vec![(self.line)(&world)]);
        }
        world.advance("1h");
        (self.between)(&world);
        world.advance("1h");
        let lost = run.map(|run| world.ns.undo(run).unwrap().lost);
        world.check();
        (days(&world), lost.unwrap_or_default())
    }
}

/// MODEL-33: what was announced for a memory takes its place again, and only its place, whatever an import had put there.
#[test]
fn model_33_an_undone_import_leaves_what_is_announced_as_it_is_without_the_import() {
    let nothing: Act = |_| {};
    let two: Act = |world| {
        announce(world, "a", "29d");
        announce(world, "c", "9d");
    };
    let one: Act = |world| {
        world.add(text("c now").key("c"));
        announce(world, "a", "29d");
    };
    let led: Act = |world| {
        world.add(text("a now").key("a"));
        world.add(text("b now").key("b"));
        world.add(text("z now").key("z"));
        world.ns.supersede_all(["a"], "b", REPLACED, Some(world.ahead("19d"))).unwrap();
    };
    let restored: Act = |world| drop(world.ns.restore("a").unwrap());
    let stories = [
        // The memory that the line names, or its own key, or both, have a text announced.
        Undone { before: two, line: |_| text("import").key("c").supersedes("a"), between: nothing },
        Undone { before: two, line: |_| text("import").key("a").supersedes("c"), between: nothing },
        Undone {
            before: two,
            line: |world| plan("c", "import", &["a"], world.ahead("5d")),
            between: nothing,
        },
        Undone {
            before: two,
            line: |world| plan("a", "import", &["c"], world.ahead("5d")),
            between: nothing,
        },
        Undone {
            before: one,
            line: |world| plan("c", "import", &["a"], world.ahead("9d")),
            between: nothing,
        },
        Undone { before: one, line: |_| text("import").key("c").supersedes("a"), between: nothing },
        // A caller calls off what was announced.
        Undone { before: one, line: |_| text("import").key("a").supersedes("a"), between: restored },
        Undone { before: one, line: |_| text("import").key("a"), between: restored },
        Undone {
            before: led,
            line: |world| plan("a", "import", &["z"], world.ahead("14d")),
            between: restored,
        },
        // A caller corrects what is true until then.
        Undone {
            before: led,
            line: |world| plan("n", "import", &["a"], world.ahead("14d")),
            between: |world| drop(world.ns.update("a", Patch::new().text("a corrected")).unwrap()),
        },
    ];
    for (at, story) in stories.iter().enumerate() {
        let (without, _) = story.told(false);
        let (undone, lost) = story.told(true);
        assert_eq!(undone, without, "{at}: {lost:?}");
    }
}

/// Two keys are to say one text, and one of them another text after that. Both texts come back, each by its name: what the key said before
/// stays until its own text comes, and a write through the key leaves the text of the other key alone (MODEL-8).
#[test]
fn life_7_an_announced_text_comes_back_where_the_key_leads_to_a_text_of_others_before() {
    for write in [None, Some("c says more")] {
        let world = World::new();
        for key in ["b", "c"] {
            world.add(text(&format!("{key} now")).key(key));
        }
        let (at, end) = (world.ahead("15h"), world.ahead("20h"));
        let both = world.ns.replace(["b", "c"], text("of both"), REPLACED, Some(at)).unwrap().id;
        let own = world.ns.replace(["c"], text("of c"), REPLACED, Some(end)).unwrap().id;
        for back in [both, own] {
            world.advance("1m");
            world.ns.restore(back).unwrap();
            world.check();
        }
        let now = write.unwrap_or("c now");
        if let Some(write) = write {
            world.add(text(write).key("c"));
        }
        world.check();
        assert_eq!(
            by_hours(&world, ["1h", "16h", "21h"]),
            [said(["b now", now]), said(["of both", now]), said(["of both", "of c"])]
        );
        assert_eq!((world.row(both).keys, world.row(own).keys), (vec!["b".to_owned()], vec!["c".to_owned()]));
        world.advance("21h");
        assert_eq!(["b", "c"].map(|key| world.row(key).text), ["of both", "of c"]);
        world.check();
    }
}

/// A memory takes the place of several keys in one call, or in one call for each: what was announced for them comes after it, as well as what
/// was announced for the memory itself. Another writer of a memory that a key has left goes on to what was announced for both.
#[test]
fn life_6_several_keys_are_led_to_all_that_is_announced_for_them() {
    let orders = [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]];
    let told = |names: [&str; 3], at_once: bool, has_plan: bool| {
        let world = World::new();
        for key in ["a", "b", "c", "new"] {
            world.add(text(&format!("{key} now")).key(key));
        }
        let plans = |name: &dyn ToString, say: &str, days: &str| {
            let (say, at) = (text(&format!("{say} from {days} on")), world.ahead(days));
            world.ns.replace([name.to_string()], say, REPLACED, Some(at)).unwrap();
        };
        // What all say who wrote the text of `a`.
        assert_eq!(world.add(text("a now").key("other")).id, world.row("a").id);
        plans(&world.row("a").id, "a", "20d");
        for days in ["15d", "30d"] {
            plans(&"b", "b", days);
        }
        plans(&"c", "c", "25d");
        for days in ["18d", "35d"].into_iter().filter(|_| has_plan) {
            plans(&"new", "new", days);
        }
        let at = Some(world.ahead("10d"));
        let calls: Vec<&[&str]> = if at_once { vec![&names] } else { names.chunks(1).collect() };
        for names in calls {
            world.advance("1m");
            world.ns.supersede_all(names.iter().copied(), "new", REPLACED, at).unwrap();
            world.check();
        }
        let day = |_| {
            let rows = world.live().into_iter().map(|id| world.row(id));
            let rows = rows.map(|row| (row.text.clone(), answering(&world, &row))).collect::<BTreeSet<_>>();
            let other = world.row("other").text;
            world.advance("1d");
            (rows, other)
        };
        (0..40).map(day).collect::<Vec<_>>()
    };
    for has_plan in [false, true] {
        let one_by_one = told(orders[0], false, has_plan);
        for names in orders {
            assert_eq!(told(names, true, has_plan), one_by_one, "{names:?} {has_plan}");
        }
        for (day, (_, other)) in one_by_one.iter().enumerate() {
            assert_eq!(other == "a now", day < 20, "day {day}: {other}");
        }
    }
}

/// A text that is to come, and which a key says already, goes with the word of the key where its other writer is gone. What was to come after
/// it comes all the same.
#[test]
fn life_6_what_follows_a_text_that_goes_takes_the_place_of_what_a_key_says() {
    let world = World::new();
    for key in ["b", "c"] {
        world.add(text(&format!("{key} now")).key(key));
    }
    let later = world.add(plan("d", "the plan", &["b"], world.ahead("20h"))).id;
    world.ns.supersede_all([later], "c", REPLACED, Some(world.ahead("30h"))).unwrap();
    world.add(text("the plan").key("b"));
    world.forget(&["d"]);
    world.check();
    world.add(text("b more").key("b"));
    world.check();
    assert_eq!(texts(&world), said(["b more"]));
    world.advance("31h");
    assert_eq!((texts(&world), world.row("b").text), (said(["c now"]), "c now".to_owned()));
    world.check();
}

/// A key says what it is to be led to anyway. Until that memory begins, the key means what it has said itself, whatever the text is (MODEL-8).
#[test]
fn life_6_a_key_that_is_led_to_the_text_that_it_says_means_its_own_until_then() {
    type Write = fn(&World);
    let writes: [(Write, &str); 4] = [
        (|world| drop(world.add(text("more").key("b"))), "more"),
        (|world| drop(world.ns.update("b", Patch::new().text("more")).unwrap()), "more"),
        (|world| drop(world.ns.replace(["b"], text("more"), REPLACED, None).unwrap()), "more"),
        (|world| drop(world.ns.supersede_all(["b"], "e", REPLACED, None).unwrap()), "e says"),
    ];
    for (write, then) in writes {
        let world = World::new();
        for key in ["b", "e"] {
            world.add(text(&format!("{key} says")).key(key));
        }
        let (at, end) = (world.ahead("15h"), world.ahead("20h"));
        world.add(plan("d", "the plan", &["b"], end));
        world.add(text("one text").key("d").valid_from(at));
        world.advance("1h");
        let own = world.add(text("one text").key("b")).id;
        world.advance("15h");
        assert_eq!(world.row("b").id, own);
        write(&world);
        world.check();
        let mut live: Vec<String> = world.live().into_iter().map(|id| world.row(id).text).collect();
        live.sort();
        let all: Vec<String> = said(["e says", "one text", then]).into_iter().collect();
        assert_eq!((live, world.row("b").text), (all, then.to_owned()));
        world.advance("5h");
        assert_eq!(world.row("b").text, "one text");
        world.check();
    }
}

/// A key leads to what another key is to say, and then says a text of its own. Where the other key goes back to a text that comes after that,
/// or before it, the key keeps its own (MODEL-8).
#[test]
fn life_7_a_key_that_is_to_say_its_own_text_does_not_lead_to_what_comes_back() {
    for (own, comes) in [("20h", "21h"), ("21h", "20h")] {
        let world = World::new();
        for key in ["a", "b", "c"] {
            world.add(text(&format!("{key} now")).key(key));
        }
        let replace = |names: [&str; 2], say: &str, at: Option<&str>| {
            world.advance("1m");
            let key = say.split(' ').next().unwrap();
            let at = at.map(|at| world.ahead(at));
            world.ns.replace(names, text(say).key(key), REPLACED, at).unwrap();
            world.check();
        };
        replace(["b", "a"], "b for both", None);
        replace(["b", "b"], "b later", Some("10h"));
        replace(["c", "a"], "c in the end", Some(own));
        replace(["c", "a"], "c before", Some("5h"));
        let back = world.add(text("b comes back").key("b").valid_from(world.ahead(comes))).id;
        replace(["c", "b"], "a for both", Some("10h"));
        world.ns.restore(back).unwrap();
        world.check();
        world.advance("22h");
        assert_eq!(texts(&world), said(["b comes back", "c in the end"]), "{own}");
        assert_eq!(
            (world.row("b").text, world.row("c").text),
            ("b comes back".into(), "c in the end".into())
        );
        world.check();
    }
}
