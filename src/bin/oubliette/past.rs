//! Options that read the past.

use clap::Args;
use oubliette::memory::PointInTime;
use oubliette::{Error, Result, Time};

// The instants that a read asks about.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options that read the past")]
pub(crate) struct PastOptions {
    /// As it was at an instant, such as 2026-03-01T00:00:00Z: what was true then, as it was known then
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["valid_at", "known_at"])]
    as_of: Option<String>,
    /// What is true at an instant of the world, which may lie ahead
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    valid_at: Option<String>,
    /// As far as the database knew at an instant
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    known_at: Option<String>,
    /// Answer from what is left where maintenance has erased a part of that past
    #[arg(long)]
    allow_partial: bool,
}

impl PastOptions {
    /// The instants that were typed.
    pub(crate) fn point(&self) -> Result<PointInTime> {
        let time = |name: &str, text: &Option<String>| -> Result<Option<Time>> {
            let parsed = text.as_deref().map(str::parse::<Time>).transpose();
            parsed.map_err(|error| match error {
                Error::Invalid { why, value, .. } => Error::Invalid { field: name.to_owned(), why, value },
                error => error,
            })
        };
        let as_of = time("--as-of", &self.as_of)?;
        let at = PointInTime {
            valid_at: time("--valid-at", &self.valid_at)?.or(as_of),
            known_at: time("--known-at", &self.known_at)?.or(as_of),
            allow_partial: self.allow_partial,
        };
        if at.allow_partial && at.valid_at.is_none() && at.known_at.is_none() {
            let why = "needs an instant of the past: --as-of, --valid-at or --known-at";
            return Err(Error::invalid("--allow-partial", why, true));
        }
        Ok(at)
    }
}
