//! Expiry, supersession, visibility at times, forgetting, undo, the clock: the vectors of the specification
//! (LIFE-1 to LIFE-26, MODEL-13 to MODEL-21, MODEL-30, MODEL-33, MODEL-38).

use crate::backup::copy_of;
use crate::world::{World, axis, holders, ms, revised, span, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, RunId, Undone};
use oubliette::memory::Expiry;
use oubliette::memory::{ExpiresBy, Significance, SupersedeMode, Tier, TombstoneReason};
use oubliette::{Decision, Draft, ErrorKind, Forget, Kind, MemoryId, Patch, Scope, State, Time};

fn valid_from(draft: Draft, at: i64) -> Draft {
    let mut draft = draft;
    draft.fields.valid_from = Some(ms(at)).into();
    draft
}

fn valid_to(draft: Draft, at: i64) -> Draft {
    let mut draft = draft;
    draft.fields.valid_to = Some(ms(at)).into();
    draft
}

/// Whether a live read sees a memory, by every path.
fn visible(world: &World, id: MemoryId, vector: [f32; crate::world::DIM]) -> bool {
    let listed = world.is_live(id);
    let found = world.find(vector, 10).contains(&id);
    assert_eq!(listed, found, "listing and search agree");
    listed
}

/// A row in limbo, and the run that took it there.
struct InLimbo {
    loser: MemoryId,
    run: RunId,
}

/// Writes one text under keys with tags, and collapses its row into another one.
fn in_limbo(world: &World, holders: &[(&str, Option<&str>)]) -> InLimbo {
    let status = |apps: u32, key: &str| {
        let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        draft.key(key)
    };
    world.add(status(4, "canonical").significance(Significance::Core));
    let mut loser = None;
    for (key, tag) in holders {
        let draft = status(7, key);
        loser = Some(world.add(tag.map_or(draft.clone(), |tag| draft.clone().tag(tag))).id);
    }
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    let loser = loser.unwrap();
    assert_eq!(world.row(loser).state, State::Limbo);
    InLimbo { loser, run }
}

#[test]
fn v204_forgetting_a_tag_takes_rows_in_any_state() {
    let world = World::at(100);
    let tag = |name: &str| text(name).tag("gone");
    let live = world.add(tag("live"));
    let old = world.add(tag("superseded"));
    let new = world.add(text("successor"));
    world.supersede(old.id, new.id, SupersedeMode::Correction, None).unwrap();
    let expired = world.add(tag("expired").expiry(Expiry::At(ms(200))));
    let waits = in_limbo(&world, &[("waits", Some("gone"))]);
    let other = world.db.namespace("other").unwrap();
    let theirs = other.add(tag("theirs")).unwrap();
    world.set(300);
    let answer = world.forget_tag("gone");
    assert_eq!((answer.forgotten, answer.detached), (4, 0));
    for id in [live.id, old.id, expired.id] {
        assert_eq!(world.tombstone(id).reason, TombstoneReason::ForgetByTag);
    }
    // The tombstone of a row in limbo keeps the reason of its removal, and says that it is erased now.
    let erased = world.tombstone(waits.loser);
    assert_eq!((erased.reason, erased.erased_at), (TombstoneReason::Collapsed, Some(ms(300))));
    let undone = world.ns.undo(waits.run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (0, 1), "{undone:?}");
    assert_eq!(world.row(new.id).tags.len(), 0, "what the holder had brought along is gone as well");
    assert!(other.look_up(theirs.id.to_string(), false).is_ok());
    let theirs = other.list(&oubliette::PageRequest::default()).unwrap().items;
    assert_eq!(theirs.len(), 1, "the other namespace is untouched");
}

#[test]
fn v206_expiry_is_half_open() {
    let world = World::at(100);
    let id = world.add(text("t").vector(axis(0)).expiry(Expiry::At(ms(200)))).id;
    world.set(199);
    assert!(visible(&world, id, axis(0)));
    assert_eq!(world.row(id).state, State::Live);
    world.set(200);
    assert!(!visible(&world, id, axis(0)));
    assert_eq!(world.row(id).state, State::Expired, "get shows it in its state (MODEL-20)");
}

