//! What work on a memory of many writers costs for each of them, in rows read and written: as much, however many there are.

use crate::growth::{constant, cost, fill, linear, world};
use crate::world::{World, span, text};
use oubliette::embed::HashEmbedder;
use oubliette::faults::Tally;
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{Expiry, PointInTime, SupersedeMode};
use oubliette::{Decision, Draft, Forget, Kind, PageRequest, Patch, Scope, Span, State, Time, WriteOptions};

/// Each of many keys of one memory brings other tags and categories than before. What the other keys bring is not read.
#[test]
fn tags_and_categories_of_many_keys_of_one_memory() {
    let of = |n: usize, say: &dyn Fn(usize, &str) -> Draft| {
        let world = world();
        fill(&world, 0, n, |at| say(at, "before"));
        let [id] = world.live()[..] else { panic!("one memory") };
        let drafts = (0..n).map(|at| say(at, "after")).collect();
        let mut told = Vec::new();
        let cost = cost(|| told = world.ns.add_all(drafts, &Default::default()).unwrap());
        assert!(told.iter().all(|one| one.decision == Decision::Updated && one.id == id), "{:?}", told[0]);
        let row = world.row(id);
        assert!(row.tags.iter().chain(&row.categories).all(|name| name.starts_with("after")), "{row:?}");
        world.check();
        cost
    };
    let draft = |at: usize| text("one text for all").key(format!("k{at}"));
    let tags = |at: usize, when: &str| draft(at).tag(when).tag(format!("{when} {}", at % 9));
    let categories = |at: usize, when: &str| Draft { categories: Some(vec![when.to_owned()]), ..draft(at) };
    linear(of(50, &tags), of(200, &tags), 4);
    linear(of(50, &categories), of(200, &categories), 4);
}

/// The same where the row is full of tags: what the others bring is asked of the tags of the one that changes.
#[test]
fn a_tag_of_one_key_of_a_full_memory() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| {
            let draft = text("one text for all").key(format!("k{at}"));
            let tags = (0..64).filter(|tag| at == 0 || tag % 8 == at % 8);
            tags.fold(draft, |draft, tag| draft.tag(format!("t{tag}")))
        };
        fill(&world, 0, n, say);
        assert_eq!(world.live().len(), 1);
        let cost = cost(|| assert_eq!(world.add(say(n / 2).tag("new")).decision, Decision::Stored));
        assert_eq!(world.row("k0").tags.len(), 64);
        world.check();
        cost
    };
    constant(of(50), of(400));
}

/// All keys of a memory that a pass has united are forgotten in one call, and an undo brings all rows back.
#[test]
fn a_united_memory_that_ends() {
    let of = |n: usize, ends: fn(&World, usize, RunId)| {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("one text for all").key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        let united = world.db.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        assert_eq!(world.live().len(), 1);
        let cost = cost(|| ends(&world, n, united.passes[0].run.unwrap()));
        world.check();
        cost
    };
    let forgets = |world: &World, n: usize, _| {
        let forgotten = world.ns.forget(Forget::names((0..n).map(|at| format!("k{at}")))).unwrap();
        assert!(world.live().is_empty(), "{forgotten:?}");
    };
    let undoes = |world: &World, n: usize, run| {
        world.ns.undo(run).unwrap();
        assert_eq!(world.live().len(), n);
    };
    linear(of(50, forgets), of(200, forgets), 4);
    linear(of(50, undoes), of(200, undoes), 4);
}

/// All keys of a memory that a pass has united are forgotten in one call when the rows from which they came are purged.
#[test]
fn a_united_memory_whose_former_rows_are_gone() {
    let of = |n: usize| {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("one text for all").key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        let run = |pass| world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        run(Pass::NearDuplicates);
        for _ in 0..2 {
            world.advance("400d");
            run(Pass::Superseded);
            run(Pass::Limbo);
        }
        assert_eq!(world.live().len(), 1);
        let names = Forget::names((0..n).map(|at| format!("k{at}")));
        let cost = cost(|| drop(world.ns.forget(names).unwrap()));
        assert!(world.live().is_empty());
        world.check();
        cost
    };
    linear(of(50), of(200), 4);
}

