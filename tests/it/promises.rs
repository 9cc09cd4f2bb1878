//! Ends that callers set are promises (LIFE-56, LIFE-71): no pass, no summary and no message of somebody else moves them, and
//! nothing of a text is left when its end has come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::world::{World, axis, text};
use oubliette::clock::ManualClock;
use oubliette::gc::{Extractive, GcOptions, GcRunOptions, InputPack, Summarizer};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{AuthorKind, EventQuery, Expiry, Field, Significance, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{Decision, Draft, Error, Forget, Kind, Memory, Query, Result, WriteOptions};
use serde_json::json;

fn until(world: &World, draft: Draft, span: &str) -> Draft {
    draft.expiry(Expiry::At(world.ahead(span)))
}

/// Writes past the ladder.
fn apart(world: &World, draft: Draft) {
    world.ns.add_all(vec![draft], &WriteOptions { no_dedup: true, ..WriteOptions::default() }).unwrap();
}

fn run(world: &World, pass: Pass) {
    world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
}

/// A text with a vector that all passes unite.
fn status() -> Draft {
    Draft::new("Gateway status: 4 apps pending").kind(Kind::Profile).vector(axis(1))
}

const PASSES: [Pass; 3] = [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates];

/// Rows after a pass, when the first writer ends in 8 hours, and whether the text can be read when that end has come and the second
/// writer has left.
fn united(
    pass: Pass,
    first: fn(Draft) -> Draft,
    second: fn(&World, Draft) -> Draft,
    leave: Forget,
) -> (usize, bool) {
    let world = World::new();
    world.add(first(until(&world, status(), "8h")));
    world.add(second(&world, status()));
    world.advance("1h");
    run(&world, pass);
    let rows = world.live().len();
    world.ns.forget(leave).unwrap();
    world.advance("8h");
    let stays = !world.live().is_empty();
    world.check();
    (rows, stays)
}

#[test]
fn life_71_no_pass_lets_a_text_outlive_the_end_of_its_writer() {
    let same = |draft: Draft| draft;
    for pass in PASSES {
        let world = World::new();
        world.add(status().key("a"));
        apart(&world, status().key("b"));
        run(&world, pass);
        assert_eq!(world.live().len(), 1, "{pass} unites what nobody lets end");
    }
    for pass in PASSES {
        let by_key = |second: fn(&World, Draft) -> Draft| united(pass, same, second, Forget::names(["k"]));
        assert_eq!(by_key(|world, draft| until(world, draft.key("k"), "20h")), (2, false), "{pass}");
        assert_eq!(by_key(|_, draft| draft.key("k").expiry(Expiry::Never)), (2, false), "{pass}");
        assert_eq!(by_key(|_, draft| draft.key("k")), (2, false), "{pass}");
        let tagged = united(
            pass,
            |draft| draft.tag("a"),
            |world, draft| until(world, draft.tag("b"), "20h"),
            Forget::tag("b"),
        );
        assert_eq!(tagged, (2, false), "{pass}");
    }
}

#[test]
fn life_71_a_pass_unites_what_ends_alike_or_is_of_one_writer() {
    for pass in PASSES {
        let world = World::new();
        world.add(until(&world, status(), "8h"));
        apart(&world, until(&world, status(), "20h"));
        assert_eq!(world.live().len(), 2);
        run(&world, pass);
        assert_eq!(world.live().len(), 1, "{pass}");
        world.advance("9h");
        assert_eq!(world.live().len(), 1, "{pass}: the writer has named the later end");
        world.check();
    }
}

/// LIFE-71, DEDUP-20, MODEL-65: a plan leaves out what the pass would keep apart, so a dry run tells what happens, and a sweep that
/// finds nothing else to do leaves no run.
#[test]
fn life_71_what_is_kept_apart_is_in_no_plan() {
    for pass in PASSES {
        let world = World::new();
        world.add(status().key("a").significance(Significance::Core));
        apart(&world, until(&world, status().key("b"), "8h"));
        for options in [MaintainOptions::default(), MaintainOptions::live(), MaintainOptions::live()] {
            let report = world.db.maintain_with(&options.passes([pass])).unwrap().passes.remove(0);
            assert_eq!((report.planned, report.changed, report.skipped), (0, 0, 0), "{pass}");
        }
        assert!(world.ns.runs(None, 10).unwrap().items.is_empty(), "{pass}");

        apart(&world, status().key("c"));
        apart(&world, status().key("d"));
        let dry = world.db.maintain_with(&MaintainOptions::default().passes([pass])).unwrap();
        let live = world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        assert_eq!(
            (dry.passes[0].planned, live.passes[0].changed, live.passes[0].skipped),
            (2, 2, 0),
            "{pass}"
        );
        assert_eq!(world.live().len(), 2, "{pass}");
        world.check();
    }
}

/// LIFE-71, V-51: the end of what stays moves with each memory that joins. Whatever the order, a plan is what is done, and another run
/// finds nothing.
#[test]
fn life_71_one_run_unites_all_that_may_join() {
    let writers: [fn(&World) -> Draft; 5] = [
        |world| until(world, status(), "8h"),
        |_| status(),
        |world| until(world, status(), "20h"),
        |_| status().key("a"),
        |world| until(world, status().key("b"), "8h"),
    ];
    for pass in PASSES {
        for order in
            [[0, 3, 1, 4], [0, 3, 1, 2], [1, 0, 3, 2], [2, 0, 4, 1], [3, 0, 2, 1], [4, 0, 1, 3], [0, 1, 2, 3]]
        {
            let world = World::new();
            order.iter().for_each(|at| apart(&world, writers[*at](&world)));
            let report = |options: MaintainOptions| {
                world.db.maintain_with(&options.passes([pass])).unwrap().passes.remove(0)
            };
            let planned = report(MaintainOptions::default()).planned;
            let done = report(MaintainOptions::live());
            assert_eq!((done.changed, done.skipped), (planned, 0), "{pass} of {order:?}");
            assert_eq!(report(MaintainOptions::live()).planned, 0, "{pass} of {order:?}, once more");
            world.check();
        }
    }
}

/// A message of a time long ago.
fn told(number: usize) -> Draft {
    let words = "The boiler broke again. It is so cold here, and there is no hot water for any of us. What should we do?";
    let old = "1969-12-01T10:00:00Z".parse().unwrap();
    Draft::new(format!("Ann {number}: {words}")).kind(Kind::Message).channel("home").created_at(old)
}

#[test]
fn life_56_a_summary_is_made_of_nothing_that_a_caller_lets_end() {
    let world = World::new();
    for number in 0..4 {
        world.add(until(&world, told(number), "30d"));
    }
    assert!(world.ns.gc_plan(&GcOptions::default()).unwrap().groups.is_empty());
    for number in 4..8 {
        world.add(told(number));
    }
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!((done.committed, done.sources), (1, 4));
    world.check();
}

struct Unites;

impl Summarizer for Unites {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        unreachable!("no summary is asked for")
    }

    fn consolidate(&self, _: &[Memory]) -> Result<Draft> {
        Ok(Draft::new("One for all"))
    }
}

