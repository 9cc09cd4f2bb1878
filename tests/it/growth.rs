//! What an operation costs as a database grows, in rows read and written: the same at any size.

use crate::world::{World, text};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::faults::Tally;
use oubliette::limits::{DIM_MAX, SLICE_ROWS_MAX, STAGED_BYTES_MAX};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{AuthorKind, Entity, EventQuery, EventsOf, Expiry, Field, Link, Tier};
use oubliette::policy::Syntax;
use oubliette::tools::KnowledgeGraph;
use oubliette::{Decision, Draft, Durability, Forget, Kind, NamespaceName, Patch, Query, Time, WriteOptions};
use serde_json::json;

/// Rows that `work` reads and writes.
pub(crate) fn cost(work: impl FnOnce()) -> Tally {
    let before = Tally::of_thread();
    work();
    let after = Tally::of_thread();
    Tally { read: after.read - before.read, written: after.written - before.written, ..after }
}

/// The larger may cost a little more: a page of a listing, a block that is full.
#[track_caller]
pub(crate) fn constant(small: Tally, large: Tally) {
    assert!(
        large.read <= small.read + 8 && large.written <= small.written + 8,
        "it grows: {small:?}, then {large:?}"
    );
}

/// So many times as much to do may cost so many times as much, and a tenth more.
#[track_caller]
pub(crate) fn linear(small: Tally, large: Tally, times: u64) {
    let within = |small: u64, large: u64| large <= small * times + small * times / 10;
    assert!(
        within(small.read, large.read) && within(small.written, large.written),
        "it grows faster than what there is to do: {small:?}, then {large:?}"
    );
}

pub(crate) fn world() -> World {
    World::with(|builder| builder.durability(Durability::Batch))
}

/// Adds drafts `from` to `to`, a hundred at a time.
pub(crate) fn fill(world: &World, from: usize, to: usize, draft: impl Fn(usize) -> Draft) {
    for from in (from..to).step_by(100) {
        let drafts = (from..to.min(from + 100)).map(&draft).collect();
        world.ns.add_all(drafts, &Default::default()).unwrap();
    }
}

/// Look-ups by a key look at its newest version first, and at no other where that is current.
#[test]
fn a_key_revised_many_times() {
    let world = world();
    let say = |at: usize| text(&format!("status number {at}")).key("status");
    fill(&world, 0, 50, say);
    let add = |at: usize| cost(|| drop(world.add(say(at))));
    let get = || cost(|| drop(world.row("status")));
    let small = (add(50), get());
    fill(&world, 51, 1_000, say);
    constant(small.0, add(1_000));
    constant(small.1, get());
    assert_eq!(world.ns.history("status").unwrap().versions.len(), 1_001);
}

/// Whether anything else is in a category is asked of one row.
#[test]
fn forgetting_a_member_of_a_large_category() {
    let world = world();
    let say = |at: usize| Draft {
        categories: Some(vec!["work".to_owned()]),
        ..text(&format!("memory {at} of the crowd")).key(format!("k{at}"))
    };
    fill(&world, 0, 50, say);
    let forget = |at: usize| cost(|| drop(world.ns.forget(Forget::names([format!("k{at}")])).unwrap()));
    let small = forget(7);
    fill(&world, 50, 2_000, say);
    constant(small, forget(8));
}

/// Each memory is superseded by the next, the last first: whether that closes a circle is not asked of the whole chain.
#[test]
fn superseding_at_the_end_of_a_long_chain() {
    let world = world();
    let ids: Vec<_> = (0..1_000).map(|at| world.add(text(&format!("version {at}"))).id).collect();
    let supersede = |at: usize| {
        cost(|| {
            world.supersede(ids[at], ids[at + 1], oubliette::memory::SupersedeMode::Correction, None).unwrap()
        })
    };
    for at in (951..999).rev() {
        supersede(at);
    }
    let small = supersede(950);
    for at in (1..950).rev() {
        supersede(at);
    }
    constant(small, supersede(0));
    assert!(
        world.supersede(ids[999], ids[0], oubliette::memory::SupersedeMode::Correction, None).is_err(),
        "a circle"
    );
}

