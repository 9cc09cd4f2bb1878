//! `demo`: the main job on real text that ships with the program.
//!
//! Memories come in, repeats are seen at the door, operational reports collapse, questions are asked; some memories are forgotten, the file is
//! compacted, and the same questions are asked again. A report takes the place of an earlier one, and another one ends by itself. Then half of
//! the memories make room for summaries, and the same questions are asked once more. Clock, ids and secret are fixed, so that every run gives the
//! same figures; only the times differ.

mod data;
mod facts;
mod page;
mod reports;
mod story;
mod summaries;

use std::path::Path;

use oubliette::Error;

use crate::output::{Done, Output};
use crate::place::Place;
use crate::temporary::TemporaryFolder;

/// Tells the story in the database that the command names, which must not exist, or in one that goes with the run.
pub(crate) fn run(place: &Place, output: Output<'_>) -> Done {
    let (folder, path) = match place.typed_path() {
        Some(path) => (None, path.to_owned()),
        None => {
            let folder = TemporaryFolder::new()?;
            let path = folder.path().join("demo.oub");
            (Some(folder), path)
        }
    };
    if Path::exists(&path) {
        let what = path.display().to_string();
        return Err(Error::Conflict {
            what,
            why: "the demo makes a database of its own, so `--db` must name a file that is not there"
                .to_owned(),
        }
        .into());
    }
    let told = story::tell(&path);
    drop(folder);
    let document = told?;
    if output.json { output.document(&document) } else { page::show(&document, output) }
}
