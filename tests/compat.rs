//! Files of every format that was ever released: they open, they are whole, and they say what they said.
//!
//! `tests/fixtures/format-1.oub` was written once and is never written again under this number; `format-1.jsonl` is its
//! export. So is `format-2.oub`, which has the graph of a partition in it; the last test writes a file like it each time
//! it runs, and with `OUBLIETTE_GOLDEN` set that one, for a new format number. A file of an older format is read as it is where it is opened for
//! reading only, and brought to the newest where it is opened for writing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use oubliette::exchange::{write_memory, write_tombstone};
use oubliette::policy::Syntax;
use oubliette::{
    CheckOptions, Database, Draft, Entity, Error, Expiry, Forget, Got, IdSource, Kind, Link, MaintainOptions,
    ManualClock, Mode, Namespace, PageRequest, Pass, Patch, Query, Scope, Significance, State, SupersedeMode,
    Tier, Time, WriteOptions,
};
use redb::ReadableDatabase;

/// Ids by number.
#[derive(Default)]
struct Numbered(AtomicU64);

impl IdSource for Numbered {
    fn next(&self, now: Time) -> [u8; 16] {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&now.as_millis().to_be_bytes()[2..]);
        (id[6], id[8]) = (0x70, 0x80);
        id[8..]
            .copy_from_slice(&(0x8000_0000_0000_0000 | self.0.fetch_add(1, Ordering::SeqCst)).to_be_bytes());
        id
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn noon() -> Time {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// A copy of the file of format 1 in a folder of its own.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    std::fs::copy(fixture("format-1.oub"), &path).unwrap();
    (folder, path)
}

fn open(path: &Path) -> Result<Database, Error> {
    Database::builder().clock(ManualClock::at(noon())).create(false).open(path)
}

/// Everything in a database, as lines of an export.
fn export(db: &Database) -> String {
    let mut lines = Vec::new();
    for namespace in db.namespaces().unwrap() {
        for state in [State::Live, State::Superseded, State::Expired] {
            let request = PageRequest { scope: Scope::Any, state, limit: 10_000, ..PageRequest::default() };
            for memory in db.list(&namespace, &request).unwrap().items {
                let Got::Memory(memory) = db.get(&namespace, &memory.id.to_string(), true).unwrap() else {
                    panic!("{} is listed and is a tombstone", memory.id);
                };
                write_memory(&memory, true, &mut lines);
            }
        }
        for tombstone in db.tombstones(&namespace, None, 10_000).unwrap().items {
            write_tombstone(&namespace, &tombstone, &mut lines);
        }
    }
    String::from_utf8(lines).unwrap()
}

fn clean(db: &Database) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:?}", report.findings);
}

#[test]
fn a_file_of_format_1_opens_and_says_what_it_said() {
    let (_folder, path) = copy();
    let db = open(&path).unwrap();
    assert_eq!(format_of(&path), 4, "opened for writing it is of the newest format");
    says_what_it_said(&db);
    finds_words(&db);
    db.maintain(&[Pass::Index], &MaintainOptions::live()).unwrap();
    finds_words(&db);
    clean(&db);
}

/// Format 4 brought the full-text index.
fn finds_words(db: &Database) {
    let ns = Namespace::default();
    let words = |words: &str| Query::text(words).mode(Mode::Text).scope(Scope::Any);
    let found = db.search(&ns, &words("drinks tea")).unwrap().hits;
    let Got::Memory(rich) = db.get(&ns, "rich", false).unwrap() else { panic!("no row") };
    assert_eq!(found.iter().map(|hit| hit.id).collect::<Vec<_>>(), [rich.id]);
    assert!(db.search(&ns, &words("number")).unwrap().hits.len() >= 9);
}

#[test]
fn a_file_of_format_1_is_read_as_it_is() {
    let (_folder, path) = copy();
    let db = Database::builder().clock(ManualClock::at(noon())).read_only(true).open(&path).unwrap();
    says_what_it_said(&db);
    let words = db.search(&Namespace::default(), &Query::text("tea").mode(Mode::Text)).unwrap();
    assert_eq!(words.hits, vec![], "it has no full-text index yet");
    db.close().unwrap();
    assert_eq!(format_of(&path), 1);
    says_what_it_said(&open(&path).unwrap());
}

