//! What others write between a question and the write that follows from its answer, and whose vector a memory has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::world::{CountingIds, DIM, World, at, axis, text};
use oubliette::clock::IdSource;
use oubliette::embed::{Embedder, HashEmbedder, embedder_fn};
use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::Syntax;
use oubliette::{
    Database, Draft, Effort, Error, Filter, Forget, Kind, Namespace, Patch, Query, Result, Scope, Time,
};
use serde_json::json;

/// Ids of which the next one waits, once it `is_armed`, in the transaction that asks for it.
struct Waiting {
    ids: CountingIds,
    is_armed: Arc<AtomicBool>,
    asked: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl IdSource for Waiting {
    fn next(&self, now: Time) -> oubliette::Result<[u8; 16]> {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.asked.lock().unwrap().send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
        self.ids.next(now)
    }
}

/// A change that is answered before a forget by filter begins to write is not lost to that forget.
#[test]
fn a_forget_by_filter_asks_again_what_was_written_meanwhile() {
    let world = World::new();
    let (asked, has_asked) = channel();
    let (lets_go, go_on) = channel();
    let is_armed = Arc::new(AtomicBool::new(false));
    let ids = Waiting {
        ids: CountingIds::default(),
        is_armed: Arc::clone(&is_armed),
        asked: Mutex::new(asked),
        go_on: Mutex::new(go_on),
    };
    let folder = tempfile::tempdir().unwrap();
    let db = world.builder().ids(ids).open(folder.path().join("other.oub")).unwrap();
    let team = db.namespace("team").unwrap();
    let state = |state: &str| json!({ "state": state });
    for key in ["changed", "kept"] {
        team.add(text(&format!("{key} here")).key(key).metadata(state("old"))).unwrap();
    }
    let filter = Filter::parse(&json!({ "metadata.state": "old" }).to_string()).unwrap();
    std::thread::scope(|threads| {
        is_armed.store(true, Ordering::SeqCst);
        // A draft of the key with other metadata: the transaction waits in the midst of it.
        let change = threads.spawn(|| {
            team.add(text("changed here, later").key("changed").metadata(state("new"))).unwrap();
        });
        has_asked.recv().unwrap();
        let forget = threads.spawn(|| {
            let what = Forget::Filter { filter, scope: Scope::default(), visible_only: true, all: false };
            team.forget(what).unwrap()
        });
        // The forget finds both in the state before, and waits for its turn to write.
        std::thread::sleep(Duration::from_millis(300));
        lets_go.send(()).unwrap();
        change.join().unwrap();
        assert_eq!(forget.join().unwrap().forgotten, 1);
    });
    assert_eq!(team.get("changed").unwrap().map(|row| row.metadata), Some(state("new")));
    assert!(team.get("kept").unwrap().is_none());
    db.check(&oubliette::report::CheckOptions::default()).unwrap();
}

/// An embedder that forgets a memory while it works.
struct Forgetting {
    team: Arc<OnceLock<Namespace>>,
}

impl Embedder for Forgetting {
    fn id(&self) -> &str {
        "forgetting"
    }

    fn dimensions(&self) -> usize {
        HashEmbedder::new().dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        if let Some(team) = self.team.get() {
            team.forget(Forget::names(["a"])).unwrap();
        }
        HashEmbedder::new().embed(texts)
    }
}

/// Two reports of one form, which a pass makes one memory of.
fn report(apps: u32, key: &str) -> Draft {
    Draft::new(format!("Gateway status: {apps} apps")).kind(Kind::Profile).key(key)
}

fn collapse(world: &World) {
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.live().len(), 1);
}

/// The text of the first writer goes while its vector is worked out, and the row says that of the other.
#[test]
fn a_vector_of_a_text_that_is_gone_is_not_written() {
    let world = World::new();
    for (apps, key) in [(11, "a"), (12, "b")] {
        world.add(report(apps, key));
        world.advance("1m");
    }
    collapse(&world);
    assert_eq!(world.row(world.live()[0]).row_text, "Gateway status: 11 apps");
    let team = Arc::new(OnceLock::new());
    world.db.use_embedder(Forgetting { team: Arc::clone(&team) }).unwrap();
    team.set(world.ns.clone()).unwrap();
    let embed = || world.db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    embed();
    assert_eq!(world.row("b").row_text, "Gateway status: 12 apps");
    assert!(world.row("b").pending, "it waits for the vector of its own text");
    embed();
    let own = HashEmbedder::new().embed(&["Gateway status: 12 apps"]).unwrap().remove(0);
    let found = world.ns.search(Query::vector(own).effort(Effort::Exact)).unwrap();
    assert!(found.hits[0].score > 0.999, "{found:?}");
    world.check();
}

