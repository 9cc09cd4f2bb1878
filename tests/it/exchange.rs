//! Imports and exports against a real database.

use std::io::Cursor;

use oubliette::clock::ManualClock;
use oubliette::embed::HashEmbedder;
use oubliette::exchange::{Export, Format, Import, LineReader, NpyReader, NpyWriter, Observer, VectorsTo};
use oubliette::maintain::RunId;
use oubliette::memory::Link;
use oubliette::report::{CheckOptions, RuleId};
use oubliette::{
    Database, Draft, Error, ErrorKind, Forget, NamespaceName, Outcome, PageRequest, Patch, Result, Scope,
    Snapshot,
};
use serde_json::Value;

const NOW: &str = "2026-11-21T10:00:00Z";

fn database(folder: &tempfile::TempDir, name: &str) -> Database {
    let clock = ManualClock::at(NOW.parse().unwrap());
    Database::builder().clock(clock).open(folder.path().join(name)).unwrap()
}

fn lines(text: &str) -> LineReader<&[u8]> {
    LineReader::new(text.as_bytes(), "lines")
}

fn export(snapshot: &Snapshot, namespaces: Vec<NamespaceName>, all_states: bool) -> String {
    let mut out = Vec::new();
    let export = Export { namespaces, all_states };
    export.write(snapshot, &mut out, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
    String::from_utf8(out).unwrap()
}

/// A reader of lines behind which the file is compacted as soon as it has the first.
struct Compacting(Database, bool);

impl std::io::Write for Compacting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !std::mem::replace(&mut self.1, true) {
            self.0.compact().map_err(std::io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whoever exports can begin anew, because the error says that the file was replaced and not that the disk has failed.
#[test]
fn an_export_that_a_compact_overtakes_is_told_apart_from_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "m.oub");
    let team = db.namespace("team").unwrap();
    for number in 0..2_000 {
        team.add(format!("text {number}")).unwrap();
    }
    let export = Export::new([team.name().clone()]);
    let begun = |out: &mut dyn std::io::Write| {
        export.write(&db.snapshot().unwrap(), out, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines)
    };
    let why = begun(&mut Compacting(db.clone(), false)).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::SnapshotExpired, "{why}");
    assert_eq!(begun(&mut Vec::new()).unwrap().memories, 2_000);
}

/// What an observer saw, a line each.
#[derive(Default)]
struct Seen(Vec<String>);

impl Observer for Seen {
    fn started(&mut self, namespace: &NamespaceName, _run: RunId) -> Result<()> {
        self.0.push(format!("started {namespace}"));
        Ok(())
    }

    fn decided(&mut self, line: u64, namespace: &NamespaceName, outcome: &Outcome) -> Result<()> {
        self.0.push(format!("{line} {namespace} {}", outcome.decision.as_str()));
        Ok(())
    }

    fn bad(&mut self, error: &Error) {
        self.0.push(format!("bad: {error}"));
    }

    fn warned(&mut self, line: u64, warning: &str) {
        self.0.push(format!("{line} warns: {warning}"));
    }
}

const MIXED: &str = r#"{"key":"a","text":"one","vector":[1,0]}

{"text":"broken"
{"key":"b","text":"two","vector":[0,0]}
{"key":"c","text":"three","vector":[0,1]}
{"key":"d","text":"four","supersedes":["nobody"]}
{"key":"e","text":"five","namespace":"other"}
{"key":"f","text":"six","vector":[1,2,3]}
"#;

#[test]
fn a_bad_line_is_named_and_nothing_of_its_batch_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let error = Import::default().run(&db, lines(MIXED), &mut ()).unwrap_err();
    assert!(error.to_string().starts_with("line 3: line: "), "{error}");
    assert!(db.namespaces().unwrap().is_empty(), "not even a run is written");

    let text: String =
        MIXED.lines().filter(|line| !line.contains("broken")).map(|line| format!("{line}\n")).collect();
    let error = Import::default().run(&db, lines(&text), &mut ()).unwrap_err();
    assert!(error.to_string().starts_with("line 3: vector"), "{error}");
    assert!(db.namespaces().unwrap().is_empty());

    let small = Import { batch_rows: 1, ..Import::default() };
    let error = small.run(&db, lines(&text), &mut ()).unwrap_err();
    assert!(error.to_string().starts_with("line 3: vector"), "{error}");
    assert_eq!(
        db.namespace(NamespaceName::default()).unwrap().list(&PageRequest::default()).unwrap().items.len(),
        1
    );
}