#[test]
fn life_56_nothing_is_distilled_from_what_a_caller_lets_end() {
    let world = World::new();
    let near = |size: &str| Draft::new(format!("a {size} tree")).vector(axis(3));
    for size in ["tall", "high", "big"] {
        world.add(until(&world, near(size), "8h"));
    }
    let unites: Arc<dyn Summarizer> = Arc::new(Unites);
    let unite = || world.ns.consolidate_clusters(&unites).unwrap();
    unite();
    assert_eq!(world.live().len(), 3);
    for size in ["large", "huge"] {
        world.add(near(size));
    }
    unite();
    let texts: Vec<String> = world.live().iter().map(|id| world.row(id).text).collect();
    assert_eq!(texts.iter().filter(|text| *text == "One for all").count(), 1, "{texts:?}");
    world.advance("9h");
    let texts: Vec<String> = world.live().iter().map(|id| world.row(id).text).collect();
    assert_eq!(texts, ["One for all"]);
    world.check();
}

/// MODEL-15: what was made of memories tells nothing as true that is not any more.
#[test]
fn model_15_what_is_made_of_memories_is_true_no_longer_than_they_are() {
    let world = World::new();
    let end = world.ahead("30d");
    for size in ["tall", "high"] {
        world.add(Draft::new(format!("a {size} tree")).vector(axis(3)).valid_to(end));
    }
    let unites: Arc<dyn Summarizer> = Arc::new(Unites);
    let made = world.ns.consolidate_clusters(&unites).unwrap().created;
    assert_eq!(world.row(made[0]).valid_to, Some(end));
    for number in 0..4 {
        world.add(told(number).valid_to(end));
    }
    assert!(world.ns.gc_plan(&GcOptions::default()).unwrap().groups.is_empty());
    world.advance("31d");
    assert!(world.live().is_empty());
    world.check();
}

