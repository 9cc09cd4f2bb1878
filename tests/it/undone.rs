//! What an undo leaves as it was: what was said before the run, by others, or by the same keys since (MODEL-30, MODEL-33, MODEL-67).

use std::collections::BTreeSet;

use crate::growth::{cost, exported, linear};
use crate::world::{World, axis, revised, text};
use oubliette::exchange::{Import, LineReader};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{AuthorKind, EventQuery, Expiry, Field, PointInTime, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{Decision, Draft, Kind, PageRequest, Patch, Scope, Span, State, WriteOptions};

fn pass(world: &World, passes: &[Pass]) -> Option<RunId> {
    world.db.maintain_with(&MaintainOptions::live().passes(passes.to_vec())).unwrap().run
}

fn short_lived(words: &str, key: &str) -> Draft {
    let mut draft = text(words).key(key);
    draft.fields.tier = Some(Tier::Working);
    draft
}

/// A message that maintenance has handed on to a memory of the import was said before the import.
#[test]
fn model_30_a_message_of_before_stays_when_the_memory_that_tells_it_goes() {
    let world = World::new();
    world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
    let mut message = text("the build is red").key("k").kind(Kind::Message);
    message.fields.author_kind = Field::from(Some(AuthorKind::Human));
    message.fields.author_id = Field::from(Some("ann".to_owned()));
    world.add(message);
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("the build is green").key("k")]);
    world.advance("20d");
    pass(&world, &[Pass::Superseded]);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.lost), (1, Vec::<String>::new()));
    let told = world.ns.events(&EventQuery::default()).unwrap().items;
    let [event] = &told[..] else { panic!("{told:?}") };
    assert_eq!((event.payload.as_deref(), event.key.as_deref()), (Some("the build is red"), Some("k")));
    world.check();
    world.forget(&["k"]);
    assert_eq!(world.ns.events(&EventQuery::default()).unwrap().items[0].payload, None);
}

/// So does the message of a key that has gone on to say something else, whose memory an import has come to share. The proof of
/// erasure asks for none of its words, until somebody forgets it.
#[test]
fn model_30_a_message_of_before_stays_when_its_key_has_said_something_else() {
    let said = |words: &str, key: &str| {
        let mut message = text(words).key(key).kind(Kind::Message);
        message.fields.author_kind = Field::from(Some(AuthorKind::Human));
        message.fields.author_id = Field::from(Some("bob".to_owned()));
        message
    };
    for by_key in [false, true] {
        let world = World::new();
        let first = world.add(said("the early deploy of build 17 is done", "k1")).id;
        let run = world.start_import();
        world.import(run, vec![said("the early deploy of build 17 is done", "k2")]);
        world.advance("1h");
        world.add(said("the deploy of build 18 failed", "k1"));
        let told = || -> Vec<Option<String>> {
            let all = world.ns.events(&EventQuery::default()).unwrap().items;
            all.into_iter().map(|event| event.payload).collect()
        };
        let all = told();
        let undone = world.ns.undo(run).unwrap();
        assert!(!world.is_live(first) && !undone.lost.iter().any(|lost| lost.contains("repeated")));
        assert!(told().contains(&Some("the early deploy of build 17 is done".to_owned())));
        assert_eq!(told().iter().flatten().count(), all.iter().flatten().count() - 1);
        world.db.compact().unwrap();
        let probe = ErasedProbe {
            texts: vec!["the early deploy of build 17 is done".to_owned()],
            ..ErasedProbe::default()
        };
        let checked =
            world.db.check(&CheckOptions { erased: vec![probe], ..CheckOptions::default() }).unwrap();
        assert!(checked.ok, "{checked:?}");
        if by_key {
            world.forget(&["k1"])
        } else {
            world.forget_id(first)
        };
        assert!(!told().contains(&Some("the early deploy of build 17 is done".to_owned())));
        world.check();
    }
}