/// A text with an end of its own for each key: whether one of the others is the same is asked of a few of them, before the text is
/// embedded, too.
#[test]
fn texts_with_ends_of_their_own_before_an_embedder() {
    let world = World::with(|builder| builder.embedder(HashEmbedder::new()));
    let say = |at: usize| {
        text("one text for all").key(format!("k{at}")).expiry(Expiry::After(span(&format!("{}d", at + 30))))
    };
    let add = |at: usize| cost(|| drop(world.add(say(at))));
    fill(&world, 0, 50, say);
    let small = add(50);
    fill(&world, 51, 400, say);
    constant(small, add(400));
    assert_eq!(world.live().len(), 401);
}

/// The same where each key has a text of its own, which the next one gives the memory when it goes.
#[test]
fn a_united_memory_of_many_texts_that_ends() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| {
            text(&format!("Gateway status: {at} apps pending")).kind(Kind::Profile).key(format!("k{at}"))
        };
        fill(&world, 0, n, say);
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
        let [stays] = world.live()[..] else { panic!("{:?}", world.live()) };
        let half = Forget::names((0..n / 2).map(|at| format!("k{at}")));
        let mut cost = vec![cost(|| drop(world.ns.forget(half).unwrap()))];
        let row = world.row(stays);
        assert_eq!((row.keys.len(), row.text), (n - n / 2, say(n / 2).text), "the first of those that stay");
        let all = Forget::names((n / 2..n).map(|at| format!("k{at}")));
        cost.push(crate::growth::cost(|| drop(world.ns.forget(all).unwrap())));
        assert!(world.live().is_empty());
        world.check();
        cost
    };
    for (small, large) in of(50).into_iter().zip(of(200)) {
        linear(small, large, 4);
    }
}

/// What a writer had said in a row that a pass has united with another notes once that what the writer has said since ends.
#[test]
fn the_end_of_versions_looks_at_united_rows_once() {
    for united in [false, true] {
        let expiry = |versions: usize| {
            let world = world();
            let said = |at: usize| text(&format!("Gateway status: {at} apps pending")).kind(Kind::Profile);
            let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            for key in ["o", "k"].into_iter().filter(|_| united) {
                world.ns.add_all(vec![said(key.len()).key(key)], &how).unwrap();
            }
            let unite = MaintainOptions::live().passes([Pass::Collapse]);
            assert_eq!(world.db.maintain_with(&unite).unwrap().passes[0].changed, u64::from(united));
            let end = Time::from_millis(world.now().as_millis() + 1_000);
            fill(&world, 0, versions, |at| said(at + 10).key("k").expiry(Expiry::At(end)));
            world.advance("1h");
            let passes = MaintainOptions::live().passes([Pass::Expire]);
            cost(|| assert_eq!(world.db.maintain_with(&passes).unwrap().passes[0].changed, versions as u64))
        };
        let (small, large) = (expiry(100), expiry(300));
        let of_one = |small: u64, large: u64| (large - small) as f64 / 200.0;
        let (read, written) = (of_one(small.read, large.read), of_one(small.written, large.written));
        assert!(read < 42.0 && written < 18.0, "{read} rows read and {written} written of each, {united}");
    }
}

/// Many keys lead to one memory from an instant ahead on. A write through each of them takes the supersession back and lets it be
/// made again, and reads none of the others.
#[test]
fn writes_before_one_memory_takes_the_place_of_many() {
    let of = |n: usize| {
        let world = world();
        let name = |at: usize| format!("k{at}");
        fill(&world, 0, n, |at| text(&format!("text {at}")).key(name(at)));
        let new = world.add(text("what is true").key("new")).id;
        let (old, at) = ((0..n).map(name).collect::<Vec<_>>(), world.ahead("20d"));
        world.ns.supersede_all(&old, new, SupersedeMode::Replaced, Some(at)).unwrap();
        let touch = cost(|| {
            let told = world.ns.touch(&old, Expiry::At(world.ahead("9d"))).unwrap();
            assert!(told.iter().all(Result::is_ok));
        });
        let say = |at: usize| text(&format!("later text {at}")).key(name(at));
        let say = cost(|| drop(world.ns.add_all((0..n).map(say).collect(), &Default::default()).unwrap()));
        world.check();
        (touch, say)
    };
    let (small, large) = (of(50), of(200));
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
}

/// A text takes the place of a memory that is named by all its keys: the memory is read once, not once for each of them.
#[test]
fn a_memory_that_is_replaced_by_all_its_names() {
    let of = |n: usize| {
        let world = world();
        let name = |at: usize| format!("k{at}");
        fill(&world, 0, n, |at| text("one text for all").key(name(at)));
        assert_eq!(world.live().len(), 1);
        let names: Vec<String> = (0..n).map(name).collect();
        let id = world.live()[0];
        let means = cost(|| assert!(names.iter().all(|name| world.ns.id_of(name).unwrap() == Some(id))));
        let mode = SupersedeMode::Replaced;
        let cost = cost(|| drop(world.ns.replace(&names, text("another text"), mode, None).unwrap()));
        assert_eq!(world.live().len(), 1);
        world.check();
        (means, cost)
    };
    let (small, large) = (of(50), of(200));
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
}

