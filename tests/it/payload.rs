//! What a memory carries beside its text: it is given back as it was, and it goes wherever its memory goes.

use std::io::Cursor;

use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Payload;
use oubliette::report::CheckOptions;
use oubliette::{Database, Decision, Draft, Error, ErrorKind, Kind, NamespaceName, Patch, State};
use serde_json::json;

use crate::world::{World, axis, text};

/// One byte more than a payload may have.
const TOO_LONG: usize = (1 << 20) + 1;

fn status(code: u16) -> Payload {
    Payload::Json(json!({ "status": code, "body": "what the gateway said ".repeat(40) }))
}

#[track_caller]
fn carries(world: &World, name: &str, payload: Option<Payload>) {
    assert_eq!(world.ns.payload(name).unwrap(), payload, "{name}");
    if let Some(memory) = world.ns.get(name).unwrap() {
        assert_eq!(memory.has_payload, payload.is_some(), "{name}");
        assert_eq!(memory.payload, None, "it is read when it is asked for");
    }
}

#[test]
fn a_payload_is_given_back_as_it_was() {
    let mut world = World::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(TOO_LONG - 1).collect();
    world.add(text("json").key("json").payload(json!({"a": [1, 2.5, null], "é": "\u{0}"})));
    world.add(text("bytes").key("bytes").payload(bytes.clone()));
    world.add(text("empty").key("empty").payload(Vec::new()));
    world.add(text("none").key("none"));
    world.check();
    for reopened in [false, true] {
        if reopened {
            world.reopen();
        }
        carries(&world, "json", Some(Payload::Json(json!({"a": [1, 2.5, null], "é": "\u{0}"}))));
        carries(&world, "bytes", Some(Payload::Bytes(bytes.clone())));
        carries(&world, "empty", Some(Payload::Bytes(Vec::new())));
        carries(&world, "none", None);
    }
    assert!(matches!(world.ns.payload("nobody"), Err(Error::NotFound { .. })));
    let before = world.db.stats().unwrap().bytes.file;
    world.add(text("repeats").key("repeats").payload(json!("again and again ".repeat(60_000))));
    world.db.compact().unwrap();
    assert!(world.db.stats().unwrap().bytes.file < before + 100_000, "compressed");
    carries(&world, "repeats", Some(Payload::Json(json!("again and again ".repeat(60_000)))));
    world.check();
}

#[test]
fn a_payload_has_bounds() {
    let world = World::new();
    let deep = |levels: usize| (0..levels - 1).fold(json!(1), |inner, _| json!([inner]));
    let refused = |payload: Payload| {
        for answer in [
            world.ns.add(text("t").key("t").payload(payload.clone())).map(drop),
            world.ns.update("there", Patch { payload: Some(Some(payload)), ..Patch::default() }).map(drop),
        ] {
            let why = answer.unwrap_err();
            assert_eq!(why.kind(), ErrorKind::Invalid);
            assert!(why.to_string().starts_with("payload: "), "{why}");
        }
    };
    world.add(text("there").key("there").payload(vec![7]));
    refused(Payload::Bytes(vec![0; TOO_LONG]));
    refused(Payload::Json(json!("x".repeat(TOO_LONG - 2))));
    refused(Payload::Json(json!(null)));
    refused(Payload::Json(deep(33)));
    assert!(world.ns.get("t").unwrap().is_none());
    carries(&world, "there", Some(Payload::Bytes(vec![7])));
    world.add(text("longest").payload(json!("x".repeat(TOO_LONG - 3))));
    world.add(text("deepest").payload(deep(32)));
}

#[test]
fn updates_replace_a_payload_and_new_text_drops_it() {
    let world = World::new();
    let first = world.add(text("the call").key("k").payload(status(200))).id;
    assert_eq!(world.add(text("the call").key("k").payload(status(200))).decision, Decision::Unchanged);
    assert_eq!(
        world.add(text("the call").key("k")).decision,
        Decision::Unchanged,
        "not given is not changed"
    );
    carries(&world, "k", Some(status(200)));
    assert_eq!(world.add(text("the call").key("k").payload(status(404))).decision, Decision::Updated);
    carries(&world, "k", Some(status(404)));
    let change = |payload| Patch { payload: Some(payload), ..Patch::default() };
    assert_eq!(world.ns.update("k", change(None)).unwrap().decision, Decision::Updated);
    carries(&world, "k", None);
    world.ns.update(first, change(Some(status(500)))).unwrap();
    carries(&world, "k", Some(status(500)));
    let told = world.ns.history("k").unwrap().events;
    let told = told.iter().rev().flat_map(|row| &row.deltas).find(|delta| delta.field == "payload").unwrap();
    assert!(told.before.is_boolean() && told.after.is_number(), "sizes, not content: {told:?}");

    world.add(text("another call").key("k"));
    carries(&world, "k", None);
    assert_eq!(world.ns.payload(first).unwrap(), Some(status(500)), "the old version keeps it");
    world.ns.update("k", Patch { text: Some("a third".into()), ..change(Some(status(201))) }).unwrap();
    carries(&world, "k", Some(status(201)));
    world.check();
}

