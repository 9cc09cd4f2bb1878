//! Plans, groups, commits and aborts of summaries, by the vectors of the specification (GC-5 to GC-18, GC-39).

use crate::world::{DIM, World, axis};
use oubliette::gc::{
    Extractive, GcCommitted, GcOptions, GcPlan, GcRunOptions, GroupState, PlanState, Summarizer,
};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, ContextDraft, Expiry, Field, Inclusion, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::{Draft, Error, Kind, MemoryId, Patch, Query};
use serde_json::{Value, json};

/// A message of a channel, so long ago.
fn message(world: &World, number: usize, ago: &str) -> Draft {
    Draft::new(format!("Ann: Box {number} went to Ghent{number}."))
        .kind(Kind::Message)
        .channel("yard")
        .created_at(world.ago(ago))
        .vector(vector(number))
}

fn vector(number: usize) -> [f32; DIM] {
    let mut vector = axis(number % DIM);
    vector[(number + 1) % DIM] = 0.1 + 0.01 * number as f32;
    vector
}

/// A world with so many old messages of one channel and day.
fn old(count: usize) -> (World, Vec<MemoryId>) {
    let world = World::new();
    let ids = (0..count).map(|number| world.add(message(&world, number, "20d")).id).collect();
    (world, ids)
}

fn plan(world: &World) -> GcPlan {
    world.ns.gc_plan(&GcOptions::default()).unwrap()
}

/// Ids of the sources of each group.
fn planned(world: &World, options: &GcOptions) -> Vec<Vec<MemoryId>> {
    world.ns.gc_plan(options).unwrap().groups.into_iter().map(|group| group.source_ids).collect()
}

fn summary(sources: &[MemoryId]) -> String {
    let ids: Vec<String> = sources.iter().map(MemoryId::to_string).collect();
    let span = json!({"start": 0, "end": 4_000_000_000_000_i64});
    json!({"topic": "boxes", "time_range": span, "summary": ["boxes went to Ghent"], "source_ids": ids})
        .to_string()
}

fn commit(world: &World, plan: &GcPlan, group: &str, answer: &str) -> Result<GcCommitted, Error> {
    world.ns.gc_commit(plan.plan_id, group, answer, None)
}

