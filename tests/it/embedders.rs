//! Embedders in a database: whose vectors it holds, what is embedded and what is not, and how the model is changed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oubliette::embed::{Embedder, HashEmbedder, embedder_fn};
use oubliette::exchange::{Import, LineReader};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Field, Tier};
use oubliette::report::CheckOptions;
use oubliette::tools::Toolbox;
use oubliette::{
    Database, Decision, Draft, Error, ErrorKind, Kind, Mode, Namespace, Patch, Query, Result, Scope,
    WriteOptions,
};
use serde_json::json;
use tempfile::TempDir;

fn open(folder: &TempDir) -> Database {
    Database::open(folder.path().join("m.oub")).unwrap()
}

fn ns(db: &Database) -> Namespace {
    db.namespace("default").unwrap()
}

/// Counts the texts that it is given; fails while it is told to.
#[derive(Clone, Default)]
struct Counting {
    texts: Arc<AtomicUsize>,
    broken: Arc<AtomicUsize>,
}

impl Embedder for Counting {
    fn id(&self) -> &str {
        "counting-1"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        if self.broken.load(Ordering::SeqCst) > 0 {
            return Err(Error::Embedding { embedder: self.id().to_owned(), why: "told to".to_owned() });
        }
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    }
}

/// A model whose server goes away after so many calls.
fn leaving(id: &str, dim: usize, calls: usize) -> impl Embedder + 'static {
    let (left, name) = (AtomicUsize::new(calls), id.to_owned());
    let embed = move |texts: &[&str]| {
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return Err(Error::Embedding { embedder: name.clone(), why: "no server".to_owned() });
        }
        Ok(texts.iter().map(|text| [vec![1.0, text.len() as f32], vec![0.0; dim - 2]].concat()).collect())
    };
    embedder_fn(id, dim, embed).unwrap()
}

fn keyed(number: usize) -> Draft {
    Draft::new(format!("row {number} says so")).key(format!("k{number}"))
}

fn clean(db: &Database) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:?}", report.findings);
}

#[test]
fn v273_what_is_absorbed_is_not_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let counting = Counting::default();
    db.use_embedder(counting.clone()).unwrap();
    let rows = || (0..1_000).map(keyed);
    let write = |drafts: Vec<Draft>| ns(&db).add_all(drafts, &Default::default()).unwrap();
    write(rows().collect());
    assert_eq!(counting.texts.swap(0, Ordering::SeqCst), 1_000);
    let again = write(rows().collect());
    assert!(again.iter().all(|outcome| outcome.decision == Decision::Unchanged));
    let tagged = write(rows().map(|draft| draft.tag("more")).collect());
    assert!(tagged.iter().all(|outcome| outcome.decision == Decision::Updated));
    assert_eq!(counting.texts.load(Ordering::SeqCst), 0, "V-273");
    write(vec![Draft::new("row 7 says so").key("another")]);
    assert_eq!(counting.texts.load(Ordering::SeqCst), 0, "DEDUP-71: by content as well");
    clean(&db);
}

