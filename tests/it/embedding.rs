//! Texts that come without a vector get one on every way in, where the handle has an embedder (MODEL-58).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::world::World;
use oubliette::embed::{Embedder, HashEmbedder};
use oubliette::exchange::{Import, LineReader};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::{AuthorKind, Field};
use oubliette::policy::Syntax;
use oubliette::{Draft, Error, Kind, Mode, Patch, Query, Result, Scope, Time, WriteOptions};

/// Counts each text that it is given, and tells whether it worked while a transaction was open.
#[derive(Clone, Default)]
struct Watching {
    texts: Arc<Mutex<BTreeMap<String, usize>>>,
    inside: Arc<AtomicBool>,
    broken: Arc<AtomicBool>,
}

impl Embedder for Watching {
    fn id(&self) -> &str {
        "watching"
    }

    fn dimensions(&self) -> usize {
        HashEmbedder::new().dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        assert!(
            !self.inside.load(Ordering::SeqCst),
            "a model works while the transaction is open: {texts:?}"
        );
        for text in texts {
            *self.texts.lock().unwrap().entry((*text).to_owned()).or_default() += 1;
        }
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::Embedding { embedder: self.id().to_owned(), why: "told to".to_owned() });
        }
        HashEmbedder::new().embed(texts)
    }
}

impl Watching {
    fn calls(&self) -> usize {
        self.texts.lock().unwrap().values().sum()
    }

    /// Forgets what it was asked.
    fn rest(&self) {
        self.texts.lock().unwrap().clear();
    }
}

fn watched() -> (World, Watching) {
    let (world, watching) = (World::new(), Watching::default());
    world.db.use_embedder(watching.clone()).unwrap();
    (world, watching)
}

fn pending(world: &World) -> u64 {
    world.db.stats().unwrap().pending
}

fn new_text(text: &str) -> Patch {
    Patch { text: Some(text.to_owned()), ..Patch::default() }
}

fn message(text: &str, author: AuthorKind) -> Draft {
    let mut draft = Draft::new(text).kind(Kind::Message);
    draft.fields.author_kind = Field::from(Some(author));
    draft.fields.channel = Field::from(Some("ops".to_owned()));
    draft
}

/// V-306.
#[test]
fn v306_every_way_in_embeds_and_a_text_once() {
    let (world, watching) = watched();
    let (db, ns) = (&world.db, &world.ns);
    world.add(Draft::new("Ann prefers green tea").key("ann"));
    db.batch(|batch| {
        watching.inside.store(true, Ordering::SeqCst);
        batch.add(ns.name(), Draft::new("Ben keeps bees").key("ben"))?;
        batch.add(ns.name(), Draft::new("Cat paints boats").key("cat"))?;
        batch.update(ns.name(), "cat", new_text("Cat paints houses"))?;
        // A text that is there already, in a row of its own.
        batch.add_with(
            ns.name(),
            Draft::new("Ann prefers green tea"),
            &WriteOptions { no_dedup: true, ..WriteOptions::default() },
        )?;
        watching.inside.store(false, Ordering::SeqCst);
        Ok(())
    })
    .unwrap();
    ns.update("ann", new_text("Ann prefers black coffee")).unwrap();
    ns.update("ann", new_text("Ann prefers black coffee")).unwrap();
    let lines = "{\"text\":\"Dan grows roses\",\"key\":\"dan\"}\n{\"text\":\"Ben keeps bees\",\"key\":\"two\"}\n\
                 {\"text\":\"Dan grows roses\",\"key\":\"dan\",\"tags\":[\"garden\"]}\n";
    Import::default().run(db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).unwrap();
    let at: Time = "2026-01-03T12:00:00Z".parse().unwrap();
    ns.push_snapshot(Draft::new("four people are known"), at).unwrap();
    assert_eq!(pending(&world), 0, "V-306");
    let asked = watching.texts.lock().unwrap().clone();
    assert!(asked.len() == 7 && asked.values().all(|times| *times == 1), "V-306: {asked:?}");
    for text in ["Ben keeps bees", "Cat paints houses", "Ann prefers black coffee", "Dan grows roses"] {
        let found = ns.search(Query::text(text).mode(Mode::Vector)).unwrap();
        let best =
            db.snapshot().unwrap().namespace(ns.name()).unwrap().text(found.hits[0].id).unwrap().unwrap();
        assert_eq!(best, text);
    }
}