fn code(refused: Result<GcCommitted, Error>) -> &'static str {
    match refused.unwrap_err() {
        Error::Refused { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[test]
fn v_219_only_what_is_older_than_the_least_age_is_a_candidate() {
    let world = World::new();
    world.add(message(&world, 0, "14d"));
    world.add(message(&world, 1, "14d"));
    assert!(planned(&world, &GcOptions::default()).is_empty());
    world.advance("1ms");
    assert_eq!(planned(&world, &GcOptions::default()).len(), 1);
}

#[test]
fn v_220_what_is_protected_or_durable_is_no_candidate() {
    let world = World::new();
    let old = |number| message(&world, number, "40d");
    let kinds = [Kind::System, Kind::Summary, Kind::Knowledge];
    let mut drafts: Vec<Draft> = kinds.into_iter().enumerate().map(|(n, kind)| old(n).kind(kind)).collect();
    drafts.extend([
        old(3).tag("critical"),
        old(4).pinned(true),
        old(5).summarized_at(world.ago("29d")),
        old(8).verbatim(true),
    ]);
    for draft in drafts {
        world.add(draft);
    }
    assert!(planned(&world, &GcOptions::default()).is_empty());
    let ids = [world.add(old(6)).id, world.add(old(7).summarized_at(world.ago("31d"))).id];
    assert_eq!(planned(&world, &GcOptions::default()), [ids.to_vec()]);
}

/// The other sources of its summary were named as versions of a message.
#[test]
fn the_history_of_a_message_goes_on_with_its_summary_alone() {
    let (world, ids) = old(3);
    let done = commit(&world, &plan(&world), "1", &summary(&ids)).unwrap();
    let versions = |id: MemoryId| -> Vec<MemoryId> {
        world.ns.history(id.to_string()).unwrap().versions.iter().map(|version| version.id).collect()
    };
    for id in &ids {
        assert_eq!(versions(*id), [*id, done.summary_memory_id]);
    }
    let all = [&ids[..], &[done.summary_memory_id]].concat();
    assert_eq!(versions(done.summary_memory_id), all, "the summary came of all of them");
}

#[test]
fn a_used_memory_is_a_candidate_when_its_use_has_decayed() {
    let world = World::new();
    for number in 0..2 {
        let used = message(&world, number, "40d").included_count_decay(1.0).last_included_at(world.ago("4d"));
        world.add(used);
    }
    // exp(-4/21) is 0.83, exp(-5/21) is 0.79.
    assert!(planned(&world, &GcOptions::default()).is_empty());
    world.advance("1d");
    assert_eq!(planned(&world, &GcOptions::default()).len(), 1);
}

#[test]
fn v_221_groups_fill_in_order_and_small_ones_are_dropped() {
    let (world, ids) = old(401);
    let found = planned(&world, &GcOptions::default());
    assert_eq!(found, [&ids[..200], &ids[200..400]]);
}

#[test]
fn threads_and_replies_are_groups_of_their_own() {
    let world = World::new();
    let add = |draft: Draft| world.add(draft).id;
    let old = |number| message(&world, number, "20d");
    let first = add(old(0));
    let answers = [add(old(1).reply_to(first)), add(old(2).reply_to(first))];
    let thread = [add(old(3).thread("t")), add(old(4).thread("t").channel("else"))];
    let rest = [add(old(5)), add(old(6))];
    add(message(&world, 7, "25d"));
    let expected = [vec![first, answers[0], answers[1]], thread.to_vec(), rest.to_vec()];
    assert_eq!(planned(&world, &GcOptions::default()), expected);
}

#[test]
fn a_plan_keeps_its_bounds() {
    let (world, ids) = old(6);
    world.db.set_policy("gc.max_sources = 2", Syntax::Toml).unwrap();
    let few = GcOptions { max_groups: Some(1), ..GcOptions::default() };
    assert_eq!(planned(&world, &few), [ids[..2].to_vec()]);
    // A source is in one open plan only.
    let tokens = GcOptions { limit_tokens: Some(15), ..GcOptions::default() };
    assert_eq!(planned(&world, &tokens), [ids[2..4].to_vec()]);
    assert_eq!(planned(&world, &GcOptions::default()), [ids[4..].to_vec()]);
    let none = plan(&world);
    assert_eq!((none.state, none.groups.len()), (PlanState::Committed, 0));
    // It says which plans have the memories.
    let open = world.ns.gc_plans().unwrap().into_iter().filter(|plan| plan.state == PlanState::Open);
    assert_eq!(none.held_by, open.map(|plan| plan.plan_id).collect::<Vec<_>>());
    assert_eq!(none.held_by.len(), 3);
    // A plan that is over frees its sources.
    world.advance("24h");
    assert_eq!(planned(&world, &GcOptions::default()).len(), 3);
}

#[test]
fn a_summary_takes_the_place_of_its_sources() {
    let world = World::new();
    // More words than the messages say anything with, so that a summary can be shorter.
    let long = |number| Draft {
        text: format!(
            "Ann: Box {number} went to Ghent{number}. That is how it was, and so it will be for all of us. Well, when would you do that?"
        ),
        ..message(&world, number, "20d")
    };
    let ids: Vec<MemoryId> = (0..3).map(|number| world.add(long(number)).id).collect();
    let plan = plan(&world);
    let answer = Extractive::default().summarize(&world.ns.gc_pack(plan.plan_id, "1").unwrap()).unwrap();
    let done = commit(&world, &plan, "1", &answer).unwrap();
    assert_eq!((done.deleted_count, done.skipped.len(), done.warnings.len()), (3, 0, 0));
    assert_eq!(world.live(), [done.summary_memory_id]);
    let row = world.row(done.summary_memory_id);
    assert_eq!(
        (row.kind.clone(), row.sources.clone(), row.confidence),
        (Kind::Summary, ids.clone(), Some(0.4))
    );
    assert!(row.text.contains("Ghent1") && row.entities.iter().all(|entity| entity.role == "mentioned"));
    let expanded = world.ns.expand(done.summary_memory_id).unwrap();
    assert_eq!(expanded.sources.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    for (_, stone) in expanded.sources {
        let stone = stone.unwrap();
        assert_eq!(stone.reason, TombstoneReason::Summarized);
        assert_eq!((stone.replaced_by, stone.run), (Some(done.summary_memory_id), done.run));
    }
    assert!(row.deletes_source);
    assert_eq!(world.ns.search(Query::text("Ghent2")).unwrap().hits[0].id, done.summary_memory_id);
    assert_eq!(world.ns.gc_show(plan.plan_id).unwrap().state, PlanState::Committed);
}

#[test]
fn v_222_to_v_225_a_source_that_has_changed_refuses_its_group() {
    type Change = fn(&World, MemoryId);
    let change: [(&str, Change); 4] = [
        ("source_changed", |world, id| drop(world.ns.update(id, Patch::new().importance(0.9)).unwrap())),
        ("source_protected", |world, id| drop(world.ns.pin(id, true).unwrap())),
        ("source_gone", |world, id| drop(world.forget_id(id))),
        ("source_gone", |world, id| drop(world.ns.supersede(id, "Box 1 is lost").unwrap())),
    ];
    for (expected, change) in change {
        let (world, ids) = old(4);
        let plan = plan(&world);
        change(&world, ids[1]);
        let before = world.live();
        assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), expected);
        assert_eq!(world.live(), before);
        let told = world.ns.gc_show(plan.plan_id).unwrap();
        assert_eq!(told.state, PlanState::Open);
        assert_eq!(
            (told.groups[0].state, told.groups[0].refusal.unwrap().as_str()),
            (GroupState::Refused, expected)
        );
    }
}

#[test]
fn v_224_a_source_that_was_used_refuses_its_group() {
    let (world, ids) = old(3);
    let plan = plan(&world);
    let context = ContextDraft::new("turn-1", [Inclusion::new(ids[1], 12)]);
    world.ns.context_log_write(&context).unwrap();
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "source_used");
    assert_eq!(world.live(), ids);
    // With `strict_use` off only a use that still counts refuses.
    world.db.set_policy("gc.strict_use = false", Syntax::Toml).unwrap();
    world.advance("6d");
    let plan = self::plan(&world);
    // Of one instant, the least used come first.
    assert_eq!(plan.groups[0].source_ids, [ids[0], ids[2], ids[1]]);
}

