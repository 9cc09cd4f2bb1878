//! Every number that a caller can set has a bound, and works up to it: those of the policy, and those of the options.

use std::time::Duration;

use crate::world::{World, axis, text};
use oubliette::exchange::{Import, LineReader};
use oubliette::maintain::{DedupOptions, MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Field};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Database, Draft, Effort, Error, ErrorKind, Kind, Mode, PageRequest, Query, Result, Scope, Span,
};
use serde_json::{Value, json};

/// The longest span of a policy.
const LONGEST: &str = "36525d";

/// A document that sets one key.
fn document(key: &str, value: &Value) -> String {
    key.rsplit('.').fold(value.clone(), |inner, part| json!({ part: inner })).to_string()
}

fn parsed(key: &str, value: &Value) -> Result<Policy> {
    Policy::parse(&document(key, value), Syntax::Json)
}

/// What is tried on a key, by the sort of its default: what may hold, and what never does.
fn tried(default: &Value) -> Option<(Vec<Value>, Vec<Value>)> {
    match default {
        Value::Number(number) if number.is_u64() => {
            let bad = vec![json!(-1), json!(u64::MAX), json!(i64::MIN), json!(0.5), json!(1e300), json!("1")];
            Some((vec![json!(0), json!(1)], bad))
        }
        Value::Number(_) => {
            let bad = vec![json!(f64::MAX), json!(f64::MIN), json!(1e9), json!(-2), json!("1")];
            Some((vec![json!(0), json!(-1), json!(f64::MIN_POSITIVE), json!(1)], bad))
        }
        Value::String(text) if text.parse::<Span>().is_ok() => {
            let bad = vec![json!("36526d"), json!("-1s"), json!(format!("{}ms", u64::MAX)), json!(7)];
            Some((vec![json!(0), json!("1ms"), json!(LONGEST)], bad))
        }
        _ => None,
    }
}

/// The largest number that a key takes, from what the error says of a larger one.
fn largest(key: &str, default: &Value) -> Option<Value> {
    let huge = if default.is_u64() { vec![json!(u32::MAX), json!(i64::MAX)] } else { vec![json!(1e9)] };
    let said = huge.iter().find_map(|huge| parsed(key, huge).err())?.to_string();
    let most = said.split(" to ").nth(1)?.split_whitespace().next()?;
    match default.is_u64() {
        true => most.parse::<u64>().ok().map(Value::from),
        false => most.parse::<f64>().ok().map(Value::from),
    }
}

/// Writes of every sort, searches of every sort, and every pass.
fn exercise(world: &World, turn: usize) {
    let (db, ns) = (&world.db, world.ns.name());
    let message = |text: &str, author: AuthorKind| {
        let mut draft = Draft::new(text).kind(Kind::Message);
        draft.fields.author_kind = Field::from(Some(author));
        draft
    };
    let drafts = vec![
        text(&format!("the harbour is open {turn}")).key("harbour").vector(axis(0)),
        text(&format!("the harbour is open, {turn}")).vector(axis(0)),
        text("the harbour is shut").vector(axis(turn % 4)),
        text(&format!("Gateway status: {turn} apps pending")).kind(Kind::Profile),
        text(&format!("Gateway status: {turn}0 apps pending")).kind(Kind::Profile),
        message("build failed on main", AuthorKind::Bot),
        message(&format!("build {turn} failed on main at last"), AuthorKind::Bot),
        message("good morning all", AuthorKind::Human),
        message("good morning all", AuthorKind::Human),
    ];
    db.namespace(ns).unwrap().add_all(drafts, &Default::default()).unwrap();
    db.namespace(ns).unwrap().push_snapshot(text("five facts"), world.now()).unwrap();
    for query in [
        Query::vector(axis(1)),
        Query::text("harbour open in January 2026"),
        Query::text("harbour").vector_of(axis(2)),
    ] {
        db.namespace(ns).unwrap().search(query.scope(Scope::Any)).unwrap();
    }
    db.stats().unwrap();
    db.namespace(ns).unwrap().memory_stats().unwrap();
    db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)).unwrap();
    db.maintain().unwrap();
    world.advance("1h");
}

/// A query by words and vector.
trait WithVector {
    fn vector_of(self, vector: [f32; crate::world::DIM]) -> Self;
}

impl WithVector for Query {
    fn vector_of(self, vector: [f32; crate::world::DIM]) -> Self {
        Query { vector: Some(vector.to_vec()), ..self }
    }
}

