//! Reads of the past: what was visible at an instant, as it was known at another, by every way to read.

use std::collections::BTreeSet;

use crate::backup::copy_of;
use crate::world::{World, axis, ms, text};
use oubliette::embed::HashEmbedder;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{Expiry, PointInTime, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::report::PurgeHorizon;
use oubliette::{
    Decision, Draft, Effort, Error, ErrorKind, Filter, Kind, Memory, MemoryId, Mode, PageRequest, Patch,
    Query, Scope, Time,
};

fn point(valid: i64, known: i64) -> PointInTime {
    PointInTime { valid_at: Some(ms(valid)), known_at: Some(ms(known)), allow_partial: false }
}

/// What each way to read sees at an instant; all see the same.
fn seen_at(world: &World, at: PointInTime) -> BTreeSet<MemoryId> {
    let request = PageRequest { at, limit: 10_000, scope: Scope::Any, ..PageRequest::default() };
    let page = world.ns.list(&request).unwrap();
    let listed: BTreeSet<MemoryId> = page.items.iter().map(|row| row.id).collect();
    let newest = world.ns.list(&PageRequest { newest_first: true, ..request.clone() }).unwrap();
    assert_eq!(newest.items.iter().map(|row| row.id).collect::<BTreeSet<_>>(), listed, "newest");
    let filter = Filter::from_json(&serde_json::json!({ "tags": "t" })).unwrap();
    let asked = |query: Query, mode: Mode| -> BTreeSet<MemoryId> {
        let mut query = query.mode(mode).k(1_000).scope(Scope::Any);
        query.at = at;
        let plain = world.ns.search(&query).unwrap();
        let past = plain.plan.past.unwrap();
        assert_eq!(Some(past.valid_at), at.valid_at, "{mode:?}");
        assert_eq!(past.statistics.is_some(), mode != Mode::Vector);
        let filtered = world.ns.search(query.filter(filter.clone())).unwrap();
        let ids = |hits: &[oubliette::Hit]| hits.iter().map(|hit| hit.id).collect::<BTreeSet<_>>();
        assert_eq!(ids(&plain.hits), ids(&filtered.hits), "with a filter that matches all, {mode:?}");
        ids(&plain.hits)
    };
    let both = Query { text: Some("harbour".to_owned()), ..Query::vector(axis(0)) };
    for (mode, query) in
        [(Mode::Vector, Query::vector(axis(0))), (Mode::Text, Query::text("harbour")), (Mode::Hybrid, both)]
    {
        assert_eq!(asked(query, mode), listed, "{mode:?} at {at:?}");
    }
    for row in &page.items {
        assert_eq!(world.ns.get_at(row.id, &at).unwrap().map(|found| found.id), Some(row.id));
    }
    listed
}

fn sees(world: &World, id: MemoryId, valid: i64, known: i64) -> bool {
    let seen = seen_at(world, point(valid, known));
    assert_eq!(world.ns.get_at(id, &point(valid, known)).unwrap().is_some(), seen.contains(&id));
    seen.contains(&id)
}

fn harbour(name: &str) -> Draft {
    text(&format!("harbour {name}")).tag("t").vector(axis(0))
}

fn profile(apps: u32) -> Draft {
    let text = format!("Gateway status of the harbour: {apps} apps pending");
    Draft::new(text).kind(Kind::Profile).tag("t").vector(axis(0))
}

#[test]
fn v205_a_row_is_known_from_its_transaction_on() {
    let world = World::at(100);
    let id = world.add(harbour("a")).id;
    assert!(!sees(&world, id, 99, 99));
    assert!(sees(&world, id, 100, 100));
}

#[test]
fn v206_expiry_is_exclusive() {
    let world = World::at(100);
    let id = world.add(harbour("a").expiry(Expiry::At(ms(200)))).id;
    world.set(300);
    assert!(sees(&world, id, 199, 199));
    assert!(!sees(&world, id, 200, 200));
}

#[test]
fn v207_valid_from_is_inclusive() {
    let world = World::at(100);
    let id = world.add(harbour("a").valid_from(ms(150))).id;
    world.set(400);
    assert!(!sees(&world, id, 149, 149));
    assert!(sees(&world, id, 150, 150));
}

#[test]
fn v208_v209_v210_what_was_believed_then() {
    let world = World::at(100);
    let old = world.add(harbour("old")).id;
    world.set(300);
    let new = world.add(harbour("new")).id;
    world.supersede(old, new, SupersedeMode::Replaced, Some(250)).unwrap();
    world.set(400);
    assert!(sees(&world, old, 240, 400));
    assert!(!sees(&world, old, 260, 400));
    assert!(sees(&world, old, 260, 290));
    assert_eq!(world.live(), [new]);
}

#[test]
fn v211_a_replacement_ahead_is_read_ahead() {
    let world = World::at(100);
    let old = world.add(harbour("old").key("k")).id;
    world.set(300);
    let new = world.add(harbour("new")).id;
    world.supersede(old, new, SupersedeMode::Replaced, Some(600)).unwrap();
    world.set(500);
    assert_eq!(seen_at(&world, point(500, 500)), BTreeSet::from([old]));
    // World time may lie ahead, transaction time can't.
    let ahead = PointInTime { valid_at: Some(ms(600)), ..PointInTime::default() };
    assert_eq!(seen_at(&world, ahead), BTreeSet::from([new]));
}

#[test]
fn v212_duplicates_end_in_transaction_time() {
    let world = World::at(100);
    let old = world.add(harbour("old")).id;
    world.set(300);
    let new = world.add(harbour("new")).id;
    world.supersede(old, new, SupersedeMode::Duplicate, None).unwrap();
    world.set(400);
    assert!(sees(&world, old, 299, 299));
    assert!(!sees(&world, old, 300, 300));
    assert!(!sees(&world, old, 200, 400));
}

/// V-213, V-214: limbo rows were visible before; when their content is gone, a read says so.
#[test]
fn v213_v214_limbo_is_read_until_its_horizon() {
    let world = World::at(100);
    let canonical = world.add(profile(4)).id;
    let loser = world.add(profile(7)).id;
    world.set(500);
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert!(!world.is_live(loser) && world.is_live(canonical));
    assert!(sees(&world, loser, 499, 499));
    assert!(!sees(&world, loser, 500, 500));
    let found = world.ns.search(Query::text("7 apps").as_of(ms(499))).unwrap();
    assert_eq!((found.hits[0].id, found.plan.past.unwrap().limbo), (loser, 1));

    world.advance("8d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    let why = world.ns.search(Query::text("apps").as_of(ms(450))).unwrap_err();
    assert!(matches!(why, Error::BeforePurgeHorizon { known: Some(500), valid: None }), "{why:?}");
    assert_eq!(
        why.to_string(),
        "maintenance has erased a part of the past before known-at 1970-01-01T00:00:00.5Z"
    );
    let request = PageRequest { at: PointInTime::as_of(ms(450)), ..PageRequest::default() };
    assert_eq!(world.ns.list(&request).unwrap_err().kind(), ErrorKind::BeforePurgeHorizon);
    assert_eq!(world.ns.get_at(canonical, &request.at).unwrap_err().kind(), ErrorKind::BeforePurgeHorizon);
    assert_eq!(seen_at(&world, point(500, 500)), BTreeSet::from([canonical]));
    // World time alone reaches back behind nothing: what is known now is all there.
    let valid = PointInTime { valid_at: Some(ms(450)), ..PointInTime::default() };
    assert_eq!(world.ns.list(&PageRequest { at: valid, ..PageRequest::default() }).unwrap().items.len(), 1);

    let horizon = PurgeHorizon { known: Some(ms(500)), valid: None };
    let thin = world.ns.search(Query::text("apps").as_of(ms(450)).allow_partial(true)).unwrap();
    assert_eq!(thin.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [canonical]);
    assert_eq!(thin.plan.past.unwrap().horizon, Some(horizon));
    let at = PointInTime { allow_partial: true, ..point(450, 450) };
    let page = world.ns.list(&PageRequest { at, ..PageRequest::default() }).unwrap();
    assert_eq!((page.items.len(), page.horizon), (1, Some(horizon)));
}

/// MODEL-18: without limbo a pass erases at once, and what it erased is missing in the past from then on. The answer says so.
#[test]
fn what_is_erased_without_limbo_moves_the_horizon() {
    let asked = |world: &World, what: &str| {
        assert_eq!(world.live().len(), 1, "{what}");
        let request = PageRequest { at: point(450, 450), ..PageRequest::default() };
        let why = world.ns.list(&request).unwrap_err();
        assert!(
            matches!(why, Error::BeforePurgeHorizon { known: Some(500), valid: None }),
            "{what}: {why:?}"
        );
        assert_eq!(seen_at(world, point(500, 500)).len(), 1, "{what}");
    };
    for pass in [Pass::Collapse, Pass::Cap] {
        let world = World::at(100);
        world.db.set_policy("undo.horizon = \"0s\"\nsweeper.short_term_cap = 1", Syntax::Toml).unwrap();
        for apps in [4, 7] {
            world.add(profile(apps).tier(Tier::Working));
        }
        world.set(500);
        world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        asked(&world, pass.as_str());
    }
    let world = World::at(100);
    world.db.set_policy("undo.horizon = \"0s\"", Syntax::Toml).unwrap();
    for (at, name) in [(100, "a"), (500, "b")] {
        world.set(at);
        world.ns.push_snapshot(harbour(name), ms(0)).unwrap();
    }
    asked(&world, "a later snapshot of the same period");
}

#[test]
fn v215_an_explicit_forget_moves_no_horizon() {
    let world = World::at(100);
    let id = world.add(harbour("a")).id;
    let other = world.add(harbour("b")).id;
    world.set(500);
    world.forget_id(id);
    assert_eq!(seen_at(&world, point(450, 450)), BTreeSet::from([other]));
    assert!(world.ns.stats().unwrap().purge_horizon.is_empty());
}

#[test]
fn instants_that_no_read_can_ask_for_are_refused() {
    let world = World::at(1_000);
    world.add(harbour("a"));
    let refused = |query: Query| match world.ns.search(query).unwrap_err() {
        Error::Invalid { field, .. } => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Query::text("harbour").known_at(ms(1_001))), "known_at");
    assert_eq!(refused(Query::vector(axis(0)).as_of(ms(i64::MAX))), "as_of");
    assert_eq!(world.ns.search(Query::text("harbour").valid_at(ms(i64::MAX))).unwrap().hits.len(), 1);
    assert_eq!(world.ns.search(Query::text("harbour").as_of(ms(i64::MIN))).unwrap().hits.len(), 0);
    let at = PointInTime::as_of(ms(500));
    for request in [
        PageRequest { at, any_state: true, ..PageRequest::default() },
        PageRequest { at, state: oubliette::State::Limbo, ..PageRequest::default() },
    ] {
        assert!(matches!(world.ns.list(&request), Err(Error::Invalid { field, .. }) if field == "state"));
    }
    // A namespace that was never written to has no past.
    let empty = world.db.namespace("empty").unwrap();
    assert!(empty.search(Query::text("harbour").as_of(ms(500))).unwrap().hits.is_empty());
    assert!(empty.get_at("k", &at).unwrap().is_none());
}

/// A search without an instant has no plan of the past, and one of the present is the live one.
#[test]
fn the_present_is_read_as_ever() {
    let world = World::at(100);
    let first = world.add(harbour("a").key("k")).id;
    world.set(200);
    let second = world.add(harbour("b").key("k")).id;
    assert_eq!(world.ns.search("harbour").unwrap().plan.past, None);
    assert_eq!(seen_at(&world, point(200, 200)), BTreeSet::from([second]));
    assert_eq!(world.ns.get_at("k", &point(150, 150)).unwrap().unwrap().id, first);
    assert_eq!(world.ns.get_at("k", &point(250, 200)).unwrap().unwrap().id, second);
    assert_eq!(world.ns.get_at("k", &point(50, 50)).unwrap().map(|row| row.id), None);
}

/// MODEL-15, MODEL-8: a row that takes the text of another holder stands for that text since the row of that holder ended. So the past
/// has the text from when it was written, and once.
#[test]
fn a_retold_text_is_not_known_before_it_was_written() {
    type Leave = fn(&World);
    let ways: [Leave; 3] = [
        |world| drop(world.forget(&["k1"])),
        |world| drop(world.ns.update("k1", oubliette::Patch::new().text("harbour market")).unwrap()),
        |world| drop(world.ns.pin("k1", true).unwrap()),
    ];
    for (way, leave) in ways.iter().enumerate() {
        for is_over in [false, true] {
            let world = World::at(100);
            let row = world.add(profile(4).key("k1")).id;
            world.set(200);
            world.add(profile(7).key("k2"));
            world.set(300);
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
            if is_over {
                world.advance("8d");
                world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
            }
            world.advance("1h");
            leave(&world);
            world.advance("1h");
            let told = world.row("k2");
            assert_eq!((told.id, told.recorded_at), (row, ms(300)), "{way}");
            let told_at = |at: i64| {
                let at = PointInTime { allow_partial: true, ..point(at, at) };
                let page = world.ns.list(&PageRequest { at, ..PageRequest::default() }).unwrap();
                page.items.iter().filter(|row| row.text.contains("7 apps")).count()
            };
            let was_told = usize::from(!is_over);
            assert_eq!((told_at(150), told_at(250), told_at(350)), (0, was_told, 1), "{way}");
            world.check();
        }
    }
}

/// The same of a near text that never had a row of its own: its holder tells when it came.
#[test]
fn a_retold_text_without_a_row_is_known_since_it_came() {
    let world = World::at(100);
    world.db.set_policy("write.vector_match = \"reinforce\"", Syntax::Toml).unwrap();
    let row = world.add(harbour("a").key("k1")).id;
    world.set(200);
    assert_eq!(world.add(text("market b").key("k2").vector(axis(0))).id, row);
    world.set(300);
    world.forget(&["k1"]);
    assert_eq!((world.row(row).text.as_str(), world.row(row).recorded_at), ("market b", ms(200)));
    world.check();
}

/// `why` of an instant of the past asks about the memory that the key meant then, as `get_at` does.
#[test]
fn why_of_the_past_means_the_memory_of_then() {
    let world = World::at(100);
    let first = world.add(harbour("a").key("k")).id;
    world.set(300);
    let second = world.add(harbour("b").key("k")).id;
    world.set(400);
    let why = |at: i64| world.ns.why(Query::text("harbour").as_of(ms(at)), "k").unwrap();
    assert_eq!((why(200).id, why(200).rank), (first, Some(1)));
    assert_eq!((why(350).id, why(350).rank), (second, Some(1)));
    assert_eq!((why(50).id, why(50).reason), (second, "not_visible"));
}

/// What waits in limbo keeps the vector that it had. After a change of the model a search of the past says that it could not compare it.
#[test]
fn a_search_of_the_past_tells_of_vectors_of_a_former_space() {
    let world = World::at(100);
    world.db.use_embedder(HashEmbedder::new()).unwrap();
    for apps in [4, 7] {
        world.add(text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile));
    }
    world.set(500);
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    let asked = |mode: Mode| {
        let found = world.ns.search(Query::text("gateway status").mode(mode).as_of(ms(450))).unwrap();
        (found.hits.len(), found.plan.pending)
    };
    assert_eq!((asked(Mode::Vector), asked(Mode::Hybrid)), ((2, 0), (2, 0)));
    world.db.reembed(HashEmbedder::with_dimensions(64).unwrap()).unwrap();
    assert_eq!((asked(Mode::Vector), asked(Mode::Hybrid)), ((1, 1), (2, 1)));
    assert_eq!(world.ns.search(Query::text("gateway status").mode(Mode::Vector)).unwrap().plan.pending, 0);
}

