//! What an undo of an import leaves as it was before: what others have said, announced or replaced, and how long it lives.

use crate::backup::copy_of;
use crate::growth::{cost, linear};
use crate::world::{World, span, text};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{Expiry, Got, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{Draft, Forget, Memory, MemoryId, Patch, Scope};

const TAG: &str = "import:x";
const GHENT: &str = "Ann lives in Ghent";
const BRUGES: &str = "Ann lives in Bruges";
const CAT: &str = "Carl has a cat";

fn working(draft: Draft) -> Draft {
    let mut draft = draft.expiry(Expiry::After(span("9d")));
    draft.fields.tier = Some(Tier::Working);
    draft
}

/// The life of a memory: its tier and its end.
fn life(memory: &Memory) -> (Tier, Option<oubliette::Time>) {
    (memory.tier, memory.expires_at)
}

/// A line says what a key said before another line: the key's memory comes back as it was, and does not stay on the row of the import.
#[test]
fn model_33_a_key_that_was_led_to_what_it_had_said_itself_has_its_own_memory_again() {
    for by_tag in [false, true] {
        let world = World::new();
        let old = world.add(text(GHENT).key("b")).id;
        let before = life(&world.row(old));
        world.advance("1h");
        let run = world.start_import();
        let lines =
            [text(BRUGES).key("b"), text(CAT).key("c").supersedes("b"), working(text(GHENT).key("c"))];
        world.import(run, lines.map(|line| line.tag(TAG)).to_vec());
        world.advance("1h");
        if by_tag {
            world.forget_tag(TAG);
        } else {
            assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
        }
        assert_eq!((world.live(), world.row("b").id), (vec![old], old), "{by_tag}");
        assert_eq!(life(&world.row("b")), before);
        world.check();
    }
}

/// What a caller let a memory replace stays replaced by it, where an import had led the memory elsewhere meanwhile.
#[test]
fn model_33_what_a_caller_has_replaced_stays_replaced() {
    for mode in [SupersedeMode::Replaced, SupersedeMode::Correction] {
        let world = World::new();
        let here = world.add(text(GHENT).key("a")).id;
        let other = world.add(text(CAT).key("z")).id;
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![working(text(GHENT).key("c").supersedes("a"))]);
        world.advance("1h");
        let now = world.row("a").id;
        world.supersede(other, now, mode, None).unwrap();
        world.advance("1h");
        world.ns.undo(run).unwrap();
        assert_eq!((world.live(), world.row("a").id), (vec![here], here));
        assert_eq!(world.row("z").id, here, "the key leads there");
        assert_eq!(world.row(other).superseded_by(), Some(here));
        world.check();
    }
}

/// What a caller has replaced by a memory that says the same as a line stays replaced, and its key leads there.
#[test]
fn model_33_a_memory_that_says_the_same_as_a_line_keeps_what_a_caller_let_it_replace() {
    let world = World::new();
    let old = world.add(text(GHENT).key("a")).id;
    let new = world.add(text(BRUGES).key("z")).id;
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text(BRUGES).key("a")]);
    world.advance("1h");
    world.ns.supersede_all(["a"], new, SupersedeMode::Replaced, None).unwrap();
    world.advance("1h");
    assert_eq!(world.ns.undo(run).unwrap().restored, 0);
    assert_eq!((world.live(), world.row("a").id), (vec![new], new));
    assert_eq!(world.row(old).superseded_by(), Some(new));
    world.check();
}

/// A caller changes a field of a memory that a line has superseded by an equal text of its own. The memory lives as long as before.
#[test]
fn model_33_a_memory_that_a_caller_has_changed_meanwhile_lives_as_long_as_before() {
    let changes: [fn(&World); 2] = [
        |world| {
            let mut patch = Patch::default();
            patch.fields.importance = Some(0.8);
            world.ns.update("a", patch).unwrap();
        },
        |world| drop(world.ns.pin("a", true).unwrap()),
    ];
    for change in changes {
        let world = World::new();
        world.add(text(GHENT).key("a"));
        let before = life(&world.row("a"));
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![working(text(GHENT).key("c").supersedes("a"))]);
        world.advance("1h");
        change(&world);
        world.advance("1h");
        world.ns.undo(run).unwrap();
        assert_eq!(life(&world.row("a")), before);
        world.check();
        world.advance("20d");
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
        assert_eq!(world.row("a").text, GHENT);
        world.check();
    }
}

