//! Programs as those who know other embedded databases write them at the first try: they compile, and do what they say.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use oubliette::embed::{Embedder, HashEmbedder};
use oubliette::memory::Tombstone;
use oubliette::{
    Builder, Database, Decision, Draft, Error, ErrorKind, Filter, Forget, Kind, Memory, MemoryId, Namespace,
    Patch, Query, Result, Scope, Snapshot, Span, State, Time,
};

fn open(folder: &tempfile::TempDir) -> Database {
    Database::open(folder.path().join("memory.oub")).unwrap()
}

/// The program of the front page.
#[test]
fn the_front_page() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path().join("memory.oub"))?;
    let team = db.namespace("team")?;
    team.add("Ann prefers tea")?;
    team.add(Draft::new("Ann lives in Ghent").key("ann:home").tag("people"))?;
    team.supersede("ann:home", Draft::new("Ann lives in Bruges").key("ann:home"))?;
    let hits = team.search("where does Ann live?")?.hits;
    assert_eq!(hits[0].text, "Ann lives in Bruges");
    assert_eq!(hits[0].key.as_deref(), Some("ann:home"));
    assert_eq!(team.forget("ann:home")?.tombstones.len(), 2, "both versions of the key");
    assert!(team.get("ann:home")?.is_none());
    assert_eq!(team.search("where does Ann live?")?.hits.len(), 1);
    Ok(())
}

/// What stands for a name: texts owned and borrowed, ids, keys out of a struct.
#[test]
fn names_are_ids_or_keys_of_any_sort_of_text() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let tenant = String::from("tenant 7");
    let team: Namespace = db.namespace(&tenant)?;
    let (key, owned) = ("drink", String::from("drink"));
    let id: MemoryId = team.add(Draft::new("Ann prefers tea").key(key))?.id;
    for found in [team.get(id)?, team.get(key)?, team.get(&owned)?, team.get(owned)?] {
        assert_eq!(found.map(|memory: Memory| memory.id), Some(id));
    }
    team.pin(id, true)?;
    team.reinforce("drink", 2)?;
    team.update("drink", Patch::new().text("Ann prefers coffee"))?;
    assert_eq!(team.history(key)?.versions.len(), 2);
    assert_eq!(team.explain(id)?.id, id);
    assert_eq!(db.namespace(tenant)?.name(), team.name());
    Ok(())
}

/// A helper that takes a handle, in a thread, and keeps it: it is `Clone`, `Send` and `Sync`.
#[test]
fn a_handle_goes_into_structs_and_threads() {
    #[derive(Clone)]
    struct Assistant {
        memory: Namespace,
    }
    impl Assistant {
        fn hear(&self, text: &str) -> Result<Decision> {
            Ok(self.memory.add(text)?.decision)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let assistant = Assistant { memory: open(&folder).namespace("ann").unwrap() };
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let assistant = assistant.clone();
            std::thread::spawn(move || assistant.hear(&format!("fact {n}")).unwrap())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Decision::Stored);
    }
    assert_eq!(assistant.memory.list(&Default::default()).unwrap().items.len(), 4);
}

/// Reads that must fit together, by a function that does not care where it reads.
#[test]
fn one_function_reads_what_is_live_and_what_was() -> Result<()> {
    fn count<Of>(of: &Namespace<Of>) -> Result<usize> {
        Ok(of.list(&Default::default())?.items.len())
    }
    let folder = tempfile::tempdir().unwrap();
    let team = open(&folder).namespace("team")?;
    team.add("before")?;
    let snapshot: Snapshot = team.database().snapshot()?;
    team.add("after")?;
    assert_eq!((count(&team)?, count(&snapshot.namespace("team")?)?), (2, 1));
    Ok(())
}

/// Times and durations of the standard library and of jiff, and texts.
#[test]
fn times_and_durations_come_from_everywhere() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = Builder::default()
        .lease(Duration::from_secs(60))
        .wait(Duration::from_millis(20))
        .open(folder.path().join("memory.oub"))?;
    let team = db.namespace("team")?;
    let tomorrow = Time::from(SystemTime::now() + Duration::from_secs(86_400));
    let id = team.add(Draft::new("the door code is 1234").expiry(tomorrow))?.id;
    assert_eq!(team.get(id)?.unwrap().expires_at, Some(tomorrow));
    team.add(Draft::new("a note").expiry(Duration::from_secs(3_600)))?;
    assert_eq!(Span::from(jiff::SignedDuration::from_hours(2)), "2h".parse()?);
    assert_eq!(Time::from(jiff::Timestamp::UNIX_EPOCH), Time::try_from("1970-01-01T00:00:00Z")?);
    assert_eq!(team.search(Query::text("door").deadline(Duration::from_secs(1)))?.hits.len(), 1);
    Ok(())
}

/// Filters from texts, and what is forgotten by them.
#[test]
fn filters_are_texts() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let team = open(&folder).namespace("team")?;
    team.add(Draft::new("Ann prefers tea").kind(Kind::Knowledge).importance(0.9))?;
    team.add(Draft::new("it rains").importance(0.1))?;
    let dull: Filter = r#"{"importance": {"$lt": 0.5}}"#.parse()?;
    assert_eq!(team.search(Query::text("rains").filter(dull.clone()))?.hits.len(), 1);
    assert_eq!(team.forget(Forget::filter(dull, Scope::Any))?.forgotten, 1);
    assert!(Filter::try_from("{\"importance\": ").is_err());
    Ok(())
}

/// An embedder that is shared with other parts of a program.
#[test]
fn an_embedder_in_an_arc() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let embedder: Arc<dyn Embedder> = Arc::new(HashEmbedder::new());
    let db = Database::builder().embedder(Arc::clone(&embedder)).open(folder.path().join("memory.oub"))?;
    let team = db.namespace("team")?;
    team.add("Ann lives in Ghent")?;
    assert!(team.search("where does Ann live?")?.hits[0].signals.vector.is_some());
    assert_eq!(embedder.embed(&["a text"])?.len(), 1);
    Ok(())
}

/// Errors are matched by kind, and go into a boxed error with `?`.
#[test]
fn errors_are_matched_by_kind() {
    fn work(team: &Namespace) -> std::result::Result<(), Box<dyn std::error::Error>> {
        team.update("nobody", Patch::new())?;
        Ok(())
    }
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let team = db.namespace("team").unwrap();
    let why = work(&team).unwrap_err();
    assert_eq!(why.downcast::<Error>().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(db.namespace("").unwrap_err().kind(), ErrorKind::Invalid);
    assert!(matches!(team.look_up("nobody", false), Err(Error::NotFound { .. })));
    let gone = team.add(Draft::new("a secret").key("s")).unwrap().id;
    team.forget("s").unwrap();
    let stone: Option<Tombstone> = match team.look_up(gone, false).unwrap() {
        oubliette::memory::Got::Tombstone(stone) => Some(stone),
        oubliette::memory::Got::Memory(_) => None,
    };
    assert_eq!(stone.unwrap().id, gone);
    assert_eq!(team.state(gone).unwrap(), Some(State::Tombstoned));
}