#[test]
fn v_225_a_changed_source_may_be_left_out() {
    let (world, ids) = old(4);
    world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
    let plan = plan(&world);
    world.forget_id(ids[1]);
    let done = commit(&world, &plan, "1", &summary(&ids)).unwrap();
    assert_eq!((done.deleted_count, done.skipped[0].id), (3, ids[1]));
    assert_eq!(world.row(done.summary_memory_id).sources, [ids[0], ids[2], ids[3]]);
    // Too few are left of a group of two.
    let (world, ids) = old(2);
    world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
    let plan = self::plan(&world);
    world.forget_id(ids[1]);
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "source_gone");
}

/// GC-6, GC-24: what the sources that go have in common stays, whatever became of one that does not go.
#[test]
fn a_summary_keeps_the_owner_of_its_sources_beside_one_that_was_left_out() {
    for leaves in [true, false] {
        let world = World::new();
        let of_ann = |number| {
            let draft = message(&world, number, "20d").thread("t").tag("yard");
            world.add(draft.metadata(json!({"user_id": "ann"}))).id
        };
        let ids: Vec<MemoryId> = (0..4).map(of_ann).collect();
        world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
        let plan = plan(&world);
        if leaves {
            world.forget_id(ids[1]);
        } else {
            world.ns.update(ids[1], Patch::new().metadata(json!({"user_id": "bob"}))).unwrap();
        }
        let done = commit(&world, &plan, "1", &summary(&ids)).unwrap();
        let row = world.row(done.summary_memory_id);
        assert_eq!((row.metadata, row.thread.as_deref()), (json!({"user_id": "ann"}), Some("t")));
        assert_eq!(row.tags, ["yard"]);
        world.check();
    }
}