/// One of many writers of a text says something else, or ends what it says, and the answer tells who goes on to say the text: of the
/// holders of that memory the first ones are asked (DEDUP-57).
#[test]
fn a_key_of_many_that_leaves_a_text_to_the_others() {
    let of = |n: usize, write: fn(&World) -> u64| {
        let world = world();
        fill(&world, 0, n, |at| text("one text for all").key(format!("k{at}")));
        let mut writers = 0;
        let cost = cost(|| writers = write(&world));
        assert_eq!(writers, n as u64 - 1);
        world.check();
        cost
    };
    let says: fn(&World) -> u64 = |world| {
        let done = world.ns.update("k7", Patch::new().text("another text")).unwrap();
        done.kept_for_others[0].writers
    };
    let ends: fn(&World) -> u64 = |world| {
        let done = world.ns.touch(["k7"], span("1h")).unwrap().remove(0).unwrap();
        done.kept_for_others[0].writers
    };
    let leads: fn(&World) -> u64 = |world| {
        let new = world.add(text("another text")).id;
        world.ns.supersede_all(["k7"], new, SupersedeMode::Replaced, None).unwrap().kept_for_others[0].writers
    };
    for write in [says, ends, leads] {
        constant(of(50, write), of(400, write));
    }
}

/// A key has many texts announced. A write through the key reads each of them, and changes only what is true.
#[test]
fn a_write_through_a_key_that_has_many_texts_announced() {
    let of = |n: usize, spread: i64, write: fn(&World)| {
        let world = world();
        world.add(text("zero").key("a").tag("first"));
        for at in 0..n {
            let begins = world.ahead("30d").plus(Span::from_millis(at as i64 * spread));
            world.add(text(&format!("plan number {at}")).key("a").supersedes("a").valid_from(begins));
        }
        let cost = cost(|| write(&world));
        world.check();
        cost
    };
    let says: fn(&World) = |world| drop(world.add(text("fresh words").key("a")));
    let tags: fn(&World) = |world| drop(world.ns.update("a", Patch::new().tags(["x"])).unwrap());
    let plans: fn(&World) = |world| {
        drop(world.add(text("the next plan").key("a").supersedes("a").valid_from(world.ahead("1d"))));
    };
    // In the order of their instants, for one instant, and each before the one that was announced last.
    for spread in [0, 1000, -1000] {
        for write in [says, plans] {
            let (small, large) = (of(20, spread, write), of(80, spread, write));
            linear(small, large, 4);
            assert!(large.written <= small.written + 8, "{small:?}, then {large:?}");
        }
        linear(of(20, spread, tags), of(80, spread, tags), 4);
    }
}

/// Each of many keys has announced a text in the place of what the key before it says. A write through the first key is led on to each
/// of them, and reads each once.
#[test]
fn a_write_through_the_first_of_many_keys_that_follow_one_another() {
    let of = |n: usize| {
        let world = world();
        world.add(text("zero").key("k0"));
        let begins = |at: usize| world.ahead("30d").plus(Span::from_millis(at as i64 * 1000));
        for at in 1..n {
            let draft = text(&format!("plan number {at}")).key(format!("k{at}"));
            world.add(draft.supersedes(format!("k{}", at - 1)).valid_from(begins(at)));
        }
        let cost = cost(|| drop(world.add(text("fresh words").key("k0"))));
        world.check();
        world.advance("31d");
        assert_eq!(world.row("k0").text, format!("plan number {}", n - 1));
        cost
    };
    linear(of(20), of(80), 4);
}