/// Maintenance that finds nothing to do writes nothing, however often it runs, and reads as much for each namespace as for one.
#[test]
fn maintenance_with_nothing_to_do() {
    let world = world();
    let tenants = |from: usize, to: usize| {
        for at in from..to {
            let tenant: NamespaceName = format!("tenant-{at}").parse().unwrap();
            world
                .db
                .namespace(&tenant)
                .unwrap()
                .add(text("a memory").kind(oubliette::Kind::Profile))
                .unwrap();
        }
    };
    let passes = [
        Pass::Snapshots,
        Pass::Collapse,
        Pass::NearDuplicates,
        Pass::VectorDuplicates,
        Pass::Supersession,
        Pass::Embed,
        Pass::Limbo,
    ];
    let run = || {
        let mut report = None;
        let cost =
            cost(|| report = Some(world.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap()));
        assert!(report.unwrap().passes.iter().all(|pass| pass.changed == 0));
        assert_eq!(cost.written, 0, "an idle run writes");
        cost.read
    };
    tenants(0, 4);
    let small = run();
    tenants(4, 64);
    let large = run();
    assert!(large <= small * 17, "{small} rows for 4 namespaces, {large} for 64");
    run();
    let before = world.db.compact().unwrap().bytes_after;
    run();
    assert_eq!(world.db.compact().unwrap().bytes_after, before);
}

/// Of many rows with an equal text a write looks at those alone that could stand for it, and tells of a few others.
#[test]
fn equal_texts_with_other_metadata() {
    let world = world();
    let say = |at: usize| text("user opened the settings page").metadata(json!({ "user_id": at }));
    let add = |at: usize| {
        let mut hints = 0;
        let cost = cost(|| hints = world.add(say(at)).hints.len());
        assert!((1..=10).contains(&hints), "{hints} hints");
        cost
    };
    fill(&world, 0, 50, say);
    let small = add(50);
    let again = |at: usize| cost(|| assert_eq!(world.add(say(at)).decision, Decision::Reinforced));
    let small_again = again(17);
    fill(&world, 51, 1_000, say);
    constant(small, add(1_000));
    // The one that is equal in all is found among all that are equal in their text.
    constant(small_again, again(517));
    constant(small_again, again(999));
    assert_eq!(world.live().len(), 1_001);
}

/// The same with rows that are equal in all, stored with dedup off: one of them takes the write in.
#[test]
fn equal_rows_stored_apart() {
    let world = world();
    let say = || text("user opened the settings page");
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let more = |count: usize| {
        let drafts = (0..count).map(|_| say()).collect();
        world.ns.add_all(drafts, &apart).unwrap()
    };
    let first = more(50)[0].id;
    let add = || cost(|| assert_eq!(world.add(say()).id, first, "the oldest of those that are equal"));
    add();
    let small = add();
    more(1_000);
    constant(small, add());
}

/// A row has no more tags than a draft may have: a write of equal text whose tags it has no room for is a row of its own,
/// with a hint, and the next one joins that while there is room.
#[test]
fn tags_of_equal_texts() {
    let world = world();
    let say = |at: usize| {
        (0..16)
            .fold(text("equal text").key(format!("k{at}")), |draft, tag| draft.tag(format!("tag-{at}-{tag}")))
    };
    let add = |at: usize| cost(|| drop(world.add(say(at))));
    fill(&world, 0, 50, say);
    // The third of the four that one row has room for.
    let small = add(50);
    fill(&world, 51, 1_002, say);
    constant(small, add(1_002));
    assert_eq!(world.live().len(), 251);
    for at in [0, 3, 4, 50, 1_002] {
        let row = world.row(format!("k{at}"));
        assert_eq!(row.keys.len(), if at == 1_002 { 3 } else { 4 }, "{:?}", row.keys);
        assert!(say(at).tags.unwrap().iter().all(|tag| row.tags.contains(tag)));
        assert!(row.tags.len() <= 64);
    }
    let full = world.add(say(1_003));
    assert_eq!(full.decision, Decision::Reinforced);
    let apart = world.add(say(1_004));
    assert_eq!(apart.decision, Decision::Stored);
    assert!(apart.hints.iter().any(|hint| hint.why == "equal content, tags full"), "{:?}", apart.hints);
    // What brings no tag that is new to a row needs no room there.
    let again = world.add(text("equal text").tag("tag-2-7"));
    assert_eq!((again.decision, again.id), (Decision::Reinforced, world.row("k2").id));
}