/// What is distilled of the memories of one owner is that owner's.
#[test]
fn life_28_what_is_distilled_goes_with_its_owner() {
    let world = World::new();
    for size in ["tall", "high"] {
        world.add(
            Draft::new(format!("a {size} tree"))
                .vector(axis(3))
                .metadata(json!({ "user_id": "bob", "seen": size })),
        );
    }
    let unites: Arc<dyn Summarizer> = Arc::new(Unites);
    let made = world.ns.consolidate_clusters(&unites).unwrap().created;
    assert_eq!(world.row(made[0]).metadata, json!({ "user_id": "bob" }));
    world.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap();
    assert!(world.live().is_empty());
    world.check();
}

const SAID: &str = "Please water the plants in the cellar";

fn message(kind: AuthorKind, author: &str) -> Draft {
    let mut draft = Draft::new(SAID).kind(Kind::Message).channel("c");
    draft.fields.author_kind = Field::from(Some(kind));
    draft.fields.author_id = Field::from(Some(author.to_owned()));
    draft
}

#[test]
fn life_71_a_message_ends_with_nobody_elses() {
    for kind in [AuthorKind::Human, AuthorKind::Bot] {
        let later: [fn(&World, Draft) -> Draft; 3] = [
            |_, draft| draft,
            |_, draft| draft.expiry(Expiry::Never),
            |world, draft| until(world, draft, "20h"),
        ];
        for second in later {
            let world = World::new();
            world.add(until(&world, message(kind, "ann"), "8h"));
            world.advance("1m");
            let bob = world.add(second(&world, message(kind, "bob")));
            assert_eq!(bob.decision, Decision::Stored, "{kind:?}");
            world.advance("9h");
            world.add(text("Something else"));
            assert!(world.is_live(bob.id), "{kind:?}");
            world.check();
        }
    }
}

#[test]
fn life_56_an_author_moves_the_end_of_a_message_by_saying_it_again() {
    for kind in [AuthorKind::Bot, AuthorKind::Human] {
        let world = World::new();
        world.add(until(&world, message(kind, "ann"), "8h"));
        world.advance("30m");
        let again = world.add(until(&world, message(kind, "ann"), "8h"));
        assert_ne!(again.decision, Decision::Stored, "{kind:?}");
        assert_eq!(world.row(again.id).expires_at, Some(world.ahead("8h")), "{kind:?}");
        let sooner = world.add(until(&world, message(kind, "ann"), "1h"));
        assert_eq!(
            world.row(sooner.id).expires_at,
            Some(world.ahead("8h")),
            "{kind:?}: the later end stands"
        );
        world.check();
    }
}

#[test]
fn life_28_a_message_is_counted_with_none_of_another_owner_tier_or_truth() {
    for kind in [AuthorKind::Human, AuthorKind::Bot] {
        let others: [fn(&World, Draft) -> Draft; 3] = [
            |_, draft| draft.metadata(json!({ "user_id": "bob" })),
            |_, draft| draft.metadata(json!({ "user_id": "ann" })).tier(Tier::Working),
            |world, draft| draft.metadata(json!({ "user_id": "ann" })).valid_to(world.ahead("1d")),
        ];
        for other in others {
            let world = World::new();
            let first = world.add(message(kind, "ann").metadata(json!({ "user_id": "ann" })));
            let second = world.add(other(&world, message(kind, "ann")));
            assert_eq!(second.decision, Decision::Stored, "{kind:?}");
            assert!(world.is_live(first.id) && world.is_live(second.id));
            world.check();
        }
    }
}

