//! The handles with async methods: what they answer, that a task does not wait on its thread, and what a dropped call does.

use std::sync::mpsc;
use std::time::Duration;

use ::tokio::time::timeout;
use oubliette::tokio::{Database, Namespace};
use oubliette::{Draft, ErrorKind, PageRequest, Patch, Result, WriteOptions};

/// Runs a test on a runtime with one thread for tasks, so that a call that blocked this thread would stop everything.
fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    ::tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test)
}

async fn team(folder: &tempfile::TempDir) -> (Database, Namespace) {
    let db = Database::open(folder.path().join("memory.oub")).await.unwrap();
    let team = db.namespace("team").unwrap();
    (db, team)
}

#[test]
fn every_verb_does_what_the_verb_that_blocks_does() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    on_one_thread(async {
        let (db, team) = team(&folder).await;
        let home = team.add(Draft::new("Ann lives in Ghent").key("home")).await?.id;
        let drafts = vec!["Ann prefers tea".into(), "Bob prefers coffee".into()];
        assert_eq!(team.add_all(drafts, &WriteOptions::default()).await?.len(), 2);
        let before = Namespace::from(db.snapshot().await?.namespace("team")?);
        team.update("home", Patch::new().importance(0.9)).await?;
        team.supersede("home", Draft::new("Ann lives in Bruges").key("home")).await?;
        assert_eq!(team.search("Bruges").await?.hits[0].text, "Ann lives in Bruges");
        assert_eq!(before.get("home").await?.map(|row| row.text), Some("Ann lives in Ghent".to_owned()));
        assert_eq!(before.list(&PageRequest::default()).await?.items.len(), 3);
        assert_eq!(team.call(move |team| team.state(home)).await?, Some(oubliette::State::Superseded));
        assert_eq!(team.forget("home").await?.tombstones.len(), 2, "both versions of the key");
        let name = team.blocking().name().clone();
        let rain = db.batch(move |b| b.add(&name, "It rains")).await?.id;
        assert!(team.get(rain).await?.is_some());
        team.maintain().await?;
        db.maintain().await?;
        db.flush().await?;
        assert!(db.call(|db| db.check(&Default::default())).await?.ok);
        assert_eq!(team.add("").await.unwrap_err().kind(), ErrorKind::Invalid);
        db.close().await?;
        assert_eq!(team.get("home").await.unwrap_err().kind(), ErrorKind::Closed);
        Ok(())
    })
}

#[test]
fn the_thread_of_the_tasks_goes_on_while_a_call_blocks() {
    let folder = tempfile::tempdir().unwrap();
    on_one_thread(async {
        let (_db, team) = team(&folder).await;
        let (open, gate) = mpsc::channel::<()>();
        let waits = team.call(move |_| {
            gate.recv_timeout(Duration::from_secs(60)).expect("nothing else ran");
            Ok(())
        });
        // The second task opens the gate for the first.
        let (waited, ()) = ::tokio::join!(waits, async { open.send(()).unwrap() });
        waited.unwrap();
    });
}

#[test]
fn a_task_may_own_a_handle_and_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = ::tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let (_db, team) = team(&folder).await;
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let team = team.clone();
                ::tokio::spawn(async move { team.add(format!("Note number {n}")).await })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap().unwrap();
        }
        assert_eq!(team.call(|team| team.memory_stats()).await.unwrap().local.total, 8);
    });
}

#[test]
fn a_dropped_call_that_was_polled_is_carried_out() {
    let folder = tempfile::tempdir().unwrap();
    on_one_thread(async {
        let (_db, team) = team(&folder).await;
        drop(team.add("never polled"));
        let (begun, is_begun) = mpsc::channel::<()>();
        let (open, gate) = mpsc::channel::<()>();
        let call = team.call(move |team| {
            begun.send(()).unwrap();
            gate.recv_timeout(Duration::from_secs(60)).unwrap();
            team.add(Draft::new("It rains").key("rain"))
        });
        assert!(timeout(Duration::from_millis(1), call).await.is_err(), "the gate is shut");
        is_begun.recv_timeout(Duration::from_secs(60)).unwrap();
        open.send(()).unwrap();
        let found = async {
            while team.get("rain").await.unwrap().is_none() {
                ::tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(60), found).await.expect("the write of a dropped call is carried out");
        assert_eq!(team.list(&PageRequest::default()).await.unwrap().items.len(), 1);
    });
}

#[test]
#[should_panic(expected = "in the call")]
fn a_panic_of_a_call_goes_on_in_the_task() {
    let folder = tempfile::tempdir().unwrap();
    on_one_thread(async {
        let (_db, team) = team(&folder).await;
        let _ = team.call(|_| -> Result<()> { panic!("in the call") }).await;
    });
}