#[test]
fn dedup_71_what_becomes_a_row_of_its_own_is_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let counting = Counting::default();
    db.use_embedder(counting.clone()).unwrap();
    let text = || Draft::new("the build is green");
    let message = || {
        let mut draft = text();
        draft.fields.kind = Some(Kind::Message);
        draft.fields.author_kind = Field::from(Some(AuthorKind::Human));
        draft
    };
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let plain = WriteOptions::default();
    // Each of these has the text of a row and becomes one all the same, with the vector that the text has already.
    let writes: [(&str, Draft, &WriteOptions); 8] = [
        ("first", text(), &plain),
        ("no dedup", text(), &apart),
        ("another tier", text().tier(Tier::Working), &plain),
        ("an author's message", message(), &plain),
        ("another partition", text().agent("builder"), &plain),
        ("another kind", text().kind(Kind::Event), &plain),
        ("other metadata", text().metadata(serde_json::json!({"user_id": 7})), &plain),
        ("a key", text().key("build").metadata(serde_json::json!({"user_id": 8})), &plain),
    ];
    for (what, draft, how) in writes {
        let outcome = ns(&db).add_all(vec![draft], how).unwrap().remove(0);
        assert_eq!(outcome.decision, Decision::Stored, "{what}");
        assert_eq!(db.stats().unwrap().pending, 0, "{what}");
        assert_eq!(counting.texts.load(Ordering::SeqCst), 1, "{what}");
    }
    // The new text of a key has its vector, wherever else it stands.
    ns(&db).add(Draft::new("the build is red").key("other")).unwrap();
    ns(&db).add(Draft::new("the build is red").key("build")).unwrap();
    assert_eq!(counting.texts.load(Ordering::SeqCst), 2, "a revision");
    assert_eq!(db.stats().unwrap().pending, 0);
    clean(&db);
}

/// Remembers the texts that it is given.
fn remembering() -> (impl Embedder + 'static, Arc<Mutex<Vec<String>>>) {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&texts);
    let embedder = embedder_fn("remembering", 2, move |texts: &[&str]| {
        seen.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    });
    (embedder.unwrap(), texts)
}

#[test]
fn model_37_messages_are_embedded_by_their_normal_form_and_all_else_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let (embedder, texts) = remembering();
    db.use_embedder(embedder).unwrap();
    let raw = "**Heads up** [2026-01-02 10:11:12] the   *Gateway* restarted";
    let mut message = Draft::new(raw);
    message.fields.kind = Some(Kind::Message);
    message.fields.author_kind = Field::from(Some(AuthorKind::Bot));
    ns(&db).add(message).unwrap();
    ns(&db).add(Draft::new(raw)).unwrap();
    let texts = texts.lock().unwrap();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0], "**Heads up** [<ts>] the *Gateway* restarted");
    assert_eq!(texts[1], raw, "the text of a fact");
}

#[test]
fn memories_of_another_space_have_no_cosine_until_they_are_embedded_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let asked = Query::text("lives in").scope(Scope::Any);
    // Slots of the old space have the numbers of those of the new one, and hold others.
    db.use_embedder(Counting::default()).unwrap();
    for name in ["Ann", "Ben", "Cat"] {
        ns(&db).add(Draft::new(format!("{name} lives in Ghent")).key(name)).unwrap();
        ns(&db).add(Draft::new(format!("{name} lives in Bruges")).agent("guide")).unwrap();
    }
    let other = |calls| leaving("other", 2, calls);
    assert_eq!(db.reembed(other(1)).unwrap_err().kind(), ErrorKind::Embedding);
    db.use_embedder(other(usize::MAX)).unwrap();
    ns(&db).add(Draft::new("Dan lives in Kortrijk").key("Dan")).unwrap();
    ns(&db).add(Draft::new("Dan lives in Ypres").agent("guide")).unwrap();
    let with_cosine = |db: &Database| {
        let found = ns(db).search(&asked).unwrap();
        assert_eq!(found.hits.len(), 8);
        let texts = |id| db.snapshot().unwrap().namespace("default").unwrap().text(id).unwrap().unwrap();
        let with = found.hits.iter().filter(|hit| hit.signals.vector.is_some());
        let mut all: Vec<String> = with.map(|hit| texts(hit.id)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(with_cosine(&db), ["Dan lives in Kortrijk", "Dan lives in Ypres"]);
    clean(&db);
    let done = db.reembed(other(usize::MAX)).unwrap();
    assert_eq!((done.changed, done.skipped), (6, 0));
    assert_eq!(with_cosine(&db).len(), 8);
    clean(&db);
}

/// A wrong name of a model, or a server that is not there, takes no vector from a search.
#[test]
fn an_embedder_that_does_not_answer_leaves_the_vectors_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.use_embedder(HashEmbedder::new()).unwrap();
    ns(&db).add(Draft::new("Ann lives in Ghent")).unwrap();
    let before = db.embedding_space().unwrap();
    assert_eq!(db.reembed(leaving("other", 2, 0)).unwrap_err().kind(), ErrorKind::Embedding);
    assert_eq!(db.embedding_space().unwrap(), before);
    let found = ns(&db).search(Query::text("Ann lives in Ghent").mode(Mode::Vector)).unwrap();
    assert_eq!((found.hits.len(), found.plan.embedder_failed), (1, None));
    clean(&db);
}