/// LIFE-71: nobody tells for ever of what is to end.
#[test]
fn life_71_a_summary_does_not_tell_of_a_memory_whose_end_was_set_since_the_plan() {
    let (world, ids) = old(4);
    world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
    let plan = plan(&world);
    world.ns.touch([ids[1]], Expiry::At(world.ahead("1d"))).unwrap().remove(0).unwrap();
    let pack = world.ns.gc_pack(plan.plan_id, "1").unwrap();
    assert_eq!(pack.sources.len(), 3, "the writer is not shown it any more");
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "source_changed");
    let done = commit(&world, &plan, "1", &summary(&[ids[0], ids[2], ids[3]])).unwrap();
    assert_eq!((done.deleted_count, world.is_live(ids[1])), (3, true));
}

/// LIFE-71: nor when the end has come and the memory is erased: nobody has forgotten it, and nobody is to tell of it.
#[test]
fn life_71_a_summary_does_not_tell_of_a_memory_whose_end_has_come() {
    let (world, ids) = old(4);
    world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
    let plan = plan(&world);
    world.ns.touch([ids[1]], Expiry::At(world.ahead("1m"))).unwrap().remove(0).unwrap();
    world.advance("2m");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    assert_eq!(world.tombstone(ids[1]).reason, TombstoneReason::Expired);
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "source_gone");
    let done = commit(&world, &plan, "1", &summary(&[ids[0], ids[2], ids[3]])).unwrap();
    assert_eq!(world.row(done.summary_memory_id).source_forgotten, 0);
}

/// GC-16: nor of one whose truth has ended, also where the end has passed, or has not begun.
#[test]
fn a_summary_does_not_tell_of_a_memory_that_is_not_true_any_more() {
    type Change = fn(&World, MemoryId);
    let changes: [Change; 3] = [
        |world, id| drop(world.ns.contradict(id, None).unwrap()),
        |world, id| drop(world.ns.update(id, Patch::new().valid_to(world.ahead("10m"))).unwrap()),
        |world, id| drop(world.ns.update(id, Patch::new().valid_from(world.ahead("10d"))).unwrap()),
    ];
    for (at, change) in changes.iter().enumerate() {
        let (world, ids) = old(4);
        world.db.set_policy("gc.on_conflict = \"skip\"", Syntax::Toml).unwrap();
        let plan = plan(&world);
        change(&world, ids[1]);
        world.advance("20m");
        assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "source_changed", "{at}");
        let done = commit(&world, &plan, "1", &summary(&[ids[0], ids[2], ids[3]])).unwrap();
        assert_eq!(done.deleted_count, 3, "{at}");
    }
}

#[test]
fn a_source_that_is_named_twice_counts_once() {
    let (world, ids) = old(2);
    let plan = plan(&world);
    let long = summary(&ids).replace("boxes went to Ghent", &"boxes went to Ghent ".repeat(6));
    for sources in [&ids[..], &ids.repeat(4)] {
        let refused = world.ns.gc_commit(plan.plan_id, "1", &long, Some(sources));
        assert_eq!(code(refused), "invalid_summary");
    }
    let done = world.ns.gc_commit(plan.plan_id, "1", &summary(&ids), Some(&ids.repeat(2))).unwrap();
    assert_eq!(done.deleted_count, 2);
}