/// Many keys have a text announced in the place of one memory. A write reads each of them once, in whatever order they were told, and
/// that memory alone keeps what others have come before.
#[test]
fn a_write_through_a_key_for_which_many_others_have_a_text_announced() {
    let of = |n: usize, spread: i64, write: fn(&World)| {
        let world = world();
        world.add(text("zero").key("a"));
        plans(n, spread, &world).into_iter().for_each(|plan| drop(world.add(plan)));
        let cost = cost(|| write(&world));
        let rows = [State::Live, State::Superseded].map(|state| world.list_in(Scope::Any, state));
        let kept = rows.iter().flatten().map(|row| row.overtaken.len()).sum::<usize>();
        assert!(kept <= 2 * n, "{n} plans, {kept} of them kept");
        world.check();
        cost
    };
    let says: fn(&World) = |world| drop(world.add(text("fresh words").key("a")));
    let plans: fn(&World) = |world| {
        drop(world.add(text("the next plan").key("p").supersedes("a").valid_from(world.ahead("1d"))));
    };
    for spread in [0, 1000, -1000] {
        linear(of(20, spread, says), of(80, spread, says), 4);
        linear(of(20, spread, plans), of(80, spread, plans), 4);
    }
}

/// The same where an import has brought these texts, and is taken back before their instants and after: each of the keys leads to all that
/// follows, and so many holders go.
#[test]
fn an_import_of_many_texts_announced_in_the_place_of_one() {
    let of = |n: usize, spread: i64, (after, ends): (&str, fn(&World, RunId))| {
        let world = world();
        world.add(text("zero").key("a"));
        let run = world.start_import();
        for plan in plans(n, spread, &world) {
            world.import(run, vec![plan.tag("import:plans:1")]);
        }
        world.advance(after);
        let cost = cost(|| ends(&world, run));
        assert_eq!((world.live().len(), world.row("a").text.as_str()), (1, "zero"));
        world.check();
        world.advance("60d");
        assert_eq!(world.row("a").text, "zero");
        cost
    };
    let undoes: fn(&World, RunId) = |world, run| drop(world.ns.undo(run).unwrap());
    let forgets: fn(&World, RunId) = |world, _| drop(world.ns.forget(Forget::tag("import:plans:1")).unwrap());
    for spread in [1000, -1000] {
        for ends in [("1d", undoes), ("1d", forgets), ("40d", undoes), ("40d", forgets)] {
            let (small, large) = (of(20, spread, ends), of(80, spread, ends));
            linear(Tally { read: 4 * small.read, written: 4 * small.written, ..small }, large, 4);
        }
    }
}

/// So many texts of keys of their own, each of which is to take the place of what the key `a` says, and comes so many milliseconds after
/// the one before it.
fn plans(n: usize, spread: i64, world: &World) -> Vec<Draft> {
    let start = world.ahead("30d");
    let plan = |at: usize| {
        let begins = start.plus(Span::from_millis(at as i64 * spread));
        text(&format!("plan number {at}")).key(format!("p{at}")).supersedes("a").valid_from(begins)
    };
    (0..n).map(plan).collect()
}

/// A line is told again whose superseded key has had many versions since: the key is asked for the text that the line had replaced, and
/// for no other.
#[test]
fn a_line_told_again_after_many_versions_of_what_it_names() {
    let world = world();
    world.add(text("the old plan").key("state"));
    let line = || text("the plan").key("plan").supersedes("state");
    world.add(line());
    let again = || cost(|| assert_eq!(world.add(line()).decision, Decision::Unchanged));
    let say = |at: usize| text(&format!("state number {at}")).key("state");
    fill(&world, 0, 50, say);
    let small = again();
    fill(&world, 50, 1_000, say);
    constant(small, again());
    assert_eq!(world.row("state").text, "state number 999");
    world.check();
}

/// Many keys say one text, and each tells it again and names a memory of its own.
#[test]
fn lines_of_many_keys_of_one_text_that_name_others() {
    let of = |n: usize, tags: Option<&str>| {
        let world = world();
        let say = |at: usize| text("one text for all").key(format!("k{at}"));
        fill(&world, 0, n, say);
        fill(&world, 0, n, |at| text(&format!("side text {at}")).key(format!("s{at}")));
        let line = |at: usize| say(at).supersedes(format!("s{at}"));
        let lines = |tag: Option<&str>| -> Vec<Draft> {
            (0..n).map(|at| tag.into_iter().fold(line(at), |line, tag| line.tag(tag))).collect()
        };
        let first = cost(|| drop(world.import(world.start_import(), lines(tags))));
        assert_eq!(world.live().len(), 1);
        let again = cost(|| drop(world.import(world.start_import(), lines(tags.map(|_| "later")))));
        world.check();
        (first, again)
    };
    for tags in [None, Some("import:notes:1")] {
        let (small, large) = (of(50, tags), of(200, tags));
        linear(small.0, large.0, 4);
        linear(small.1, large.1, 4);
    }
}