/// Neighbours in a thread lend the words that they had then, and no others.
#[test]
fn neighbours_of_then_lend_their_words() {
    let world = World::at(100);
    let turn = |text: &str, at: i64| {
        let mut draft = Draft::new(text);
        draft.fields.thread = Some("talk".to_owned()).into();
        draft.fields.happened_at = Some(ms(at)).into();
        draft
    };
    let question = world.add(turn("which pottery class", 1)).id;
    let answer = world.add(turn("the one on Friday", 2)).id;
    world.set(300);
    world.add(turn("pottery pottery pottery", 3));
    world.set(400);
    let scored = |at: i64| {
        let found = world.ns.search(Query::text("pottery").mode(Mode::Text).as_of(ms(at))).unwrap();
        let hit = found.hits.into_iter().find(|hit| hit.id == answer).unwrap();
        hit.signals.context.unwrap()
    };
    // The third turn was not there yet.
    assert!(scored(200) > 0.0 && scored(300) > scored(200));
    assert!(world.is_live(question));
}

/// What a search of the past costs: it judges the rows near the query, and no others (a live exact search ranks as many).
#[test]
fn a_search_of_the_past_judges_few_rows() {
    let world = World::at(100);
    let drafts = (0..2_000_u32).map(|at| {
        let (angle, height) = (at as f32 * 0.003, (at % 7) as f32 * 0.1);
        text(&format!("row {at}")).vector([angle.cos(), angle.sin(), height, 0.2])
    });
    world.ns.add_all(drafts.collect(), &oubliette::WriteOptions::default()).unwrap();
    world.set(200);
    let query = Query::vector([1.0, 0.1, 0.2, 0.2]).effort(Effort::Exact);
    let live = world.ns.search(&query).unwrap();
    let past = world.ns.search(query.as_of(ms(150))).unwrap();
    assert_eq!(live.hits, past.hits);
    assert!(past.plan.tested < 200, "{:?}", past.plan);
    assert!(past.plan.ranked <= 3 * live.plan.ranked.max(70), "{:?} and {:?}", past.plan, live.plan);
}