/// A summary that was made from what is forgotten by now says so, or is refused where such summaries are to go.
#[test]
fn a_summary_of_what_was_forgotten_meanwhile_says_so() {
    for retires in [false, true] {
        let (world, ids) = old(4);
        let on_forget = if retires { "\ngc.on_source_forget = \"retire\"" } else { "" };
        world.db.set_policy(&format!("gc.on_conflict = \"skip\"{on_forget}"), Syntax::Toml).unwrap();
        let plan = plan(&world);
        world.forget_id(ids[1]);
        let done = commit(&world, &plan, "1", &summary(&ids));
        if !retires {
            assert_eq!(world.row(done.unwrap().summary_memory_id).source_forgotten, 1);
            continue;
        }
        assert_eq!(code(done), "source_gone");
        let done = commit(&world, &plan, "1", &summary(&[ids[0], ids[2], ids[3]])).unwrap();
        assert_eq!(world.row(done.summary_memory_id).source_forgotten, 0);
    }
}

#[test]
fn v_226_and_v_227_sources_are_those_of_the_group() {
    let (world, ids) = old(3);
    let other = world.add(message(&world, 9, "30d")).id;
    let plan = plan(&world);
    let refused = world.ns.gc_commit(plan.plan_id, "1", &summary(&ids[..2]), Some(&[ids[0], ids[1], other]));
    assert_eq!(code(refused), "not_in_group");
    let refused = world.ns.gc_commit(plan.plan_id, "1", &summary(&ids), Some(&ids[..2]));
    assert_eq!(code(refused), "bad_provenance");
    let done = world.ns.gc_commit(plan.plan_id, "1", &summary(&ids[..2]), Some(&ids[..2])).unwrap();
    assert_eq!((done.deleted_count, world.is_live(ids[2])), (2, true));
}

#[test]
fn v_228_a_plan_ends_with_its_time_and_its_policy() {
    let (world, ids) = old(3);
    let plan = plan(&world);
    world.advance("25h");
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "plan_closed");
    let plan = self::plan(&world);
    world.db.set_policy("gc.max_bullets = 7", Syntax::Toml).unwrap();
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "policy_changed");
    assert_eq!(world.live(), ids);
}

#[test]
fn v_229_the_same_commit_gives_the_same_answer() {
    let (world, ids) = old(3);
    let plan = plan(&world);
    let first = commit(&world, &plan, "1", &summary(&ids)).unwrap();
    let again = commit(&world, &plan, "1", &summary(&ids)).unwrap();
    assert_eq!((again.summary_memory_id, again.deleted_count), (first.summary_memory_id, 3));
    assert_eq!(world.live().len(), 1);
    let other = summary(&ids).replace("boxes went", "crates went");
    assert_eq!(code(commit(&world, &plan, "1", &other)), "already_committed");
}

#[test]
fn v_230_giving_up_leaves_what_is_committed() {
    let (world, ids) = old(6);
    world.db.set_policy("gc.max_sources = 2", Syntax::Toml).unwrap();
    let plan = plan(&world);
    let done = commit(&world, &plan, "2", &summary(&ids[2..4])).unwrap();
    let told = world.ns.gc_abort(plan.plan_id, None, "not now").unwrap();
    let states: Vec<GroupState> = told.groups.iter().map(|group| group.state).collect();
    assert_eq!(states, [GroupState::Aborted, GroupState::Committed, GroupState::Aborted]);
    assert_eq!((told.state, told.reason.as_deref()), (PlanState::Aborted, Some("not now")));
    assert_eq!(world.ns.gc_abort(plan.plan_id, None, "again").unwrap(), told);
    assert!(world.is_live(done.summary_memory_id) && world.is_live(ids[0]));
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids[..2]))), "plan_closed");
    // The sources are free.
    assert_eq!(planned(&world, &GcOptions::default()), [ids[..2].to_vec(), ids[4..].to_vec()]);
}