/// Each numeric key: what is out of bounds is refused with the key, the bound and the value, and at the extremes that it takes a
/// write, a search and every pass work.
#[test]
fn every_number_of_the_policy_works_up_to_its_bound() {
    let (mut keys, mut worked) = (0, 0);
    for (key, default) in Policy::default().entries() {
        // A cap of 0 and less is off: `cap.rs` tries it.
        if key == "sweeper.short_term_cap" {
            continue;
        }
        let Some((mut good, bad)) = tried(&default) else { continue };
        keys += 1;
        for value in &bad {
            match parsed(&key, value) {
                Err(Error::Policy { place, why }) => {
                    assert!(place == key && !why.is_empty(), "{key} = {value}: {place}: {why}");
                }
                other => panic!("{key} = {value} was taken: {other:?}"),
            }
        }
        if default.is_number() {
            let most = largest(&key, &default).unwrap_or_else(|| panic!("{key} names no bound"));
            let more = match default.is_u64() {
                true => json!(most.as_u64().unwrap() + 1),
                false => json!(most.as_f64().unwrap() * 1.001 + 0.001),
            };
            let why = parsed(&key, &more).expect_err(&key).to_string();
            assert!(why.contains("must be") && why.contains(&format!("(got {more})")), "{key}: {why}");
            good.push(most);
        }
        let world = World::new();
        for (turn, value) in good.iter().enumerate() {
            // Some bounds depend on another key, or leave 0 or 1 out.
            if parsed(&key, value).is_err() {
                continue;
            }
            world.db.set_policy(&document(&key, value), Syntax::Json).unwrap();
            exercise(&world, turn);
            worked += 1;
        }
    }
    assert!(keys > 45 && worked > 130, "{keys} keys, {worked} values");
}

/// NaN and infinity are no numbers of a document, and are refused in a policy whose fields were set by hand.
#[test]
fn what_is_no_number_is_refused() {
    for number in ["nan", "inf", "-inf"] {
        assert!(Policy::parse(&format!("budget.share = {number}"), Syntax::Toml).is_err());
    }
    let mut policy = Policy::default();
    policy.retention.tau_days = f64::NAN;
    assert_eq!(policy.validate().unwrap_err().kind(), ErrorKind::Policy);
}

#[track_caller]
fn refused<T>(answer: Result<T>, field: &str, value: &str) {
    match answer.map(drop) {
        Err(Error::Invalid { field: named, why, value: given }) => {
            assert_eq!((named.as_str(), given.as_str()), (field, value), "{why}");
            assert!(why.contains("must be"), "{why}");
        }
        other => panic!("{field} = {value}: {other:?}"),
    }
}

#[test]
fn numbers_of_maintenance_are_bounded() {
    let world = World::new();
    exercise(&world, 0);
    let run = |options: MaintainOptions| world.db.maintain_with(&options.passes(Pass::ALL));
    let live = MaintainOptions::live;
    let dedup = |dedup: DedupOptions| MaintainOptions { dedup: Some(dedup), ..MaintainOptions::live() };
    let near = |neighbours_per_anchor: u32| DedupOptions { neighbours_per_anchor, ..DedupOptions::default() };
    refused(run(MaintainOptions { threads: Some(0), ..live() }), "threads", "0");
    refused(run(MaintainOptions { threads: Some(1_025), ..live() }), "threads", "1025");
    refused(run(MaintainOptions { max_samples: Some(10_001), ..live() }), "max_samples", "10001");
    refused(run(MaintainOptions { batch_size: Some(0), ..live() }), "batch_size", "0");
    refused(run(MaintainOptions { batch_size: Some(u32::MAX), ..live() }), "batch_size", "4294967295");
    refused(run(dedup(near(1_000))), "neighbours_per_anchor", "1000");
    refused(run(dedup(near(u32::MAX))), "neighbours_per_anchor", "4294967295");
    let crowd = DedupOptions { min_cluster_size: 1_000_001, ..DedupOptions::default() };
    refused(run(dedup(crowd)), "min_cluster_size", "1000001");
    for similarity in [f64::NAN, 1.01, f64::INFINITY] {
        let options = DedupOptions { similarity, ..DedupOptions::default() };
        assert_eq!(run(dedup(options)).unwrap_err().kind(), ErrorKind::Invalid, "{similarity}");
    }
    let extremes = [
        MaintainOptions { budget: Some(Span::ZERO), ..live() },
        MaintainOptions { budget: Some(Duration::MAX.into()), ..live() },
        MaintainOptions { max_rows: Some(0), ..live() },
        MaintainOptions { max_rows: Some(1), ..live() },
        MaintainOptions { max_rows: Some(u64::MAX), ..live() },
        MaintainOptions { threads: Some(1), ..live() },
        MaintainOptions { threads: Some(1_024), ..live() },
        MaintainOptions { destroy_max: Some(0), ..live() },
        MaintainOptions { destroy_max: Some(u64::MAX), ..live() },
        MaintainOptions { max_samples: Some(0), ..live() },
        MaintainOptions { max_samples: Some(10_000), batch_size: Some(1), ..live() },
        MaintainOptions { batch_size: Some(1_000_000), ..live() },
        dedup(near(0)),
        dedup(near(1)),
        dedup(near(999)),
        dedup(DedupOptions { min_cluster_size: 1_000_000, similarity: -1.0, ..DedupOptions::default() }),
        dedup(DedupOptions { min_cluster_size: 1, similarity: f64::MIN_POSITIVE, ..DedupOptions::default() }),
    ];
    for (turn, options) in extremes.into_iter().enumerate() {
        run(options).unwrap();
        exercise(&world, turn);
    }
}