/// The end of a text is no end of what its key had said before, whether or not maintenance has erased that meanwhile.
#[test]
fn life_56_the_end_of_a_text_takes_no_message_of_the_text_before() {
    for erased in [false, true] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
        let mut message = text("the build is red").key("k").kind(Kind::Message);
        message.fields.author_kind = Field::from(Some(AuthorKind::Human));
        message.fields.author_id = Field::from(Some("ann".to_owned()));
        world.add(message);
        world.advance("1h");
        world.add(text("the password of the day is 1234").key("k").expiry(Expiry::At(world.ahead("20d"))));
        world.advance("15d");
        if erased {
            pass(&world, &[Pass::Superseded]);
        }
        world.advance("10d");
        pass(&world, &[Pass::Expire]);
        assert!(!world.has_bytes_of("password") || world.live().is_empty());
        let told = world.ns.events(&EventQuery::default()).unwrap().items;
        assert_eq!(told[0].payload.as_deref(), Some("the build is red"), "{erased}");
        world.check();
    }
}

/// A text that maintenance erases before the end that a caller had set for it keeps the promise of that end.
#[test]
fn life_56_the_message_of_a_version_with_an_end_goes_with_the_version() {
    for ends in [false, true] {
        let world = World::new();
        world.db.set_policy("sweeper.tombstone_ttl = '10d'", Syntax::Toml).unwrap();
        let mut message = text("the door code is 1234 today").key("k").kind(Kind::Message);
        message.fields.author_kind = Field::from(Some(AuthorKind::Human));
        message.fields.author_id = Field::from(Some("ann".to_owned()));
        world.add(message.expiry(Expiry::At(world.ahead("20d"))));
        world.advance("1h");
        let later = text("the door has a key").key("k");
        world.add(if ends { later.expiry(Expiry::At(world.ahead("20d"))) } else { later });
        world.advance("15d");
        pass(&world, &[Pass::Superseded]);
        world.advance("10d");
        pass(&world, &[Pass::Limbo, Pass::Expire]);
        assert_eq!(world.ns.events(&EventQuery::default()).unwrap().items[0].payload, None, "{ends}");
        world.check();
    }
}

/// What was superseded by the import is live again, also from limbo, into which its own end had brought it.
#[test]
fn model_33_what_has_ended_meanwhile_is_live_again() {
    for named in [false, true] {
        let world = World::new();
        world.db.set_policy("undo.horizon = '60d'", Syntax::Toml).unwrap();
        let old = world.add(short_lived("an old fact", "o")).id;
        let new = named.then(|| world.add(text("a new fact").key("n")).id);
        world.advance("1h");
        let run = world.start_import();
        let line = match named {
            true => text("a new fact").key("n").supersedes("o"),
            false => text("quite another matter").key("o"),
        };
        world.import(run, vec![line]);
        world.advance("9d");
        pass(&world, &[Pass::Expire]);
        assert!(!world.is_live(old));
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.lost), (1, Vec::<String>::new()));
        assert_eq!(world.row("o").id, old);
        assert_eq!(world.live().len(), 1 + usize::from(named));
        assert!(new.is_none_or(|new| world.is_live(new)));
        world.check();
    }
}

/// A line may name what a line before it has brought. Both go, and nothing is lost.
#[test]
fn model_33_what_the_run_had_brought_itself_is_not_missed() {
    let world = World::new();
    world.add(text("a new fact").key("n"));
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("an older statement").key("o"), text("a new fact").key("n").supersedes("o")]);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.lost), (1, Vec::<String>::new()));
    assert_eq!(world.live(), [world.row("n").id]);
    assert_eq!(world.row("n").valid_from, None);
    world.check();
}

/// What took the place of a row that somebody has forgotten since is true from when it was before the import.
#[test]
fn model_33_a_begin_goes_with_the_import_that_gave_it() {
    let world = World::new();
    let old = world.add(text("Ann lives in Ghent").key("o")).id;
    world.add(text("Fay reads novels").key("n"));
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("Fay reads novels").key("n").supersedes("o")]);
    assert!(world.row("n").valid_from.is_some());
    world.forget_id(old);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!(undone.lost, [format!("{old} does not come back: it is gone")]);
    assert_eq!(world.row("n").valid_from, None);
    world.check();
}