/// V-318: what takes the place of another was there before, and is told of the time before. It was believed to be true always until then,
/// and is so again where the other is restored.
#[test]
fn v318_what_takes_a_place_stays_in_the_past() {
    for at in [None, Some(900)] {
        let world = World::at(100);
        let [a, b] = ["a", "b"].map(|name| world.add(harbour(name).key(name)).id);
        world.set(300);
        world.supersede(a, b, SupersedeMode::Replaced, at).unwrap();
        world.set(400);
        let begins = at.unwrap_or(300);
        for world in [&world, &copy_of(&world)] {
            assert_eq!(seen_at(world, point(200, 200)), BTreeSet::from([a, b]));
            assert_eq!(seen_at(world, point(begins + 50, 299)), BTreeSet::from([a, b]));
            assert_eq!(seen_at(world, point(begins - 1, 400)), BTreeSet::from([a]));
            assert_eq!(seen_at(world, point(begins, 400)), BTreeSet::from([b]));
            assert_eq!(world.live(), [if at.is_none() { b } else { a }]);
            world.ns.restore(a.to_string()).unwrap();
            assert_eq!(world.row(b).valid_from_recorded_at, None);
            assert_eq!(seen_at(world, point(200, 200)), BTreeSet::from([a, b]));
            assert_eq!(world.live().len(), 2);
            world.check();
        }
    }
}