/// A key that brings more tags than its row has room for leaves it, as with every change that one of several can't carry.
#[test]
fn tags_that_a_key_brings_later() {
    let world = world();
    let tags = |of: &str| (0..40).map(|at| format!("{of}-{at}")).collect::<Vec<_>>();
    let say = |key: &str, tags: Option<Vec<String>>| Draft { tags, ..text("equal text").key(key) };
    world.add(say("a", Some(tags("a"))));
    world.add(say("b", None));
    assert_eq!(world.row("a").id, world.row("b").id);
    assert_eq!(world.add(say("b", Some(tags("b")))).decision, Decision::Stored);
    assert_ne!(world.row("a").id, world.row("b").id);
    assert_eq!(world.row("b").tags.len(), 40);
    assert_eq!(world.add(say("a", Some(tags("c")))).decision, Decision::Updated);
}

/// A pass unites duplicates as far as their tags have room together, and plans nothing else.
#[test]
fn tags_of_duplicates() {
    for pass in [Pass::NearDuplicates, Pass::VectorDuplicates] {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| {
            (0..40).fold(text("equal text").vector(vec![1.0, 0.0, 0.0, 0.0]), |draft, tag| {
                draft.tag(format!("t{}", at % 2 * 40 + tag))
            })
        };
        world.ns.add_all((0..4).map(say).collect(), &apart).unwrap();
        let report = world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        assert_eq!((report.passes[0].changed, report.passes[0].skipped), (2, 0), "{report:?}");
        assert!(world.live().iter().all(|id| world.row(*id).tags.len() == 40));
        world.check();
    }
}

/// What leaves a row with many writes costs as much as what leaves: by key one at a time, by key, by tag and with an import
/// all in one call, also where each write brings categories and links of its own.
#[test]
fn writes_that_leave_a_row() {
    let of = |n: usize, shared: bool| {
        let world = world();
        let to = world.add(text("what they are about")).id;
        let run = world.ns.start_import().unwrap();
        let say = |at: usize| {
            let own = if shared { String::new() } else { at.to_string() };
            Draft {
                categories: Some(vec![format!("work {own}")]),
                links: Some(vec![Link { to, relation: format!("is about {own}") }]),
                ..text("equal text").key(format!("k{at}")).tag("all")
            }
        };
        let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
        world.ns.add_all((0..n).map(say).collect(), &how).unwrap();
        (world, run)
    };
    let forget = |world: &World, what: Forget| cost(|| drop(world.ns.forget(what).unwrap()));
    let keys = |n: usize| Forget::names((0..n).map(|at| format!("k{at}")));
    for shared in [true, false] {
        let by_key = |n: usize| forget(&of(n, shared).0, keys(n));
        linear(by_key(50), by_key(200), 4);
        let by_tag = |n: usize| forget(&of(n, shared).0, Forget::tag("all"));
        linear(by_tag(50), by_tag(200), 4);
        let by_undo = |n: usize| {
            let (world, run) = of(n, shared);
            cost(|| drop(world.ns.undo(run).unwrap()))
        };
        linear(by_undo(50), by_undo(200), 4);
    }
    // A row of 300 tells of 300 writes in its journal: of these only those are read that leave.
    let plain = |n: usize| {
        let world = world();
        fill(&world, 0, n, |at| text("equal text").key(format!("k{at}")));
        forget(&world, Forget::names(["k7"]))
    };
    constant(plain(50), plain(300));
}

/// Versions of one memory that are forgotten by their ids cost as much as there are: their chain is walked once, whether a key
/// leads to all of them or each took the place of the one before.
#[test]
fn forgetting_versions_by_their_ids() {
    let of = |n: usize, has_key: bool| {
        let world = world();
        let say = |at: usize| text(&format!("status number {at}"));
        let mut ids = vec![];
        for at in 0..n {
            ids.push(match ids.last() {
                _ if has_key => world.add(say(at).key("status")).id,
                None => world.add(say(at)).id,
                Some(last) => {
                    let patch = Patch { text: Some(say(at).text), ..Patch::default() };
                    world.ns.update(*last, patch).unwrap().id
                }
            });
        }
        // All but the last, so that what is left is looked for too.
        ids.pop();
        let names = Forget::names(ids.iter().map(ToString::to_string));
        cost(|| assert_eq!(world.ns.forget(names).unwrap().later.len(), 1))
    };
    for has_key in [true, false] {
        linear(of(20, has_key), of(80, has_key), 4);
    }
}