/// Two lines supersede what a key said, with its own text: the memory that is left lives as long as it did before.
#[test]
fn model_33_a_memory_that_two_lines_said_again_lives_as_long_as_before() {
    for by_tag in [false, true] {
        let world = World::new();
        world.add(text(GHENT).key("a"));
        let before = life(&world.row("a"));
        world.advance("1h");
        let run = world.start_import();
        let lines = ["c", "b"].map(|key| working(text(GHENT).key(key).supersedes("a")).tag(TAG));
        world.import(run, lines.to_vec());
        world.advance("1h");
        if by_tag {
            world.forget_tag(TAG);
        } else {
            world.ns.undo(run).unwrap();
        }
        assert_eq!((world.row("a").text, world.live().len()), (GHENT.to_owned(), 1));
        assert_eq!(life(&world.row("a")), before, "{by_tag}");
        world.check();
    }
}

/// What a caller has announced for a key has nothing of an import, and stays when the import is taken back by its tag (LIFE-26, LIFE-6).
#[test]
fn life_26_what_a_caller_has_announced_outlives_the_tag_of_an_import() {
    for by_tag in [false, true] {
        let world = World::new();
        let old = world.add(text(GHENT).key("a")).id;
        let at = Some(world.ahead("40h"));
        let replaced = world.ns.replace(["a"], text(BRUGES), SupersedeMode::Replaced, at);
        let announced = replaced.unwrap().id;
        world.advance("1h");
        let before = world.row(announced);
        let run = world.start_import();
        world.import(run, vec![text(CAT).key("a").tag(TAG).expiry(Expiry::After(span("9d")))]);
        let with_import = world.row(announced);
        assert_eq!((&with_import.tags, with_import.expires_at), (&before.tags, before.expires_at));
        world.advance("1h");
        if by_tag {
            assert_eq!(world.forget_tag(TAG).forgotten, 1);
        } else {
            assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
        }
        assert_eq!((world.row("a").id, world.row(old).valid_to), (old, at), "{by_tag}");
        world.check();
        world.advance("40h");
        assert_eq!((world.row("a").id, world.live()), (announced, vec![announced]), "{by_tag}");
        world.check();
    }
}

/// Takes an import back by its tag, or by the run.
fn take_back(world: &World, run: RunId, by_tag: bool) {
    world.advance("1h");
    match by_tag {
        true => drop(world.forget_tag(TAG)),
        false => drop(world.ns.undo(run).unwrap()),
    }
}

/// Imports lines in one run, with the tag.
fn import<const N: usize>(world: &World, lines: [Draft; N]) -> RunId {
    world.advance("1h");
    let run = world.start_import();
    world.import(run, lines.map(|line| line.tag(TAG)).to_vec());
    run
}

/// What the lines of an import said through a key is nothing that the key has said since: the last of these words goes as well.
#[test]
fn model_33_what_a_key_said_before_comes_back_whatever_the_import_said_last_through_it() {
    for by_tag in [false, true] {
        let world = World::new();
        let [old, same, other] =
            [(GHENT, "b"), (BRUGES, "d"), (CAT, "c")].map(|(said, key)| world.add(text(said).key(key)).id);
        let lines = [
            text("Carl has a dog").key("c").supersedes("b"),
            text(BRUGES).key("b"),
            text(BRUGES).key("e").supersedes("b"),
        ];
        let run = import(&world, lines);
        take_back(&world, run, by_tag);
        assert_eq!(["b", "d", "c"].map(|key| world.row(key).id), [old, same, other], "{by_tag}");
        assert_eq!(world.live(), [old, same, other]);
        assert_eq!(world.row("d").holders.len(), 1);
        world.check();
    }
}