#[test]
fn a_memory_with_a_payload_is_a_record_of_its_own() {
    let world = World::new();
    world.add(text("said twice").key("a").payload(status(1)));
    assert_eq!(world.add(text("said twice").key("b")).decision, Decision::Stored, "absorbs nothing");
    assert_eq!(
        world.add(text("said twice").payload(status(1))).decision,
        Decision::Stored,
        "is not absorbed"
    );
    assert_eq!(world.add(text("said twice").key("c")).decision, Decision::Reinforced, "by the plain one");
    for apps in [4, 4, 7] {
        let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        world.add(draft.payload(status(apps)).vector(axis(0)));
    }
    let passes = [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates];
    let done = world.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
    assert!(done.passes.iter().all(|pass| pass.changed == 0), "{:?}", done.passes);
    world.check();
}

#[test]
fn a_payload_goes_with_its_memory() {
    let world = World::new();
    let secret = "the payload that must go".repeat(3);
    world.add(text("a call").key("k").payload(json!({"secret": secret})).vector(axis(0)));
    world.add(text("a newer call").key("k").payload(secret.clone().into_bytes()));
    world.add(text("other").key("other").payload(status(1)));
    world.ns.rename_key("k", "renamed").unwrap();
    carries(&world, "renamed", Some(Payload::Bytes(secret.clone().into_bytes())));
    world.ns.forget("renamed").unwrap();
    assert_eq!(world.ns.payload("renamed").unwrap(), None, "a tombstone carries nothing");
    world.check();
    world.db.compact().unwrap();
    let file = std::fs::read(world.path()).unwrap();
    assert!(!file.windows(16).any(|window| secret.as_bytes().starts_with(window)));
    carries(&world, "other", Some(status(1)));
    world.db.drop_namespace(world.ns.name()).unwrap();
    world.check();
}

#[test]
fn what_maintenance_removes_comes_back_with_its_payload() {
    let world = World::new();
    let day = "2026-01-02T0";
    for hour in [1, 2] {
        let draft = text(&format!("snapshot {hour}")).kind(Kind::Snapshot).agent("profile-mgr");
        let draft = draft.key(format!("s{hour}")).created_at(format!("{day}{hour}:00:00Z").parse().unwrap());
        world.ns.add(draft.payload(status(hour))).unwrap();
    }
    let gone = world.ns.look_up("s1", false).unwrap().into_memory().unwrap();
    assert_eq!(gone.state, State::Limbo, "a later snapshot of the day came");
    assert_eq!(world.ns.payload(gone.id).unwrap(), Some(status(1)));
    world.check();
    world.ns.restore(gone.id).unwrap();
    assert_eq!(world.ns.payload(gone.id).unwrap(), Some(status(1)));
    world.check();
}

#[test]
fn a_payload_is_exported_and_comes_back() {
    let world = World::new();
    world.add(text("json").key("json").payload(json!({"a": [1, "é"]})));
    world.add(text("bytes").key("bytes").payload(vec![0, 159, 146, 150]));
    world.add(text("revised").key("k").payload(status(200)));
    world.add(text("revised again").key("k"));
    world.add(text("none").key("none"));
    let lines = |db: &Database| {
        let mut out = Vec::new();
        let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
        export.write(&db.snapshot().unwrap(), &mut out, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        String::from_utf8(out).unwrap()
    };
    let before = lines(&world.db);
    assert!(before.contains(r#""payload":{"a":[1,"é"]}"#), "{before}");
    assert!(before.contains(r#""payload_base64":"AJ+Slg==""#), "{before}");
    assert_eq!(before.matches("\"payload").count(), 3);
    let other = World::new();
    Import::default().run(&other.db, LineReader::new(before.as_bytes(), "lines"), &mut ()).unwrap();
    assert_eq!(lines(&other.db), before);
    carries(&other, "json", Some(Payload::Json(json!({"a": [1, "é"]}))));
    carries(&other, "bytes", Some(Payload::Bytes(vec![0, 159, 146, 150])));
    other.check();
}

#[test]
fn a_batch_reads_its_payloads() {
    let world = World::new();
    let name: NamespaceName = world.ns.name().clone();
    world
        .db
        .batch(|batch| {
            batch.add(&name, Draft::new("in a batch").key("k").payload(status(1)))?;
            assert_eq!(batch.payload(&name, "k")?, Some(status(1)));
            assert!(batch.get(&name, "k")?.unwrap().has_payload);
            Ok(())
        })
        .unwrap();
    carries(&world, "k", Some(status(1)));
    assert!(world.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok);
}