#[test]
fn a_plan_is_closed_when_each_group_is_done() {
    let (world, ids) = old(4);
    world.db.set_policy("gc.max_sources = 2", Syntax::Toml).unwrap();
    let plan = plan(&world);
    commit(&world, &plan, "1", &summary(&ids[..2])).unwrap();
    let told = world.ns.gc_abort(plan.plan_id, Some("2"), "dull").unwrap();
    assert_eq!(told.state, PlanState::Committed);
    assert!(world.ns.gc_abort(plan.plan_id, Some("3"), "there is none").is_err());
}

#[test]
fn an_answer_that_is_no_summary_changes_nothing() {
    let (world, ids) = old(3);
    let plan = plan(&world);
    match commit(&world, &plan, "1", r#"{"topic": "a", "summary": [], "mood": 1}"#).unwrap_err() {
        Error::Refused { code, pointers, .. } => {
            assert_eq!(
                (code, pointers),
                ("invalid_summary", vec!["/summary".to_owned(), "/time_range".to_owned()])
            );
        }
        other => panic!("{other}"),
    }
    assert_eq!(world.live(), ids);
    let told = world.ns.gc_show(plan.plan_id).unwrap();
    assert_eq!(told.groups[0].state, GroupState::Refused);
    // Another summary may follow.
    commit(&world, &plan, "1", &summary(&ids)).unwrap();
}

#[test]
fn a_commit_stays_within_the_budget() {
    let (world, ids) = old(4);
    world.db.set_policy("budget = { share = 0.5, floor = 2 }", Syntax::Toml).unwrap();
    let plan = plan(&world);
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "budget");
    let done = world.ns.gc_commit(plan.plan_id, "1", &summary(&ids[..2]), Some(&ids[..2])).unwrap();
    assert_eq!(done.deleted_count, 2);
}

/// MODEL-35: a dry run tells what the run does.
#[test]
fn a_dry_run_knows_the_budget_and_which_sources_stay() {
    let texts = |world: &World| {
        for at in 0..3 {
            let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
            let text = format!("Ann: Box {at} went to Ghent{at}. {rest}");
            world.add(Draft::new(text).kind(Kind::Message).channel("yard").created_at(world.ago("20d")));
        }
    };
    for (policy, committed) in [("budget = { share = 0.0, floor = 2 }", 0), ("gc.delete_sources = false", 1)]
    {
        let world = World::new();
        texts(&world);
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        let run = |dry_run| {
            let options = GcRunOptions { dry_run, ..GcRunOptions::default() };
            world.ns.gc_run(&Extractive::default(), &options, |_| ()).unwrap()
        };
        let (dry, done) = (run(true), run(false));
        assert_eq!((dry.committed, dry.refused, dry.sources), (done.committed, done.refused, done.sources));
        assert_eq!((done.committed, done.sources), (committed, 0), "{policy}");
    }
}

#[test]
fn sources_may_stay() {
    let (world, ids) = old(3);
    world.db.set_policy("gc.delete_sources = false", Syntax::Toml).unwrap();
    let plan = plan(&world);
    let done = commit(&world, &plan, "1", &summary(&ids)).unwrap();
    assert_eq!((done.deleted_count, world.live().len()), (0, 4));
    assert_eq!(world.row(ids[0]).summarized_at, Some(world.now()));
    assert!(planned(&world, &GcOptions::default()).is_empty());
}

#[test]
fn v_253_aggregates_wait_for_the_end_of_their_slice() {
    let world = World::new();
    let bot = |at: &str| {
        let mut draft =
            Draft::new("Build failed on main").kind(Kind::Message).channel("ci").created_at(world.ago(at));
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        draft
    };
    for at in ["16d", "16d", "15d", "15d", "1s", "1s"] {
        world.add(bot(at));
    }
    let aggregates: Vec<MemoryId> =
        world.live().into_iter().filter(|id| world.row(*id).kind == Kind::Aggregate).collect();
    assert_eq!(aggregates.len(), 3);
    let options = GcOptions { age_min: Some("0s".parse().unwrap()), ..GcOptions::default() };
    let found = world.ns.gc_plan(&options).unwrap();
    let sources: Vec<Vec<MemoryId>> = found.groups.iter().map(|group| group.source_ids.clone()).collect();
    assert_eq!(sources.len(), 1);
    assert_eq!((sources[0].len(), aggregates.iter().filter(|id| sources[0].contains(id)).count()), (2, 2));
    let pack = world.ns.gc_pack(found.plan_id, "1").unwrap();
    assert_eq!((pack.aggregates.len(), pack.aggregates[0].dup_count), (2, 2));
}