/// Each writer of a row that comes back keeps to what it said itself since, also where that has ended and is not swept yet.
#[test]
fn model_67_a_key_does_not_say_what_another_writer_has_said_since() {
    let world = World::new();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let near = |words: &str, key: &str| text(words).key(key).vector(axis(0));
    let stays = near("Ann lives in Paris", "o").importance(1.0);
    world.ns.add_all(vec![stays], &apart).unwrap();
    world.advance("1m");
    world.ns.add_all(vec![near("Ann lives in Paris.", "k1")], &apart).unwrap();
    world.add(near("Ann lives in Paris.", "k2"));
    world.advance("1h");
    let run = pass(&world, &[Pass::VectorDuplicates]).unwrap();
    assert_eq!(world.live().len(), 1);
    world.advance("1h");
    let end = Expiry::At(world.ahead("1d"));
    world.add(text("Bob was here").key("k1").vector(axis(1)).expiry(end));
    world.advance("1h");
    let later = world.add(text("Carl likes cheese").key("k2").vector(axis(2))).id;
    world.advance("3d");
    world.ns.undo(run).unwrap();
    assert_eq!(world.row(later).keys, ["k2"]);
    world.check();
}

/// A write through a key lets what is announced for the key wait, and puts it back. That is no work of the import, also where both
/// came at one instant.
#[test]
fn model_33_what_was_announced_before_an_import_stays_announced() {
    let world = World::new();
    world.add(text("tea").key("k"));
    let at = world.ahead("1d");
    let replaced = world.ns.replace(["k"], text("coffee"), SupersedeMode::Replaced, Some(at));
    let coffee = replaced.unwrap().id;
    let run = world.start_import();
    world.import(run, vec![text("tea").key("k").tag("hot")]);
    world.advance("2d");
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), [coffee]);
    world.check();
}

/// Taking back an import of many versions of one key costs for each version the same.
#[test]
fn an_import_of_many_versions_of_one_key_goes() {
    let of = |n: usize| {
        let world = World::new();
        let run = world.start_import();
        let how = WriteOptions { run: Some(run), no_dedup: true, ..WriteOptions::default() };
        let lines = (0..n).map(|at| text(&format!("status {at} of the machine is {}", at * 7)).key("k"));
        world.ns.add_all(lines.collect(), &how).unwrap();
        let cost = cost(|| assert_eq!(world.ns.undo(run).unwrap().removed, n as u64));
        assert!(world.live().is_empty());
        cost
    };
    linear(of(50), of(200), 4);
}

/// A line may name what an earlier line of the import had brought: with that, what that had superseded comes back, too.
#[test]
fn model_33_what_a_named_row_of_the_import_had_superseded_is_live_again() {
    for (rewritten, by_tag) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new();
        let old = world.add(text("Carl has a cat").key("k1")).id;
        let stays = world.add(text("Fay reads novels").key("k0")).id;
        world.advance("1h");
        let run = world.start_import();
        let mut lines =
            vec![text("Emil went to Rome").key("k1"), text("Fay reads novels").key("k0").supersedes("k1")];
        lines.extend(rewritten.then(|| text("Emil is back from Rome").key("k1")));
        // A tag on the line of what stays would be a change of its fields.
        let tagged = |(at, line): (usize, Draft)| if at == 1 { line } else { line.tag(TAG) };
        world.import(run, lines.into_iter().enumerate().map(tagged).collect());
        assert!(!world.is_live(old));
        if by_tag {
            world.forget_tag(TAG);
        } else {
            let undone = world.ns.undo(run).unwrap();
            assert_eq!((undone.restored, undone.lost), (1, Vec::<String>::new()));
        }
        assert!(world.is_live(old));
        assert_eq!((world.row(old).keys, world.row(stays).valid_from), (vec!["k1".to_owned()], None));
        world.check();
    }
}