/// Of a near text that a memory takes in the memory takes no vector.
#[test]
fn a_memory_without_a_vector_takes_none_of_another_text() {
    let world = World::new();
    world.db.set_policy("write.op_match = true", Syntax::Toml).unwrap();
    let first = world.add(report(11, "a")).id;
    assert_eq!(world.add(report(12, "b").vector(axis(0))).id, first);
    assert!(world.row(first).pending && world.find(axis(0), 1).is_empty());
    world.forget(&["b"]);
    assert_eq!(world.add(report(11, "c").vector(axis(1))).id, first);
    assert_eq!(world.find(axis(1), 1), [first], "of the same text it does");
    world.check();
}

/// Who leaves a merged memory whose own row is gone takes no vector of another text along.
#[test]
fn who_leaves_a_merged_memory_takes_no_vector_of_another_text() {
    let world = World::new();
    for (apps, key, degrees) in [(11, "a", 0.0), (12, "b", 60.0)] {
        world.add(report(apps, key).vector(at(degrees)));
        world.advance("1m");
    }
    collapse(&world);
    world.advance("400d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    let mut patch = Patch::default();
    patch.fields.importance = Some(0.9);
    world.ns.update("b", patch).unwrap();
    let left = world.row("b");
    assert_eq!((left.row_text.as_str(), left.pending), ("Gateway status: 12 apps", true));
    world.forget(&["a"]);
    assert!(world.find([1.0, 0.0, 0.0, 0.0], 2).is_empty(), "the vector of what was forgotten");
    world.check();
}

/// The model of a file changes while the one before works out the vector of a summary: the summary has that of the new one.
#[test]
fn a_summary_has_no_vector_of_a_model_that_was_left_meanwhile() {
    let say =
        |at: usize| move |texts: &[&str]| Ok(texts.iter().map(|_| axis(at).to_vec()).collect::<Vec<_>>());
    // It answers the probe, and then is away for a while: no source has a vector of it yet.
    let answers = Arc::new(AtomicBool::new(true));
    let of_other = Arc::clone(&answers);
    let other = move || {
        let answers = Arc::clone(&of_other);
        let away = || Error::Unavailable { why: "the model is away".to_owned() };
        let of = move |texts: &[&str]| match answers.swap(false, Ordering::SeqCst) {
            true => say(1)(texts),
            false => Err(away()),
        };
        embedder_fn("other", DIM, of).unwrap()
    };
    let world = World::new();
    let leaves: Arc<Mutex<Option<Database>>> = Arc::default();
    let waits = Arc::clone(&leaves);
    let first = embedder_fn("first", DIM, move |texts: &[&str]| {
        if let Some(db) = waits.lock().unwrap().take() {
            db.reembed(other()).unwrap_err();
        }
        say(0)(texts)
    });
    world.db.use_embedder(first.unwrap()).unwrap();
    let old = world.now().minus("400d".parse().unwrap());
    for who in ["Ann", "Bob"] {
        let text = format!(
            "{who}: The boiler broke again. There is no hot water for any of us here. Should we buy one?"
        );
        world.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(old));
    }
    *leaves.lock().unwrap() = Some(world.db.clone());
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!((done.committed, leaves.lock().unwrap().is_none()), (1, true), "{done:?}");
    world.db.reembed(embedder_fn("other", DIM, say(1)).unwrap()).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    let found = world.ns.search(Query::vector(axis(1).to_vec()).effort(Effort::Exact).k(10)).unwrap();
    assert!(!found.hits.is_empty() && found.hits.iter().all(|hit| hit.score > 0.99), "{found:?}");
    world.check();
}
