//! What is left where an import is taken back by its tag: what others have said beside the import (LIFE-26).

use crate::backup::copy_of;
use crate::world::{World, text};
use oubliette::maintain::RunId;
use oubliette::memory::SupersedeMode;
use oubliette::{Decision, Draft, MemoryId, Patch};

const FIRST: &str = "import:notes:2026-01-01";
const SECOND: &str = "import:notes:2026-01-02";
const THIRD: &str = "import:notes:2026-01-03";
const GHENT: &str = "Ann lives in Ghent";
const BRUGES: &str = "Ann lives in Bruges";

/// Imports one line, and returns what became of it.
fn import(world: &World, line: Draft) -> (RunId, Decision) {
    world.advance("1h");
    let run = world.start_import();
    let decision = world.import(run, vec![line]).remove(0).decision;
    world.advance("1h");
    (run, decision)
}

/// Writes through a key, before the import under test.
type Before = fn(&World);

fn by_caller(world: &World) {
    world.add(text(GHENT).key("a").tag("home"));
}

fn by_import(world: &World) {
    import(world, text(GHENT).key("a").tag("home"));
}

#[test]
fn life_26_what_was_there_before_stays_with_its_tags() {
    for before in [by_caller as Before, by_import] {
        for copied in [false, true] {
            let mut world = World::new();
            before(&world);
            let old = world.row("a");
            assert_eq!(import(&world, text(GHENT).key("a").tag(SECOND)).1, Decision::Updated);
            assert_eq!(world.row("a").tags, ["home", SECOND]);
            if copied {
                world = copy_of(&world);
            }
            let answer = world.forget_tag(SECOND);
            assert_eq!((answer.forgotten, answer.detached), (0, 1));
            let now = world.row("a");
            assert_eq!((now.id, now.text, now.tags), (old.id, old.text, old.tags));
            world.check();
        }
    }
}

/// A file that is imported again on another day: each import is taken back by its own tag, in whatever order, and what both have said
/// goes with the last of them.
#[test]
fn life_26_a_memory_goes_with_the_last_of_its_imports() {
    for [one, other] in [[FIRST, SECOND], [SECOND, FIRST]] {
        let world = World::new();
        for tag in [FIRST, SECOND] {
            import(&world, text(GHENT).key("a").tag(tag));
        }
        // The same file once more changes nothing.
        assert_eq!(import(&world, text(GHENT).key("a").tag(SECOND)).1, Decision::Unchanged);
        assert_eq!((world.forget_tag(one).forgotten, world.row("a").tags), (0, vec![other.to_owned()]));
        world.check();
        assert_eq!((world.forget_tag(other).forgotten, world.live()), (1, Vec::<MemoryId>::new()));
        world.check();
    }
}

/// What a caller says is his, also where it takes the place of what an import said.
#[test]
fn life_26_what_a_caller_has_said_since_is_not_of_the_import() {
    let through_key: fn(&World) = |world| drop(world.add(text(BRUGES).key("a")));
    let by_change: fn(&World) = |world| {
        let patch = Patch { text: Some(BRUGES.to_owned()), ..Patch::default() };
        world.ns.update("a", patch).unwrap();
    };
    for say in [through_key, by_change] {
        let world = World::new();
        import(&world, text(GHENT).key("a").tag(FIRST).tag("home"));
        say(&world);
        assert_eq!(world.row("a").tags, ["home"]);
        assert_eq!(world.forget_tag(FIRST).forgotten, 1);
        assert_eq!((world.row("a").text.as_str(), world.live().len()), (BRUGES, 1));
        world.check();
    }
}

/// What an import says in the place of what it had found goes, and what it had found comes back without the tag.
#[test]
fn life_26_an_import_that_says_again_and_then_anew_leaves_what_it_found() {
    let world = World::new();
    by_caller(&world);
    let old = world.row("a");
    import(&world, text(GHENT).key("a").tag(FIRST));
    import(&world, text(BRUGES).key("a").tag(FIRST));
    assert_eq!(world.forget_tag(FIRST).forgotten, 1);
    let now = world.row("a");
    assert_eq!((now.id, now.tags, world.live()), (old.id, old.tags, vec![old.id]));
    world.check();
}

/// Without room for the tags of all imports, a memory has those of the last, and is of others as well.
#[test]
fn life_26_a_memory_of_more_imports_than_it_has_room_for_is_of_others_as_well() {
    let world = World::new();
    let tags: Vec<String> = (0..65).map(|at| format!("import:notes:{at}")).collect();
    for tag in &tags {
        import(&world, text(GHENT).key("a").tag(tag));
    }
    assert_eq!(world.row("a").tags, [tags[64].clone()]);
    assert_eq!((world.forget_tag(&tags[64]).forgotten, world.row("a").tags.len()), (0, 0));
    world.check();
}

/// A line says through a key what another key says, in its place, and the next line something else: what both keys had said before
/// comes back.
#[test]
fn life_26_what_a_key_of_the_import_has_left_again_comes_back() {
    for has_own in [false, true] {
        let world = World::new();
        let own = has_own.then(|| world.add(text("Bob has a dog").key("b")).id);
        let other = world.add(text(GHENT).key("c")).id;
        world.advance("1h");
        let run = world.start_import();
        let lines = [text(GHENT).key("b").supersedes("c"), text(BRUGES).key("b")];
        world.import(run, lines.map(|line| line.tag(FIRST)).to_vec());
        world.advance("1h");
        world.forget_tag(FIRST);
        assert_eq!(world.row("c").id, other);
        assert_eq!(world.live(), own.into_iter().chain([other]).collect::<Vec<_>>(), "{has_own}");
        world.check();
    }
}

