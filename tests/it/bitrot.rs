//! Bits that flip, pages that are zeroed, files that are cut: a reader gets the truth or a typed error.
//!
//! Never other data: every text and vector that a damaged file gives is compared with what was written. Never a panic.
//! `OUBLIETTE_ROT=n` damages n copies. Rows of an index that are damaged or gone can be drawn again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Chance, Image, SimDisk};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Got;
use oubliette::policy::{Policy, Syntax};
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Effort, Error, ErrorKind, Hit, MemoryId, NamespaceName, PageRequest, Query, Result,
    Scope,
};
use redb::ReadableTable;

const FILE: &str = "/db/memory.oub";
const ROWS: usize = 400;
const DIM: usize = 24;

/// What was written: text and unit vector by id.
type Truth = BTreeMap<MemoryId, (String, Vec<f32>)>;

fn open(image: Image) -> Result<Database> {
    Database::builder().disk(Arc::new(SimDisk::new(image))).secret([3; 32]).cache_bytes(4 << 20).open(FILE)
}

fn vector(seed: usize) -> Vec<f32> {
    (0..DIM).map(|at| 1.0 + ((seed * 7 + at * 13) % 97) as f32).collect()
}

/// A small database, and what is in it.
fn written() -> (Image, Truth) {
    let disk = SimDisk::new(Image::default());
    let db = Database::builder().disk(Arc::new(disk.clone())).secret([3; 32]).open(FILE).unwrap();
    let ns = db.namespace("default").unwrap();
    let drafts = (0..ROWS).map(|at| {
        let text = format!("memory {at} says {}", "something ".repeat(at % 40));
        Draft::new(text).key(format!("k{at}")).tag(format!("t{}", at % 5)).vector(vector(at))
    });
    ns.add_all(drafts.collect(), &oubliette::WriteOptions::default()).unwrap();
    for at in (0..ROWS).step_by(10) {
        ns.forget(oubliette::Forget::names([format!("k{at}")])).unwrap();
    }
    let page = PageRequest { limit: 10_000, ..PageRequest::default() };
    let mut truth = Truth::new();
    for memory in ns.list(&page).unwrap().items {
        let Got::Memory(memory) = ns.look_up(memory.id.to_string(), true).unwrap() else { unreachable!() };
        truth.insert(memory.id, (memory.text, memory.vector.unwrap()));
    }
    db.close().unwrap();
    (disk.image(), truth)
}

/// What became of one damaged copy.
#[derive(Debug, Default)]
struct Tally {
    refused: u64,
    errors: u64,
    findings: u64,
    harmless: u64,
}

/// An error that a damaged file may give.
fn typed(why: &Error) -> bool {
    let kinds = [
        ErrorKind::Corrupted,
        ErrorKind::NotADatabase,
        ErrorKind::Format,
        ErrorKind::Io,
        ErrorKind::Retry,
        ErrorKind::Unavailable,
    ];
    kinds.contains(&why.kind())
}

/// Reads everything that a damaged file gives.
fn read(image: Image, truth: &Truth, what: &str, tally: &mut Tally) {
    let db = match open(image) {
        Ok(db) => db,
        Err(why) => {
            assert!(typed(&why), "{what}: open: {why:?}");
            tally.refused += 1;
            return;
        }
    };
    let ns = db.namespace("default").unwrap();
    let mut errors = 0;
    for (id, (text, vector)) in truth {
        match ns.look_up(id.to_string(), true) {
            Ok(Got::Memory(memory)) => {
                assert_eq!(&memory.text, text, "{what}: another text of {id}");
                assert!(
                    memory.vector.as_ref().is_none_or(|found| found == vector),
                    "{what}: another vector of {id}"
                );
            }
            Ok(Got::Tombstone(_)) => panic!("{what}: {id} was never forgotten"),
            // A row whose key is damaged is not found, which the walk below must tell.
            Err(why) => {
                assert!(typed(&why) || why.kind() == ErrorKind::NotFound, "{what}: get {id}: {why:?}");
                errors += 1;
            }
        }
    }
    match ns.search(Query::vector(vector(11)).k(20).scope(Scope::Any)) {
        Ok(found) => {
            assert!(found.hits.iter().all(|hit| truth.contains_key(&hit.id)), "{what}: a hit from nowhere")
        }
        Err(why) => assert!(typed(&why), "{what}: search: {why:?}"),
    }
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() });
    let sound = match &report {
        Ok(report) => report.ok,
        Err(why) => {
            assert!(typed(why), "{what}: check: {why:?}");
            false
        }
    };
    assert!(errors == 0 || !sound, "{what}: {errors} reads fail and the check finds nothing");
    match (errors, sound) {
        (0, true) => tally.harmless += 1,
        (0, false) => tally.findings += 1,
        _ => tally.errors += 1,
    }
}