/// The same of a row of another import that is undone before.
#[test]
fn model_33_what_led_on_to_a_row_is_live_again_after_both_imports_are_undone() {
    let world = World::new();
    let old = world.add(text("Carl has a cat").key("k1")).id;
    world.add(text("Fay reads novels").key("k0"));
    world.advance("1h");
    let first = world.start_import();
    world.import(first, vec![text("Emil went to Rome").key("k1")]);
    world.advance("1h");
    let second = world.start_import();
    world.import(second, vec![text("Fay reads novels").key("k0").supersedes("k1")]);
    world.advance("1h");
    world.ns.undo(first).unwrap();
    assert!(!world.is_live(old));
    let undone = world.ns.undo(second).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 1));
    assert!(world.is_live(old));
    world.check();
}

/// A key that a line of an import had led to another memory, and which has said the same since by itself, keeps its word.
#[test]
fn model_33_what_a_key_has_said_since_where_an_import_had_led_it_stays() {
    for (shared, kept) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new();
        let before = world.add(text(GHENT).key("k")).id;
        let old = world.add(text("Carl has a cat").key("a")).id;
        if shared {
            world.add(text("Carl has a cat").key("b"));
        }
        if kept {
            world.add(text(BRUGES).key("c"));
        }
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text(BRUGES).key("k").supersedes("a")]);
        world.advance("1h");
        world.add(text(BRUGES).key("a"));
        world.advance("1h");
        let undone = world.ns.undo(run).unwrap();
        assert_eq!(undone.lost.len(), 1, "{:?}", undone.lost);
        let said = |key: &str| world.row(key).text;
        assert_eq!((said("a").as_str(), said("k").as_str()), (BRUGES, GHENT));
        assert_eq!((world.is_live(before), world.is_live(old)), (true, shared));
        assert!(!shared || said("b") == "Carl has a cat");
        world.check();
        world.forget(&["a"]);
        assert_eq!(world.live().len(), 1 + usize::from(shared) + usize::from(kept));
        assert!(world.is_live(before) && (!kept || said("c") == BRUGES));
        world.check();
    }
}

/// The memory that a line had put in the place of another may go with the last of its writers, who return to that other memory. What
/// its key had said before is live again then.
#[test]
fn model_33_what_a_row_had_replaced_that_goes_with_a_return_is_live_again() {
    for by_tag in [false, true] {
        let world = World::new();
        let before = world.add(text(GHENT).key("k")).id;
        let old = world.add(text("Carl has a cat")).id;
        world.advance("1h");
        let run = world.start_import();
        let line = text("Carl has a cat").key("k").supersedes(old.to_string()).tag(TAG);
        let options = WriteOptions { run: Some(run), no_dedup: true, ..WriteOptions::default() };
        world.ns.add_all(vec![line], &options).unwrap();
        assert_eq!((world.is_live(before), world.is_live(old)), (false, false));
        match by_tag {
            true => drop(world.forget_tag(TAG)),
            false => assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new()),
        }
        assert_eq!((world.is_live(before), world.is_live(old), world.live().len()), (true, true, 2));
        assert_eq!(world.row("k").text, GHENT);
        world.check();
    }
}

/// Who updates a memory of several writers by its id says the new text for each of them: an import that rewrites one of them leaves
/// that text to its undo.
#[test]
fn model_33_what_an_update_said_for_each_writer_is_live_again() {
    let world = World::new();
    let first = world.add(text(GHENT)).id;
    world.add(text(GHENT).key("k"));
    world.ns.update(first, Patch { text: Some(BRUGES.to_owned()), ..Patch::default() }).unwrap();
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("Carl has a cat").key("k")]);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.lost), (1, Vec::<String>::new()));
    let row = world.row("k");
    assert_eq!((row.text.as_str(), row.state), (BRUGES, State::Live));
    world.check();
}