#[test]
fn skip_bad_leaves_out_the_bad_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    for batch_rows in [1, 2, 3, 1_000] {
        let db = database(&folder, &format!("{batch_rows}.oub"));
        let mut seen = Seen::default();
        let import = Import { batch_rows, skip_bad: true, ..Import::default() };
        let report = import.run(&db, lines(MIXED), &mut seen).unwrap();
        assert_eq!((report.read, report.stored, report.bad), (7, 3, 4), "{:?}", seen.0);
        let has = |start: &str| seen.0.iter().any(|line| line.starts_with(start));
        for start in [
            "1 default stored",
            "5 default stored",
            "7 other stored",
            "bad: line 3: line",
            "bad: line 4: vector",
        ] {
            assert!(has(start), "{start} is not in {:?}", seen.0);
        }
        assert!(has("bad: line 6: memory not found"), "{:?}", seen.0);
        assert!(has("bad: line 8: vector"), "{:?}", seen.0);
        assert_eq!(report.runs.len(), 2);
    }
}

#[test]
fn equal_content_and_keys_decide_and_a_second_import_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let text = r#"{"key":"a","text":"one"}
{"key":"b","text":"one"}
{"key":"c","text":"three","tier":"eternal"}
"#;
    let mut seen = Seen::default();
    let report = Import::default().run(&db, lines(text), &mut seen).unwrap();
    assert_eq!((report.stored, report.reinforced, report.warnings), (2, 1, 1), "{:?}", seen.0);
    let again = Import::default().run(&db, lines(text), &mut ()).unwrap();
    assert_eq!((again.read, again.stored, again.reinforced), (3, 0, 0));
    let apart = Import { no_dedup: true, ..Import::default() };
    let apart = apart.run(&db, lines(r#"{"key":"z","text":"one"}"#), &mut ()).unwrap();
    assert_eq!(apart.stored, 1);
}

/// DEDUP-56: each import of such a file had stored the older text once more, and the newer text after it.
#[test]
fn a_file_that_revises_its_own_keys_changes_nothing_when_it_is_imported_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let text = r#"{"key":"lamp","text":"the lamp is red","importance":0.9}
{"key":"door","text":"the door is open"}
{"key":"lamp","text":"the lamp is green"}
{"key":"lamp","text":"the lamp is green"}
{"key":"lamp","text":"the lamp is red","importance":0.9}
{"key":"lamp","text":"the lamp is blue","agent":null}
"#;
    let first = Import::default().run(&db, lines(text), &mut ()).unwrap();
    assert_eq!((first.stored, first.unchanged, first.revised), (2, 1, 3));
    let all = || export(&db.snapshot().unwrap(), vec![NamespaceName::default()], true);
    let before = all();
    for _ in 0..2 {
        let again = Import::default().run(&db, lines(text), &mut ()).unwrap();
        assert_eq!((again.unchanged, again.revised), (6, 0));
        let memories = |text: String| -> Vec<String> {
            text.lines().filter(|line| line.contains("\"text\"")).map(str::to_owned).collect()
        };
        assert_eq!(memories(all()), memories(before.clone()));
    }
    // What is true now is another text: the file is written once more, line by line.
    let team = db.namespace(NamespaceName::default()).unwrap();
    team.add(Draft::new("the lamp is gone").key("lamp")).unwrap();
    let anew = Import::default().run(&db, lines(text), &mut ()).unwrap();
    assert_eq!((anew.unchanged, anew.revised), (2, 4));
    // The older text alone is no earlier write of the file: it takes the key back.
    let old = r#"{"key":"lamp","text":"the lamp is red","importance":0.9}"#;
    assert_eq!(Import::default().run(&db, lines(old), &mut ()).unwrap().revised, 1);
    // Another field of the older text is another write.
    let other = r#"{"key":"door","text":"the door is shut","importance":0.1}
{"key":"door","text":"the door is open"}"#;
    assert_eq!(Import::default().run(&db, lines(other), &mut ()).unwrap().revised, 2);
    let other = other.replace("0.1", "0.2");
    assert_eq!(Import::default().run(&db, lines(&other), &mut ()).unwrap().revised, 2);
    assert!(db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok);
}