#[test]
fn life_28_what_counts_messages_goes_with_their_owner() {
    let world = World::new();
    for owner in ["ann", "bob", "ann", "bob"] {
        world.add(message(AuthorKind::Bot, "ci").metadata(json!({ "user_id": owner })));
    }
    let counts: Vec<_> = world.live().iter().map(|id| world.row(id)).collect();
    let told = |row: &Memory| (row.metadata["user_id"].clone(), row.metadata["dup_count"].clone());
    let mut counts: Vec<_> = counts.iter().map(told).collect();
    counts.sort_by_key(|(owner, _)| owner.to_string());
    assert_eq!(counts, [(json!("ann"), json!(2)), (json!("bob"), json!(2))]);
    // Each memory that counts messages has a key of its own, on each day.
    world.advance("1d");
    for owner in ["bob", "ann", "ann", "bob"] {
        world.add(message(AuthorKind::Bot, "ci").metadata(json!({ "user_id": owner })));
    }
    let rows: Vec<Memory> = world.live().iter().map(|id| world.row(id)).collect();
    let keys: BTreeSet<&str> = rows.iter().flat_map(|row| &row.keys).map(String::as_str).collect();
    assert_eq!((rows.len(), keys.len()), (4, 4), "{keys:?}");
    world.check();
    world.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap();
    for owner in ["ann", "bob"] {
        let of_owner = world.db.namespace(owner).unwrap().list(&Default::default()).unwrap();
        assert_eq!(of_owner.items.len(), 2, "{owner}");
    }
    world.check();
}

/// What counts the repeats of a person has no memory of its own, and keeps the words.
#[test]
fn life_28_what_counts_a_persons_messages_goes_with_the_message() {
    let world = World::new();
    for _ in 0..2 {
        world.add(message(AuthorKind::Human, "x").metadata(json!({ "user_id": "ann" })));
        world.advance("10m");
    }
    world.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap();
    let counted = |namespace: &str| {
        let namespace = world.db.namespace(namespace).unwrap();
        let events = namespace.events(&EventQuery::default()).unwrap().items.len();
        (namespace.aggregates(None, 10).unwrap().items.len(), events)
    };
    assert_eq!((counted("default"), counted("ann")), ((0, 0), (1, 2)));
    world.check();
    world.db.drop_namespace("ann").unwrap();
    world.db.maintain().unwrap();
    assert!(!world.has_bytes_of(SAID));
    world.check();
}

#[test]
fn life_56_nothing_is_left_of_a_message_whose_end_has_come() {
    let world = World::new();
    for _ in 0..3 {
        world.add(until(&world, message(AuthorKind::Bot, "ci"), "8h"));
    }
    world.add(until(&world, Draft::new("Ann walks home").kind(Kind::Message), "8h"));
    world.advance("9h");
    world.add(text("Something else"));
    assert!(!world.has_bytes_of(SAID) && !world.has_bytes_of("Ann walks home"));
    world.check();
}

/// A caller may set the end of what counts messages, too.
#[test]
fn life_56_nothing_is_left_of_messages_whose_count_ends() {
    let world = World::new();
    for _ in 0..2 {
        world.add(message(AuthorKind::Bot, "ci"));
    }
    let count = world.live()[0];
    world.ns.touch([count.to_string()], Expiry::At(world.ahead("1h"))).unwrap();
    world.advance("2h");
    world.add(text("Something else"));
    assert!(!world.has_bytes_of(SAID));
    world.check();
}