/// Of a row that stands for many merged ones each key is forgotten at the same cost.
#[test]
fn forgetting_merged_keys_of_different_texts() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| {
            text(&format!("Gateway status: {at} apps pending"))
                .kind(oubliette::Kind::Profile)
                .key(format!("k{at}"))
        };
        fill(&world, 0, n, say);
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
        let [stays] = world.live()[..] else { panic!("{:?}", world.live()) };
        let kept = world.row(stays).row_text;
        let key = (0..n).filter(|at| say(*at).text != kept).nth(n / 2).map(|at| format!("k{at}"));
        let cost = cost(|| drop(world.ns.forget(Forget::names(key)).unwrap()));
        world.check();
        cost
    };
    constant(of(20), of(200));
}

/// Of a row that stands for many merged ones each key says something new at the same cost, in one call, and each comes back
/// at the same cost when the pass is undone.
#[test]
fn merged_keys_that_say_something_new() {
    let of = |n: usize, renews: bool| {
        let world = world();
        let say = |at: usize, text: &str| {
            self::text(&format!("{text}: {at} apps pending"))
                .kind(oubliette::Kind::Profile)
                .key(format!("k{at}"))
        };
        fill(&world, 0, n, |at| say(at, "Gateway status"));
        let united = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
        let work = || match renews {
            true => {
                let new = (0..n).map(|at| say(at, &format!("Host {at} is down"))).collect();
                drop(world.ns.add_all(new, &Default::default()).unwrap());
            }
            false => drop(world.ns.undo(united.passes[0].run.unwrap()).unwrap()),
        };
        let cost = cost(work);
        assert_eq!(world.live().len(), n);
        world.check();
        cost
    };
    for renews in [true, false] {
        linear(of(30, renews), of(120, renews), 4);
    }
}

/// A tag for a memory of many writers costs as much as they are, also where each has brought something of its own.
#[test]
fn a_tag_for_a_memory_of_many_writers() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| Draft {
            categories: Some(vec![format!("work {at}")]),
            ..text("equal text").key(format!("k{at}"))
        };
        world.ns.add_all((0..n).map(say).collect(), &Default::default()).unwrap();
        let [id] = world.live()[..] else { panic!("one memory") };
        let patch = Patch { tags: Some(vec!["new".to_owned()]), ..Patch::default() };
        let cost = cost(|| drop(world.ns.update(id, patch).unwrap()));
        assert_eq!((world.row(id).tags, world.row(id).categories.len()), (vec!["new".to_owned()], n));
        world.check();
        cost
    };
    linear(of(30), of(120), 4);
}

/// The numbers of a family of messages are brought up to date by what left it, whoever wrote the others.
#[test]
fn a_member_of_a_large_family_of_messages() {
    let world = world();
    let say = |at: usize| {
        let mut draft = text("build 1 failed on main").kind(Kind::Message);
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        draft.fields.author_id = Field::Value(format!("runner {at}"));
        draft.fields.channel = Field::Value("ci".to_owned());
        draft.fields.created_at = Some(Time::from_millis(world.now().as_millis() + at as i64));
        draft
    };
    let undo = |at: usize| {
        let run = world.ns.start_import().unwrap();
        let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
        world.ns.add_all(vec![say(at), say(at + 1)], &how).unwrap();
        cost(|| drop(world.ns.undo(run).unwrap()))
    };
    fill(&world, 0, 50, say);
    let small = undo(50);
    fill(&world, 52, 1_000, say);
    constant(small, undo(1_000));
    let family = world.ns.aggregates(None, 10).unwrap().items.remove(0);
    assert_eq!(family.dup_count, 998);
    let of = EventsOf::Aggregate(family.id);
    let query = EventQuery { of, limit: 1_000, ..EventQuery::default() };
    let members = world.ns.events(&query).unwrap().items;
    assert_eq!(members.len(), 998);
    assert_eq!((members[0].id, members[997].id), (family.first_event_id, family.last_event_id));
    assert_eq!((members[0].ts, members[997].ts), (family.ts_first, family.ts_last));
    let there = |author: &String| members.iter().any(|event| event.author_id.as_ref() == Some(author));
    assert!(family.authors_seen.iter().all(there), "{:?}", family.authors_seen);
    world.check();
}