/// V-319: what was known of an end ahead is told as it was, also where a write through the key has changed what was to end then.
#[test]
fn v319_an_end_that_was_announced_stays_known() {
    for (revises, own) in [(true, None), (true, Some(900)), (false, None), (false, Some(900))] {
        let world = World::at(100);
        let draft = harbour("a").key("k");
        let a = world.add(own.map_or(draft.clone(), |end| draft.clone().valid_to(ms(end)))).id;
        let replace = |name: &str, at: i64| {
            world.ns.replace(["k"], harbour(name), SupersedeMode::Replaced, Some(ms(at))).unwrap().id
        };
        world.set(200);
        let b = replace("b", 600);
        world.set(300);
        let c = match revises {
            true => world.ns.update("k", Patch::new().text("harbour c").vector(axis(0))).unwrap().id,
            false => replace("c", 400),
        };
        world.set(350);
        let begins = if revises { 300 } else { 400 };
        for world in [&world, &copy_of(&world)] {
            let seen = |valid, known| seen_at(world, point(valid, known));
            assert_eq!(seen(700, 150), BTreeSet::from([a]), "nothing was announced yet");
            assert_eq!(seen(550, 250), BTreeSet::from([a]));
            assert_eq!(seen(700, 250), BTreeSet::from([b]), "{revises} {own:?}");
            assert_eq!(seen(begins, 350), BTreeSet::from([c]));
            assert_eq!(seen(700, 350), BTreeSet::from([b]));
            world.ns.restore(a.to_string()).unwrap();
            let row = world.row(a);
            assert_eq!((row.valid_to, row.valid_to_before, row.announced), (own.map(ms), None, None));
            world.check();
        }
    }
}