#[test]
fn v207_validity_begins_at_its_instant() {
    let world = World::at(100);
    let id = world.add(valid_from(text("t").vector(axis(0)), 150)).id;
    world.set(149);
    assert!(!visible(&world, id, axis(0)));
    world.set(150);
    assert!(visible(&world, id, axis(0)));
}

#[test]
fn v210_a_replaced_row_is_not_seen_and_its_successor_is() {
    let world = World::at(100);
    let old = world.add(text("old").vector(axis(0))).id;
    world.set(300);
    let new = world.add(text("new").vector(axis(0))).id;
    world.supersede(old, new, SupersedeMode::Replaced, Some(250)).unwrap();
    world.set(400);
    assert!(!visible(&world, old, axis(0)));
    assert!(visible(&world, new, axis(0)));
    let times = world.row(old);
    assert_eq!((times.valid_to, times.superseded.unwrap().at), (Some(ms(250)), ms(300)));
    assert_eq!(world.row(new).valid_from, Some(ms(250)));
}

#[test]
fn v211_a_supersession_ahead() {
    let world = World::at(100);
    let old = world.add(text("old").key("k").vector(axis(0))).id;
    world.set(300);
    let new = world.add(text("new").vector(axis(0))).id;
    world.supersede(old, new, SupersedeMode::Replaced, Some(600)).unwrap();
    world.set(500);
    assert!(visible(&world, old, axis(0)));
    assert!(!visible(&world, new, axis(0)));
    let row = world.row("k");
    assert_eq!(
        (row.id, row.also),
        (old, Some(new)),
        "the key answers with what is true, and both ids are shown"
    );
    world.check();
    world.set(600);
    assert!(!visible(&world, old, axis(0)));
    assert!(visible(&world, new, axis(0)));
    assert_eq!((world.row("k").id, world.row("k").also), (new, None));
    assert_eq!(world.row(new).keys, ["k"]);
}

#[test]
fn v212_a_duplicate_ends_in_transaction_time() {
    let world = World::at(100);
    let old = world.add(text("one").vector(axis(0))).id;
    let new = world.add(text("one more").vector(axis(0))).id;
    world.set(300);
    world.supersede(old, new, SupersedeMode::Duplicate, None).unwrap();
    assert!(!visible(&world, old, axis(0)));
    assert!(visible(&world, new, axis(0)));
    let times = world.row(old);
    assert_eq!((times.valid_to, times.valid_to_before), (None, None), "world times are left alone");
    world.set(200);
    assert!(!visible(&world, old, axis(0)), "a clock that steps back does not bring it back");
}

#[test]
fn v215_a_forget_does_not_move_the_horizon() {
    let world = World::at(100);
    let id = world.add(text("t")).id;
    world.set(500);
    world.forget_id(id);
    assert!(world.ns.stats().unwrap().purge_horizon.is_empty());
}

#[test]
fn v216_restoring_keeps_the_caller_s_end_of_validity() {
    for mode in [SupersedeMode::Duplicate, SupersedeMode::Replaced, SupersedeMode::Correction] {
        let world = World::at(100);
        let old = world.add(valid_to(text("t").vector(axis(0)), 400)).id;
        world.set(300);
        let new = world.add(text("u")).id;
        world.supersede(old, new, mode, None).unwrap();
        assert!(!visible(&world, old, axis(0)));
        let report = world.ns.restore(old.to_string()).unwrap();
        assert_eq!((report.id, report.keys_taken), (old, vec![]));
        assert!(visible(&world, old, axis(0)), "{mode}");
        assert_eq!(world.row(old).valid_to, Some(ms(400)), "{mode}");
        assert_eq!(world.row(old).superseded, None);
        world.set(400);
        assert!(!visible(&world, old, axis(0)));
    }
}