/// A caller names a memory that says the same already. What an import says through its key since is taken back, and the key says
/// again what it has said like the other.
#[test]
fn model_33_a_key_says_again_what_a_caller_let_another_say_for_it() {
    let world = World::new();
    world.add(text(GHENT).key("k"));
    world.add(text(BRUGES).key("a"));
    world.add(text(BRUGES).key("k").supersedes("a"));
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("Carl has a cat").key("a")]);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.lost), (1, Vec::<String>::new()));
    assert_eq!((world.row("a").text.as_str(), world.row("a").state), (BRUGES, State::Live));
    assert_eq!(world.row("k").text, BRUGES);
    world.check();
}

/// A caller lets another memory, a new or an older one, take the place of what an import had said through a key. Without the import
/// the key leads there as well, and no longer because of the import; so it does through whatever has taken that place since.
#[test]
fn model_33_a_key_leads_on_past_what_an_import_had_said() {
    for (older, again) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new();
        let first = world.add(text("Carl has a cat")).id;
        world.add(text(GHENT).key("k"));
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text(BRUGES).key("k")]);
        let said = world.row("k").id;
        world.advance("1h");
        let new = if older { first } else { world.add(text("Emil went to Rome")).id };
        world.supersede(said, new, SupersedeMode::Replaced, None).unwrap();
        if again {
            world.advance("1h");
            let last = world.add(text("Fay reads novels")).id;
            world.supersede(new, last, SupersedeMode::Replaced, None).unwrap();
        }
        let led = world.row("k").id;
        world.ns.undo(run).unwrap();
        let row = world.row("k");
        assert_eq!((row.id, row.state), (led, State::Live));
        assert!(row.holders.iter().all(|holder| holder.run.is_none()));
        world.check();
    }
}

/// A line names a memory that is to end at an instant ahead: what was announced takes the place of the line's memory then. Without the
/// import it takes the place of the named memory alone, and what the key of the line had said has no end.
#[test]
fn model_33_what_an_import_put_before_an_announced_memory_has_its_own_end_again() {
    for by_tag in [false, true] {
        let world = World::new();
        let own = world.add(text("Carl has a cat").key("d")).id;
        let named = world.add(text(GHENT).key("b")).id;
        let ahead = world.add(text(BRUGES)).id;
        let at = world.ahead("1d");
        world.supersede(named, ahead, SupersedeMode::Replaced, Some(at.as_millis())).unwrap();
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text("Carl has a dog").key("d").supersedes("b").tag(TAG)]);
        assert!(!world.is_live(own));
        match by_tag {
            true => drop(world.forget_tag(TAG)),
            false => assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new()),
        }
        world.check();
        world.advance("2d");
        let row = world.row("d");
        assert_eq!((row.id, row.state, row.valid_to), (own, State::Live, None));
        assert_eq!(world.row("b").id, ahead);
        assert_eq!(world.row(named).valid_to, Some(at));
    }
}

/// Memories are counted once, in however many steps an undo takes their writers away.
#[test]
fn an_undo_counts_no_memory_as_kept_that_goes() {
    for texts in [400, 1] {
        let world = World::new();
        let run = world.start_import();
        let line = |at: usize| text(&format!("statement {}", at % texts)).key(format!("k{at}"));
        world.import(run, (0..1_200).map(line).collect());
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.removed, undone.detached), (texts as u64, 0));
        assert!(world.live().is_empty());
        world.check();
    }
}

const GHENT: &str = "Ann lives in Ghent";
const BRUGES: &str = "Ann lives in Bruges";
const TAG: &str = "import:x:2026-01-01";