/// Lines of a JSON document each, with an attribute after the other: `key text supersedes tag`, and `-` for none.
fn rows(short: &[&str]) -> String {
    let mut all = String::new();
    for row in short {
        let mut line = serde_json::Map::new();
        for (name, value) in
            ["key", "text", "supersedes", "tags", "importance"].into_iter().zip(row.split(' '))
        {
            match (name, value) {
                (_, "-") => None,
                ("supersedes" | "tags", value) => line.insert(name.to_owned(), vec![value].into()),
                ("importance", value) => line.insert(name.to_owned(), value.parse::<f64>().unwrap().into()),
                (_, value) => line.insert(name.to_owned(), value.into()),
            };
        }
        all.push_str(&format!("{}\n", Value::Object(line)));
    }
    all
}

/// DEDUP-56: what earlier lines of a file wrote and later lines changed is not written once more, in whatever way they changed it.
#[test]
fn a_file_that_is_imported_again_changes_nothing_in_whatever_way_its_lines_change_each_other() {
    for short in [
        &["a one", "b two a"][..],
        &["a one", "a two", "b three a"],
        &["a one", "b two a", "b three"],
        &["a one", "b two a", "c three b"],
        &["a one", "b one", "c two a"],
        &["a one", "a two a"],
        &["a one - y", "a one - x"],
        &["a one - y", "a one - x", "a two"],
        &["a one - - 0.5", "a one - x", "a two", "a two - z 0.25", "a one"],
        &["a one - y", "a two - y", "a two - x"],
        &["a one", "b one", "a two"],
        &["a one", "b one", "a two", "a three"],
        &["a one - p", "b one - q", "a two", "b two", "a one - p"],
        &["b one", "a one b"],
        &["b one", "a one b", "a two"],
        &["b one", "a one b", "a two", "a three"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let db = database(&folder, "a.oub");
        let text = rows(short);
        Import::default().run(&db, lines(&text), &mut ()).unwrap();
        let memories = || -> Vec<String> {
            let all = export(&db.snapshot().unwrap(), vec![NamespaceName::default()], true);
            all.lines().filter(|line| line.contains("\"text\"")).map(str::to_owned).collect()
        };
        let before = memories();
        for _ in 0..2 {
            let again = Import::default().run(&db, lines(&text), &mut ()).unwrap();
            assert_eq!((again.read, again.bad), (again.unchanged, 0), "{short:?}: {again:?}");
            assert_eq!(memories(), before, "{short:?}");
        }
        assert!(db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok, "{short:?}");
    }
}

/// DEDUP-56: the same where others have said a text of the file before, so that its key leaves their memory with the later line.
#[test]
fn a_file_that_is_imported_again_changes_nothing_where_others_say_its_texts() {
    let chain = &["e one x", "f two e"][..];
    let cases = [
        (&["x zero", "b one"][..], chain),
        (&["x zero", "- one"], chain),
        (&["x zero", "b one", "e one"], chain),
        (&["x zero", "y zero", "b one"], &["e one x", "f two e", "g three y"]),
        (&["x zero", "b one"], &["e one x", "e two"]),
    ];
    for (before, file) in cases {
        let folder = tempfile::tempdir().unwrap();
        let db = database(&folder, "a.oub");
        let import = |short: &[&str]| Import::default().run(&db, lines(&rows(short)), &mut ()).unwrap();
        import(before);
        import(file);
        let memories = || -> Vec<String> {
            let all = export(&db.snapshot().unwrap(), vec![NamespaceName::default()], true);
            all.lines().filter(|line| line.contains("\"text\"")).map(str::to_owned).collect()
        };
        let once = memories();
        for _ in 0..2 {
            let again = import(file);
            assert_eq!(again.read, again.unchanged, "{before:?} {file:?}: {again:?}");
            assert_eq!(memories(), once, "{before:?} {file:?}");
        }
        assert!(db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok, "{before:?}");
    }
}

/// DEDUP-56: a text that a key had said before is a write of its own, unless the file goes on to what the key says now.
#[test]
fn an_earlier_text_that_comes_alone_is_stored() {
    for (first, then, newest) in [
        (&["a one", "a two"][..], &["a one"][..], "one"),
        (&["a one", "b two a"], &["a one"], "one"),
        (&["a one", "b two a"], &["a one", "c three a"], "three"),
        (&["a one", "b one", "a two"], &["a one"], "one"),
        (&["a one", "b two a", "a three"], &["a one", "b two a", "a three"], "three"),
        (&["a one", "a two"], &["a zero", "a two"], "two"),
        (&["a one - x", "a two"], &["a one - y", "a two"], "two"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let db = database(&folder, "a.oub");
        Import::default().run(&db, lines(&rows(first)), &mut ()).unwrap();
        let team = db.namespace(NamespaceName::default()).unwrap();
        let versions = || team.history("a").unwrap().versions.len();
        let before = versions();
        Import::default().run(&db, lines(&rows(then)), &mut ()).unwrap();
        assert!(versions() > before, "{first:?} {then:?}");
        assert_eq!(team.get("a").unwrap().unwrap().text, newest, "{first:?} {then:?}");
        assert!(db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok, "{first:?}");
    }
}

#[test]
fn rows_of_numpy_belong_to_lines() {
    let folder = tempfile::tempdir().unwrap();
    let npy = |rows: usize| {
        let mut writer = NpyWriter::new(Cursor::new(Vec::new()), 2, "v.npy").unwrap();
        (0..rows).for_each(|row| writer.write_row(&[1.0, row as f32]).unwrap());
        NpyReader::from_reader(Cursor::new(writer.finish().unwrap().into_inner()), "v.npy").unwrap()
    };
    let text = "{\"key\":\"a\",\"text\":\"one\"}\n{\"key\":\"b\",\"text\":\"two\"}\n";
    let db = database(&folder, "a.oub");
    for rows in [1, 3] {
        let error = Import { skip_bad: true, ..Import::default() }
            .run_with_vectors(&db, lines(text), Some(npy(rows)), &mut ())
            .unwrap_err();
        assert!(error.to_string().contains("vectors: must have"), "{error}");
    }
    assert!(db.namespaces().unwrap().is_empty());
    let report = Import::default().run_with_vectors(&db, lines(text), Some(npy(2)), &mut ()).unwrap();
    assert_eq!(report.stored, 2);
    let memory =
        db.namespace(NamespaceName::default()).unwrap().look_up("b", true).unwrap().into_memory().unwrap();
    assert_eq!(memory.vector.unwrap().len(), 2);
}

#[test]
fn files_of_other_tools_come_with_a_tag() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let import = |format, text: &str| {
        let tag = Some(format!("import:{}:2026-11-21", format_name(format)));
        Import { format, tag, ..Import::default() }.run(&db, lines(text), &mut ())
    };
    let graph = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["tea","dogs"]}
{"type":"relation","from":"Ann","to":"Bob","relationType":"knows"}"#;
    assert_eq!(import(Format::ServerMemory, graph).unwrap().stored, 4);
    assert_eq!(import(Format::ServerMemory, graph).unwrap().unchanged, 4);
    let error = import(Format::ServerMemory, "{\"type\":\"entity\"}").unwrap_err();
    assert!(error.to_string().starts_with("line 1: name"), "{error}");
    assert_eq!(import(Format::Mem0, r#"[{"id":"1","memory":"likes tea"}]"#).unwrap().stored, 1);
    let error = import(Format::Mem0, r#"[{"id":"1","memory":"x"},{"id":"2","memory":""}]"#).unwrap_err();
    assert!(error.to_string().starts_with("item 2: text"), "{error}");
    let ann = db
        .namespace(NamespaceName::default())
        .unwrap()
        .look_up("mem0:1", false)
        .unwrap()
        .into_memory()
        .unwrap();
    assert_eq!(ann.tags, ["import:mem0:2026-11-21"]);
}

fn format_name(format: Format) -> &'static str {
    format.as_str()
}

/// MODEL-48: the shipped data with revisions, supersessions, several holders, agents, expired rows and tombstones.
#[test]
fn model_48_export_import_export_is_byte_equal() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    // What expired is to be in the export.
    db.set_policy("purge.per_write = 0", oubliette::policy::Syntax::Toml).unwrap();
    let ns = db.namespace("default").unwrap();
    let data = include_str!("../../src/bin/oubliette/demo/data/memories.jsonl");
    db.use_embedder(HashEmbedder::new()).unwrap();
    let report = Import::default().run(&db, lines(data), &mut ()).unwrap();
    assert_eq!(report.stored, 1_400);
    let more = r#"{"key":"debian:abacas","text":"abacas, told anew"}
{"key":"debian:age-2","text":"age again","supersedes":["debian:golang-filippo-age-dev"],"supersede_mode":"correction"}
{"key":"soon","text":"not yet","valid_from":"2027-01-01T00:00:00Z"}
{"key":"late","text":"no longer","expires_at":"2026-01-01T00:00:00Z","created_at":"2025-01-01T00:00:00Z"}
{"key":"ops","text":"of an agent","agent":"ops","entities":["Ann"],"categories":["c"],"importance":0.3}
{"key":"ops2","text":"of an agent","agent":"ops","tags":["pinned"]}
{"key":"n","text":"elsewhere","namespace":"other","metadata":{"a":[1,2.5,null]}}
"#;
    Import::default().run(&db, lines(more), &mut ()).unwrap();
    let gone: Vec<String> = data
        .lines()
        .step_by(7)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned())
        .collect();
    let forgotten = ns.forget(Forget::names(gone)).unwrap();
    assert!(forgotten.forgotten > 100 && !forgotten.tombstones.is_empty());

    for all_states in [false, true] {
        let namespaces = db.namespaces().unwrap();
        let first = export(&db.snapshot().unwrap(), namespaces.clone(), all_states);
        let other = database(&folder, if all_states { "c.oub" } else { "b.oub" });
        let import = Import { batch_rows: 97, ..Import::default() };
        let report = import.run(&other, lines(&first), &mut ()).unwrap();
        assert_eq!(report.read, report.stored + report.tombstones + report.told);
        assert_eq!(report.tombstones > 0, all_states);
        let second = export(&other.snapshot().unwrap(), namespaces, all_states);
        let differing = first.lines().zip(second.lines()).find(|(a, b)| a != b);
        assert!(first == second, "{differing:?}");
        let states =
            ["superseded", "expired", "live"].map(|state| first.contains(&format!("\"state\":\"{state}\"")));
        assert_eq!(states, [all_states, all_states, true]);
        assert_eq!(first.contains("\"key\":\"soon\""), all_states, "what is not yet valid is no visible row");
        let again = import.run(&other, lines(&first), &mut ()).unwrap();
        assert_eq!(again.stored, 0, "the same file again");
        let report = other.check(&CheckOptions::default()).unwrap();
        assert!(report.ok, "{:?}", report.findings.first());
    }
}