/// What the store fences need not be printed hundreds of times.
fn quiet() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_none_or(|place| !place.file().contains("redb")) {
            loud(panic);
        }
    }));
}

#[test]
fn damage_is_an_error_and_never_other_data() {
    quiet();
    let (image, truth) = written();
    let file = image.names[Path::new(FILE)];
    let len = image.files[file].len();
    let mutations: u64 = std::env::var("OUBLIETTE_ROT").map_or(300, |n| n.parse().unwrap());
    let (mut tally, mut chance) = (Tally::default(), Chance::new(11));
    for mutation in 0..mutations {
        let mut copy = image.clone();
        let data = &mut copy.files[file];
        // Most of a fresh file is empty: look for a place where something stands.
        let place =
            std::iter::repeat_with(|| chance.below(len as u64) as usize).find(|at| data[*at] != 0).unwrap();
        let what = match mutation % 4 {
            0 | 1 => {
                data[place] ^= 1 << chance.below(8);
                format!("a bit of byte {place}")
            }
            2 => {
                let page = place / 4_096 * 4_096;
                data[page..(page + 4_096).min(len)].fill(0);
                format!("the page at {page}")
            }
            _ => {
                data.truncate(place);
                format!("cut to {place}")
            }
        };
        read(copy, &truth, &what, &mut tally);
    }
    eprintln!("{mutations} damaged copies of {len} bytes: {tally:?}");
    assert!(
        tally.refused + tally.errors + tally.findings > mutations / 3,
        "the damage does not reach: {tally:?}"
    );
}

/// Uses a file with a torn page as an application does: whatever is answered is true, and what fails is a typed error.
fn work(image: Image, truth: &Truth, what: &str) {
    let Ok(db) = open(image) else { return };
    let ns = NamespaceName::default();
    let told = |memory: &oubliette::Memory| match truth.get(&memory.id) {
        Some((text, _)) => assert_eq!(&memory.text, text, "{what}: another text of {}", memory.id),
        None => assert!(memory.text.starts_with("new "), "{what}: {} comes from nowhere", memory.id),
    };
    let fails = |step: &str, done: Result<()>| {
        if let Err(why) = done {
            assert!(typed(&why) || why.kind() == ErrorKind::NotFound, "{what}: {step}: {why:?}");
        }
    };
    let list = || {
        let all = PageRequest { limit: 10_000, any_state: true, ..PageRequest::default() };
        db.namespace(&ns).unwrap().list(&all).map(|page| page.items.iter().for_each(told))
    };
    fails("list", list());
    let words = db.namespace(&ns).unwrap().search(Query::text("something").k(50).scope(Scope::Any));
    fails(
        "words",
        words.and_then(|found| {
            found.hits.iter().try_for_each(|hit| {
                db.namespace(&ns).unwrap().text(hit.id).map(|text| {
                    assert!(
                        text.is_none_or(|text| truth[&hit.id].0 == text),
                        "{what}: another text of a hit"
                    );
                })
            })
        }),
    );
    for at in [0, 1] {
        fails(
            "add",
            db.namespace(&ns)
                .unwrap()
                .add(Draft::new(format!("new {at}")).vector(vector(900 + at)))
                .map(drop),
        );
        let key = format!("k{}", 100 * at + 7);
        fails("forget", db.namespace(&ns).unwrap().forget(oubliette::Forget::names([key])).map(drop));
    }
    fails("backup", db.backup("/db/copy.oub").map(drop));
    fails("reindex", db.reindex().map(drop));
    fails("list again", list());
    fails("compact", db.compact().map(drop));
    fails("list of the copy", list());
    fails("close", db.close());
}