/// "Bruges" is the second text of a key, and the first of several. An import says it under another key, or without one, and then something else
/// under each of the keys.
fn rewritten_by_an_import(keys: &[&str], other: Option<&str>) -> (World, RunId) {
    let world = World::new();
    // Where others say the same, a new text through a key would part it from them.
    for words in [GHENT, BRUGES].iter().skip(usize::from(keys.len() > 1)) {
        keys.iter().for_each(|key| drop(world.add(text(words).key(*key))));
        world.advance("1h");
    }
    let run = world.start_import();
    let mut lines = vec![text(BRUGES).tag(TAG)];
    lines[0].key = other.map(str::to_owned);
    lines.extend(keys.iter().map(|key| text(&format!("{key} lives in Rome")).key(*key).tag(TAG)));
    let told = world.import(run, lines);
    assert!(told[1..].iter().all(|told| matches!(told.decision, Decision::Revised { .. })), "{told:?}");
    world.ns.finish_import(run).unwrap();
    world.advance("1h");
    (world, run)
}

fn copy_of(world: &World) -> World {
    let copy = World::new();
    copy.clock.set(world.now());
    Import::default().run(&copy.db, LineReader::new(&exported(world)[..], "lines"), &mut ()).unwrap();
    copy
}

/// MODEL-33, LIFE-26: what a key had said before an import is back after it, whoever else had said the same, in the import or beside
/// it, and whatever has become of them.
#[test]
fn model_33_a_key_says_again_what_it_said_like_others_before_an_import() {
    for keys in [&["ann"][..], &["ann", "bob"]] {
        for other in [Some("meeting:7"), None] {
            for how in ["undo", "tag", "copy", "forgets", "joins"] {
                let (mut world, run) = rewritten_by_an_import(keys, other);
                match how {
                    "copy" => world = copy_of(&world),
                    "forgets" if other.is_some() => drop(world.forget(&["meeting:7"])),
                    "joins" => drop(world.add(text(BRUGES).key("carl"))),
                    _ => {}
                }
                match how {
                    "tag" => drop(world.forget_tag(TAG)),
                    _ => assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new(), "{how}"),
                }
                for key in keys {
                    assert_eq!(world.row(*key).text, BRUGES, "{how}, {keys:?}");
                }
                let texts = |state| {
                    let rows = world.list_in(Scope::Shared, state);
                    rows.into_iter().map(|row| row.text).collect::<BTreeSet<_>>()
                };
                assert_eq!(texts(State::Live), BTreeSet::from([BRUGES.to_owned()]), "{how}, {keys:?}");
                assert_eq!(texts(State::Superseded).len(), usize::from(keys.len() == 1), "{how}, {keys:?}");
                world.check();
                assert_eq!(world.ns.undo(run).unwrap().removed, 0, "a second time");
            }
        }
    }
}

/// MODEL-15, MODEL-8: what a key said until an import is known of the time before the import, under its key.
#[test]
fn model_15_what_a_key_said_until_an_import_is_known_since_it_was_said() {
    let world = World::new();
    world.add(text(BRUGES).key("bob"));
    let too_early = world.now();
    world.advance("1h");
    world.add(text(BRUGES).key("ann"));
    world.advance("1h");
    let before = world.now();
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("Ann lives in Rome").key("ann")]);
    let said = |at: oubliette::Time| {
        world.ns.list(&PageRequest { at: PointInTime::as_of(at), ..PageRequest::default() }).map(|page| {
            let of_ann = page.items.into_iter().filter(|row| row.keys.contains(&"ann".to_owned()));
            of_ann.map(|row| row.text).collect::<Vec<_>>()
        })
    };
    assert_eq!(said(before).unwrap(), [BRUGES]);
    assert_eq!(said(too_early).unwrap(), Vec::<String>::new());
    world.ns.undo(run).unwrap();
    assert_eq!(said(before).unwrap(), [BRUGES]);
    world.check();
}

/// A key that was led to the memory of another says there, through an import, what the other says. That is a write of this import, and
/// stays when an earlier import goes that had brought what the key said before.
#[test]
fn model_33_what_a_key_said_like_the_memory_to_which_it_led_is_of_the_import_that_said_it() {
    for undo_first in [true, false] {
        let world = World::new();
        let other = world.add(text(BRUGES).key("bob")).id;
        let earlier = world.start_import();
        let old = world.import(earlier, vec![text(GHENT).key("ann")]).remove(0).id;
        world.advance("1h");
        world.supersede(old, other, SupersedeMode::Replaced, None).unwrap();
        world.advance("1h");
        let later = world.start_import();
        world.import(later, vec![text(BRUGES).key("ann")]);
        world.advance("1h");
        world.ns.undo(if undo_first { earlier } else { later }).unwrap();
        assert_eq!(world.row(other).keys.len(), 2);
        assert_eq!(world.live(), [other]);
        world.check();
    }
}