#[test]
fn vectors_beside_the_lines_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let text = "{\"key\":\"a\",\"text\":\"one\",\"vector\":[3,4]}\n{\"key\":\"b\",\"text\":\"two\"}\n";
    Import::default().run(&db, lines(text), &mut ()).unwrap();
    let mut out = Vec::new();
    let mut npy = NpyWriter::new(Cursor::new(Vec::new()), 2, "v.npy").unwrap();
    let report = Export::new([NamespaceName::default()])
        .write(&db.snapshot().unwrap(), &mut out, "out", VectorsTo::Npy(&mut npy, 2))
        .unwrap();
    assert_eq!((report.memories, report.vectors), (2, 1));
    let npy = npy.finish().unwrap().into_inner();
    let other = database(&folder, "b.oub");
    let vectors = NpyReader::from_reader(npy.as_slice(), "v.npy").unwrap();
    let reader = LineReader::new(out.as_slice(), "out");
    Import::default().run_with_vectors(&other, reader, Some(vectors), &mut ()).unwrap();
    let all = vec![NamespaceName::default()];
    assert_eq!(
        export(&db.snapshot().unwrap(), all.clone(), false),
        export(&other.snapshot().unwrap(), all, false)
    );
    let stored = other.namespace(NamespaceName::default()).unwrap().explain("a").unwrap();
    assert_eq!(stored.created.rule, Some(RuleId::IMPORT_ROW));
    let listed = other
        .namespace(NamespaceName::default())
        .unwrap()
        .list(&PageRequest { scope: Scope::Any, ..PageRequest::default() });
    assert_eq!(listed.unwrap().items.len(), 2);
}