#[test]
fn a_database_knows_whose_vectors_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    assert_eq!(db.embedding_space().unwrap(), None);
    db.use_embedder(HashEmbedder::new()).unwrap();
    ns(&db).add(Draft::new("Ann lives in Ghent")).unwrap();
    let space = db.embedding_space().unwrap().unwrap();
    assert_eq!((space.name.as_str(), space.dimensions), (HashEmbedder::new().id(), 256));
    db.close().unwrap();
    let db = open(&folder);
    let Err(Error::OtherSpace { stored, given }) = db.use_embedder(Counting::default()) else {
        panic!("another embedder was taken")
    };
    assert_eq!((stored.as_str(), given.as_str()), (HashEmbedder::new().id(), "counting-1"));
    // Without its embedder the words are there.
    let found = ns(&db).search(Query::text("where is Ghent")).unwrap();
    assert_eq!((found.plan.mode, found.hits.len()), ("text", 1));
    assert_eq!(
        ns(&db).search(Query::text("Ghent").mode(Mode::Vector)).unwrap_err().kind(),
        ErrorKind::NoEmbedder
    );
    db.use_embedder(HashEmbedder::new()).unwrap();
    let found = ns(&db).search(Query::text("where is Ghent")).unwrap();
    assert!(found.plan.mode == "hybrid" && found.hits[0].signals.vector.is_some());
    let refused = ns(&db).add(Draft::new("of the caller").vector([1.0, 0.0])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "another dimension than the embedder's");
    let reserved = embedder_fn("caller", 2, |_: &[&str]| Ok(Vec::new())).unwrap();
    assert_eq!(db.use_embedder(reserved).unwrap_err().kind(), ErrorKind::Invalid);
}

/// The first vector of a file decides which embedding space is recorded. Until then an embedder that nobody asked for gives
/// way to the vectors of a caller.
#[test]
fn an_embedder_that_nobody_asked_for_gives_way_to_the_first_vector() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    ns(&db).add(Draft::new("Ann lives in Ghent").key("a").vector([1.0, 0.0])).unwrap();
    db.suggest_embedder(HashEmbedder::new()).unwrap_err();
    drop(db);
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.suggest_embedder(HashEmbedder::new()).unwrap();
    let drafts = vec![
        Draft::new("Ann lives in Ghent").key("a"),
        Draft::new("Ben lives in Bruges").key("b").vector([0.6, 0.8]),
    ];
    ns(&db).add_all(drafts, &WriteOptions::default()).unwrap();
    assert_eq!(db.embedding_space().unwrap().unwrap().name, "caller");
    let near = ns(&db).search(Query::vector([0.6, 0.8])).unwrap();
    assert_eq!(near.hits.len(), 1, "only vectors of one space are compared");
    assert_eq!(ns(&db).search(Query::text("lives in")).unwrap().hits.len(), 2);
    ns(&db).add(Draft::new("Cat lives in Kortrijk").key("c")).unwrap();
    assert_eq!(db.stats().unwrap().pending, 2, "nobody makes vectors of the caller's space");
    clean(&db);
    let done = db.reembed(HashEmbedder::new()).unwrap();
    assert_eq!((done.changed, done.filled, done.skipped), (1, 2, 0));
    let near = ns(&db).search(Query::text("who lives in Kortrijk").mode(Mode::Vector)).unwrap();
    assert_eq!(near.hits.len(), 3);
    assert_eq!(db.reembed(HashEmbedder::new()).unwrap(), Default::default(), "twice is no harm");
    clean(&db);
}