/// Half of a page is of another write, as after a power failure in the midst of it, or is noise: whatever stands there, the
/// file is used without a panic, without an end that never comes, and without another text.
#[test]
fn a_torn_page_is_an_error_and_never_other_data() {
    const PAGE: usize = 4_096;
    let (image, truth) = written();
    let file = image.names[Path::new(FILE)];
    let pages = image.files[file].len() / PAGE;
    let filled = |page: &usize| image.files[file][page * PAGE..][..PAGE].iter().any(|byte| *byte != 0);
    let filled: Vec<usize> = (0..pages).filter(filled).collect();
    let copies: usize = std::env::var("OUBLIETTE_ROT").map_or(60, |n| n.parse().unwrap());
    let (mut tally, mut chance) = (Tally::default(), Chance::new(23));
    for number in 0..copies {
        // From both ends: the header and the first roots, and what was written last.
        let at = match number % 3 {
            0 => (number / 3) % filled.len(),
            1 => filled.len() - 1 - (number / 3) % filled.len(),
            _ => chance.below(filled.len() as u64) as usize,
        };
        let page = filled[at];
        let half = page * PAGE + if chance.below(2) == 0 { 0 } else { PAGE / 2 };
        let other = filled[chance.below(filled.len() as u64) as usize] * PAGE + half % PAGE;
        let mut copy = image.clone();
        let data = &mut copy.files[file];
        let (how, bytes) = match number % 4 {
            0 => ("zeros", vec![0; PAGE / 2]),
            1 => ("noise", (0..PAGE / 2).map(|_| chance.below(256) as u8).collect()),
            _ => ("of another page", data[other..][..PAGE / 2].to_vec()),
        };
        data[half..][..PAGE / 2].copy_from_slice(&bytes);
        let what = format!("half a page at {half}, {how}");
        let (done, ends) = std::sync::mpsc::channel();
        let (truth, told) = (truth.clone(), what.clone());
        let worker = std::thread::spawn(move || {
            let mut tally = Tally::default();
            read(copy.clone(), &truth, &told, &mut tally);
            work(copy, &truth, &told);
            let _ = done.send(tally);
        });
        match ends.recv_timeout(std::time::Duration::from_secs(300)) {
            Ok(one) => {
                tally.refused += one.refused;
                tally.errors += one.errors;
                tally.findings += one.findings;
                tally.harmless += one.harmless;
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it does not end"),
            Err(_) => worker.join().unwrap(),
        }
    }
    eprintln!("{copies} torn copies of {} pages: {tally:?}", filled.len());
    assert!(tally.refused + tally.errors + tally.findings > 0, "nothing was damaged: {tally:?}");
}

/// The list of tables, of which a writer opens some and lets go of all: a bit of it that flips ends no process. Where redb is built with
/// its own assertions, it opens no file with most of these bits, so `cargo test --release` tries more.
#[test]
fn a_damaged_list_of_tables_is_an_error() {
    const PAGE: usize = 4_096;
    let (image, truth) = written();
    let file = image.names[Path::new(FILE)];
    let lists: Vec<usize> = (image.files[file].chunks(PAGE).enumerate())
        .filter(|(_, page)| page.windows(8).any(|name| name == b"meta_key"))
        .map(|(number, _)| number * PAGE)
        .collect();
    assert!(!lists.is_empty(), "no page names the tables");
    for list in lists {
        for at in (list..list + PAGE)
            .filter(|at| image.files[file][*at] != 0)
            .step_by(if cfg!(debug_assertions) { 151 } else { 17 })
        {
            let mut copy = image.clone();
            copy.files[file][at] ^= 1;
            work(copy, &truth, &format!("a bit of byte {at}"));
        }
    }
}

/// Where a page of the key-value store is an inner one, the number of its keys: behind checksums and children stands where each
/// key ends.
fn separators(page: &[u8]) -> Option<usize> {
    let keys = u16::from_le_bytes([page[2], page[3]]) as usize;
    let ends = page.get(8 + 24 * (keys + 1)..8 + 24 * (keys + 1) + 4 * keys).filter(|_| keys > 0)?;
    let ends: Vec<usize> =
        ends.chunks(4).map(|end| u32::from_le_bytes(end.try_into().unwrap()) as usize).collect();
    let begins = 8 + 24 * (keys + 1) + 4 * keys;
    let fits = ends[0] > begins && ends.is_sorted() && ends.iter().all(|end| *end <= page.len());
    (page[0] == 2 && fits).then_some(keys)
}

/// What fails of all that look-ups and writes answer.
fn fails_of(db: &Database, truth: &Truth) -> Vec<String> {
    let ns = db.namespace("default").unwrap();
    let all = PageRequest { limit: 10_000, ..PageRequest::default() };
    let mut steps = vec![
        ("list", ns.list(&all).map(drop)),
        ("words", ns.search(Query::text("something").k(5)).map(drop)),
        ("vector", ns.search(Query::vector(vector(11)).k(5)).map(drop)),
        ("add", ns.add(Draft::new("new").key("k275").vector(vector(900))).map(drop)),
        ("forget", ns.forget(oubliette::Forget::names(["k391"])).map(drop)),
    ];
    steps.extend((1..ROWS).step_by(10).map(|at| ("by key", ns.look_up(format!("k{at}"), false).map(drop))));
    steps.extend(truth.keys().step_by(7).map(|id| ("by id", ns.look_up(id.to_string(), true).map(drop))));
    steps.into_iter().filter_map(|(step, done)| done.err().map(|why| format!("{step}: {why}"))).collect()
}

/// A walk goes from page to page without a look at the keys of the inner pages; look-ups compare with these keys. What look-ups
/// fail at, `check` finds, and a copy heals the file without a loss.
#[test]
fn a_check_finds_what_only_look_ups_meet_in_an_inner_page() {
    const PAGE: usize = 4_096;
    quiet();
    let (image, truth) = written();
    let file = image.names[Path::new(FILE)];
    let pages = image.files[file].chunks(PAGE).enumerate().skip(1);
    let inner: Vec<(usize, usize)> =
        pages.filter_map(|(at, page)| Some((at * PAGE, separators(page)?))).collect();
    let (mut met, mut tried) = (0, 0);
    for (page, keys) in inner {
        let ends = page + 8 + 24 * (keys + 1);
        let places = [ends + 1, ends + 4 * (keys / 2) + 1, ends + 4 * keys + 4, ends + 4 * keys + 21];
        for at in places.into_iter().filter(|at| *at < page + PAGE) {
            let mut copy = image.clone();
            copy.files[file][at] ^= 0x20;
            let what = format!("bit 5 of byte {at}, of the page at {page} with {keys} keys");
            let Ok(db) = open(copy.clone()) else { continue };
            tried += 1;
            let report = db.check(&CheckOptions::default()).unwrap();
            assert!(
                report.ok || report.findings.iter().any(|finding| finding.code == "corrupted"),
                "{what}: only what is not so is told: {:?}",
                report.findings
            );
            // What could not be asked is no finding.
            let false_ones = report.findings.iter().filter(|finding| finding.code == "tombstone_row");
            assert_eq!(false_ones.count(), 0, "{what}: {:?}", report.findings);
            let fails = fails_of(&db, &truth);
            assert!(fails.is_empty() || !report.ok, "{what}: the check finds nothing, but {fails:?}");
            met += usize::from(!fails.is_empty());
            drop(db);
            let Ok(db) = open(copy) else { continue };
            if !report.ok {
                db.compact().unwrap();
                assert!(
                    db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok,
                    "{what}"
                );
                assert_eq!(fails_of(&db, &truth), Vec::<String>::new(), "{what}: after compact");
            }
        }
    }
    eprintln!("{tried} damaged copies, {met} of them with failing look-ups");
    assert!(met > 8, "the damage reaches no look-up: {met} of {tried}");
}

/// A partition with a graph in a file of its own.
struct Linked {
    folder: tempfile::TempDir,
    /// The best of each question, before anything was damaged.
    best: Vec<Vec<Hit>>,
}

/// Rows of a table of the file.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn asked(at: usize) -> Query {
    Query::vector(vector(1_000 + at)).k(10)
}