fn says_what_it_said(db: &Database) {
    clean(db);
    assert_eq!(export(db), std::fs::read_to_string(fixture("format-1.jsonl")).unwrap());
    assert_eq!(db.policy().1.number, 1);
    let hits =
        db.search(&Namespace::default(), &Query::vector(vector(3)).k(1).scope(Scope::Any)).unwrap().hits;
    assert!(hits[0].score > 0.999, "{hits:?}");
}

#[test]
fn a_file_of_format_1_can_be_written_and_compacted() {
    let (_folder, path) = copy();
    let db = open(&path).unwrap();
    let ns = Namespace::default();
    db.add(&ns, Draft::new("written by a later build").key("late").vector(vector(90))).unwrap();
    // Fingerprints and HMACs are those of the file: what it holds is found again as the same.
    let again = db.add(&ns, Draft::new("memory number 1").vector(vector(1))).unwrap();
    assert_eq!(again.decision, oubliette::Decision::Reinforced);
    db.compact().unwrap();
    clean(&db);
    drop(db);
    clean(&open(&path).unwrap());
}

const META: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("meta");

/// The identity row: a header of 4 bytes, then the format number as a varint, as `docs/format.md` says.
fn identity(db: &redb::Database) -> Vec<u8> {
    let read = db.begin_read().unwrap().open_table(META).unwrap();
    let value = read.get(b"identity".as_slice()).unwrap().unwrap().value().to_vec();
    assert_eq!(value[..4], [1, 16, 0, 0]);
    value
}

/// The format number in a file.
fn format_of(path: &Path) -> u8 {
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(path, copy.path()).unwrap();
    identity(&redb::Database::open(copy.path()).unwrap())[4]
}

/// Writes another format number into the identity row.
fn set_format(path: &Path, format: u8) {
    let db = redb::Database::open(path).unwrap();
    let mut value = identity(&db);
    value[4] = format;
    let body = value.len() - 4;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&value[..body]);
    crc.update(b"identity");
    value[body..].copy_from_slice(&crc.finalize().to_le_bytes());
    let write = db.begin_write().unwrap();
    write.open_table(META).unwrap().insert(b"identity".as_slice(), value.as_slice()).unwrap();
    write.commit().unwrap();
}

#[test]
fn a_newer_file_is_refused() {
    let (_folder, path) = copy();
    set_format(&path, 5);
    let refused = open(&path).unwrap_err();
    assert!(matches!(refused, Error::Format { found: 5, oldest: 1, newest: 4 }), "{refused:?}");
    // The refusal left the rest as it was.
    set_format(&path, 1);
    clean(&open(&path).unwrap());
}

fn vector(seed: usize) -> Vec<f32> {
    (0..8).map(|at| 1.0 + ((seed * 7 + at * 3) % 11) as f32).collect()
}

/// A row with most of what a row can have.
fn rich(to: oubliette::MemoryId) -> Draft {
    let mut draft = Draft::new("Ann drinks tea in room 7").key("rich").tag("drink").kind(Kind::Message);
    draft.entities = Some(vec![Entity { name: "Ann".to_owned(), role: "subject".to_owned() }]);
    draft.categories = Some(vec!["habits".to_owned()]);
    draft.links = Some(vec![Link { to, relation: "follows".to_owned() }]);
    draft.sources = Some(vec![to]);
    let draft = draft.metadata(serde_json::json!({"room": 7, "deep": {"list": [1.5, null, "x"]}}));
    draft.significance(Significance::Important).importance(0.75).vector(vector(50))
}

#[test]
fn a_file_of_format_2_opens_with_its_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    std::fs::copy(fixture("format-2.oub"), &path).unwrap();
    let db = open(&path).unwrap();
    golden(&db);
    finds_words(&db);
    assert_eq!(export(&db), std::fs::read_to_string(fixture("format-2.jsonl")).unwrap());
    // Without an embedder what waits for a vector goes on waiting.
    let passes: Vec<Pass> = Pass::ALL.into_iter().filter(|pass| *pass != Pass::Embed).collect();
    let report = db.maintain(&passes, &MaintainOptions::live()).unwrap();
    assert!(report.passes.iter().all(|pass| pass.left == 0), "{report:?}");
    assert_eq!(db.stats(None).unwrap().vectors.dead, 0);
    clean(&db);
}