/// Somebody who reads slowly, while others write.
struct Slow<'d> {
    clock: ManualClock,
    db: &'d Database,
    lines: Vec<u8>,
}

impl std::io::Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.clock.advance("2m".parse().unwrap());
        // Whoever writes lets go of snapshots whose time is over.
        self.db.namespace(NamespaceName::default()).unwrap().reinforce("k0", 1).unwrap();
        self.lines.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_outlasts_the_lease_of_its_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(NOW.parse().unwrap());
    let builder = Database::builder().clock(clock.clone()).lease("1m".parse::<oubliette::Span>().unwrap());
    let db = builder.open(folder.path().join("m.oub")).unwrap();
    let ns = db.namespace("default").unwrap();
    for at in 0..3 {
        ns.add(Draft::new(format!("text {at}")).key(format!("k{at}"))).unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    let mut slow = Slow { clock, db: &db, lines: Vec::new() };
    let at_once = export(&snapshot, vec![ns.name().clone()], true);
    let all = Export { namespaces: vec![ns.name().clone()], all_states: true };
    let report = all.write(&snapshot, &mut slow, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
    assert_eq!((report.memories, String::from_utf8(slow.lines).unwrap()), (3, at_once));
    // What was kept for the export goes after it.
    let why = all.write(&snapshot, &mut Vec::new(), "out", VectorsTo::<Cursor<Vec<u8>>>::Lines);
    assert_eq!(why.unwrap_err().kind(), ErrorKind::SnapshotExpired);
}

/// The last instant stands for never: nothing was found then, and the lease of a snapshot was over when it began.
#[test]
fn a_snapshot_of_the_last_instant_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at("9999-12-31T23:59:59Z".parse().unwrap());
    let db = Database::builder().clock(clock).open(folder.path().join("m.oub")).unwrap();
    let team = db.namespace("default").unwrap();
    team.add(Draft::new("Ann prefers tea").key("tea")).unwrap();
    let snapshot = db.snapshot().unwrap();
    assert_eq!(snapshot.namespace("default").unwrap().search("tea").unwrap().hits.len(), 1);
    assert_eq!(export(&snapshot, vec![team.name().clone()], true).lines().count(), 1);
}

