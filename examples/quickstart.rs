//! A memory in twenty lines: `cargo run --example quickstart`.
#![allow(clippy::print_stdout)]

use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, Forget, Query};

fn main() -> oubliette::Result<()> {
    let path = std::env::temp_dir().join(format!("quickstart-{}.oub", std::process::id()));
    let db = Database::open(&path)?;
    let team = db.namespace("team")?;

    // Vectors come from whatever embedder you use; these have two dimensions.
    team.add(Draft::new("Ann prefers tea").key("ann:drink").tag("people").vector([0.6, 0.8]))?;
    team.add(Draft::new("The gateway listens on port 8080").key("gateway").vector([1.0, 0.1]))?;
    let again = team.add(Draft::new("Ann prefers tea").key("meeting:7").vector([0.6, 0.8]))?;
    println!("the same text again: {}", again.decision.as_str());

    for hit in team.search(Query::vector([0.5, 0.9]).k(2))?.hits {
        println!("{:.3}  {}", hit.score, team.text(hit.id)?.unwrap_or_default());
    }

    // One of two records goes, the text stays; with the second one it is gone everywhere.
    println!("{:?}", team.forget(Forget::names(["meeting:7"]))?);
    println!("{:?}", team.forget(Forget::names(["ann:drink"]))?);
    println!("whole: {}", db.check(&CheckOptions::default())?.ok);
    db.close()?;
    std::fs::remove_file(&path).map_err(|source| oubliette::Error::Io { action: "remove", path, source })
}