#[test]
fn v218_dead_rows_take_no_place_of_a_result() {
    let world = World::at(100);
    let near = |at: usize| [1.0, at as f32 / 10_000.0, 0.0, 0.0];
    let (mut live, mut dead) = (Vec::new(), Vec::new());
    for at in 0..80 {
        dead.push(world.add(text(&format!("dead {at}")).vector(near(at)).expiry(Expiry::At(ms(200)))).id);
    }
    for at in 0..3 {
        live.push(world.add(text(&format!("live {at}")).vector([1.0, 0.5 + at as f32 / 10.0, 0.0, 0.0])).id);
    }
    for id in &dead[..20] {
        world.supersede(*id, live[0], SupersedeMode::Duplicate, None).unwrap();
    }
    for id in &dead[20..40] {
        world.forget_id(*id);
    }
    world.set(200);
    assert_eq!(world.find(axis(0), 3), live);
}

#[test]
fn v247_imported_history_is_not_born_expired() {
    let world = World::new();
    let run = world.start_import();
    let created = world.ago("90d");
    let id = world.import(run, vec![text("old").tier(Tier::Episodic).created_at(created)])[0].id;
    assert!(world.is_live(id));
    let row = world.row(id);
    assert_eq!(row.created_at, created);
    assert_eq!(row.expires_at, Some(world.ahead("30d")), "30 d after the import");
}

#[test]
fn life1_tiers_have_their_times_to_live() {
    let world = World::new();
    let expires = |draft: Draft| world.row(world.add(draft).id).expires_at;
    assert_eq!(expires(text("a").tier(Tier::Working)), Some(world.ahead("72h")));
    assert_eq!(expires(text("b").tier(Tier::Episodic)), Some(world.ahead("30d")));
    assert_eq!(expires(text("c").tier(Tier::Semantic)), None);
    assert_eq!(expires(text("d").tier(Tier::Procedural)), None);
    assert_eq!(
        expires(text("e").tier(Tier::Working).expiry(Expiry::Never)),
        None,
        "an explicit null is never"
    );
    assert_eq!(expires(text("f").expiry(Expiry::At(world.ahead("1h")))), Some(world.ahead("1h")));
    assert_eq!(expires(text("g").expiry(Expiry::After(span("2h")))), Some(world.ahead("2h")));
    let ahead = world.ahead("10d");
    assert_eq!(expires(text("h").tier(Tier::Working).created_at(ahead)), Some(ahead.plus(span("72h"))));
}

#[test]
fn v260_undoing_an_import() {
    let world = World::new();
    let earlier = world.add(text("known").tag("mine")).id;
    let k = world.add(text("earlier").key("k").vector(axis(0))).id;
    let before = (world.row(earlier), world.row("k"));
    let run = world.start_import();
    let lines = vec![text("known"), text("brand new").key("n"), text("later").key("k").vector(axis(1))];
    let outcomes = world.import(run, lines);
    let decisions: Vec<_> = outcomes.iter().map(|outcome| outcome.decision.as_str()).collect();
    assert_eq!(decisions, ["reinforced", "stored", "revised"]);
    world.ns.finish_import(run).unwrap();

    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.removed, undone.detached), (1, 2, 1));
    let row = world.row(earlier);
    assert_eq!((row.holders, row.tags), (before.0.holders, before.0.tags));
    assert_eq!(row.reinforcement_count, 1);
    assert_eq!(world.tombstone(outcomes[1].id).reason, TombstoneReason::Undone);
    assert_eq!(world.tombstone("n").id, outcomes[1].id);
    let row = world.row("k");
    assert_eq!((row.id, row.text.as_str(), row.state), (k, "earlier", State::Live));
    assert_eq!(world.find(axis(0), 1), [k]);
    world.check();

    let already = Undone { already: true, ..Undone::default() };
    assert_eq!(world.ns.undo(run).unwrap(), already, "undoing twice is a no-op");
    assert_eq!(world.row("k").id, k);
    let nobody = oubliette::maintain::RunId::from_bytes([9; 16]);
    assert_eq!(world.ns.undo(nobody).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn v261_a_superseded_row_keeps_the_holders_that_a_tag_does_not_name() {
    let world = World::new();
    let old = world.add(text("same").key("a").tag("t")).id;
    world.add(text("same").key("b"));
    let new = world.add(text("newer")).id;
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    let answer = world.forget_tag("t");
    assert_eq!(answer.forgotten, 0);
    let row = world.row(old);
    assert_eq!((row.state, holders(&row)), (State::Superseded, vec![(Some("b"), 1, 1, vec![])]));
    assert_eq!(world.row(new).keys, ["b"]);
}

#[test]
fn v261_a_row_in_limbo_keeps_the_holders_that_a_tag_does_not_name() {
    let world = World::new();
    let waits = in_limbo(&world, &[("a", Some("t")), ("b", None)]);
    let answer = world.forget_tag("t");
    assert_eq!(answer.forgotten, 0, "{answer:?}");
    let row = world.row(waits.loser);
    assert_eq!((row.state, holders(&row)), (State::Limbo, vec![(Some("b"), 1, 1, vec![])]));
    let undone = world.ns.undo(waits.run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 0), "{undone:?}");
    let row = world.row(waits.loser);
    assert_eq!((row.state, holders(&row)), (State::Live, vec![(Some("b"), 1, 1, vec![])]));
    assert!(world.get("a").is_err());
}

