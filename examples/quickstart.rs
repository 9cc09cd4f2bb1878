//! The program of README.md: `cargo run --example quickstart`. It keeps its memories in the folder where it is started.
#![allow(clippy::print_stdout)]

use oubliette::{Database, Draft};

pub(crate) fn main() -> oubliette::Result<()> {
    let db = Database::open("memory.oub")?;
    let team = db.namespace("team")?;
    team.add("Ann prefers tea")?;
    team.add(Draft::new("Ann lives in Ghent").key("ann:home").tag("people"))?;
    team.supersede("ann:home", Draft::new("Ann lives in Bruges").key("ann:home"))?;
    for hit in team.search("where does Ann live?")?.hits {
        println!("{:.2} {}", hit.score, hit.text);
    }
    team.forget("ann:home")?;
    Ok(())
}