/// A caller has let a memory replace what a key said. What the key says there since goes with its tag, and what the caller has said
/// stays.
#[test]
fn life_26_a_replacement_by_a_caller_outlives_the_tag_of_what_its_key_said_since() {
    for merged in [false, true] {
        let world = World::new();
        let stays = world.add(text(BRUGES).key("bob")).id;
        let old = world.add(text(GHENT).key("ann")).id;
        world.advance("1h");
        let by = if merged { world.add(text("Ann lives near Bruges")).id } else { stays };
        world.supersede(old, by, SupersedeMode::Replaced, None).unwrap();
        if merged {
            world.supersede(by, stays, SupersedeMode::Duplicate, None).unwrap();
        }
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text(BRUGES).key("ann").tag(TAG)]);
        assert_eq!(world.row("ann").id, stays);
        world.forget_tag(TAG);
        assert_eq!(world.live(), [stays]);
        world.check();
    }
}

/// A text with an end that a line of an import had replaced comes back with its end, also where another line has rewritten its key.
#[test]
fn model_33_what_comes_back_after_an_import_keeps_its_end() {
    let world = World::new();
    let end = world.ahead("20d");
    let old = world.add(text("Carl has a cat").key("k4").expiry(Expiry::At(end))).id;
    world.advance("1d");
    let run = world.start_import();
    let lines = vec![text("Carl has a cat").key("k3").supersedes("k4"), text("Rex is a dog").key("k4")];
    world.import(run, lines);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!(undone.lost, Vec::<String>::new());
    assert_eq!((world.live(), world.row("k4").id), (vec![old], old));
    assert_eq!(world.row(old).expires_at, Some(end));
    world.check();
    world.advance("21d");
    pass(&world, &[Pass::Expire]);
    assert!(world.live().is_empty());
    world.check();
}

/// A key that a caller has led to a memory leads there again once the import is undone that said through the key what the memory says
/// (MODEL-33); so it does after the import is forgotten by a tag (LIFE-26). What it leads to may have gone on meanwhile.
#[test]
fn model_33_a_key_leads_again_to_what_an_import_said_through_it() {
    for (goes_on, by_tag) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new();
        let old = world.add(text(GHENT).key("k")).id;
        let cat = world.add(text("Carl has a cat").key("a")).id;
        world.supersede(old, cat, SupersedeMode::Replaced, None).unwrap();
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text("Carl has a cat").key("k").tag("imp")]);
        assert!(world.row("k").holders.iter().all(|holder| !holder.follows));
        world.advance("1h");
        let last = match goes_on {
            true => {
                let dog = world.add(text("Carl has a dog").key("b")).id;
                world.supersede(cat, dog, SupersedeMode::Replaced, None).unwrap();
                dog
            }
            false => cat,
        };
        if by_tag {
            world.forget_tag("imp");
        } else {
            world.ns.undo(run).unwrap();
        }
        assert_eq!(world.row("k").id, last);
        assert!(world.row("k").holders.iter().any(|holder| holder.follows && holder.run.is_none()));
        assert_eq!((world.live(), world.row("k").tags), (vec![last], Vec::<String>::new()));
        world.check();
    }
}