/// A memory that many writes hold is longer than any line that a caller writes.
#[test]
fn every_memory_can_be_exported_and_imported_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "m.oub");
    let ns = db.namespace("default").unwrap();
    let to = ns.add(Draft::new("what the others name")).unwrap().id;
    let hold = |number: usize| {
        let relation = |at: usize| format!("{at:0>120}");
        let mut draft = Draft::new("said by many").key(format!("k{number}"));
        draft.links = Some((0..1_000).map(|at| Link { to, relation: relation(at) }).collect());
        ns.add(draft).unwrap()
    };
    (0..100).for_each(|number| drop(hold(number)));
    let out = export(&db.snapshot().unwrap(), vec![ns.name().clone()], true);
    let longest = out.lines().map(str::len).max().unwrap();
    assert!(longest > 16 << 20, "{longest} bytes");
    let copy = database(&folder, "copy.oub");
    assert_eq!(Import::default().run(&copy, lines(&out), &mut ()).unwrap().stored, 2);
    assert_eq!(export(&copy.snapshot().unwrap(), vec![ns.name().clone()], true), out);
}

#[test]
fn a_bad_item_of_mem0_is_named_and_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let text = r#"{"results":[{"id":"1","memory":"tea"},{"id":"2","memory":null},{"id":"3"},{"id":"4","memory":"milk"}]}"#;
    let import = Import { format: Format::Mem0, ..Import::default() };
    let error = import.run(&db, lines(text), &mut ()).unwrap_err().to_string();
    assert!(error.starts_with("item 2: memory: must be a text"), "{error}");
    let dated = r#"{"results":[{"id":"1","memory":"tea","expiration_date":"tomorrow"}]}"#;
    let error = import.run(&db, lines(dated), &mut ()).unwrap_err().to_string();
    assert!(error.starts_with("item 1: expiration_date: must be RFC 3339"), "{error}");
    let mut seen = Seen::default();
    let report = Import { skip_bad: true, ..import }.run(&db, lines(text), &mut seen).unwrap();
    assert_eq!((report.read, report.stored, report.bad), (4, 2, 2), "{:?}", seen.0);
    assert!(seen.0.iter().any(|line| line.starts_with("bad: item 3: memory: ")), "{:?}", seen.0);
}