impl Linked {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut linked = Linked { folder, best: Vec::new() };
        let (db, ns) = (linked.open(), NamespaceName::default());
        let drafts =
            (0..ROWS).map(|at| Draft::new(format!("row {at}")).key(format!("k{at}")).vector(spread(at)));
        db.namespace(&ns).unwrap().add_all(drafts.collect(), &oubliette::WriteOptions::default()).unwrap();
        db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)).unwrap();
        // Some are gone and still nodes.
        db.namespace(&ns)
            .unwrap()
            .forget(oubliette::Forget::names((0..ROWS).step_by(9).map(|at| format!("k{at}"))))
            .unwrap();
        let vectors = db.stats().unwrap().vectors;
        assert_eq!((vectors.regime, vectors.dead), ("graph", ROWS.div_ceil(9) as u64));
        linked.best = linked.answers(&db, Effort::Exact);
        db.close().unwrap();
        linked
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("memory.oub")
    }

    fn open(&self) -> Database {
        // More than 50 rows have a graph.
        let policy = "[index]\nscan_max = 4_400\ntail_min = 1_000";
        let builder = Database::builder().secret([3; 32]).cache_bytes(4 << 20);
        builder.policy(Policy::parse(policy, Syntax::Toml).unwrap()).open(self.path()).unwrap()
    }

    fn answers(&self, db: &Database, effort: Effort) -> Vec<Vec<Hit>> {
        let hits = |at| {
            db.namespace(NamespaceName::default()).unwrap().search(asked(at).effort(effort)).unwrap().hits
        };
        (0..20).map(hits).collect()
    }

    /// Changes the rows of a table behind the back of everything.
    fn change(&self, table: &str, change: impl FnOnce(&mut Rows)) {
        let db = redb::Database::open(self.path()).unwrap();
        let tx = db.begin_write().unwrap();
        {
            let mut table = tx.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(table)).unwrap();
            let all = table.iter().unwrap().map(|row| row.unwrap());
            let mut rows: Rows =
                all.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect();
            change(&mut rows);
            table.retain(|_, _| false).unwrap();
            for (key, value) in &rows {
                table.insert(key.as_slice(), value.as_slice()).unwrap();
            }
        }
        tx.commit().unwrap();
    }

    /// Everything is drawn from texts and vectors again, and is whole then.
    fn heal(&self, db: &Database, what: &str) {
        let live = (ROWS - ROWS.div_ceil(9)) as u64;
        assert_eq!(db.reindex().unwrap(), live, "{what}");
        let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{what}: healed, and still {:?}", report.findings);
        let stats = db.stats().unwrap();
        assert_eq!(stats.health.index_warnings, Vec::<String>::new(), "{what}");
        assert_eq!((stats.vectors.in_graph, stats.vectors.dead), (live, 0), "{what}");
        self.expect_answers(db, what);
        assert_eq!(
            db.namespace(NamespaceName::default()).unwrap().search(asked(0)).unwrap().plan.regime,
            "graph",
            "{what}"
        );
        let left = db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)).unwrap();
        assert!(left.passes.iter().all(|pass| (pass.left, pass.skipped) == (0, 0)), "{what}: {left:?}");
    }

    /// The nearest; of a walk whose list has room for all rows it is the same.
    fn expect_answers(&self, db: &Database, what: &str) {
        for effort in [Effort::Exact, Effort::Ef(ROWS)] {
            assert!(self.answers(db, effort) == self.best, "{what}: another answer with {effort:?}");
        }
    }
}