#[test]
fn v278_forgetting_a_key_takes_all_its_versions() {
    for keep_history in [false, true] {
        let world = World::new();
        let ids: Vec<_> = (0..4).map(|at| world.add(text(&format!("version {at}")).key("k")).id).collect();
        let what = Forget::Names {
            scope: Scope::Any,
            names: vec!["k".to_owned()],
            keep_history,
            also_merged: true,
            with_history: false,
        };
        let answer = world.ns.forget(what).unwrap();
        assert_eq!((answer.forgotten, answer.detached), (1, 0), "one record");
        let erased = if keep_history { &ids[3..] } else { &ids[..] };
        let mut gone = answer.tombstones.clone();
        gone.sort();
        assert_eq!(gone, erased);
        assert_eq!(world.ns.tombstones(None, 10).unwrap().items.len(), erased.len());
        let left: Vec<_> = world.list_in(Scope::Any, State::Superseded).iter().map(|row| row.id).collect();
        assert_eq!(left, ids[..4 - erased.len()]);
        assert!(world.live().is_empty());
    }
}

#[test]
fn v281_a_key_that_was_taken_since_stays_where_it_is() {
    let world = World::new();
    let a = world.add(text("first").key("k")).id;
    let b = world.add(text("second").key("k")).id;
    let c = world.add(text("third").key("k")).id;
    let report = world.ns.restore(a.to_string()).unwrap();
    assert_eq!((report.id, report.keys_taken), (a, vec!["k".to_owned()]));
    assert_eq!((world.row(a).state, world.row(a).keys.len()), (State::Live, 0));
    assert_eq!(world.row("k").id, c);
    assert_eq!(world.row(b).state, State::Superseded);
    assert_eq!(world.row(a).holders.len(), 1, "the holder stays, without its key");
}

#[test]
fn life7_restore_gives_the_holders_back() {
    let world = World::new();
    let a = world.add(text("one").key("a").tag("t")).id;
    let b = world.add(text("two").key("b").tag("u")).id;
    world.ns.reinforce("b", 3).unwrap();
    let before = (world.row(a), world.row(b));
    world.supersede(b, a, SupersedeMode::Duplicate, None).unwrap();
    let row = world.row(a);
    assert_eq!(row.keys, ["a", "b"], "V-263: the row holds both keys");
    assert_eq!(row.tags, ["t", "u"]);
    assert_eq!(row.reinforcement_count, 1, "reinforcement unchanged");
    assert_eq!(world.row("b").id, a);
    assert_eq!(world.row(b).state, State::Superseded);
    world.ns.restore(b.to_string()).unwrap();
    let after = (world.row(a), world.row(b));
    assert_eq!((&after.0.holders, &after.0.tags), (&before.0.holders, &before.0.tags));
    assert_eq!((&after.1.holders, &after.1.keys), (&before.1.holders, &before.1.keys));
    assert_eq!(after.1.reinforcement_count, 4, "with its share");
    assert_eq!(world.row("b").id, b, "V-250: b only on its own row");
    let again = world.ns.restore(b.to_string()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict, "it is not superseded");
}