/// With its end goes nothing that a caller let such a memory supersede, nor a first message that is protected.
#[test]
fn life_56_what_counts_no_messages_takes_nothing_along() {
    let world = World::new();
    let old = world.add(text("a text of its own")).id;
    let end = world.ahead("1h");
    let kind = world.add(Draft::new("all of it").kind(Kind::Aggregate).expiry(Expiry::At(end))).id;
    world.ns.supersede_all([old.to_string()], kind, SupersedeMode::Aggregate, None).unwrap();
    let mut pinned = message(AuthorKind::Bot, "ci");
    pinned.fields.pinned = Some(true);
    let first = world.add(pinned).id;
    let count = world.add(message(AuthorKind::Bot, "ci"));
    let counts: Vec<_> = world.live().into_iter().filter(|id| ![kind, first].contains(id)).collect();
    for count in &counts {
        world.ns.touch([count.to_string()], Expiry::At(end)).unwrap();
    }
    assert_eq!((counts.len(), count.decision.as_str()), (1, "aggregated"));
    world.advance("2h");
    world.add(text("Something else"));
    assert!(world.get(kind).unwrap().into_memory().is_none());
    for stays in [old, first] {
        assert!(world.get(stays).unwrap().into_memory().is_some(), "{stays}");
    }
    world.check();
}

/// GC-42: what was distilled says how many of its sources were forgotten, and stays for those that are left.
#[test]
fn gc_42_what_was_distilled_counts_its_forgotten_sources() {
    for policy in ["mark", "retire"] {
        let world = World::new();
        world.db.set_policy(&format!("gc.on_source_forget = '{policy}'"), Syntax::Toml).unwrap();
        for size in ["tall", "high", "big"] {
            world.add(Draft::new(format!("a {size} tree")).key(size).vector(axis(3)));
        }
        let unites: Arc<dyn Summarizer> = Arc::new(Unites);
        let made = world.ns.consolidate_clusters(&unites).unwrap().created[0];
        assert_eq!(world.forget(&["tall", "big"]).derived, [made]);
        assert_eq!((world.row(made).source_forgotten, world.is_live(made)), (2, true), "{policy}");
        world.check();
    }
}

/// GC-6: whoever writes a summary is shown nothing of another owner, nor of what a caller lets end.
#[test]
fn gc_6_a_pack_tells_of_messages_of_its_owner_alone() {
    let world = World::new();
    for end in [None, Some("90d")] {
        for _ in 0..2 {
            let other = if end.is_some() { "bob" } else { "ann" };
            let mut said = message(AuthorKind::Bot, "ci").metadata(json!({ "user_id": other }));
            said.text = format!("{SAID} of {other}");
            said = said.channel("home").created_at("1969-12-01T09:00:00Z".parse().unwrap());
            world.add(end.map_or(said.clone(), |span| until(&world, said, span)));
        }
    }
    let of_bob = |number| told(number).metadata(json!({ "user_id": "bob" }));
    let ids: Vec<_> = (0..4).map(|number| world.add(of_bob(number)).id).collect();
    assert_eq!(world.live().len(), 6);
    assert!(world.ns.gc_pack_of(&ids).unwrap().aggregates.is_empty());
    for _ in 0..2 {
        let mine = message(AuthorKind::Bot, "ci").channel("home").metadata(json!({ "user_id": "bob" }));
        world.add(mine.created_at("1969-12-01T09:30:00Z".parse().unwrap()));
    }
    assert_eq!(world.ns.gc_pack_of(&ids).unwrap().aggregates.len(), 1, "its own");
    world.check();
}

/// LIFE-55, LIFE-56: what a pass has removed can be brought back until its horizon, but not past an end that a caller set.
#[test]
fn life_56_limbo_keeps_nothing_past_the_end_that_a_caller_set() {
    for by_write in [false, true] {
        let world = World::new();
        world.db.set_policy("sweeper.short_term_cap = 1", Syntax::Toml).unwrap();
        let brief = |text: &str| Draft::new(text).tier(Tier::Working);
        let zebra = world.add(until(&world, brief("a zebra in the garden"), "8h")).id;
        let said = world.add(until(&world, message(AuthorKind::Bot, "ci").tier(Tier::Working), "8h"));
        let lynx = world.add(brief("a lynx in the garden")).id;
        world.advance("1h");
        world.add(brief("the latest"));
        run(&world, Pass::Cap);
        assert_eq!(world.live().len(), 1);
        world.check();
        world.advance("8h");
        if by_write {
            world.add(text("Something else"));
            assert!(world.tombstone(zebra).erased_at.is_some());
        }
        assert!(!world.has_bytes_of("zebra") && !world.has_bytes_of(SAID), "{by_write}");
        assert!(world.tombstone(said.id).erased_at.is_some(), "{by_write}");
        assert!(world.has_bytes_of("lynx"), "{by_write}");
        world.check();
        world.ns.restore(lynx.to_string()).unwrap();
        assert!(world.is_live(lynx), "{by_write}");
        world.check();
    }
}