/// GC-23: a plan tells its time as text, so a summary that repeats it is certain to mean that time.
#[test]
fn gc_23_a_time_as_text_is_repaired() {
    let (world, ids) = old(3);
    let plan = plan(&world);
    let told = json!({ "start": "2025-01-01T00:00:00Z", "end": "2026-12-31T00:00:00Z" });
    let mut answer: Value = serde_json::from_str(&summary(&ids)).unwrap();
    answer["time_range"] = told;
    let done = commit(&world, &plan, "1", &answer.to_string()).unwrap();
    let repaired: Vec<&str> = done.repairs.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(repaired, ["/time_range/start", "/time_range/end"]);
    let other = json!({ "start": "soon", "end": 0 });
    let (world, ids) = old(3);
    let plan = self::plan(&world);
    let mut answer: Value = serde_json::from_str(&summary(&ids)).unwrap();
    answer["time_range"] = other;
    assert_eq!(code(commit(&world, &plan, "1", &answer.to_string())), "invalid_summary");
}

#[test]
fn v_303_a_commit_is_undone_as_one() {
    let (world, ids) = old(3);
    let link = world.ns.update(ids[0], Patch::new().tags(["kept"])).unwrap();
    assert_eq!(link.id, ids[0]);
    let plan = plan(&world);
    let done = commit(&world, &plan, "1", &summary(&ids)).unwrap();
    world.check();
    let undone = world.ns.undo(done.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.removed, undone.lost.len()), (3, 1, 0));
    assert_eq!(world.live(), ids);
    // The same commit again would promise a summary that is gone (GC-14).
    assert_eq!(code(commit(&world, &plan, "1", &summary(&ids))), "plan_closed");
    assert_eq!(world.live(), ids);
    assert!(world.tombstone(done.summary_memory_id).reason == TombstoneReason::Undone);
    assert_eq!(world.find(vector(1), 1), [ids[1]]);
    assert_eq!(world.ns.search(Query::text("Ghent2")).unwrap().hits[0].id, ids[2]);
    assert_eq!(world.row(ids[0]).tags, ["kept"]);
    assert_eq!(world.row(ids[0]).summarized_at, Some(world.now()));
    assert!(planned(&world, &GcOptions::default()).is_empty());
    world.advance("31d");
    assert_eq!(planned(&world, &GcOptions::default()).len(), 1);
}

/// Slices that are no whole days begin at midnight, so the last of a day is cut: an aggregate waits for the end of its own.
#[test]
fn aggregates_of_short_slices_wait_for_the_end_of_theirs() {
    let world = World::new();
    world.db.set_policy("agg.slice = '7h'", Syntax::Toml).unwrap();
    // From 07:00 to 14:00; counted from the epoch a slice would end at 11:00.
    world.advance("1h");
    world.advance("30m");
    for at in ["16d", "16d", "15d", "15d", "2h", "2h"] {
        let draft = Draft::new("Build failed on main").kind(Kind::Message).channel("ci");
        let mut draft = draft.created_at(world.ago(at));
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        world.add(draft);
    }
    let sources = || {
        let options = GcOptions { age_min: Some("0s".parse().unwrap()), ..GcOptions::default() };
        let found = world.ns.gc_plan(&options).unwrap();
        world.ns.gc_abort(found.plan_id, None, "it was a look").unwrap();
        found.groups.iter().map(|group| group.source_ids.len()).collect::<Vec<_>>()
    };
    assert_eq!(sources(), [2]);
    world.advance("3h");
    assert_eq!(sources(), [3]);
}