#[test]
fn life6_what_may_not_be_superseded() {
    let world = World::at(100);
    let add = |name: &str| world.add(text(name)).id;
    let (a, b, c) = (add("a"), add("b"), add("c"));
    let kind = |old, new| world.supersede(old, new, SupersedeMode::Replaced, None).unwrap_err().kind();
    assert_eq!(kind(a, a), ErrorKind::Conflict, "itself");
    world.supersede(a, b, SupersedeMode::Replaced, None).unwrap();
    world.supersede(b, c, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(kind(a, c), ErrorKind::Conflict, "superseded already");
    assert_eq!(kind(c, a), ErrorKind::Conflict, "a cycle");
    assert_eq!(kind(c, MemoryId::from_bytes([9; 16])), ErrorKind::NotFound);
    let expired = world.add(text("e").expiry(Expiry::At(ms(200)))).id;
    world.set(200);
    assert_eq!(kind(expired, c), ErrorKind::Conflict, "old must be live");
    let other: oubliette::NamespaceName = "other".parse().unwrap();
    let why = world.db.namespace(&other).unwrap().supersede_all(
        &[c.to_string()],
        b.to_string(),
        SupersedeMode::Replaced,
        None,
    );
    assert_eq!(why.unwrap_err().kind(), ErrorKind::NotFound, "another namespace");
    assert!(world.is_live(c));
}

#[test]
fn life6_supersession_does_not_touch_updated_at_and_keeps_a_given_valid_from() {
    let world = World::at(100);
    let old = world.add(text("old")).id;
    let new = world.add(valid_from(text("new"), 50)).id;
    world.set(300);
    world.supersede(old, new, SupersedeMode::Replaced, Some(200)).unwrap();
    assert_eq!(world.row(old).updated_at, ms(100));
    assert_eq!(world.row(new).valid_from, Some(ms(50)));
    assert_eq!(world.row(new).updated_at, ms(100));
}

#[test]
fn life6_a_draft_supersedes_what_it_names() {
    let world = World::new();
    let old = world.add(text("uses npm").key("tool")).id;
    let new = world.add(text("uses pnpm").key("tool2").supersedes("tool")).id;
    assert_eq!(world.row(old).superseded_by(), Some(new));
    assert_eq!(world.row("tool").id, new, "the key goes along");
    assert_eq!(world.row(new).keys, ["tool", "tool2"]);
    assert_eq!(world.refused(text("x").supersedes("nobody")), ErrorKind::NotFound);
    assert_eq!(world.live(), [new]);
}

/// LIFE-6, MODEL-8: a key is of the partition that wrote it. Had it gone along, its agent could not write it any more.
#[test]
fn life6_a_key_stays_in_its_partition() {
    for draft_names_it in [false, true] {
        let world = World::new();
        let home = |said: &str| text(said).key("home").agent("ann").tag("of-ann");
        let old = world.add(home("in Ghent")).id;
        let new = match draft_names_it {
            true => world.add(text("Ann is in Lyon").supersedes("home")).id,
            false => world.add(text("Ann is in Lyon")).id,
        };
        if !draft_names_it {
            world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
        }
        let shared = world.row(new);
        assert_eq!((shared.keys.is_empty(), shared.tags.is_empty()), (true, true), "{shared:?}");
        assert_eq!((world.row("home").id, world.row("home").superseded_by()), (old, Some(new)));
        assert_eq!(world.live(), [new]);
        let again = world.add(home("in Bruges"));
        assert_eq!((again.decision, world.row("home").id), (Decision::Stored, again.id));
        // What the key said goes with it, and the other partition keeps what it was told.
        let forgotten = world.forget(&["home"]);
        assert_eq!((forgotten.tombstones.len(), world.live()), (2, vec![new]));
    }
}

#[test]
fn life8_a_chain_of_any_length() {
    let world = World::new();
    let ids: Vec<_> = (0..60).map(|at| world.add(text(&format!("v{at}")).key("k")).id).collect();
    let history = world.ns.history("k").unwrap();
    assert_eq!(history.versions.iter().map(|version| version.id).collect::<Vec<_>>(), ids);
    assert_eq!(world.live(), ids[59..]);
    assert!(history.events.is_sorted_by_key(|event| event.seq));
}

#[test]
fn life18_reinforcing() {
    let world = World::new();
    let mut draft = text("t").key("k").tier(Tier::Working);
    draft.fields.confidence = Some(0.5).into();
    let id = world.add(draft).id;
    let updated = world.row(id).updated_at;
    world.advance("2h");
    world.ns.reinforce("k", 3).unwrap();
    let row = world.row(id);
    assert_eq!((row.reinforcement_count, row.last_reinforced_at), (4, Some(world.now())));
    assert_eq!(row.expires_at, Some(world.ahead("72h")), "LIFE-2: slides");
    assert_eq!(row.updated_at, updated, "updated_at unchanged");
    let grown = row.confidence.unwrap();
    assert!((grown - 0.55).abs() < 1e-6, "LIFE-16: {grown}");
    world.advance("23h");
    world.ns.reinforce("k", 1).unwrap();
    assert_eq!(world.row(id).confidence, Some(grown), "at most once in 24 h");
    let never = world.add(text("n").tier(Tier::Working).expiry(Expiry::Never)).id;
    world.ns.reinforce(never.to_string(), 1).unwrap();
    assert_eq!(world.row(never).expires_at, None, "only rows that have an end");
    world.ns.reinforce("k", u32::MAX).unwrap();
    assert_eq!(world.row(id).reinforcement_count, u32::MAX, "saturating");
    assert_eq!(world.ns.reinforce("nobody", 1).unwrap_err().kind(), ErrorKind::NotFound);
}

/// V-296: an end that a caller set is a promise (LIFE-56). Neither a use nor an equal text that gives no end moves it.
#[test]
fn v296_nothing_lengthens_an_end_that_a_caller_set() {
    for key in [None, Some("k")] {
        let world = World::new();
        let mut draft = text("a one-time code").tier(Tier::Working).expiry(Expiry::After(span("10m")));
        draft.key = key.map(str::to_owned);
        let id = world.add(draft).id;
        let end = Some(world.ahead("10m"));
        assert_eq!(world.row(id).expires_by, ExpiresBy::Caller);
        world.advance("5m");
        world.ns.reinforce(id.to_string(), 1).unwrap();
        assert_eq!(world.row(id).expires_at, end, "a use");
        let again = world.add(text("a one-time code").tier(Tier::Working).key("other"));
        assert_eq!(again.decision, Decision::Stored, "it was not told that it ends in 5 minutes");
        assert_eq!(world.add(text("a one-time code").tier(Tier::Working)).id, again.id);
        let row = world.row(id);
        assert_eq!((row.expires_at, row.expires_by), (end, ExpiresBy::Caller), "an equal text");
        world.advance("5m");
        assert_eq!(world.row(id).state, State::Expired);
        assert_eq!(world.live(), [again.id]);
    }
}

/// LIFE-56: a later write that names another end moves it: the later of the two, or what its own key says.
#[test]
fn a_write_that_names_an_end_moves_it() {
    let world = World::new();
    let draft = |ttl: &str| text("t").tier(Tier::Working).expiry(Expiry::After(span(ttl)));
    let id = world.add(draft("10m").key("k")).id;
    let end = |id| (world.row(id).expires_at, world.row(id).expires_by);
    let other = world.add(draft("20m")).id;
    assert_ne!(other, id, "another writer moves no end of the key's");
    assert_eq!(world.add(draft("30m")).id, other);
    assert_eq!(end(other), (Some(world.ahead("30m")), ExpiresBy::Caller), "the later of the two");
    world.add(draft("5m"));
    assert_eq!(end(other), (Some(world.ahead("30m")), ExpiresBy::Caller));
    let own = world.add(draft("1m").key("k")).id;
    assert_eq!(own, id, "a key says its own end anew");
    assert_eq!(end(own), (Some(world.ahead("1m")), ExpiresBy::Caller));
    let patch = Patch { expiry: Some(Expiry::Tier), ..Patch::default() };
    world.ns.update(own.to_string(), patch).unwrap();
    assert_eq!(end(own), (Some(world.ahead("72h")), ExpiresBy::Tier));
    // A durable memory stays durable: the write that made it was promised so.
    let durable = world.add(text("a fact")).id;
    world.add(text("a fact").expiry(Expiry::After(span("10m"))));
    assert_eq!(end(durable), (None, ExpiresBy::Tier));
    // What a key shares with another's promise it does not take along when it says something new.
    let shared = text("shared").tier(Tier::Working);
    let both = world.add(shared.clone().key("b")).id;
    assert_eq!(world.add(shared.key("a").expiry(Expiry::Never)).id, both);
    assert_eq!(end(both), (None, ExpiresBy::Caller));
    let new = world.add(text("b's own").tier(Tier::Working).key("b")).id;
    assert_eq!(end(new), (Some(world.ahead("72h")), ExpiresBy::Tier));
}

/// V-297: the end that a tier gave slides (LIFE-56).
#[test]
fn v297_a_repeat_moves_the_end_of_a_tier() {
    let world = World::new();
    let id = world.add(text("t").tier(Tier::Working)).id;
    world.advance("71h");
    assert_eq!(world.add(text("t").tier(Tier::Working)).decision, Decision::Reinforced);
    let row = world.row(id);
    assert_eq!((row.expires_at, row.expires_by), (Some(world.ahead("72h")), ExpiresBy::Tier));
}

/// Who set an end goes out with an export, comes in again, and survives the file (LIFE-56).
#[test]
fn who_set_the_end_is_kept() {
    let mut world = World::new();
    let ends = [(Expiry::Never, None), (Expiry::After(span("10m")), Some(world.ahead("10m")))];
    let ids: Vec<_> = (0..2)
        .map(|at| world.add(text(&format!("t{at}")).tier(Tier::Working).expiry(ends[at].0)).id)
        .collect();
    world.reopen();
    let mut lines = Vec::new();
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
    let to = VectorsTo::<std::io::Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut lines, "out", to).unwrap();
    let other = World::new();
    let read = LineReader::new(lines.as_slice(), "lines");
    Import::default().run(&other.db, read, &mut ()).unwrap();
    for (id, (_, end)) in ids.into_iter().zip(ends) {
        for world in [&world, &other] {
            world.ns.reinforce(id.to_string(), 1).unwrap();
            let row = world.row(id);
            assert_eq!((row.expires_at, row.expires_by), (end, ExpiresBy::Caller));
        }
    }
}