/// No two rows have the same vector.
fn spread(at: usize) -> Vec<f32> {
    let mut chance = Chance::new(at as u64);
    (0..DIM).map(|_| chance.below(1_000) as f32 - 500.0).collect()
}

/// Key and value of row `at`, counted from the first.
fn nth(rows: &mut Rows, at: usize) -> (&Vec<u8>, &mut Vec<u8>) {
    rows.iter_mut().nth(at).unwrap()
}

#[test]
fn a_damaged_graph_is_not_walked_and_reindex_heals_it() {
    type Damage = (&'static str, fn(&mut Rows));
    let damages: [Damage; 8] = [
        ("a bit of the first row", |rows| nth(rows, 0).1[9] ^= 4),
        ("a bit of a later row", |rows| {
            let value = nth(rows, 7).1;
            let middle = value.len() / 2;
            value[middle] ^= 1;
        }),
        ("the last bit of a row", |rows| *nth(rows, 3).1.last_mut().unwrap() ^= 128),
        ("a row cut short", |rows| nth(rows, 5).1.truncate(20)),
        ("an empty row", |rows| nth(rows, 5).1.clear()),
        ("a row that is gone", |rows| {
            rows.pop_first();
        }),
        ("all rows gone", Rows::clear),
        ("two rows in each other's place", |rows| {
            let (a, b) = (nth(rows, 1).1.clone(), nth(rows, 2).1.clone());
            *nth(rows, 1).1 = b;
            *nth(rows, 2).1 = a;
        }),
    ];
    for (what, damage) in damages {
        let linked = Linked::new();
        linked.change("graph", damage);
        let (db, ns) = (linked.open(), NamespaceName::default());
        let found = db.namespace(&ns).unwrap().search(asked(0)).unwrap();
        assert_eq!(found.plan.regime, "codes", "{what}: walked all the same");
        assert!(linked.answers(&db, Effort::default()) == linked.best, "{what}: another answer");
        let warnings = db.stats().unwrap().health.index_warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("reindex"), "{what}: {warnings:?}");
        let report = db.check(&CheckOptions::default()).unwrap();
        assert!(!report.ok, "{what}: the check finds nothing");
        // Maintenance leaves it alone and says so.
        let kept = db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)).unwrap();
        assert!(kept.passes.iter().any(|pass| pass.skipped == 1 && pass.left > 0), "{what}: {kept:?}");
        // It can be written to.
        let added = Draft::new("after the damage").key("after").vector(vector(3));
        db.namespace(&ns).unwrap().add(added).unwrap();
        assert!(
            db.namespace(&ns).unwrap().search(Query::vector(vector(3)).k(1)).unwrap().hits[0].score > 0.999,
            "{what}"
        );
        let forgotten =
            db.namespace(&ns).unwrap().forget(oubliette::Forget::names(["after"])).map(|done| done.forgotten);
        assert_eq!(forgotten.unwrap(), 1, "{what}");
        linked.heal(&db, what);
        db.close().unwrap();
        linked.heal(&linked.open(), what);
    }
}