/// What somebody let a memory replace stays replaced by that, where the key says in an import what it had only led to, and the import goes
/// on with the key that wrote the text, or with its own.
#[test]
fn model_33_what_others_had_replaced_stays_replaced_when_an_import_had_said_it_as_well() {
    for (by_tag, of_import, own) in
        [false, true].into_iter().flat_map(|a| [(a, false, false), (a, true, false), (a, false, true)])
    {
        let world = World::new();
        let [old, new] = [(GHENT, "c"), (BRUGES, "d")].map(|(said, key)| world.add(text(said).key(key)).id);
        world.advance("1h");
        let first = of_import.then(|| world.start_import());
        match first {
            Some(run) => drop(world.import(run, vec![text(BRUGES).key("d").supersedes("c")])),
            None => drop(world.ns.supersede_all(["c"], new, SupersedeMode::Replaced, None).unwrap()),
        }
        let since = |row: &Memory| (row.valid_from, row.valid_from_recorded_at);
        let began = since(&world.row(new));
        let next = match own {
            true => text(CAT).key("e").supersedes("c"),
            false => text(CAT).key("d"),
        };
        let run = import(&world, [text(BRUGES).key("c"), next]);
        take_back(&world, run, by_tag);
        let row = world.row("d");
        assert_eq!((world.live(), row.text.as_str()), (vec![row.id], BRUGES), "{by_tag} {of_import} {own}");
        assert_eq!((world.row("c").id, world.row(old).superseded_by()), (row.id, Some(row.id)));
        assert_eq!(since(&row), began, "{by_tag} {of_import} {own}");
        world.check();
        if let Some(first) = first {
            world.ns.undo(first).unwrap();
            assert_eq!(
                (world.row("c").id, world.row("d").text.as_str(), world.live().len()),
                (old, BRUGES, 2)
            );
            assert_eq!(world.row("d").valid_from, None);
            world.check();
        }
    }
}

/// Who updates a memory of several writers by its id speaks for all of them: the text of before does not come back for the others when one
/// of them leaves with an import.
#[test]
fn model_33_what_an_update_said_for_all_stays_the_word_of_those_who_stay() {
    let world = World::new();
    let old = world.add(text(GHENT)).id;
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text(GHENT).key("a")]);
    let patch = Patch { text: Some(BRUGES.to_owned()), ..Patch::default() };
    let new = world.ns.update(old.to_string(), patch).unwrap().id;
    import(&world, [text(CAT).key("a")]);
    world.forget_tag(TAG);
    world.ns.undo(run).unwrap();
    assert_eq!((world.live(), world.row(old).superseded_by()), (vec![new], Some(new)));
    world.check();
}

/// What is announced for a key replaces what the key said, and not what a line of an import said that had named it: so a copy knows it,
/// which has no journal.
#[test]
fn life_26_a_copy_knows_what_an_announced_memory_was_to_replace() {
    for copied in [false, true] {
        let mut world = World::new();
        let fact = world.add(text(CAT).key("d")).id;
        let old = world.add(text(GHENT).key("b")).id;
        let at = Some(world.ahead("90d"));
        world.ns.replace(["b"], text(BRUGES), SupersedeMode::Replaced, at).unwrap();
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text("Carl has a dog").key("d").supersedes("b").tag(TAG)]);
        world.advance("1h");
        if copied {
            world = copy_of(&world);
        }
        world.forget_tag(TAG);
        assert_eq!((world.row("d").id, world.row("b").id), (fact, old), "{copied}");
        world.check();
        world.advance("91d");
        assert_eq!((world.row("d").id, world.row(fact).valid_to), (fact, None), "{copied}");
        assert_eq!(world.row("b").text, BRUGES);
        world.check();
    }
}