#[test]
fn life26_predecessors_of_a_forgotten_row_are_live_again() {
    let world = World::new();
    let old = world.add(text("before").key("k")).id;
    let new = world.add(text("after").key("k").tag("import:x:2026-01-01"));
    assert_eq!(revised(&new), old);
    let answer = world.forget_tag("import:x:2026-01-01");
    assert_eq!((answer.forgotten, answer.restored), (1, 1));
    assert_eq!((world.row("k").id, world.row("k").state), (old, State::Live));
    assert_eq!(world.tombstone(new.id).reason, TombstoneReason::ForgetByTag);
}

#[test]
fn life26_keep_pinned_and_scope() {
    let world = World::new();
    let pinned = world.add(text("p").tag("t").tag("pinned")).id;
    let agent = world.add(text("a").tag("t").agent("x")).id;
    let plain = world.add(text("s").tag("t")).id;
    let forget = |scope, keep_pinned| {
        world
            .db
            .namespace(world.ns.name())
            .unwrap()
            .forget(Forget::Tag { tag: "t".to_owned(), scope, keep_pinned })
            .unwrap()
            .tombstones
    };
    assert_eq!(forget(Scope::agent("nobody").unwrap(), false), []);
    assert_eq!(forget(Scope::agent("x").unwrap(), true), [agent]);
    assert_eq!(forget(Scope::Any, true), [plain]);
    assert!(world.row(pinned).is_protected());
    assert_eq!(forget(Scope::Any, false), [pinned], "an explicit command takes protected rows too");
}