/// A key for which an import said what another memory says, and which a caller let that memory replace, leads there from what it had
/// said before the import (MODEL-33).
#[test]
fn model_33_a_word_of_an_import_that_an_equal_one_replaced_leads_on() {
    let world = World::new();
    world.add(text(GHENT).key("d"));
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![text("Carl has a cat").key("d")]);
    world.advance("1h");
    world.add(text("Carl goes to Rome").key("c"));
    world.advance("1h");
    let cat = world.add(text("Carl has a cat").key("c").supersedes("d")).id;
    world.advance("1h");
    world.ns.undo(run).unwrap();
    assert_eq!((world.live(), world.row("d").id), (vec![cat], cat));
    assert!(world.row("d").holders.iter().any(|holder| holder.follows && holder.run.is_none()));
    world.check();
}

/// MODEL-8, MODEL-33: a memory that takes the place of another begins then. What another key has said there as well does not, and has
/// no such begin when it comes back.
#[test]
fn model_8_a_text_of_before_an_import_begins_when_its_writer_said() {
    let world = World::new();
    let apart = text("Ann lives in Ghent").key("a").expiry(Expiry::At(world.ahead("60d")));
    for draft in [apart, text("Ann lives in Ghent").key("b")] {
        world.add(draft);
        world.advance("1h");
    }
    let between = PointInTime { valid_at: Some(world.now()), ..PointInTime::default() };
    let seen = || world.ns.list(&PageRequest { at: between, ..PageRequest::default() }).unwrap().items.len();
    world.advance("1h");
    let run = world.start_import();
    let first = Draft { supersedes: vec!["a".to_owned()], ..text("Ann lives in Ghent").key("b") };
    world.import(run, vec![first, text("Ann lives in Bruges").key("b")]);
    world.advance("1h");
    assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
    let back = world.row("b");
    assert_eq!((back.text.as_str(), back.valid_from, seen()), ("Ann lives in Ghent", None, 2));
    world.check();

    // So it is where a writer says something else whose near text the memory had absorbed.
    let world = World::new();
    world.db.set_policy("write.normalized_match = 'absorb'", Syntax::Toml).unwrap();
    let id = world.add(text("Ann likes tea").key("k1")).id;
    assert_eq!(world.add(text("Ann  likes tea").key("k2")).id, id);
    let old = world.add(text("Ann likes coffee").key("k0")).id;
    world.advance("1h");
    world.supersede(old, id, SupersedeMode::Replaced, None).unwrap();
    world.advance("1h");
    let version = world.row(revised(&world.add(text("Ann likes wine").key("k2"))));
    assert_eq!((version.text.as_str(), version.valid_from), ("Ann  likes tea", None));
    assert!(world.row(id).valid_from.is_some());
    world.check();
}

/// A line says again what its key says, and names a memory. That another text is announced for the key is no newer word, so the
/// named memory comes back when the import is taken back, and leads to none of the two (MODEL-33, LIFE-26).
#[test]
fn model_33_a_named_memory_is_back_where_the_one_that_stays_is_to_be_replaced() {
    for (by_tag, planned) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new();
        world.add(text(GHENT).key("job"));
        world.add(text("Carl has a cat").key("old"));
        let at = world.ahead("10h");
        if planned {
            let replaced = SupersedeMode::Replaced;
            world.ns.replace(["job"], text(BRUGES), replaced, Some(at)).unwrap();
        }
        let told = || {
            let now = world.now();
            let told = [now, at.plus(Span::from_hours(1))].map(|at| {
                world.clock.set(at);
                let texts: BTreeSet<String> = world.live().into_iter().map(|id| world.row(id).text).collect();
                (texts, ["job", "old"].map(|key| world.row(key).text))
            });
            world.clock.set(now);
            told
        };
        let before = told();
        world.advance("1h");
        let run = world.start_import();
        world.import(run, vec![text(GHENT).key("job").supersedes("old").tag("import:z:1")]);
        world.advance("1h");
        if by_tag {
            world.forget_tag("import:z:1");
        } else {
            // The tag of the line.
            let lost = world.ns.undo(run).unwrap().lost;
            assert!(matches!(&lost[..], [fields] if fields.starts_with("changes of fields")), "{lost:?}");
        }
        assert_eq!(told(), before, "{by_tag} {planned}");
        world.check();
    }
}