/// Half of all rows go at once, and few blocks of them are decoded at any time.
#[test]
fn a_forget_of_many_rows_keeps_few_blocks() {
    const ROWS: usize = 1_200;
    let world = world();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let vector = |at: usize| (0..DIM_MAX).map(|d| ((at * 31 + d) as f32).sin()).collect::<Vec<_>>();
    for from in (0..ROWS).step_by(100) {
        let say = |at: usize| text(&format!("memory {at} of the crowd")).tag(["kept", "gone"][at % 2]);
        let drafts = (from..from + 100).map(|at| say(at).vector(vector(at))).collect();
        world.ns.add_all(drafts, &apart).unwrap();
    }
    let find = |at: usize, k: usize| {
        let query = Query { text: Some(format!("memory {at}")), ..Query::vector(vector(at)).k(k) };
        let hits = world.ns.search(&query).unwrap().hits;
        (hits.len(), world.ns.text(hits[0].id).unwrap().unwrap())
    };
    let last = ROWS - 1;
    assert_eq!(find(last, 1).1, format!("memory {last} of the crowd"));
    let kept = Tally::of_thread().staged;
    assert!((1..STAGED_BYTES_MAX).contains(&kept), "{kept} bytes by a hundred rows");
    assert_eq!(world.forget_tag("gone").forgotten, ROWS as u64 / 2);
    let kept = Tally::of_thread().staged;
    assert!(kept <= STAGED_BYTES_MAX, "{kept} bytes");
    assert_eq!(find(last - 1, 600), (ROWS / 2, format!("memory {} of the crowd", last - 1)));
    assert_ne!(find(last, 1).1, format!("memory {last} of the crowd"));
}

/// What a memory has nothing of is not looked for, and what it has is read once.
#[test]
fn a_move_reads_of_a_memory_what_it_has() {
    let brought = |memories: usize| {
        let world = world();
        fill(&world, 0, memories, |at| text(&format!("memory {at}")).vector(vec![1.0, at as f32]));
        world.db.namespace("other").unwrap().add("is there already").unwrap();
        let dry = RenamespaceOptions { dry_run: true, ..RenamespaceOptions::default() };
        cost(|| drop(world.db.move_namespace("default", "other", &dry).unwrap())).read
    };
    // Of its own rows: vitals (twice, since a walk names it), content, holder, vector and its space, journal. Of the other
    // namespace: whether the id was used there.
    let of_one = (brought(300) - brought(100)) as f64 / 200.0;
    assert!((10.0..12.0).contains(&of_one), "{of_one} rows of each");
}

/// What is over is removed, and not written once more before.
#[test]
fn an_expiry_writes_no_memory_that_it_removes() {
    let expiry = |memories: usize| {
        let world = world();
        let end = Time::from_millis(world.now().as_millis() + 1_000);
        fill(&world, 0, memories, |at| text(&format!("memory {at}")).expiry(Expiry::At(end)));
        world.advance("1h");
        let passes = MaintainOptions::live().passes([Pass::Expire]);
        cost(|| assert_eq!(world.db.maintain_with(&passes).unwrap().passes[0].changed, memories as u64))
            .written
    };
    let of_one = (expiry(300) - expiry(100)) as f64 / 200.0;
    assert!((14.0..16.0).contains(&of_one), "{of_one} rows of each");
}

/// Of a memory that was found its vitals and its statistics are read once and written, and what orders it by its use.
#[test]
fn counting_reads_no_content() {
    let counting = |memories: usize| {
        let world = world();
        fill(&world, 0, memories, |at| text(&format!("memory {at}")).vector(vec![1.0, at as f32]));
        world.ns.search(Query::vector(vec![1.0, 1.0]).k(memories).track(true)).unwrap();
        cost(|| world.db.flush_access().unwrap())
    };
    let (small, large) = (counting(10), counting(20));
    let of_one = |more: u64, less: u64| (more - less) as f64 / 10.0;
    let costs = (of_one(large.read, small.read), of_one(large.written, small.written));
    assert_eq!(costs, (2.0, 3.0));
}