#[test]
fn v284_transaction_time_never_runs_backwards() {
    let world = World::at(1000);
    world.add(text("first"));
    world.set(400);
    let id = world.add(text("second").vector(axis(0))).id;
    assert_eq!(world.row(id).recorded_at, ms(1000));
    assert!(visible(&world, id, axis(0)));
    let new = world.add(text("third")).id;
    world.supersede(id, new, SupersedeMode::Correction, None).unwrap();
    let times = world.row(id);
    assert!(times.superseded.unwrap().at >= times.recorded_at);
    assert!(!visible(&world, id, axis(0)));
    let gone = world.forget_id(new);
    assert_eq!(gone.forgotten, 1);
    assert!(world.tombstone(new).deleted_at >= ms(1000));
    let events = world.ns.history(id.to_string()).unwrap().events;
    assert!(events.is_sorted_by_key(|event| event.at), "nor does the journal");
}

#[test]
fn v285_a_clock_far_behind_is_a_warning() {
    let world = World::new();
    world.add(text("t"));
    let last: Time = world.now();
    let warning = || world.db.stats().unwrap().health.clock_warning;
    world.clock.set(last.minus(span("23h")));
    assert_eq!(warning(), None);
    world.clock.set(last.minus(span("25h")));
    assert!(warning().is_some());
}