/// V-320: a text that a row absorbed is told since it came, where it stays alone: because the first writer of the row leaves, or because its
/// own writer says something else since.
#[test]
fn v320_what_a_row_absorbed_stays_in_the_past() {
    for (leaves, again) in [("k1", false), ("k1", true), ("k2", false)] {
        let world = World::at(100);
        world.db.set_policy("write.normalized_match = 'absorb'", Syntax::Toml).unwrap();
        let written = world.add(text("The cat sat on the mat").key("k1")).id;
        world.set(200);
        let absorbed = "the  cat sat on the mat";
        assert_eq!(world.add(text(absorbed).key("k2")).id, written);
        world.set(300);
        if again {
            assert_eq!(world.add(text(absorbed).key("k3")).id, written);
            world.forget(&["k2"]);
        }
        let stays = if again { "k3" } else { "k2" };
        let since = if again { 300 } else { 200 };
        let holders = world.row(written).holders;
        let told: Vec<Time> = holders.iter().map(|holder| holder.since).collect();
        assert_eq!(told, [ms(100), ms(since)]);
        world.set(500);
        let copy = copy_of(&world);
        for world in [&world, &copy] {
            match leaves {
                "k1" => drop(world.forget(&["k1"])),
                _ => drop(world.ns.update("k2", Patch::new().text("the dog slept")).unwrap()),
            }
            for (known, is_there) in [(since - 1, false), (since, true), (499, true)] {
                let found = world.ns.get_at(stays, &point(known, known)).unwrap();
                assert_eq!(
                    found.map(|row| row.text),
                    is_there.then(|| absorbed.to_owned()),
                    "{leaves} {known}"
                );
            }
            world.check();
        }
    }
}