/// A key of another agent does not follow to what supersedes its text, and the file is the same again all the same (DEDUP-56).
#[test]
fn a_file_that_supersedes_across_agents_stores_nothing_new_when_it_is_imported_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let text = "{\"key\":\"a\",\"agent\":\"x\",\"text\":\"old\"}\n\
        {\"key\":\"b\",\"agent\":\"y\",\"text\":\"new\",\"supersedes\":[\"a\"]}\n";
    let import = || Import::default().run(&db, lines(text), &mut ()).unwrap();
    assert_eq!((import().stored, import().unchanged, import().unchanged), (2, 2, 2));
    let stats = db.namespace(NamespaceName::default()).unwrap().stats().unwrap();
    assert_eq!((stats.memories.live, stats.memories.superseded), (1, 1));
}

/// A line that somebody has edited changes nothing, because the store may have moved on since; the answer says so (MODEL-48).
#[test]
fn an_edited_line_of_an_export_is_told_from_the_same_line_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let team = db.namespace(NamespaceName::default()).unwrap();
    let ann = team.add(Draft::new("Ann lives in Ulm").key("ann").tag("home")).unwrap().id;
    team.add(Draft::new("Ann lives in Ulm").key("twin")).unwrap();
    let first = export(&db.snapshot().unwrap(), db.namespaces().unwrap(), true);
    let again = |text: &str| {
        let mut seen = Seen::default();
        let report = Import::default().run(&db, lines(text), &mut seen).unwrap();
        (
            report.unchanged,
            report.warnings,
            seen.0.into_iter().filter(|line| line.contains("warns")).collect::<Vec<_>>(),
        )
    };
    let none = Vec::<String>::new;
    assert_eq!(again(&first), (1, 0, none()));
    let edited = first.replace("in Ulm", "in Bonn").replace("\"importance\":0.5", "\"importance\":0.9");
    let edited = edited.replace("\"home\"", "\"house\"");
    let (unchanged, warnings, told) = again(&edited);
    assert_eq!((unchanged, warnings, told.len()), (1, 1, 1));
    assert!(told[0].contains("another text, tags, importance. An edit is"), "{told:?}");
    assert_eq!(team.get(ann).unwrap().unwrap().text, "Ann lives in Ulm");
    // Uses change what stands there, and a file of an earlier day is no edit.
    team.search(oubliette::Query::text("Ulm").track(true)).unwrap();
    db.flush_access().unwrap();
    assert!(team.get(ann).unwrap().unwrap().confidence > Some(0.4));
    assert_eq!(again(&first), (1, 0, none()));
    team.update(ann, Patch::default().importance(0.7)).unwrap();
    assert_eq!(again(&first), (1, 0, none()));
}

/// The name of the namespace that a line had goes into its metadata, and into no export that can't be imported again.
#[test]
fn metadata_without_room_for_their_namespace_are_a_bad_line() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, "a.oub");
    let note = "x".repeat(65_520);
    let draft = Draft::new("long").metadata(serde_json::json!({ "note": note }));
    db.namespace(NamespaceName::default()).unwrap().add(draft).unwrap();
    let text = export(&db.snapshot().unwrap(), db.namespaces().unwrap(), true);
    let into = Import { into: Some("other".parse().unwrap()), ..Import::default() };
    let copy = database(&folder, "b.oub");
    let error = into.run(&copy, lines(&text), &mut ()).unwrap_err().to_string();
    assert!(error.starts_with("line 1: metadata: must be at most 65536 bytes of JSON"), "{error}");
    let skipped = Import { skip_bad: true, ..into }.run(&copy, lines(&text), &mut ()).unwrap();
    assert_eq!((skipped.read, skipped.stored, skipped.bad), (1, 0, 1));
    assert_eq!(Import::default().run(&copy, lines(&text), &mut ()).unwrap().stored, 1);
}