#[test]
fn v288_a_row_that_is_not_yet_valid_absorbs() {
    let world = World::at(100);
    let id = world.add(valid_from(text("t"), 300)).id;
    world.set(200);
    assert!(!world.is_live(id));
    let again = world.add(valid_from(text("t"), 300));
    assert_eq!((again.decision, again.id), (Decision::Reinforced, id));
}

/// LIFE-7: a memory that was there before it took the place of another, and that got its beginning by that, is true from when it was
/// before, if the other is restored.
#[test]
fn life_7_a_restore_gives_back_when_the_other_began() {
    for (at, given) in [(None, None), (Some(9_000), None), (None, Some(150))] {
        let world = World::at(100);
        let a = world.add(text("Ann lives in Ghent").key("a")).id;
        let mut flat = text("Ann has a flat in Bruges").key("b");
        flat.fields.valid_from = given.map(ms).into();
        let b = world.add(flat).id;
        world.set(500);
        world.supersede(a, b, SupersedeMode::Replaced, at).unwrap();
        assert_eq!(world.row(b).valid_from, given.or(at).or(Some(500)).map(ms));
        world.set(600);
        world.ns.restore(a.to_string()).unwrap();
        assert_eq!(world.row(b).valid_from, given.map(ms));
        assert_eq!(world.live().len(), 2);
        world.check();
    }
    // As long as it replaces another one it begins as it did, in whatever order the others are restored. An export tells it too.
    for order in [[0, 1], [1, 0]] {
        let world = World::at(100);
        let [a, b, c] = ["a", "b", "c"].map(|key| world.add(text(&format!("text {key}")).key(key)).id);
        for (at, old) in [(500, a), (510, c)] {
            world.set(at);
            world.supersede(old, b, SupersedeMode::Replaced, None).unwrap();
        }
        world.set(600);
        for world in [&world, &copy_of(&world)] {
            let [first, second] = order.map(|place| [a, c][place]);
            world.ns.restore(first.to_string()).unwrap();
            let (row, began) = (world.row(b), Some(ms(500)));
            assert_eq!((row.valid_from, row.valid_from_recorded_at), (began, began), "it replaces the other");
            world.ns.restore(second.to_string()).unwrap();
            let row = world.row(b);
            assert_eq!((row.valid_from, row.valid_from_recorded_at), (None, None));
            world.check();
        }
    }
    // What was said since stays, and what replaces another one too.
    for says in [false, true] {
        let world = World::at(100);
        let [a, b, c] = ["a", "b", "c"].map(|key| world.add(text(&format!("text {key}")).key(key)).id);
        world.set(500);
        world.supersede(a, b, SupersedeMode::Replaced, None).unwrap();
        if says {
            world.ns.update("b", Patch::new().valid_from(ms(400))).unwrap();
            assert_eq!(world.row(b).valid_from_recorded_at, None, "a write says it");
        } else {
            world.supersede(c, b, SupersedeMode::Replaced, None).unwrap();
        }
        world.ns.restore(a.to_string()).unwrap();
        assert_eq!(world.row(b).valid_from, Some(ms(if says { 400 } else { 500 })));
        world.check();
    }
}