/// A vector that does not fit the embedding space of the file, or of an embedder that was asked for, is refused on every way
/// in, and the space stays what it was.
#[test]
fn a_vector_of_another_length_never_changes_the_space() {
    for suggested in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder);
        if suggested {
            db.suggest_embedder(HashEmbedder::new()).unwrap();
        } else {
            db.use_embedder(HashEmbedder::new()).unwrap();
            let refused = ns(&db).add(Draft::new("before any other").vector([1.0, 0.0])).unwrap_err();
            assert_eq!(refused.to_string(), "vector: must have 256 dimensions (got 2)");
            assert_eq!(db.embedding_space().unwrap(), None);
        }
        ns(&db).add(Draft::new("Ann lives in Ghent").key("a")).unwrap();
        let space = db.embedding_space().unwrap().unwrap();
        let vector = Patch { vector: Some(vec![1.0, 0.0]), ..Patch::default() };
        let lines = "{\"text\":\"Cat\",\"vector\":[1,0]}\n";
        let import = |lines: &str| {
            Import::default().run(&db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).map(drop)
        };
        let refused = [
            ns(&db).add(Draft::new("Ben").vector([1.0, 0.0])).map(drop),
            ns(&db).update("a", vector.clone()).map(drop),
            ns(&db).update("a", Patch { text: Some("Ann left".to_owned()), ..vector.clone() }).map(drop),
            db.batch(|batch| batch.add(ns(&db).name(), Draft::new("Ben").vector([1.0, 0.0]))).map(drop),
            db.batch(|batch| batch.update(ns(&db).name(), "a", vector.clone())).map(drop),
            import(lines),
        ];
        for answer in refused {
            let why = answer.unwrap_err().to_string();
            assert!(why.contains("vector: must have 256 dimensions (got 2)"), "{why}");
        }
        assert_eq!(db.embedding_space().unwrap().unwrap(), space);
        // A vector of the right length belongs to the space, whoever made it.
        let mut own = vec![0.0; 256];
        own[7] = 1.0;
        ns(&db).add(Draft::new("Dan brings his own").key("d").vector(own.clone())).unwrap();
        assert_eq!(db.embedding_space().unwrap().unwrap(), space);
        assert_eq!(ns(&db).search(Query::vector(own)).unwrap().hits.len(), 2);
        clean(&db);
    }
}

/// A write that fails leaves the file without a space, also where its batch goes on.
#[test]
fn a_write_that_fails_does_not_decide_the_space() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let mut draft = Draft::new("Ben").vector([1.0, 0.0]);
    draft.sources = Some(vec!["01a2b3c4-0000-7000-8000-000000000000".parse().unwrap()]);
    ns(&db).add(draft.clone()).unwrap_err();
    db.batch(|batch| {
        batch.add(ns(&db).name(), draft.clone()).unwrap_err();
        Ok(())
    })
    .unwrap();
    assert_eq!(db.embedding_space().unwrap(), None);
}

/// A memory whose vector is of a former space takes a vector of the present space.
#[test]
fn an_update_brings_a_vector_of_the_new_space() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    ns(&db).add(Draft::new("Ann lives in Ghent").key("a").vector([0.6, 0.8])).unwrap();
    db.reembed(leaving("broken", 3, 1)).unwrap_err();
    ns(&db).update("a", Patch { vector: Some(vec![0.0, 1.0, 0.0]), ..Patch::default() }).unwrap();
    assert_eq!(ns(&db).search(Query::vector([0.0, 1.0, 0.0])).unwrap().hits.len(), 1);
    clean(&db);
}