/// Of many values few are written in one transaction, or taken away.
#[test]
fn an_index_of_metadata_comes_and_goes_in_slices() {
    let world = world();
    let many = |at: usize| (0..200).map(|value| at * 200 + value).collect::<Vec<_>>();
    fill(&world, 0, 100, |at| text(&format!("memory {at}")).metadata(json!({ "many": many(at) })));
    let before = cost(|| ()).of_one;
    let declared = cost(|| assert_eq!(world.ns.declare_index("many").unwrap(), 100));
    assert!(declared.written > 20_000, "{declared:?}");
    let anew = cost(|| assert_eq!(world.db.reindex().unwrap(), 0));
    assert!(anew.written > 40_000, "{anew:?}");
    let gone = cost(|| assert!(world.ns.drop_index("many").unwrap()));
    assert!(gone.written > 20_000, "{gone:?}");
    let most = (SLICE_ROWS_MAX + 300) as u64;
    assert!(before < most && gone.of_one < most, "{gone:?}");
}

/// The first message of a family is forgotten: whether others are left of what was said is known from one of them.
#[test]
fn the_first_message_of_a_large_family() {
    let cost_of = |members: usize| {
        let world = world();
        let say = |at: usize| {
            let mut draft = text("build 1 failed on main").kind(Kind::Message);
            draft.fields.author_kind = Field::Value(AuthorKind::Bot);
            draft.fields.created_at = Some(Time::from_millis(world.now().as_millis() + at as i64));
            draft
        };
        let first = world.add(say(0)).id;
        fill(&world, 1, members, say);
        let all = world.ns.aggregates(None, 10).unwrap().items;
        assert_eq!(all.iter().map(|family| family.dup_count).collect::<Vec<_>>(), [members as u64]);
        cost(|| assert_eq!(world.forget_id(first).forgotten, 1))
    };
    constant(cost_of(50), cost_of(1_000));
}

/// LIFE-66: a sweep that finds nothing to do reads the same number of rows, however many memories there are that it leaves
/// alone: durable ones that nobody uses, short-term ones, superseded ones, ones in limbo.
#[test]
fn a_sweep_with_nothing_to_do_reads_as_much_of_four_times_as_many_memories() {
    let sweep = |memories: usize| {
        let world = world();
        let policy = "sweeper.demote_after = '7d'\nsweeper.tombstone_ttl = '100d'\nsweeper.short_term_cap = 100000\n\
                      sweeper.stages = ['fold', 'purge', 'cap', 'superseded_purge', 'demote', 'promote', 'limbo', 'retention']\n\
                      ttl.working = '3d'\nundo.horizon = '60d'\nbudget.floor = 100000";
        world.db.set_policy(policy, oubliette::policy::Syntax::Toml).unwrap();
        fill(&world, 0, memories, |at| {
            let draft = text(&format!("memory {at}")).key(format!("k{at}"));
            match at % 4 {
                0 => draft.tier(Tier::Working),
                1 => draft.tier(Tier::Episodic),
                2 => draft.importance(0.2).key(format!("k{}", at % 20)),
                _ => draft,
            }
        });
        // A quarter goes to limbo, and what matters little becomes episodic. The other durable ones are old and unused too.
        world.advance("8d");
        let first = world.db.maintain().unwrap();
        let changed = |pass: Pass| first.passes.iter().find(|of| of.pass == pass).unwrap().changed;
        assert!(changed(Pass::Expire) > 0 && changed(Pass::Demote) > 0);
        cost(|| {
            let idle = world.db.maintain().unwrap();
            assert!(idle.passes.iter().all(|pass| pass.changed == 0), "{idle:?}");
        })
    };
    let (small, large) = (sweep(200), sweep(800));
    constant(small, large);
    assert_eq!((small.written, large.written), (0, 0), "an idle sweep writes");
}