/// What the golden file of the newest format holds: a graph with a dead node and a tail, and answers from it.
fn golden(db: &Database) {
    clean(db);
    let vectors = db.stats(None).unwrap().vectors;
    assert!(vectors.in_graph >= 8 && vectors.dead == 1 && vectors.tail >= 1, "{vectors:?}");
    let found = db.search(&Namespace::default(), &Query::vector(vector(3)).k(1)).unwrap();
    assert_eq!(found.plan.regime, "graph");
    assert!(found.hits[0].score > 0.999, "{found:?}");
}

#[test]
fn the_golden_file_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let lines = write_golden_file(&path);
    if std::env::var_os("OUBLIETTE_GOLDEN").is_some() {
        std::fs::copy(&path, fixture("format-2.oub")).unwrap();
        std::fs::write(fixture("format-2.jsonl"), &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(fixture("format-2.jsonl")).unwrap());
}

/// Writes a file with most of what a file can have, and gives its export.
fn write_golden_file(path: &Path) -> String {
    let clock = ManualClock::at("2026-03-01T08:00:00Z".parse().unwrap());
    let builder = Database::builder().clock(clock.clone()).ids(Numbered::default()).secret([9; 32]);
    let db = builder.open(path).unwrap();
    let (ns, other) = (Namespace::default(), "other".parse::<Namespace>().unwrap());
    for at in 0..12 {
        let draft =
            Draft::new(format!("memory number {at}")).key(format!("k{at}")).tag(format!("t{}", at % 3));
        let draft = if at == 11 { draft } else { draft.vector(vector(at)) };
        db.add(&ns, if at % 4 == 0 { draft.agent("scout") } else { draft }).unwrap();
    }
    clock.set("2026-03-01T09:00:00Z".parse().unwrap());
    let first = db.add(&ns, Draft::new("memory number 1").key("k1b").vector(vector(1))).unwrap().id;
    db.add(&ns, rich(first)).unwrap();
    db.update(&ns, "k2", Patch { text: Some("the second, revised".to_owned()), ..Patch::default() }).unwrap();
    db.supersede(&ns, &["k5".to_owned()], "k6", SupersedeMode::Correction, None).unwrap();
    db.pin(&ns, "k7", true).unwrap();
    let short = Draft::new("soon over").key("short").tier(Tier::Working).vector(vector(60));
    db.add(&ns, short.expiry(Expiry::After("1h".parse().unwrap()))).unwrap();
    db.reinforce(&ns, "k9", 3).unwrap();
    let run = db.start_import(&ns).unwrap();
    let how = WriteOptions { run: Some(run), no_dedup: true, ..WriteOptions::default() };
    db.add_all(&ns, vec![Draft::new("imported").key("i1").vector(vector(70)), Draft::new("imported")], &how)
        .unwrap();
    db.finish_run(&ns, run).unwrap();
    let policy = "ttl.working = \"2h\"\nindex.exact_max = 4\nindex.exact_min = 1\nindex.tail_min = 100";
    db.set_policy(policy, Syntax::Toml).unwrap();
    db.add(&other, Draft::new("of another tenant").key("k1").vector(vector(80))).unwrap();
    let gone = "gone".parse().unwrap();
    db.add(&gone, Draft::new("of a tenant that is gone")).unwrap();
    db.drop_namespace(&gone).unwrap();
    db.maintain(&[Pass::Index], &MaintainOptions::live()).unwrap();
    db.compact().unwrap();
    db.forget(&ns, Forget::names(["k10"])).unwrap();
    db.add(&ns, Draft::new("beside the graph").key("late").vector(vector(81))).unwrap();
    db.close().unwrap();
    let db = open(path).unwrap();
    golden(&db);
    let lines = export(&db);
    db.close().unwrap();
    lines
}