#[test]
fn an_embedder_that_fails_costs_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let counting = Counting::default();
    db.use_embedder(counting.clone()).unwrap();
    counting.broken.store(1, Ordering::SeqCst);
    ns(&db).add(Draft::new("Ann lives in Ghent").key("a")).unwrap();
    assert_eq!(db.stats().unwrap().pending, 1);
    let found = ns(&db).search(Query::text("Ghent")).unwrap();
    assert_eq!((found.hits.len(), found.plan.mode), (1, "text"), "by its words");
    assert!(found.plan.embedder_failed.unwrap().contains("told to"), "and says so");
    let asked = Query::text("Ghent").mode(Mode::Vector);
    assert_eq!(ns(&db).search(&asked).unwrap_err().kind(), ErrorKind::Embedding);
    assert_eq!(
        db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap_err().kind(),
        ErrorKind::Embedding
    );
    counting.broken.store(0, Ordering::SeqCst);
    // The new text has a vector, the old one waits for the pass.
    ns(&db).update("a", Patch { text: Some("Ann left Ghent".to_owned()), ..Patch::default() }).unwrap();
    let dry = MaintainOptions { dry_run: true, ..MaintainOptions::live() };
    let planned = db.maintain_with(&dry.passes([Pass::Embed])).unwrap();
    assert_eq!((planned.passes[0].planned, planned.passes[0].changed), (1, 0));
    let done = db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    assert_eq!((done.passes[0].changed, db.stats().unwrap().pending), (1, 0));
    assert_eq!(ns(&db).search(&asked).unwrap().hits.len(), 1);
    clean(&db);
}

/// What was to be erased, and every other pass, does not wait for a model that is away. What is done is told beside the failure.
#[test]
fn an_embedder_that_fails_stops_no_other_pass() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.use_embedder(leaving("away", 2, 0)).unwrap();
    let soon = std::time::Duration::from_millis(1);
    ns(&db).add(Draft::new("Ann lives in Ghent")).unwrap();
    ns(&db).add(Draft::new("Ann is on leave").expiry(soon)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    let told = Toolbox::new(ns(&db)).call("run_maintenance", json!({ "dry_run": false })).unwrap();
    let passes = told["passes"].as_array().unwrap();
    let removed = passes.iter().find(|pass| pass["pass"] == "expire").map(|pass| &pass["removed"]);
    assert_eq!(removed, Some(&json!(1)), "{told}");
    assert!(passes.iter().any(|pass| pass["pass"] == "repair"), "{told}");
    assert_eq!(told["failed"][0]["pass"], "embed", "{told}");
    let report = db.maintain().unwrap();
    assert_eq!(report.failed.iter().map(|failed| failed.pass).collect::<Vec<_>>(), [Some(Pass::Embed)]);
    let alone = db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap_err();
    assert_eq!(alone.kind(), ErrorKind::Embedding);
    clean(&db);
}

/// What a pass has done before it fails is told beside the failure: by the report, and by the tool, with its run.
#[test]
fn what_a_pass_has_done_before_it_fails_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.detach_embedder();
    let drafts = |from: usize| (from..from + 100).map(keyed).collect();
    ns(&db).add_all(drafts(0), &WriteOptions::default()).unwrap();
    db.use_embedder(leaving("away", 2, 1)).unwrap();
    let report = db.maintain().unwrap();
    let failed = &report.failed[0];
    assert_eq!((failed.pass, failed.kind), (Some(Pass::Embed), ErrorKind::Embedding));
    let done = failed.done.as_ref().unwrap();
    assert_eq!((done.changed, done.skipped, done.left), (64, 0, 36), "{report:?}");
    db.use_embedder(leaving("away", 2, 1)).unwrap();
    ns(&db).add_all(drafts(100), &WriteOptions::default()).unwrap();
    db.use_embedder(leaving("away", 2, 1)).unwrap();
    let told = Toolbox::new(ns(&db)).call("run_maintenance", json!({ "dry_run": false })).unwrap();
    let passes = told["passes"].as_array().unwrap();
    let embed = passes.iter().find(|pass| pass["pass"] == "embed").unwrap_or_else(|| panic!("{told}"));
    assert_eq!((&embed["changed"], &embed["left"]), (&json!(64), &json!(8)), "{told}");
    assert_eq!(
        (&told["failed"][0]["kind"], told["runs"].as_array().unwrap().len()),
        (&json!("Embedding"), 1)
    );
    clean(&db);
}