/// The graph of a few elements among many other memories.
#[test]
fn a_call_of_the_graph_reads_the_graph_alone() {
    let costs = [10, 200].map(|others| {
        let world = world();
        let graph = KnowledgeGraph::new(world.ns.clone());
        let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["prefers tea"] });
        graph.call("create_entities", json!({ "entities": [ann] })).unwrap();
        for at in 0..others {
            world.add(text(&format!("memory {at}")).key(format!("other:{at}")));
        }
        let more = json!({ "observations": [{ "entityName": "Ann", "contents": ["walks"] }] });
        let reads = cost(|| drop(graph.call("read_graph", json!({})).unwrap()));
        (reads, cost(|| drop(graph.call("add_observations", more).unwrap())))
    });
    constant(costs[0].0, costs[1].0);
    constant(costs[0].1, costs[1].1);
}

/// An undo of a pass walks the writers of the memory that it united once, and not for each of those that come back. A check
/// reads the row of the journal that tells of the pass once, too.
#[test]
fn what_a_pass_has_united_comes_back_at_the_same_cost_for_each() {
    let of = |n: usize| {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("equal text").key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        let report = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        let check = cost(|| world.check());
        let undo = cost(|| drop(world.ns.undo(report.run.unwrap()).unwrap()));
        assert_eq!(world.live().len(), n);
        (check, undo)
    };
    let (small, large) = (of(50), of(200));
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
    let of_one = (large.0.read - small.0.read) as f64 / 150.0;
    assert!(of_one < 67.5, "{of_one} rows of each: the row of the pass is among them");
}

/// Texts with the same vector: those that a batch is compared with are read once for all of the batch, and those of the batch
/// itself not at all.
#[test]
fn texts_of_one_vector_at_the_door() {
    let world = world();
    let say = |at: usize| text(&format!("line {at}")).vector(vec![1.0; 64]);
    fill(&world, 0, 1_000, say);
    let small = cost(|| fill(&world, 1_000, 1_100, say));
    fill(&world, 1_100, 3_900, say);
    let large = cost(|| fill(&world, 3_900, 4_000, say));
    let (more, blocks) = (large.read.saturating_sub(small.read), 2_900 / 15);
    assert!(
        more <= 2 * blocks,
        "{more} rows more for {blocks} blocks of vectors more: {small:?}, then {large:?}"
    );
    assert!(small.read < 100 * 100, "{small:?}");
    assert_eq!(world.live().len(), 4_000);
}

/// The search for the neighbours of a memory tells how much it differs from all others, too: clusters need no second one.
#[test]
fn clusters_are_made_of_one_search_for_each_memory() {
    const MEMORIES: usize = 400;
    let world = world();
    let near = |at: usize| -> Vec<f32> {
        let group = at / 4 * 31;
        (0..16).map(|dim| ((group + dim * dim * 17) % 101) as f32 - 50.0 + (at % 4) as f32 / 4.0).collect()
    };
    // Texts of different numbers are kept apart.
    let word = |at: usize| String::from_iter([at / 26, at % 26].map(|letter| (b'a' + letter as u8) as char));
    let drafts =
        (0..MEMORIES).map(|at| text(&format!("a walk along the river {}", word(at))).vector(near(at)));
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(drafts.collect(), &apart).unwrap();
    let read = |pass| {
        cost(|| {
            let options = MaintainOptions::default().passes([pass]);
            assert!(world.ns.maintain_with(&options).unwrap().passes[0].planned >= 3 * MEMORIES as u64 / 4);
        })
        .read
    };
    // Both search the neighbours of all memories. A cluster reads a few more rows of each memory.
    let (pairs, clusters) = (read(Pass::VectorDuplicates), read(Pass::Cluster));
    assert!(clusters < pairs + 6 * MEMORIES as u64, "{pairs} rows for pairs, {clusters} for clusters");
}

/// What an export of all states writes.
pub(crate) fn exported(world: &World) -> Vec<u8> {
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
    let (snapshot, mut out) = (world.db.snapshot().unwrap(), Vec::new());
    let nowhere = VectorsTo::<std::io::Cursor<Vec<u8>>>::Lines;
    assert!(export.write(&snapshot, &mut out, "lines", nowhere).unwrap().is_whole());
    out
}

/// A check, an export and the counts of a key that was revised many times read each version as often, however many there are.
#[test]
fn a_long_chain_of_versions_is_read_row_by_row() {
    let world = world();
    let say = |at: usize| text(&format!("status number {at}")).key("status");
    let work = || (cost(|| world.check()), cost(|| drop(exported(&world))));
    fill(&world, 0, 500, say);
    let small = work();
    fill(&world, 500, 2_000, say);
    let large = work();
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
}