/// A memory takes the place of what many keys say, each of which has announced a text. The texts come one after the other, and each key is
/// led to all of them: once, and not once more for each of the keys.
#[test]
fn a_memory_that_takes_the_place_of_many_keys_with_texts_announced() {
    const REPLACED: SupersedeMode = SupersedeMode::Replaced;
    type Write = fn(&World, &[String], Time);
    let of = |n: usize, write: Write| {
        let world = world();
        let names: Vec<String> = (0..n).map(|at| format!("k{at}")).collect();
        fill(&world, 0, n, |at| text(&format!("text number {at}")).key(format!("k{at}")));
        world.add(text("what is true").key("new"));
        world.add(text("what is true later").key("new").supersedes("new").valid_from(world.ahead("90d")));
        let begins = |at: usize| world.ahead("60d").plus(Span::from_millis(at as i64 % 3 * 1000));
        let plan = |at: usize| {
            let key = format!("k{at}");
            text(&format!("plan number {at}")).key(&*key).supersedes(key).valid_from(begins(at))
        };
        fill(&world, 0, n, plan);
        world.advance("1h");
        let cost = cost(|| write(&world, &names, world.ahead("30d")));
        world.check();
        cost
    };
    let writes: [Write; 4] = [
        |world, names, at| drop(world.ns.replace(names, text("all of them"), REPLACED, Some(at)).unwrap()),
        |world, names, _| drop(world.ns.replace(names, text("all of them"), REPLACED, None).unwrap()),
        |world, names, at| drop(world.ns.supersede_all(names, "new", REPLACED, Some(at)).unwrap()),
        |world, names, at| {
            let line = Draft { supersedes: names.to_vec(), ..text("all of them").key("all").valid_from(at) };
            drop(world.import(world.start_import(), vec![line]));
        },
    ];
    for write in writes {
        let (small, large) = (of(10, write), of(40, write));
        linear(Tally { read: 4 * small.read, written: 4 * small.written, ..small }, large, 4);
    }
}

/// Many keys say one text, each in the place of what another key says, for which a text is announced. Each gets a row of its own, whether
/// it had said the text before with the others or says it for the first time.
#[test]
fn keys_of_one_text_that_take_the_places_of_others_with_texts_announced() {
    let of = |n: usize, said: bool| {
        let world = world();
        fill(&world, 0, n, |at| text(&format!("text number {at}")).key(format!("s{at}")));
        let begins = world.ahead("60d");
        let plan = |at: usize| {
            text(&format!("plan number {at}"))
                .key(format!("p{at}"))
                .supersedes(format!("s{at}"))
                .valid_from(begins)
        };
        fill(&world, 0, n, plan);
        let say = |at: usize| text("one text for all").key(format!("k{at}"));
        world.add(text("one text for all").key("first"));
        fill(&world, 0, if said { n } else { 0 }, say);
        let lines = (0..n).map(|at| say(at).supersedes(format!("s{at}"))).collect();
        let mut told = Vec::new();
        let cost = cost(|| told = world.import(world.start_import(), lines));
        assert!(told.iter().all(|one| one.decision == Decision::Stored), "{told:?}");
        world.check();
        cost
    };
    for said in [false, true] {
        linear(of(50, said), of(200, said), 4);
    }
}

/// What was known of the past is asked of each memory alone, however many versions its key has had and has announced.
#[test]
fn a_list_of_the_past_of_a_key_with_many_versions_and_texts_announced() {
    let of = |n: usize, own: bool| {
        let world = world();
        world.add(text("what is true").key("k"));
        for at in (0..n).rev() {
            world.advance("1m");
            world.add(text(&format!("version number {at}")).key("k"));
            let begins = world.ahead(&format!("{}h", 10 + at));
            let key = if own { "k".to_owned() } else { format!("other {at}") };
            world.add(text(&format!("plan number {at}")).key(key).supersedes("k").valid_from(begins));
        }
        let known_at = Some(world.ago(&format!("{}m", n / 2)));
        world.advance("1m");
        world.add(text("what is true now").key("k"));
        let at = PointInTime { valid_at: Some(world.now()), known_at, ..PointInTime::default() };
        let mut seen = 0;
        let cost = cost(|| {
            let page = world.ns.list(&PageRequest { at, limit: 1_000, ..PageRequest::default() }).unwrap();
            seen = page.items.len();
        });
        assert_eq!(seen, 1, "{own}");
        cost
    };
    for own in [true, false] {
        linear(of(20, own), of(80, own), 4);
    }
}