/// A model that refuses whatever it is asked with a text of more than so many bytes.
fn picky(bytes: usize) -> impl Embedder + 'static {
    let embed = move |texts: &[&str]| {
        if texts.iter().any(|text| text.len() > bytes) {
            return Err(Error::Embedding { embedder: "picky".to_owned(), why: "too long".to_owned() });
        }
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    };
    embedder_fn("picky", 2, embed).unwrap()
}

/// A text that is too long for the model keeps no other from its vector: neither those that are written or embedded with it, nor
/// those that wait behind it, nor a database that changes its model.
#[test]
fn a_text_that_the_model_refuses_keeps_no_other_from_its_vector() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let drafts = |name: &str| -> Vec<Draft> {
        let text = |at| match at {
            3 | 40 => format!("{name} {at} {}", "long ".repeat(40)),
            _ => format!("{name} {at}"),
        };
        (0..150).map(|at| Draft::new(text(at))).collect()
    };
    // They wait, because there is no embedder yet.
    db.detach_embedder();
    ns(&db).add_all(drafts("before"), &WriteOptions::default()).unwrap();
    db.use_embedder(picky(100)).unwrap();
    for _ in 0..2 {
        let done = db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
        assert_eq!((done.passes[0].skipped, db.stats().unwrap().pending), (2, 2));
    }
    ns(&db).add_all(drafts("after"), &WriteOptions::default()).unwrap();
    // A write does not look which of its texts is to blame: what is asked with it waits.
    assert_eq!(db.stats().unwrap().pending, 2 + 64);
    db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    assert_eq!(db.stats().unwrap().pending, 4);
    db.use_embedder(picky(1000)).unwrap();
    db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    assert_eq!(db.stats().unwrap().pending, 0);

    let other = embedder_fn("other", 2, move |texts: &[&str]| picky(100).embed(texts)).unwrap();
    let done = db.reembed(other).unwrap();
    assert_eq!((done.changed, done.filled), (296, 0));
    let found = ns(&db).search(Query::text("before 7").mode(Mode::Vector)).unwrap();
    assert!(!found.hits.is_empty());
    clean(&db);
}

/// A model that counts how often it is asked, and for how many texts. It does what `answers` says.
fn asked(
    id: &str,
    answers: impl Fn(&[&str]) -> bool + Send + Sync + 'static,
) -> (impl Embedder + 'static, Asked) {
    let (calls, id) = (Asked::default(), id.to_owned());
    let (noted, name) = (Arc::clone(&calls), id.clone());
    let embed = move |texts: &[&str]| {
        noted.lock().unwrap().push(texts.len());
        match answers(texts) {
            true => Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect()),
            false => Err(Error::Embedding { embedder: name.clone(), why: "told to".to_owned() }),
        }
    };
    (embedder_fn(&id, 2, embed).unwrap(), calls)
}

/// The number of texts of each call.
type Asked = Arc<Mutex<Vec<usize>>>;

fn embed(db: &Database) -> (u64, u64) {
    let done = db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    (done.passes[0].changed, done.passes[0].skipped)
}