/// Work on one row of many writers that is done for each of them finds the writer that it concerns, and reads no other.
#[test]
fn what_each_writer_of_a_row_has_brought() {
    let of = |n: usize| {
        let world = world();
        let targets: Vec<_> = (0..n).map(|at| world.add(text(&format!("target {at}"))).id).collect();
        let say = |at: usize| Draft {
            entities: Some(vec![Entity { name: format!("e{at}"), role: "about".to_owned() }]),
            links: Some(vec![Link { to: targets[at], relation: "after".to_owned() }]),
            ..text("equal text").key(format!("k{at}"))
        };
        world.ns.add_all((0..n).map(say).collect(), &Default::default()).unwrap();
        let reindex = cost(|| assert!(world.db.reindex().is_ok()));
        let names = targets.iter().map(ToString::to_string);
        let forget = cost(|| drop(world.ns.forget(Forget::names(names)).unwrap()));
        assert!(world.row("k0").links.is_empty());
        world.check();
        (reindex, forget)
    };
    let (small, large) = (of(30), of(120));
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
}

/// A namespace of many agents has as many indexes, and `reindex` does not read all of it for each.
#[test]
fn indexes_of_many_agents_anew() {
    let world = world();
    let say = |at: usize| text(&format!("memory {at}")).agent(format!("a{at}")).vector(vec![1.0, at as f32]);
    fill(&world, 0, 100, say);
    let small = cost(|| assert_eq!(world.db.reindex().unwrap(), 100));
    fill(&world, 100, 400, say);
    let large = cost(|| assert_eq!(world.db.reindex().unwrap(), 400));
    linear(small, large, 4);
}

/// Many memories whose place one takes, in one call, and their end.
#[test]
fn many_memories_that_give_their_place_to_one() {
    let of = |n: usize| {
        let world = world();
        let policy = "sweeper.tombstone_ttl = '10d'\nundo.horizon = '7d'";
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        let name = |at: usize| format!("k{at}");
        fill(&world, 0, n, |at| text(&format!("text {at}")).key(name(at)));
        let new = world.add(text("what is true").key("new")).id;
        let old: Vec<String> = (0..n).map(name).collect();
        let mode = oubliette::memory::SupersedeMode::Correction;
        let supersede = cost(|| drop(world.ns.supersede_all(&old, new.to_string(), mode, None).unwrap()));
        world.advance("400d");
        let end = cost(|| {
            let done = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
            assert_eq!(done.passes[0].changed, n as u64);
        });
        (supersede, end)
    };
    let (small, large) = (of(30), of(120));
    linear(small.0, large.0, 4);
    linear(small.1, large.1, 4);
}

/// The tombstone of a memory of many keys is found by each of them, and a check reads it once.
#[test]
fn a_tombstone_of_many_keys_is_checked_once() {
    let of = |n: usize| {
        let world = world();
        let ids = (0..n).map(|at| world.add(text("equal text").key(format!("k{at}"))).id).collect::<Vec<_>>();
        world.forget_id(ids[0]);
        cost(|| world.check())
    };
    let (small, large) = (of(100), of(400));
    let more = large.read - small.read;
    assert!(more < 300 * 19 / 2, "{more} rows more for 300 keys: the tombstone is among them");
}

/// Each writer of a run that is forgotten has replaced a memory of its own, and all were merged into one since: what comes
/// back is decided for each without a look at all of the others.
#[test]
fn what_many_writers_of_a_merged_memory_had_replaced() {
    let of = |n: usize| {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let first = |at: usize| text(&format!("fact number {at}")).key(format!("k{at}"));
        world.ns.add_all((0..n).map(first).collect(), &apart).unwrap();
        let then = |at: usize| text("the sky over the bay").key(format!("k{at}")).tag("x");
        world.ns.add_all((0..n).map(then).collect(), &apart).unwrap();
        world.ns.add_all(vec![text("the sky over the bay").key("office")], &apart).unwrap();
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        let forget = cost(|| assert_eq!(world.forget_tag("x").restored, n as u64));
        world.check();
        forget
    };
    linear(of(30), of(120), 4);
}