/// A key that an import had led to another memory is forgotten with its history kept: an undo brings nothing of it back (LIFE-9).
#[test]
fn life_9_a_key_that_an_import_had_led_stays_forgotten() {
    let world = World::new();
    let old = world.add(text(GHENT).key("a")).id;
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text(CAT).key("c").supersedes("a")]);
    world.advance("1h");
    let names = vec!["a".to_owned()];
    let forget = Forget::Names {
        names,
        scope: Scope::Any,
        keep_history: true,
        also_merged: true,
        with_history: false,
    };
    world.ns.forget(forget).unwrap();
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), Vec::<MemoryId>::new());
    assert!(!world.is_live(old));
    world.check();
}

/// An undo of an import whose keys lead to older rows of the same import takes as many slices as any other (MODEL-33).
#[test]
fn model_33_an_undo_does_not_wait_for_each_key_that_was_led() {
    let undo = |n: usize| {
        let world = crate::growth::world();
        let run = world.start_import();
        // Each key is led to a row of the first half, and the row from which it was led is one of the last.
        let rows =
            (0..n).map(|at| text(&format!("row {at} says something of its own")).key(format!("k{at}")));
        world.import(run, rows.collect());
        let led = (0..n / 2).map(|at| {
            let (to, from) = (format!("k{at}"), format!("k{}", n - 1 - at));
            let said = format!("row {at} says something of its own");
            text(&said).key(to).supersedes(&from)
        });
        world.import(run, led.collect());
        cost(|| drop(world.ns.undo(run).unwrap()))
    };
    linear(undo(1_500), undo(6_000), 4);
}

/// An undo works in slices, and what stays does not depend on where one slice ends: what the import has said in a later slice is no
/// later word of its key (MODEL-33).
#[test]
fn model_33_an_undo_of_many_lines_leaves_what_one_of_few_leaves() {
    let left = |fillers: usize| {
        let world = World::new();
        world.add(text("Ann likes tea").key("d"));
        world.advance("1m");
        world.add(text("Ann likes coffee").key("b").supersedes("d"));
        world.advance("1m");
        let run = world.start_import();
        for (words, key) in [("Bob likes tea", "b"), ("Dan likes tea", "d")] {
            let filler = |at: usize| text(&format!("filler {at} before {key}")).key(format!("{key}{at}"));
            world.import(run, (0..fillers).map(filler).collect());
            world.import(run, vec![text(words).key(key)]);
        }
        world.advance("1m");
        world.ns.undo(run).unwrap();
        world.check();
        ["b", "d"].map(|key| world.row(key).text)
    };
    assert_eq!(left(0), ["Ann likes coffee", "Ann likes coffee"]);
    assert_eq!(left(1_050), left(0));
}

/// The first version that follows a planned change brings the two together. That the version goes as an old one, by its id or by a pass,
/// takes nothing back: what an import has come before is announced again, and so it is in a copy (MODEL-33, LIFE-10).
#[test]
fn model_33_what_was_announced_outlives_the_version_that_came_first() {
    for by_pass in [false, true] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'\nundo.horizon = '5d'", Syntax::Toml).unwrap();
        world.add(text("Ann works at Acme").key("a"));
        let at = world.ahead("60d");
        world.add(text("Ann works at Globex").key("c").supersedes("a").valid_from(at));
        world.advance("1d");
        world.add(text("Ann works at Acme, in sales").key("a"));
        let first = world.row("a").id;
        world.advance("1d");
        world.add(text("Ann works at Acme, as a head").key("a"));
        world.advance("18d");
        if by_pass {
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
        } else {
            world.forget_id(first);
        }
        assert!(!matches!(world.get(first), Ok(Got::Memory(_))));
        let run = world.start_import();
        world.import(
            run,
            vec![text("Ann works at Umbrella").key("e").supersedes("a").valid_from(world.ahead("20d"))],
        );
        world.advance("1d");
        let copy = copy_of(&world);
        for world in [&world, &copy] {
            assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
            world.check();
            world.clock.set(at);
            let texts: Vec<String> = world.live().into_iter().map(|id| world.row(id).text).collect();
            assert_eq!(texts, ["Ann works at Globex"], "{by_pass}");
        }
    }
}