/// What a call has no time to ask for waits, and is told so: it is not what the model refuses. Calls go on until all others have
/// their vectors.
#[test]
fn a_batch_that_is_taken_apart_ends_with_the_time_of_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.detach_embedder();
    let text = |at: usize| if at % 16 == 1 { format!("bad {at}") } else { format!("row {at}") };
    ns(&db).add_all((0..64).map(|at| Draft::new(text(at))).collect(), &WriteOptions::default()).unwrap();
    let (model, calls) = asked("picky", |texts| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        texts.iter().all(|text| !text.starts_with("bad"))
    });
    db.use_embedder(model).unwrap();
    let budget = "1ms".parse().unwrap();
    let options = MaintainOptions { budget: Some(budget), ..MaintainOptions::live().passes([Pass::Embed]) };
    let (mut changed, mut rounds) = (0, 0);
    loop {
        calls.lock().unwrap().clear();
        let done = db.maintain_with(&options).unwrap();
        let told = &done.passes[0];
        assert_eq!(told.planned, told.changed + told.skipped + told.left, "{told:?}");
        assert!(calls.lock().unwrap().len() < 16, "{calls:?}");
        (changed, rounds) = (changed + told.changed, rounds + 1);
        if told.left == 0 {
            break;
        }
        assert!(rounds < 100);
    }
    assert_eq!((changed, db.stats().unwrap().pending), (60, 4));
    assert!(rounds > 1);
    clean(&db);
}

/// However many texts are refused, all others have their vectors after one pass, and a handle does not ask again at once for
/// what was refused.
#[test]
fn many_refused_texts_keep_no_other_from_its_vector() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.detach_embedder();
    let text = |at: usize| if at % 4 == 1 { format!("bad {at}") } else { format!("row {at}") };
    let drafts = (0..200).map(|at| Draft::new(text(at))).collect();
    ns(&db).add_all(drafts, &WriteOptions::default()).unwrap();
    let (model, calls) = asked("picky", |texts| texts.iter().all(|text| !text.starts_with("bad")));
    db.use_embedder(model).unwrap();
    assert_eq!(embed(&db), (150, 50));
    calls.lock().unwrap().clear();
    assert_eq!(embed(&db), (0, 50));
    assert!(calls.lock().unwrap().is_empty(), "they were refused a moment ago");
    // Nor do they hold up what is written with them.
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    ns(&db).add_all(vec!["bad 1".into(), "row 500".into()], &apart).unwrap();
    assert_eq!((db.stats().unwrap().pending, calls.lock().unwrap().as_slice()), (51, &[1][..]));
    clean(&db);
}

/// A model that is too slow for a whole batch gets as many texts at once as it is fit for.
#[test]
fn a_slow_model_is_given_fewer_texts_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    db.detach_embedder();
    ns(&db).add_all((0..200).map(keyed).collect(), &WriteOptions::default()).unwrap();
    let (model, calls) = asked("slow", |texts| texts.len() <= 20);
    db.use_embedder(model).unwrap();
    assert_eq!(embed(&db), (200, 0));
    let too_many = calls.lock().unwrap().iter().filter(|texts| **texts > 20).count();
    assert_eq!(too_many, 4, "64 at first, both halves, and 64 once more");
    ns(&db).add_all((200..264).map(keyed).collect(), &WriteOptions::default()).unwrap();
    assert_eq!(db.stats().unwrap().pending, 0, "a write knows it too");
    clean(&db);
}

/// Takes its time, and gives nothing.
fn hangs(_: &[&str]) -> bool {
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    false
}

/// A server that hangs holds up one write or query, and not each that follows.
#[test]
fn a_model_that_hangs_is_left_alone_for_as_long_as_it_took() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let (model, calls) = asked("hanging", hangs);
    db.use_embedder(model).unwrap();
    ns(&db).add_all((0..200).map(keyed).collect(), &WriteOptions::default()).unwrap();
    ns(&db).add("Ann lives in Ghent").unwrap();
    let found = ns(&db).search("Ghent").unwrap();
    assert_eq!((found.hits.len(), calls.lock().unwrap().len()), (1, 1));
    assert!(found.plan.embedder_failed.unwrap().contains("a short while ago"));
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    ns(&db).add("Ben lives in Bonn").unwrap();
    assert_eq!(calls.lock().unwrap().len(), 2, "then it is asked again");
    clean(&db);
}