#[test]
fn numbers_of_a_question_are_bounded() {
    let world = World::new();
    exercise(&world, 0);
    let (db, ns) = (&world.db, world.ns.name());
    let query = || Query { vector: Some(axis(0).to_vec()), ..Query::text("harbour") };
    let ask = |query: Query| db.namespace(ns).unwrap().search(&query);
    let too_long = Span::from_millis(36_525 * 86_400_000 + 1);
    refused(ask(query().k(0)), "k", "0");
    refused(ask(query().k(1_001)), "k", "1001");
    refused(ask(query().k(usize::MAX)), "k", &usize::MAX.to_string());
    refused(ask(query().diversity(f32::NAN)), "diversity", "NaN");
    refused(ask(query().effort(Effort::Ef(0))), "ef", "0");
    refused(ask(query().effort(Effort::Ef(4_097))), "ef", "4097");
    refused(ask(query().effort(Effort::Recall(1.0))), "recall", "1");
    refused(ask(query().effort(Effort::Recall(f32::NAN))), "recall", "NaN");
    refused(ask(query().deadline(too_long)), "deadline", &too_long.to_string());
    refused(
        ask(query().deadline(Span::from_millis(i64::MAX))),
        "deadline",
        &Span::from_millis(i64::MAX).to_string(),
    );
    refused(
        db.namespace(ns).unwrap().list(&PageRequest { limit: 0, ..PageRequest::default() }),
        "limit",
        "0",
    );
    refused(
        db.namespace(ns).unwrap().list(&PageRequest { limit: 10_001, ..PageRequest::default() }),
        "limit",
        "10001",
    );
    for mode in Mode::ALL.iter().copied() {
        ask(query().mode(mode).k(1)).unwrap();
        ask(query().mode(mode).k(1_000).diversity(1.0)).unwrap();
        ask(query().mode(mode).effort(Effort::Ef(1)).deadline(Span::from_millis(0))).unwrap();
        ask(query().mode(mode).effort(Effort::Ef(4_096)).deadline("36525d".parse::<Span>().unwrap()))
            .unwrap();
        ask(query().mode(mode).effort(Effort::Recall(f32::MIN_POSITIVE))).unwrap();
        ask(query().mode(mode).effort(Effort::Recall(1.0 - f32::EPSILON))).unwrap();
    }
    for limit in [1, 10_000] {
        db.namespace(ns).unwrap().list(&PageRequest { limit, ..PageRequest::default() }).unwrap();
    }
    for tokens in [0, 1, usize::MAX] {
        db.namespace(ns).unwrap().briefing(&Scope::Any, tokens).unwrap();
    }
}

#[test]
fn numbers_of_opening_and_importing_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let too_long = Span::from_millis(i64::MAX);
    refused(Database::builder().dimensions(0).open(&path), "dimensions", "0");
    refused(Database::builder().dimensions(4_097).open(&path), "dimensions", "4097");
    refused(Database::builder().cache_bytes(0).open(&path), "cache_bytes", "0");
    refused(Database::builder().wait(too_long).open(&path), "wait", &too_long.to_string());
    refused(Database::builder().lease(too_long).open(&path), "lease", &too_long.to_string());
    assert!(!path.exists(), "nothing is made of options that are refused");
    let lasting: Span = "36525d".parse().unwrap();
    let builders = [
        Database::builder()
            .dimensions(1)
            .cache_bytes(1 << 20)
            .memory_budget_bytes(0)
            .wait(Span::from_millis(0)),
        Database::builder()
            .cache_bytes(usize::MAX)
            .memory_budget_bytes(usize::MAX)
            .wait(lasting)
            .lease(lasting),
        Database::builder().lease(Span::from_millis(0)),
    ];
    for (at, builder) in builders.into_iter().enumerate() {
        let db = builder.open(&path).unwrap();
        let ns = db.namespace("default").unwrap();
        ns.add(Draft::new(format!("row {at}")).vector([1.0])).unwrap();
        ns.search(&Query { vector: Some(vec![1.0]), ..Query::text("row") }).unwrap();
        db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)).unwrap();
        db.close().unwrap();
    }
    let db = Database::open(&path).unwrap();
    for (batch_rows, fits) in [(0, false), (1, true), (100_000, true), (100_001, false), (usize::MAX, false)]
    {
        let import = Import { batch_rows, ..Import::default() };
        let done = import.run(&db, LineReader::new(&b"{\"text\":\"a line\"}"[..], "lines"), &mut ());
        if fits { drop(done.unwrap()) } else { refused(done, "batch", &batch_rows.to_string()) }
    }
}