/// What an import announces is corrected by its key, and the import is taken back before the instant: what is true now is true until
/// then (MODEL-33, LIFE-6).
#[test]
fn model_33_what_was_to_be_replaced_by_a_corrected_text_is_true_until_then() {
    for (by_tag, planned) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new();
        world.add(text("Ann works at Acme").key("a"));
        let globex = text("Ann works at Globex").key("c").supersedes("a").valid_from(world.ahead("60d"));
        planned.then(|| world.add(globex));
        let run = world.start_import();
        let later = text("Ann works at Umbrella").key("e").supersedes("a").valid_from(world.ahead("40d"));
        world.import(run, vec![later.tag(TAG)]);
        world.advance("1d");
        world.ns.update("e", Patch::new().text("Ann works at Umbrella Corp")).unwrap();
        world.advance("1d");
        if by_tag {
            world.forget_tag(TAG);
        } else {
            world.ns.undo(run).unwrap();
        }
        assert_eq!(world.row("a").text, "Ann works at Acme", "{by_tag} {planned}");
        assert_eq!(world.live(), vec![world.row("a").id]);
        world.check();
    }
}

/// An announced text is corrected, and its first wording goes as an old version, by its id or by a pass: the key that waits for the text
/// means what is true now, and its next texts stand alone until then (LIFE-6, LIFE-10, MODEL-8).
#[test]
fn life_10_a_key_waits_for_a_corrected_text_whose_first_wording_is_erased() {
    for by_pass in [false, true] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'\nundo.horizon = '5d'", Syntax::Toml).unwrap();
        world.add(text("Ann works at Acme").key("a"));
        let at = world.ahead("60d");
        let first = world.add(text("Ann works at Globx").key("c").supersedes("a").valid_from(at)).id;
        world.advance("1d");
        world.ns.update("c", Patch::new().text("Ann works at Globex")).unwrap();
        world.advance("20d");
        if by_pass {
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
        } else {
            world.forget_id(first);
        }
        assert!(!matches!(world.get(first), Ok(Got::Memory(_))));
        assert_eq!(world.row("a").text, "Ann works at Acme");
        world.ns.update("a", Patch::new().importance(0.9)).unwrap();
        for words in ["Ann works at Acme, in sales", "Ann works at Acme, as a head"] {
            world.advance("1d");
            world.add(text(words).key("a"));
            assert_eq!((world.row("a").text.as_str(), world.live().len()), (words, 1), "{by_pass}");
        }
        world.check();
        world.clock.set(at);
        assert_eq!(
            (world.row("a").text.as_str(), world.live().len()),
            ("Ann works at Globex", 1),
            "{by_pass}"
        );
        world.forget(&["a", "c"]);
        assert!(world.live().is_empty());
        world.check();
    }
}

/// A text is announced for what a key says, and corrected twice. Returns its instant, and the ids of the three wordings.
fn corrected_twice(world: &World) -> (oubliette::Time, Vec<MemoryId>) {
    world.add(text("Ann works at Acme").key("a"));
    let at = world.ahead("60d");
    let mut wordings = vec![world.add(text("Ann works at Globx").key("c").supersedes("a").valid_from(at)).id];
    for words in ["Ann works at Globex", "Ann works at Globex Corp"] {
        world.advance("1d");
        world.ns.update("c", Patch::new().text(words)).unwrap();
        wordings.push(world.row("c").id);
    }
    (at, wordings)
}

/// An announced text is corrected twice, and the wordings of before are forgotten one by one, in whatever order: the key that waits for
/// the text means what is true now (LIFE-10, MODEL-8).
#[test]
fn life_10_a_key_waits_for_a_text_that_was_corrected_twice() {
    for order in [vec![0], vec![1], vec![0, 1], vec![1, 0]] {
        let world = World::new();
        let (at, wordings) = corrected_twice(&world);
        for wording in &order {
            world.forget_id(wordings[*wording]);
        }
        for words in ["Ann works at Acme, in sales", "Ann works at Acme, as a head"] {
            world.advance("1d");
            world.add(text(words).key("a"));
            assert_eq!((world.row("a").text.as_str(), world.live().len()), (words, 1), "{order:?}");
        }
        world.check();
        world.clock.set(at);
        let told = (world.row("a").text, world.live().len());
        assert_eq!(told, ("Ann works at Globex Corp".to_owned(), 1), "{order:?}");
    }
}

