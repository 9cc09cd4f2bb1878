//! Goals: what is set, listed and dropped, how they get vectors, what the journal keeps, and how they travel.

use crate::world::{DIM, World, axis, text};
use oubliette::embed::HashEmbedder;
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{Goal, GoalDraft, GoalId};
use oubliette::report::{CheckOptions, ErasedProbe, Op};
use oubliette::{Database, ErrorKind};

const TEXT: &str = "Ship the release before the winter holidays";

fn goal() -> GoalDraft {
    GoalDraft::new(TEXT)
}

fn texts(world: &World) -> Vec<String> {
    world.ns.goals().unwrap().into_iter().map(|goal| goal.text).collect()
}

#[test]
fn life_62_a_goal_is_set_listed_and_dropped() {
    let mut world = World::new();
    let first = world.ns.set_goal(goal().agent("builder").weight(2.0).vector(axis(0))).unwrap();
    assert_eq!((first.agent.as_deref(), first.weight, first.set_at), (Some("builder"), 2.0, world.now()));
    world.advance("1h");
    let second = world.ns.set_goal(GoalDraft::new("Keep the tests green")).unwrap();
    assert_eq!(
        (second.vector, texts(&world)),
        (None, vec![TEXT.to_owned(), "Keep the tests green".to_owned()])
    );
    // The same text of the same agent is the same goal; without a change nothing is written.
    let same = world.ns.set_goal(goal().agent("builder").weight(2.0).vector(axis(0))).unwrap();
    assert_eq!(same, first);
    let heavier = world.ns.set_goal(goal().agent("builder").weight(3.0)).unwrap();
    assert_eq!((heavier.id, heavier.weight, heavier.set_at), (first.id, 3.0, world.now()));
    assert_eq!(heavier.vector, first.vector, "a vector stays with its text");
    let other = world.ns.set_goal(goal()).unwrap();
    assert_ne!(other.id, first.id, "a goal of all is another than that of an agent");
    world.reopen();
    assert_eq!(world.ns.goals().unwrap().len(), 3);
    let dropped = world.ns.drop_goal(first.id).unwrap();
    assert_eq!(dropped.unwrap().text, TEXT);
    assert_eq!(world.ns.drop_goal(first.id).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(world.ns.goals().unwrap().len(), 2);
}

#[test]
fn a_goal_out_of_bounds_is_refused_and_writes_nothing() {
    let world = World::new();
    world.add(text("memory"));
    let refused = |draft: GoalDraft| match world.ns.set_goal(draft).unwrap_err() {
        oubliette::Error::Invalid { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(refused(GoalDraft::new("x".repeat(100_000))), "goal");
    assert_eq!(refused(goal().weight(f32::NAN)), "weight");
    assert_eq!(refused(goal().agent("a\0b")), "agent");
    world.ns.set_goal(goal().vector(axis(0))).unwrap();
    assert_eq!(refused(GoalDraft::new("another").vector([1.0; DIM + 1])), "vector");
    assert_eq!(refused(GoalDraft::new("another").vector([0.0; DIM])), "vector");
    assert_eq!(texts(&world), [TEXT]);
    for number in 1..1_000 {
        world.ns.set_goal(GoalDraft::new(format!("goal {number}"))).unwrap();
    }
    assert_eq!(refused(GoalDraft::new("one too many")), "goals");
    assert!(world.ns.set_goal(goal().weight(0.5)).is_ok(), "one that is there can change");
}

#[test]
fn the_pass_embed_gives_vectors_to_goals_that_wait() {
    let world = World::new();
    world.ns.set_goal(goal()).unwrap();
    let embed = || {
        let options = MaintainOptions::live().passes([Pass::Embed]);
        let report = world.ns.maintain_with(&options).unwrap();
        (report.passes[0].planned, report.passes[0].changed)
    };
    assert_eq!(embed(), (1, 0), "without an embedder it waits");
    world.db.use_embedder(HashEmbedder::new()).unwrap();
    assert_eq!(embed(), (1, 1));
    assert_eq!(embed(), (0, 0));
    let of_hash = world.ns.goals().unwrap()[0].vector.clone().unwrap();
    assert!(world.ns.set_goal(GoalDraft::new("Keep the tests green")).unwrap().vector.is_some());
    // A vector of another model says nothing beside those of the present one.
    world.db.reembed(HashEmbedder::with_dimensions(64).unwrap()).unwrap();
    let vectors: Vec<usize> =
        world.ns.goals().unwrap().iter().map(|goal| goal.vector.as_ref().unwrap().len()).collect();
    assert_eq!((of_hash.len(), vectors), (256, vec![64, 64]));
    world.check();
}

#[test]
fn the_journal_tells_of_goals_and_keeps_no_text_of_one_that_is_dropped() {
    let world = World::new();
    let goal = world.ns.set_goal(goal().agent("builder").vector(axis(0))).unwrap();
    let told = |world: &World| {
        let history = world.ns.history(goal.id.to_string()).unwrap().events;
        let ops: Vec<Op> = history.iter().map(|row| row.op).collect();
        (ops, format!("{history:?}"))
    };
    let (ops, journal) = told(&world);
    assert_eq!(ops, [Op::SetGoal]);
    assert!(journal.contains(TEXT));
    let export = exported(&world.db);
    world.ns.drop_goal(goal.id).unwrap();
    let (ops, journal) = told(&world);
    assert_eq!(ops, [Op::SetGoal, Op::DropGoal]);
    assert!(!journal.contains(TEXT) && journal.contains("hmac:"), "{journal}");
    let feed: Vec<Op> = world.ns.changes(0, 10).unwrap().changes.iter().map(|note| note.op).collect();
    assert_eq!(feed, [Op::SetGoal, Op::DropGoal]);
    // After a copy no byte of the text or the vector is left, and the probe finds one that is.
    world.db.compact().unwrap();
    assert!(String::from_utf8(export).unwrap().contains(TEXT));
    let erased =
        vec![ErasedProbe { texts: vec![TEXT.to_owned()], vector: Some(axis(0).to_vec()), keys: Vec::new() }];
    let options = CheckOptions { deep: true, erased };
    assert!(world.db.check(&options).unwrap().ok);
}

/// LIFE-62: what is kept of the goals of an agent once they are dropped has not its name.
#[test]
fn no_byte_of_the_name_of_an_agent_outlives_its_goals_and_its_memories() {
    const AGENT: &str = "qzagentname";
    let world = World::new();
    let said = world.add(text("what the agent said").agent_id(AGENT)).id;
    let there = world.ns.set_goal(goal().agent(AGENT)).unwrap();
    world.ns.drop_goal(there.id).unwrap();
    world.forget_id(said);
    assert!(!world.has_bytes_of(AGENT));
    // The same where a goal went along to another namespace.
    let there = world.ns.set_goal(goal().agent(AGENT)).unwrap();
    world.db.move_namespace("default", "one", &RenamespaceOptions::default()).unwrap();
    assert!(world.has_bytes_of(AGENT), "a goal has it");
    world.db.namespace("one").unwrap().drop_goal(there.id).unwrap();
    assert!(!world.has_bytes_of(AGENT));
    world.check();
}

#[test]
fn a_goal_that_is_there_is_no_residue_of_a_memory_that_said_the_same() {
    let world = World::new();
    let id = world.add(text(TEXT).vector([0.1, 0.2, 0.3, 0.4])).id;
    world.ns.set_goal(goal().vector([0.1, 0.2, 0.3, 0.4])).unwrap();
    world.forget_id(id);
    world.db.compact().unwrap();
    let vector = Some(vec![0.1, 0.2, 0.3, 0.4]);
    let erased = vec![ErasedProbe { texts: vec![TEXT.to_owned()], vector, keys: Vec::new() }];
    let report = world.db.check(&CheckOptions { deep: true, erased }).unwrap();
    assert!(report.ok, "{:?}", report.findings);
}

fn exported(db: &Database) -> Vec<u8> {
    exported_with(db, VectorsTo::Lines)
}

fn exported_with(db: &Database, vectors: VectorsTo<'_, std::io::Empty>) -> Vec<u8> {
    let mut lines = Vec::new();
    let export = Export { all_states: true, ..Export::new(db.namespaces().unwrap()) };
    export.write(&db.snapshot().unwrap(), &mut lines, "lines", vectors).unwrap();
    lines
}

#[test]
fn an_export_carries_goals_and_an_import_puts_them_back() {
    let world = World::new();
    world.add(text("memory").vector([0.3, -0.2, 0.7, 0.1]));
    world.ns.set_goal(goal().agent("builder").weight(0.7).vector([0.1, 0.2, 0.3, 0.45])).unwrap();
    world.advance("1d");
    world.ns.set_goal(GoalDraft::new("Keep the tests green")).unwrap();
    let lines = exported(&world.db);
    assert_eq!(String::from_utf8_lossy(&lines).matches("\"goal\":{").count(), 2);
    let other = World::new();
    other.advance("1d");
    for _ in 0..2 {
        Import::default().run(&other.db, LineReader::new(lines.as_slice(), "lines"), &mut ()).unwrap();
        assert_eq!(
            String::from_utf8(exported(&other.db)).unwrap(),
            String::from_utf8(lines.clone()).unwrap()
        );
    }
    // The space is that of the vector, so it goes with it (MODEL-48).
    let bare = String::from_utf8(exported_with(&world.db, VectorsTo::Nowhere)).unwrap();
    assert_eq!((bare.matches("\"goal\":{").count(), bare.matches("embedding_space").count()), (2, 0));
    // What a file says of a goal is held to the bounds of one that is set.
    let ahead = world.ahead("10d");
    for (line, field) in [
        (line(&Goal { weight: 11.0, ..sound() }), "weight"),
        (line(&Goal { text: String::new(), ..sound() }), "goal"),
        (line(&Goal { vector: Some(vec![1.0]), ..sound() }), "vector"),
        (line(&Goal { set_at: ahead, ..sound() }), "set_at"),
    ] {
        let why = Import::default().run(&other.db, LineReader::new(line.as_slice(), "lines"), &mut ());
        assert!(why.unwrap_err().to_string().contains(field), "{field}");
    }
    assert_eq!(other.ns.goals().unwrap().len(), 2);
}

fn sound() -> Goal {
    Goal {
        id: GoalId::from_bytes([7; 16]),
        agent: None,
        text: "x".to_owned(),
        weight: 1.0,
        set_at: crate::world::ms(0),
        vector: None,
        embedding_space: None,
    }
}

fn line(goal: &Goal) -> Vec<u8> {
    let mut line = Vec::new();
    oubliette::exchange::write_goal(&"default".parse().unwrap(), goal, &mut line);
    line
}

#[test]
fn goals_go_along_when_a_namespace_moves_and_go_with_it_when_it_is_dropped() {
    let world = World::new();
    let how = RenamespaceOptions::default();
    world.ns.set_goal(goal().vector(axis(0))).unwrap();
    world.db.move_namespace("default", "one", &how).unwrap();
    let two = world.db.namespace("two").unwrap();
    two.add(text("of two").metadata(serde_json::json!({ "user_id": "ann" }))).unwrap();
    world.db.move_namespace("one", "two", &how).unwrap();
    assert_eq!(two.goals().unwrap().len(), 1);
    world.check();
    // A split takes memories apart; what all are after stays.
    world.db.split_namespace("two", &[], &how).unwrap();
    let counts = |name: &str| world.db.namespace(name).unwrap().goals().unwrap().len();
    assert_eq!((counts("two"), counts("ann")), (1, 0));
    world.db.compact().unwrap();
    world.db.reindex().unwrap();
    assert_eq!(counts("two"), 1);
    world.db.drop_namespace("two").unwrap();
    assert_eq!(counts("two"), 0);
    world.check();
}