/// A number that is as good as chance, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The predicate, told once more.
fn visible(row: &Memory, valid: i64, known: i64) -> bool {
    let (valid, known) = (ms(valid), ms(known));
    let replaced = row.superseded.filter(|s| s.mode == SupersedeMode::Replaced);
    let ended = row.superseded.filter(|s| s.mode != SupersedeMode::Replaced).map(|s| s.at);
    let announced = row.announced.zip(row.superseded).filter(|(said, _)| said.at <= known);
    let world_end = match replaced {
        _ if announced.is_some_and(|(_, s)| known < s.at) => announced.map(|(said, _)| said.end),
        Some(s) if known < s.at => row.valid_to_before,
        _ => row.valid_to,
    };
    let world_begin = row.valid_from.filter(|_| row.valid_from_recorded_at.is_none_or(|at| at <= known));
    row.recorded_at <= known
        && row.removed_at.is_none_or(|at| known < at)
        && ended.is_none_or(|at| known < at)
        && world_begin.is_none_or(|from| from <= valid)
        && world_end.is_none_or(|to| valid < to)
        && row.expires_at.is_none_or(|end| valid < end)
}

/// Every way to read sees what the predicate says, at instants around all that happened.
#[test]
fn every_read_sees_what_was_visible() {
    for seed in 0..6 {
        let (mut dice, world) = (Dice(seed), World::at(1_000));
        // Nothing is erased meanwhile, so that the rows tell all that was.
        let policy = "undo.horizon = \"30d\"\npurge.per_write = 0";
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        let (mut ids, mut now) = (Vec::new(), 1_000);
        for step in 0..60 {
            now += 10;
            world.set(now);
            let mut draft =
                if dice.below(4) == 0 { profile(step) } else { harbour(&format!("{step} of many")) };
            match dice.below(6) {
                0 => draft = draft.expiry(Expiry::At(ms(now + dice.below(300) as i64))),
                1 => draft = draft.valid_from(ms(now - 200 + dice.below(400) as i64)),
                2 => draft = draft.valid_to(ms(now - 200 + dice.below(400) as i64)),
                3 => draft = draft.agent("zoe"),
                _ => {}
            }
            ids.push(world.add(draft).id);
            let pick = |dice: &mut Dice| ids[dice.below(ids.len() as u64) as usize];
            let mode = SupersedeMode::ALL[dice.below(SupersedeMode::ALL.len() as u64) as usize];
            let (old, new) = (pick(&mut dice), pick(&mut dice));
            match dice.below(5) {
                0 => drop(world.supersede(old, new, mode, Some(now - 100 + dice.below(200) as i64))),
                1 if step % 3 == 0 => drop(world.ns.restore(old.to_string())),
                _ => {}
            }
            if step == 40 {
                world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
            }
        }
        now += 10;
        world.set(now);
        let all = PageRequest { any_state: true, limit: 10_000, scope: Scope::Any, ..PageRequest::default() };
        let all = world.ns.list(&all).unwrap().items;
        assert!(all.iter().any(|row| row.removed_at.is_some()), "limbo");
        for _ in 0..30 {
            let known = 990 + dice.below((now - 990) as u64) as i64;
            let valid = if dice.below(2) == 0 { known } else { 800 + dice.below(1_500) as i64 };
            let expected: BTreeSet<_> =
                all.iter().filter(|row| visible(row, valid, known)).map(|row| row.id).collect();
            assert_eq!(seen_at(&world, point(valid, known)), expected, "seed {seed}, at ({valid}, {known})");
        }
    }
}

/// What is true at an instant, by what is known now.
fn true_at(world: &World, valid: i64) -> BTreeSet<String> {
    let at = PointInTime { valid_at: Some(ms(valid)), ..PointInTime::default() };
    let request = PageRequest { at, limit: 100, scope: Scope::Any, ..PageRequest::default() };
    world.ns.list(&request).unwrap().items.into_iter().map(|row| row.text).collect()
}