/// An announced text is corrected twice, an import comes before it, and some of the old wordings go. The undo of the import announces the
/// last wording again (LIFE-10, MODEL-33).
#[test]
fn life_10_a_text_that_an_import_has_come_before_may_lose_its_first_wordings() {
    for (order, by_pass) in [
        (vec![0], false),
        (vec![1], false),
        (vec![0, 1], false),
        (vec![1, 0], false),
        (vec![1], true),
        (vec![], true),
    ] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'\nundo.horizon = '5d'", Syntax::Toml).unwrap();
        let (at, wordings) = corrected_twice(&world);
        world.advance("14d");
        let run = world.start_import();
        let umbrella = text("Ann works at Umbrella").key("e").supersedes("a").valid_from(world.ahead("20d"));
        world.import(run, vec![umbrella]);
        world.advance("2d");
        for wording in &order {
            world.forget_id(wordings[*wording]);
        }
        if by_pass {
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
        }
        let copy = copy_of(&world);
        for world in [&world, &copy] {
            assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
            world.check();
            assert_eq!(world.row("a").text, "Ann works at Acme", "{order:?} {by_pass}");
            world.clock.set(at);
            let told = (world.row("a").text, world.live().len());
            assert_eq!(told, ("Ann works at Globex Corp".to_owned(), 1), "{order:?} {by_pass}");
        }
    }
}

/// An import says the first text of a key since a change was announced, and is undone. The change stays announced for what the key has
/// said since, also after another import has come before it and is undone (MODEL-33).
#[test]
fn model_33_what_was_announced_outlives_the_import_that_came_first() {
    for by_tag in [false, true] {
        let world = World::new();
        world.add(text("Ann works at Acme").key("a"));
        let at = world.ahead("60d");
        world.add(text("Ann works at Globex").key("c").supersedes("a").valid_from(at));
        let first = world.start_import();
        world.import(first, vec![text("Ann works at Acme, in sales").key("a").tag(TAG)]);
        world.advance("1d");
        world.add(text("Ann works at Acme, as a head").key("a"));
        world.advance("1d");
        if by_tag {
            world.forget_tag(TAG);
        } else {
            world.ns.undo(first).unwrap();
        }
        let second = world.start_import();
        let later = text("Ann works at Umbrella").key("e").supersedes("a").valid_from(world.ahead("40d"));
        world.import(second, vec![later]);
        world.advance("1d");
        world.ns.undo(second).unwrap();
        world.check();
        world.clock.set(at);
        assert_eq!(
            (world.row("a").text.as_str(), world.live().len()),
            ("Ann works at Globex", 1),
            "{by_tag}"
        );
    }
}

/// An import comes before what a key has announced itself, and is undone: everything is as it was, and nothing is told as lost (MODEL-33).
#[test]
fn model_33_an_own_text_to_come_is_no_loss_of_an_undo() {
    for ahead in [false, true] {
        let world = World::new();
        world.add(text("Ann works at Acme").key("a"));
        let at = world.ahead("60d");
        world.ns.replace(["a"], text("Ann works at Globex"), SupersedeMode::Replaced, Some(at)).unwrap();
        world.advance("1d");
        let run = world.start_import();
        let line = text("Ann works at Umbrella").key("e").supersedes("a");
        let line = if ahead { line.valid_from(world.ahead("40d")) } else { line };
        world.import(run, vec![line]);
        world.advance("1d");
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.lost), (1, Vec::<String>::new()), "{ahead}");
        assert_eq!(world.row("a").text, "Ann works at Acme");
        world.check();
        world.clock.set(at);
        assert_eq!((world.row("a").text.as_str(), world.live().len()), ("Ann works at Globex", 1), "{ahead}");
    }
}