#[test]
fn gc_38_a_query_goes_with_what_ends_or_goes_elsewhere() {
    let world = World::new();
    world.db.set_policy("gc.keep_queries = true", Syntax::Toml).unwrap();
    world.add(text("tea is on the table"));
    let secret = "my password is hunter2 and opens the cellar";
    world.add(until(&world, Draft::new(secret), "8h"));
    let ask = |words: &str| {
        let found = world.ns.search(Query::text(words).k(2).track(true)).unwrap();
        world.db.flush_access().unwrap();
        found.hits.len()
    };
    assert_eq!(ask("hunter2 tea"), 2);
    world.advance("9h");
    world.add(text("third"));
    assert!(!world.has_bytes_of("hunter2"));
    world.add(Draft::new(secret).key("a").metadata(json!({ "project": "p2" })));
    assert_eq!(ask("hunter2 tea"), 2);
    world.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap();
    world.db.namespace("p2").unwrap().forget("a").unwrap();
    assert!(!world.has_bytes_of("hunter2"));
    world.check();
}

/// Answers after the time that a plan has, or gives up after it.
struct Late {
    clock: ManualClock,
    asked: AtomicU32,
    fails: bool,
}

impl Summarizer for Late {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        self.clock.advance("2h".parse().unwrap());
        assert!(self.asked.fetch_add(1, Ordering::Relaxed) < 3, "it is asked again and again");
        match self.fails {
            true => Err(Error::Conflict { what: "the summarizer".to_owned(), why: "it sleeps".to_owned() }),
            false => Extractive::default().summarize(pack),
        }
    }
}

#[test]
fn gc_9_a_summarizer_that_is_slower_than_a_plan_lives_is_asked_once() {
    for fails in [false, true] {
        let world = World::new();
        world.db.set_policy("gc.plan_ttl = '1h'", Syntax::Toml).unwrap();
        for number in 0..4 {
            world.add(told(number));
        }
        let late = Late { clock: world.clock.clone(), asked: AtomicU32::new(0), fails };
        let done = world.ns.gc_run(&late, &GcRunOptions::default(), |_| ()).unwrap();
        assert_eq!((done.plans, done.groups, done.committed), (1, 1, 0));
        assert_eq!((done.aborted, done.refused), if fails { (1, 0) } else { (0, 1) });
        assert!(
            done.failures[0].contains(if fails { "it sleeps" } else { "expired" }),
            "{:?}",
            done.failures
        );
        let next = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
        assert_eq!(next.committed, 1);
        world.check();
    }
}

/// A text that is true until a day, and the same text without an end: they are two facts.
#[test]
fn dedup_55_no_pass_unites_what_is_true_at_other_times() {
    for pass in PASSES {
        let world = World::new();
        world.add(status().key("a").valid_to(world.ahead("8h")));
        let always = world.add(status().key("b")).id;
        run(&world, pass);
        assert_eq!(world.live().len(), 2, "{pass}");
        world.advance("9h");
        assert_eq!(world.live(), [always], "{pass}");
        world.check();

        let world = World::new();
        let mut ahead = status().key("ahead");
        ahead.fields.valid_from = Field::Value(world.ahead("8h"));
        world.add(ahead);
        world.advance("1h");
        let now = world.add(status().key("now")).id;
        run(&world, pass);
        assert_eq!((world.live(), world.row("now").id), (vec![now], now), "{pass}");
        world.check();
    }
}