/// A line that says again what its key says may name another memory: that comes back with the tag of the line, whoever else is on the
/// memory that had taken its place; but not where a later import has said the same, which may have named it as well.
#[test]
fn life_26_what_a_line_that_said_again_has_replaced_comes_back() {
    for is_shared in [false, true] {
        for later in [false, true] {
            let world = World::new();
            import(&world, text(GHENT).key("b").tag(FIRST));
            if is_shared {
                world.add(text(GHENT).key("d"));
            }
            let other = world.add(text(BRUGES).key("a")).id;
            let line = text(GHENT).key("b").tag(SECOND).supersedes("a");
            assert_eq!(import(&world, line).1, Decision::Updated);
            assert_eq!(world.row("a").text, GHENT);
            if later {
                import(&world, text(GHENT).key("b").tag(THIRD));
            }
            let answer = world.forget_tag(SECOND);
            assert_eq!((answer.forgotten, answer.detached), (0, 1));
            assert_eq!(answer.restored, u64::from(!later));
            assert_eq!(world.row("a").id == other, !later, "{is_shared}");
            assert_eq!(world.row("b").text, GHENT);
            world.check();
        }
    }
}

/// So does what the line has replaced where it has given its key a memory apart from what others say: by a field of its own, by what a
/// later line says through the key, or because another key that said the same has left as well.
#[test]
fn life_26_what_a_line_apart_from_others_has_replaced_comes_back() {
    let mut important = text(GHENT).key("b").supersedes("c");
    important.fields.importance = Some(0.9);
    let again = || text(GHENT).key("b").supersedes("c");
    let stories = [
        vec![important],
        vec![again(), text("Bob has a dog").key("b")],
        vec![again(), text("Bob has a dog").key("a")],
        vec![text("Bob has a dog").key("a"), again().supersedes("a")],
    ];
    for (place, lines) in stories.into_iter().enumerate() {
        let world = World::new();
        for key in ["a", "b"] {
            world.add(text(GHENT).key(key));
        }
        let other = world.add(text(BRUGES).key("c")).id;
        world.advance("1h");
        let run = world.start_import();
        world.import(run, lines.into_iter().map(|line| line.tag(FIRST)).collect());
        assert_eq!(world.row("c").text, GHENT);
        world.advance("1h");
        world.forget_tag(FIRST);
        assert_eq!(world.row("c").id, other, "{place}");
        assert_eq!(["a", "b"].map(|key| world.row(key).text), [GHENT, GHENT], "{place}");
        world.check();
    }
}

/// The same of a line whose key goes with the tag, while somebody else says what it said.
#[test]
fn life_26_what_a_key_that_goes_has_named_in_a_later_import_comes_back() {
    let world = World::new();
    import(&world, text(GHENT).key("b").tag(FIRST));
    world.add(text(GHENT).key("d"));
    let other = world.add(text(BRUGES).key("a")).id;
    import(&world, text(GHENT).key("b").tag(SECOND).supersedes("a"));
    for tag in [FIRST, SECOND] {
        world.forget_tag(tag);
        world.check();
    }
    assert_eq!(world.row("a").id, other);
    assert_eq!(world.row("d").text, GHENT);
}

/// What is announced for a key is another text: it gets no tag of an import that says again what is true until then.
#[test]
fn life_26_an_announced_text_has_the_tags_of_its_own_imports_alone() {
    let world = World::new();
    world.add(text(GHENT).key("a"));
    let at = Some(world.ahead("40h"));
    let announced = world.ns.replace(["a"], text(BRUGES), SupersedeMode::Replaced, at).unwrap().id;
    world.advance("1h");
    world.add(text(GHENT).key("a").tag("home").tag(FIRST));
    assert_eq!(world.row(announced).tags, ["home"]);
    assert_eq!((world.forget_tag(FIRST).forgotten, world.row("a").tags), (0, vec!["home".to_owned()]));
    world.check();
    world.advance("40h");
    assert_eq!((world.row("a").id, world.row("a").tags), (announced, vec!["home".to_owned()]));
    world.check();
}

/// Two lines of one key, of which one begins at an instant ahead, come before what another key has announced for the text of before.
/// When the import is taken back by its tag, that text ends again at the instant that was announced for it (MODEL-33, LIFE-26).
#[test]
fn life_26_what_was_announced_is_announced_again_without_the_tag() {
    let world = World::new();
    world.add(text("Ann works at Acme").key("a"));
    world.add(text("Ann has a dog").key("b"));
    let at = world.ahead("20h");
    world.add(text("Ann works at Globex").key("c").supersedes("a").valid_from(at));
    let run = world.start_import();
    let later = text("Ann works at Umbrella").key("a").supersedes("b").valid_from(world.ahead("10h"));
    world.import(run, vec![text("Ann works at Initech").key("a").tag(FIRST), later.tag(FIRST)]);
    world.advance("1h");
    world.forget_tag(FIRST);
    world.check();
    world.clock.set(at);
    let mut texts: Vec<String> = world.live().into_iter().map(|id| world.row(id).text).collect();
    texts.sort();
    assert_eq!(texts, ["Ann has a dog", "Ann works at Globex"]);
    assert_eq!(world.row("a").text, "Ann works at Globex");
    world.check();
}