fn texts(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

const GHENT: &str = "Ann lives in Ghent";
const FLAT: &str = "Ann rents a flat in Ghent";
const HOUSE: &str = "Ann owns a house in Bruges";

/// What a write of a key replaces, it replaces as the world changes, and with it what the key has said: whether the write names the key,
/// another memory or both, by a draft or by `replace`, whatever validity the old text has, and whoever has said it too (LIFE-6,
/// MODEL-21).
#[test]
fn life_6_what_a_write_supersedes_with_the_text_of_its_key_was_true_until_then() {
    type Replace = fn(&World) -> oubliette::Result<oubliette::Outcome>;
    let ways: [(Replace, bool); 5] = [
        (|world| world.ns.add(text(HOUSE).key("home").supersedes("home")), false),
        (|world| world.ns.supersede("home", text(HOUSE).key("home")), false),
        (|world| world.ns.add(text(HOUSE).key("home").supersedes("flat")), true),
        (|world| world.ns.add(text(HOUSE).key("home").supersedes("home").supersedes("flat")), true),
        (|world| world.ns.replace(["flat"], text(HOUSE).key("home"), SupersedeMode::Replaced, None), true),
    ];
    for (way, (replace, with_flat)) in ways.into_iter().enumerate() {
        for (from, to) in [(None, None), (Some(500), None), (None, Some(9_000)), (Some(500), Some(9_000))] {
            for shared in [false, true] {
                let world = World::at(1_000);
                let mut old = text(GHENT).key("home");
                old.fields.valid_from = from.map(ms).into();
                old.fields.valid_to = to.map(ms).into();
                if shared {
                    world.add(Draft { key: Some("other".to_owned()), ..old.clone() });
                }
                world.add(old);
                world.add(text(FLAT).key("flat"));
                world.set(2_000);
                let new = replace(&world).unwrap().id;
                world.set(3_000);
                let told = format!("way {way}, from {from:?}, to {to:?}, shared {shared}");
                let flat: &[&str] = if with_flat { &[] } else { &[FLAT] };
                let others: &[&str] = if shared { &[GHENT] } else { &[] };
                assert_eq!(true_at(&world, 1_500), texts(&[GHENT, FLAT]), "{told}");
                assert_eq!(true_at(&world, 2_500), texts(&[&[HOUSE], flat, others].concat()), "{told}");
                let later = if to.is_some() { &[] } else { others };
                assert_eq!(true_at(&world, 10_000), texts(&[&[HOUSE], flat, later].concat()), "{told}");
                assert_eq!(world.row("home").id, new, "{told}");
                world.check();
            }
        }
    }
}

/// So it is at an instant ahead: what the key says is true until then.
#[test]
fn life_6_what_a_write_supersedes_ahead_with_the_text_of_its_key_is_true_until_then() {
    type Replace = fn(&World) -> oubliette::Result<oubliette::Outcome>;
    fn later(draft: Draft) -> Draft {
        let mut draft = draft.key("home");
        draft.fields.valid_from = Some(ms(5_000)).into();
        draft
    }
    let ways: [(Replace, bool); 4] = [
        (|world| world.ns.add(later(text(HOUSE)).supersedes("home")), false),
        (|world| world.ns.add(later(text(HOUSE)).supersedes("flat")), true),
        (|world| world.ns.add(later(text(HOUSE)).supersedes("home").supersedes("flat")), true),
        (
            |world| {
                let draft = text(HOUSE).key("home");
                world.ns.replace(["flat"], draft, SupersedeMode::Replaced, Some(ms(5_000)))
            },
            true,
        ),
    ];
    for (way, (replace, with_flat)) in ways.into_iter().enumerate() {
        for shared in [false, true] {
            let world = World::at(1_000);
            if shared {
                world.add(text(GHENT).key("other"));
            }
            let old = world.add(text(GHENT).key("home")).id;
            world.add(text(FLAT).key("flat"));
            world.set(2_000);
            let new = replace(&world).unwrap().id;
            assert_ne!(new, old);
            let told = format!("way {way}, shared {shared}");
            assert_eq!(world.row("home").text, GHENT, "{told}");
            assert_eq!(true_at(&world, 2_500), texts(&[GHENT, FLAT]), "{told}");
            world.check();
            world.set(6_000);
            let flat: &[&str] = if with_flat { &[] } else { &[FLAT] };
            let others: &[&str] = if shared { &[GHENT] } else { &[] };
            assert_eq!(true_at(&world, 6_000), texts(&[&[HOUSE], flat, others].concat()), "{told}");
            assert_eq!(true_at(&world, 4_000), texts(&[GHENT, FLAT]), "{told}");
            assert_eq!(world.row("home").id, new, "{told}");
            world.check();
        }
    }
}

/// What a name says until it is replaced later is not replaced by what another name of the call replaces then: the call is refused, and
/// nothing is left true in silence (LIFE-6).
#[test]
fn life_6_a_name_that_is_to_be_replaced_later_is_refused_or_replaced() {
    for names in [["a", "c"], ["c", "a"]] {
        for ahead in [false, true] {
            for replaces in [false, true] {
                let world = World::at(1_000);
                world.add(text(GHENT).key("c"));
                let planned = world.add(text(FLAT).key("a")).id;
                world.ns.supersede_all(["c"], planned, SupersedeMode::Replaced, Some(ms(9_000))).unwrap();
                world.set(2_000);
                let at = ahead.then(|| ms(4_000));
                let mut draft = text(HOUSE).key("n");
                let told = match replaces {
                    true => world.ns.replace(names, draft, SupersedeMode::Replaced, at),
                    false => {
                        draft.fields.valid_from = at.into();
                        names.into_iter().for_each(|name| draft.supersedes.push(name.to_owned()));
                        world.ns.add(draft)
                    }
                };
                world.set(5_000);
                let says = true_at(&world, 5_000);
                match told {
                    Ok(_) => assert_eq!(says, texts(&[HOUSE]), "{names:?}, {ahead}, {replaces}"),
                    Err(why) => assert_eq!((why.kind(), says), (ErrorKind::Conflict, texts(&[GHENT]))),
                }
                world.check();
            }
        }
    }
}

/// A line that announces a text is told again, as a nightly import does: nothing new is stored. Where the policy guards what keys say,
/// nothing is announced either (DEDUP-56).
#[test]
fn life_6_a_text_that_is_announced_again_is_stored_once() {
    let world = World::at(1_000);
    world.add(text(GHENT).key("home"));
    world.add(text(FLAT).key("flat"));
    let line = || {
        let mut draft = text(HOUSE).key("home").supersedes("home").supersedes("flat");
        draft.fields.valid_from = Some(ms(5_000)).into();
        draft
    };
    let first = world.add(line());
    let versions = world.ns.history("home").unwrap().versions.len();
    for at in [2_000, 3_000] {
        world.set(at);
        let again = world.import(world.start_import(), vec![line()]).remove(0);
        assert_eq!((again.id, again.decision), (first.id, Decision::Unchanged));
        world.check();
    }
    assert_eq!(world.ns.history("home").unwrap().versions.len(), versions);
    world.set(6_000);
    assert_eq!((world.live(), world.add(line()).decision), (vec![first.id], Decision::Unchanged));
    for (on_key, decided) in [("error", None), ("reinforce", Some(Decision::Reinforced))] {
        let world = World::at(1_000);
        world.db.set_policy(&format!("write.on_key = '{on_key}'"), Syntax::Toml).unwrap();
        let old = world.add(text(GHENT).key("home")).id;
        let line = Draft { supersedes: vec!["home".to_owned()], ..line() };
        assert_eq!(world.ns.add(line).ok().map(|told| told.decision), decided);
        assert_eq!((world.live(), world.row(old).valid_to), (vec![old], None));
        world.check();
    }
}

/// A name means what it meant before the write, also where the memory of the key was to take its place (LIFE-6).
#[test]
fn life_6_a_planned_change_that_comes_earlier_and_otherwise_replaces_what_it_names() {
    for imported in [false, true] {
        let world = World::at(1_000);
        let old = world.add(text(GHENT).key("x")).id;
        let planned = world.add(text(FLAT).key("k")).id;
        world.ns.supersede_all(["x"], planned, SupersedeMode::Replaced, Some(ms(9_000))).unwrap();
        world.set(2_000);
        let draft = text(HOUSE).key("k").supersedes("x");
        let new = match imported {
            true => world.import(world.start_import(), vec![draft]).remove(0).id,
            false => world.add(draft).id,
        };
        assert_eq!(true_at(&world, 1_500), texts(&[GHENT]));
        assert_eq!((true_at(&world, 3_000), world.live()), (texts(&[HOUSE]), vec![new]));
        assert_eq!((world.row("x").id, world.row(old).superseded_by()), (new, Some(new)));
        world.check();
        // What has been replaced is named, where somebody changes it by its id.
        let refused = world.ns.update(old, Patch { text: Some(FLAT.to_owned()), ..Patch::default() });
        assert!(refused.unwrap_err().to_string().ends_with(&format!("it is superseded by {new}")));
    }
}

/// An import that announces a text for its key is taken back as a whole (MODEL-33).
#[test]
fn model_33_a_text_that_an_import_announced_for_its_key_is_gone_with_the_import() {
    let world = World::at(1_000);
    let old = world.add(text(GHENT).key("home")).id;
    let before = world.row(old);
    let run = world.start_import();
    let mut draft = text(HOUSE).key("home").supersedes("home");
    draft.fields.valid_from = Some(ms(5_000)).into();
    world.import(run, vec![draft]);
    world.set(2_000);
    assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
    let after = world.row(old);
    assert_eq!((after.valid_to, after.superseded, after.keys), (before.valid_to, None, before.keys));
    world.set(6_000);
    assert_eq!((world.live(), world.row("home").id), (vec![old], old));
    world.check();
}