/// What is true at some instants ahead, and what these keys answer then.
fn told_ahead<const N: usize>(world: &World, keys: [&str; N]) -> Vec<(Vec<String>, [String; N])> {
    let now = world.now();
    let told = ["1h", "25h", "35h", "45h", "55h"].map(|hours| {
        world.clock.set(now.plus(span(hours)));
        let mut texts = Vec::from_iter(world.live().into_iter().map(|id| world.row(id).text));
        texts.sort();
        (texts, keys.map(|key| world.row(key).text))
    });
    world.clock.set(now);
    told.to_vec()
}

/// Announces a text for what a key says, by the key itself or by another one.
fn announce(world: &World, (key, words): (&str, &str), by: Option<&str>, hours: &str) {
    let at = world.ahead(hours);
    if let Some(by) = by {
        world.add(text(words).key(by).supersedes(key).valid_from(at));
    } else {
        world.ns.replace([key], text(words), SupersedeMode::Replaced, Some(at)).unwrap();
    }
}

/// A line says again what its key says, and names a memory for which a text is announced. The undo brings the memory back for its own
/// text, and what the key says ends for its own alone (MODEL-33).
#[test]
fn model_33_what_a_line_said_again_does_not_end_for_what_it_named() {
    // The hours at which what the two keys say is to be replaced, by the key itself or by another one.
    for (job, old, others) in [
        (None, "40h", false),
        (None, "40h", true),
        (Some("30h"), "40h", false),
        (Some("40h"), "30h", false),
        (Some("30h"), "40h", true),
        (Some("40h"), "30h", true),
    ] {
        for by_tag in [false, true] {
            let world = World::new();
            world.add(text("Ann works at Acme").key("job"));
            world.add(text("Ann worked at Initech").key("old"));
            if let Some(job) = job {
                announce(&world, ("job", "Ann works at Globex"), others.then_some("g"), job);
            }
            announce(&world, ("old", "Ann worked at Hooli"), others.then_some("h"), old);
            let before = told_ahead(&world, ["job", "old"]);
            let run = world.start_import();
            world.import(run, vec![text("Ann works at Acme").key("job").supersedes("old").tag(TAG)]);
            take_back(&world, run, by_tag);
            world.check();
            assert_eq!(told_ahead(&world, ["job", "old"]), before, "{job:?} {old:?} {others} {by_tag}");
        }
    }
}

/// A nightly line without a key takes the place of two memories, for each of which a text is announced. The nights are taken back one
/// after the other, and each text takes its own place again (MODEL-33, LIFE-26).
#[test]
fn model_33_what_nightly_lines_brought_together_parts_whichever_night_goes_first() {
    for by in [None, Some("h")] {
        for order in [vec![0, 1], vec![1, 0], vec![]] {
            let world = World::new();
            world.add(text("Ann works at Acme").key("job"));
            world.add(text("Ann worked at Initech").key("old"));
            announce(&world, ("job", "Ann works at Globex"), by.map(|_| "g"), "30h");
            announce(&world, ("old", "Ann worked at Hooli"), by, "40h");
            let before = told_ahead(&world, ["job", "old"]);
            let runs = [0, 1]
                .map(|_| import(&world, [text("Ann works at Umbrella").supersedes("job").supersedes("old")]));
            for night in &order {
                world.ns.undo(runs[*night]).unwrap();
            }
            if order.is_empty() {
                world.forget_tag(TAG);
            }
            world.check();
            world.clock.set(world.now().minus(span("2h")));
            assert_eq!(told_ahead(&world, ["job", "old"]), before, "{by:?} {order:?}");
        }
    }
}