/// A revision through a key and one by id have the vector of the new text, not that of the old one and not none.
#[test]
fn an_update_has_the_vector_of_its_text() {
    let (world, watching) = watched();
    let (_db, ns) = (&world.db, &world.ns);
    let row = world.add(Draft::new("the door is green").key("door"));
    let revised = ns.update("door", new_text("the door is red")).unwrap();
    assert_ne!(revised.id, row.id);
    let by_id = ns.update(revised.id.to_string(), new_text("the door is blue")).unwrap();
    assert_eq!(pending(&world), 0);
    let hits = ns.search(Query::text("the door is blue").mode(Mode::Vector)).unwrap().hits;
    assert_eq!((hits[0].id, hits[0].signals.vector.map(|cosine| cosine > 0.999)), (by_id.id, Some(true)));
    watching.rest();
    // Fields alone, the same text, or a vector that comes with it: nothing to embed.
    let fields = Patch { expiry: Some(Expiry::Never), ..new_text("the door is blue") };
    ns.update("door", fields).unwrap();
    ns.update("nobody", new_text("nothing")).unwrap_err();
    ns.update("door", new_text(&"long ".repeat(400_000))).unwrap_err();
    assert_eq!(watching.calls(), 0);
    // A message is embedded by its normal form, by update as by add.
    let said = world.add(message("deploy 2026-01-02 10:00:00 done", AuthorKind::Bot).key("m"));
    ns.update("m", new_text("deploy 2026-01-02 11:00:00 failed")).unwrap();
    assert_ne!(world.row("m").id, said.id);
    let asked: Vec<String> = watching.texts.lock().unwrap().keys().cloned().collect();
    assert_eq!(asked, ["deploy <ts> done", "deploy <ts> failed"]);
    assert_eq!(pending(&world), 0);
}

/// Where one of several holders says something new, the row that it gets has a vector too.
#[test]
fn copy_on_write_has_a_vector() {
    let (world, watching) = watched();
    world.add(Draft::new("the door is green").key("a"));
    world.add(Draft::new("the door is green").key("b"));
    world.ns.update("b", new_text("the door is red")).unwrap();
    world.add(Draft::new("the door is grey").key("a"));
    assert_eq!((pending(&world), watching.calls()), (0, 3));
}

/// Without an embedder texts are found by their words and count as pending.
#[test]
fn without_an_embedder_texts_wait() {
    let world = World::new();
    let (db, ns) = (&world.db, &world.ns);
    world.add(Draft::new("Ann prefers green tea").key("ann"));
    ns.update("ann", new_text("Ann prefers coffee")).unwrap();
    db.batch(|batch| batch.add(ns.name(), Draft::new("Ben keeps bees"))).unwrap();
    assert_eq!(pending(&world), 3, "the superseded one waits too");
    assert_eq!(ns.search(Query::text("coffee")).unwrap().hits.len(), 1);
}

/// An embedder that fails is asked once for each text, and costs no memory.
#[test]
fn an_embedder_that_fails_is_asked_once_for_a_text() {
    let (world, watching) = watched();
    let (db, ns) = (&world.db, &world.ns);
    world.add(Draft::new("Ann prefers green tea").key("ann"));
    watching.rest();
    watching.broken.store(true, Ordering::SeqCst);
    world.add(Draft::new("Ben keeps bees").key("ben"));
    ns.update("ann", new_text("Ann prefers coffee")).unwrap();
    db.batch(|batch| batch.add(ns.name(), Draft::new("Cat paints boats"))).unwrap();
    for text in ["Ben keeps bees", "Ann prefers coffee", "Cat paints boats"] {
        assert_eq!(watching.texts.lock().unwrap().get(text), Some(&1), "{text}");
    }
    assert_eq!(pending(&world), 3);
    watching.broken.store(false, Ordering::SeqCst);
    db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    assert_eq!(pending(&world), 0);
}

/// The first vectors of a file come by an update: they open the space of the embedder, and no caller's.
#[test]
fn an_update_opens_the_space_of_the_embedder() {
    let world = World::new();
    world.add(Draft::new("Ann prefers green tea").key("ann"));
    world.db.suggest_embedder(Watching::default()).unwrap();
    world.ns.update("ann", new_text("Ann prefers coffee")).unwrap();
    assert_eq!(world.db.embedding_space().unwrap().unwrap().name, "watching");
}

/// DEDUP-40: the memory of an aggregate has the vector of its first message, unless the policy says that it has none.
#[test]
fn agg_embed_says_whether_an_aggregate_has_a_vector() {
    for embed in [true, false] {
        let (world, watching) = watched();
        let (db, ns) = (&world.db, &world.ns);
        db.set_policy(&format!("agg.embed = {embed}"), Syntax::Toml).unwrap();
        for _ in 0..3 {
            world.add(message("queue is full", AuthorKind::Bot));
        }
        assert_eq!(watching.calls(), 1);
        assert_eq!(pending(&world), u64::from(!embed), "agg.embed = {embed}");
        db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
        assert_eq!(pending(&world), u64::from(!embed), "agg.embed = {embed}, after the pass");
        let query = Query::text("queue is full").mode(Mode::Vector).scope(Scope::Any);
        assert_eq!(ns.search(&query).unwrap().hits.len(), usize::from(embed));
    }
}