#[test]
fn a_damaged_row_of_the_slots_hides_its_own_memories_and_reindex_heals_it() {
    for table in ["slot", "slot_head", "slot_dead", "graph_head"] {
        type Damage = (&'static str, fn(&mut Rows));
        let damages: [Damage; 3] = [
            ("a bit", |rows| {
                let (key, mut value) = rows.pop_first().unwrap();
                let mut key = key;
                match value.get_mut(6) {
                    Some(byte) => *byte ^= 1,
                    None => *key.last_mut().unwrap() ^= 1,
                }
                rows.insert(key, value);
            }),
            ("a row gone", |rows| drop(rows.pop_first().unwrap())),
            ("all rows gone", Rows::clear),
        ];
        for (what, damage) in damages {
            let what = format!("{table}: {what}");
            let linked = Linked::new();
            linked.change(table, damage);
            let (db, ns) = (linked.open(), NamespaceName::default());
            match db.namespace(&ns).unwrap().search(asked(0)) {
                // What a block says that is gone is not found; nothing else is.
                Ok(found) => {
                    let mut pairs = found.hits.iter().zip(&linked.best[0]);
                    assert!(pairs.all(|(hit, best)| hit.score <= best.score), "{what}: another answer");
                    // An answer that lacks a memory says so (LIFE-49).
                    let lacks = found.hits.iter().zip(&linked.best[0]).any(|(hit, best)| hit.id != best.id);
                    assert!(
                        !lacks || found.plan.damaged > 0,
                        "{what}: nothing tells that a memory is missing"
                    );
                }
                Err(why) => assert_eq!(why.kind(), ErrorKind::Corrupted, "{what}: {why}"),
            }
            if let Err(why) = db.stats() {
                assert_eq!(why.kind(), ErrorKind::Corrupted, "{what}: {why}");
            }
            let report = db.check(&CheckOptions::default()).unwrap();
            assert!(!report.ok, "{what}: the check finds nothing");
            if let Err(why) = db.maintain_with(&MaintainOptions::live().passes(Pass::ALL)) {
                assert_eq!(why.kind(), ErrorKind::Corrupted, "{what}: {why}");
            }
            linked.heal(&db, &what);
            db.close().unwrap();
            linked.heal(&linked.open(), &what);
        }
    }
}

#[test]
fn no_memory_is_given_the_slot_of_another_when_the_head_of_the_slots_is_gone() {
    let linked = Linked::new();
    linked.change("slot_head", Rows::clear);
    let (db, ns) = (linked.open(), NamespaceName::default());
    // The write has the index built anew, and then it stands in a place of its own.
    db.namespace(&ns).unwrap().add(Draft::new("in a place of its own").key("own").vector(vector(3))).unwrap();
    db.namespace(&ns).unwrap().forget(oubliette::Forget::names(["own"])).unwrap();
    linked.heal(&db, "the head of the slots");
}