/// One text is announced for two memories, which two files name through one key. One of the files is undone (MODEL-33).
#[test]
fn model_33_what_was_announced_for_two_goes_on_for_the_other_one() {
    for by in [None, Some("h")] {
        for taken in [0, 1] {
            let world = World::new();
            world.add(text("Ann works at Acme").key("job"));
            world.add(text("Ann worked at Initech").key("old"));
            world.add(text("Ann worked in a mill").key("mill"));
            let (words, at) = ("Ann works no more", world.ahead("30h"));
            if let Some(by) = by {
                world.add(text(words).key(by).supersedes("old").supersedes("mill").valid_from(at));
            } else {
                world.ns.replace(["old", "mill"], text(words), SupersedeMode::Replaced, Some(at)).unwrap();
            }
            let runs = ["old", "mill"].map(|named| {
                let run = world.start_import();
                world.import(run, vec![text("Ann works at Acme").key("job").supersedes(named)]);
                run
            });
            world.ns.undo(runs[taken]).unwrap();
            world.check();
            world.clock.set(at);
            let told = (world.row("job").text, world.row("old").text, world.live().len());
            assert_eq!(told, (words.to_owned(), words.to_owned(), 1), "{by:?} {taken}");
        }
    }
}

/// Two files say so again, each for another memory. What one of them leaves is what it leaves alone (MODEL-33).
#[test]
fn model_33_what_a_line_said_again_goes_on_for_what_others_named() {
    let keys = ["job", "old", "rest"];
    for plans in [
        ["30h", "40h", "50h"],
        ["50h", "20h", "40h"],
        ["40h", "50h", "30h"],
        ["-", "40h", "30h"],
        ["-", "20h", "50h"],
    ] {
        for by in [
            [None; 3],
            [Some("g"), Some("h"), Some("i")],
            [None, Some("h"), None],
            [Some("g"), None, Some("i")],
        ] {
            for taken in [0, 1] {
                let story = |files: &[usize]| {
                    let world = World::new();
                    world.add(text("Ann works at Acme").key("job"));
                    world.add(text("Ann worked at Initech").key("old"));
                    world.add(text("Ann had a rest").key("rest"));
                    let words = ["Ann works at Globex", "Ann worked at Hooli", "Ann has no rest"];
                    for (place, hours) in plans.iter().enumerate().filter(|(_, hours)| **hours != "-") {
                        announce(&world, (keys[place], words[place]), by[place], hours);
                    }
                    let mut runs = Vec::new();
                    for file in files {
                        let line = text("Ann works at Acme").key("job").supersedes(keys[file + 1]);
                        let run = world.start_import();
                        world.import(run, vec![line]);
                        runs.push(run);
                    }
                    (world, runs)
                };
                let (world, runs) = story(&[0, 1]);
                world.ns.undo(runs[taken]).unwrap();
                world.check();
                let (alone, _) = story(&[1 - taken]);
                assert_eq!(told_ahead(&world, keys), told_ahead(&alone, keys), "{plans:?} {by:?} {taken}");
            }
        }
    }
}

/// A key that a line has led to a memory of others, or that a caller had led there, leads where it led before the import, whatever a line
/// has said through it since (MODEL-33).
#[test]
fn model_33_a_key_leads_where_it_led_before_the_import() {
    let side = || text("side").key("s");
    let led = || text("said by a").key("a").supersedes("s");
    let later = || text("later").key("s");
    let stories: [(Vec<Draft>, Vec<Draft>); 6] = [
        (vec![side()], vec![text("new").key("k").supersedes("s"), later()]),
        (vec![side(), text("same").key("z")], vec![text("same").key("k").supersedes("s"), later()]),
        (vec![side(), led()], vec![text("new").key("a"), later()]),
        (vec![side(), led()], vec![text("new").key("k").supersedes("a"), later()]),
        (vec![side(), led()], vec![text("said by a").key("a").importance(0.9), later()]),
        (vec![side(), led()], vec![later()]),
    ];
    for (at, (before, lines)) in stories.into_iter().enumerate() {
        let world = World::new();
        before.into_iter().for_each(|draft| drop(world.add(draft)));
        world.advance("1h");
        let told = || {
            let rows = world.live().into_iter().map(|id| world.row(id));
            let mut told: Vec<_> = rows.map(|row| (row.text, row.keys)).collect();
            told.sort();
            told
        };
        let was = told();
        let run = world.start_import();
        world.import(run, lines);
        let mut lost = world.ns.undo(run).unwrap().lost;
        world.check();
        lost.retain(|why| !why.contains("changes of fields in place"));
        assert_eq!((told(), lost), (was, Vec::new()), "{at}");
    }
}
