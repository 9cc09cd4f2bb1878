//! The parts of the report, a table each.

mod build;
mod cores;
mod memory;
mod search;

pub use build::{Built, build, built};
pub use cores::cores;
pub use memory::memory;
pub use search::search;

use std::path::PathBuf;
use std::time::Duration;

/// What the command line asks of every part.
pub struct Settings {
    /// Rows at most, and queries.
    pub rows: usize,
    pub queries: usize,
    /// Rounds of a measured search.
    pub rounds: usize,
    /// Where plots go.
    pub plots: Option<PathBuf>,
}

impl Settings {
    fn plot(&self, name: &str, svg: &str) {
        let Some(folder) = &self.plots else { return };
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), svg).unwrap();
    }
}

fn micros(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 100.0 { format!("{micros:.1} µs") } else { format!("{micros:.0} µs") }
}

/// `rows` a second in `time`.
fn rate(rows: usize, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64()
}