/// What a batch has written is embedded behind its commit. A server that hangs holds up one batch, and not each that follows.
#[test]
fn a_model_that_hangs_holds_up_one_batch() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let (model, calls) = asked("hanging", hangs);
    db.use_embedder(model).unwrap();
    let name = ns(&db).name().clone();
    for at in 0..3 {
        db.batch(|batch| batch.add(&name, keyed(at)).map(drop)).unwrap();
    }
    assert_eq!(calls.lock().unwrap().len(), 2, "the text, and whether the model answers at all");
    assert_eq!(db.stats().unwrap().pending, 3);
    clean(&db);
}

/// Texts that stand in one batch twice are given to the model once.
#[test]
fn a_text_that_stands_in_a_batch_twice_is_embedded_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let (model, calls) = asked("counting", |_| true);
    db.use_embedder(model).unwrap();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    ns(&db).add_all(vec!["one".into(), "two".into(), "one".into()], &apart).unwrap();
    assert_eq!((db.stats().unwrap().pending, calls.lock().unwrap().as_slice()), (0, &[2][..]));
    clean(&db);
}

#[test]
fn answers_of_another_shape_are_failures() {
    for answer in [vec![], vec![vec![1.0]], vec![vec![1.0, 2.0, 3.0]], vec![vec![0.0, 0.0]]] {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder);
        let given = answer.clone();
        db.use_embedder(embedder_fn("odd", 2, move |_: &[&str]| Ok(given.clone())).unwrap()).unwrap();
        ns(&db).add(Draft::new("a text")).unwrap();
        assert_eq!(db.stats().unwrap().pending, 1, "{answer:?}");
        assert_eq!(ns(&db).search(Query::text("text")).unwrap().hits.len(), 1);
        clean(&db);
    }
}

/// A file whose vectors are those of the embedder that ships is embedded with it by whoever opens it; only who opens it in one
/// line gets it for a file without vectors, and vectors of a caller are left alone.
#[cfg(feature = "static-mini")]
#[test]
fn the_embedder_that_ships_comes_with_its_space() {
    use oubliette::embed::StaticMini;
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let by_vector = |db: &Database| {
        let query = Query::text("where does Ann live?").mode(Mode::Vector);
        ns(db).search(query).map(|found| found.hits.len())
    };
    let db = Database::open(path("shipped")).unwrap();
    ns(&db).add("Ann lives in Ghent").unwrap();
    assert_eq!(db.embedding_space().unwrap().unwrap().name, StaticMini::new().id());
    db.close().unwrap();
    let db = Database::builder().open(path("shipped")).unwrap();
    let written = ns(&db).add("Ben lives in Bonn").unwrap().id;
    assert!(!ns(&db).get(written).unwrap().unwrap().pending);
    assert_eq!(by_vector(&db).unwrap(), 2);
    db.detach_embedder();
    assert_eq!(by_vector(&db).unwrap_err().kind(), ErrorKind::NoEmbedder);
    let plain = Database::builder().open(path("plain")).unwrap();
    ns(&plain).add("Ann lives in Ghent").unwrap();
    assert_eq!(plain.embedding_space().unwrap(), None);
    let own = Database::open(path("own")).unwrap();
    ns(&own).add(Draft::new("Ann lives in Ghent").vector([0.6, 0.8])).unwrap();
    let space = own.embedding_space().unwrap().unwrap();
    assert_eq!((space.name.as_str(), space.dimensions), ("caller", 2));
    let again = Database::open(path("own")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Locked, "one handle for writing");
    own.close().unwrap();
    assert_eq!(by_vector(&Database::open(path("own")).unwrap()).unwrap_err().kind(), ErrorKind::NoEmbedder);
}
