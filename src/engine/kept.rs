//! Rows of an export, put back.

use crate::engine::namespace::Namespace;
use crate::engine::queue::weight_of;
use crate::error::{Error, Result};
use crate::model::{Decision, Joint, Kept, Outcome, RunId, RunSort};
use crate::store::control::RunRow;

/// What became of a part of an export.
#[derive(Clone, Debug, Default)]
pub struct PutBack {
    /// For each row what became of its memory; none for a row that is no memory.
    pub outcomes: Vec<Option<Outcome>>,
    /// Ends of links and provenance that are not there yet, with the position of the row that named each, counted from
    /// 1. They are left out; as [`Kept::Joint`] of a later part they find their place.
    pub ahead: Vec<(u64, Joint)>,
    /// Rows of memories that are there in the same version and say something else: the position of each row, counted from
    /// 1, and the names of these fields. Somebody has edited the row, and the memory is left as it is.
    pub differing: Vec<(u64, Vec<&'static str>)>,
    /// The number of memories with a text that were put back without their vector, because it is of another embedding space
    /// than those of the database. The embedder of the handle, or the pass `embed`, makes new ones; where the vectors of the file
    /// are the caller's, the caller gives them.
    pub vectors_left_out: u64,
    /// The number of memories without a text that were put back with a vector of another embedding space than those of the
    /// database. They are kept, and no search finds them.
    pub vectors_apart: u64,
}

impl Namespace {
    /// Puts rows of an export back as they were, in one transaction: memories in every state with their ids and holders,
    /// tombstones, runs that can be taken back, messages. What is there already is left as it is.
    ///
    /// ```
    /// use oubliette::exchange::{Export, ParsedLine, VectorsTo, parse_line};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let (export, mut line) = (Export::new([team.name().clone()]), Vec::new());
    /// export.write(&db.snapshot()?, &mut line, "lines", VectorsTo::<std::io::Empty>::Nowhere)?;
    /// let ParsedLine::Memory(memory) = parse_line(&line, false)? else { return Ok(()) };
    /// let kept = oubliette::exchange::Kept::Memory(memory);
    /// let back = db.namespace("copy")?.recreate(vec![kept])?;
    /// assert!(back[0].is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As a line, with the position of the row counted from 1; nothing is written then:
    /// - `Invalid` for a row that contradicts itself or the rows around it, names what is not there, or lies further
    ///   ahead of the clock than `stats.clock_warn`;
    /// - `Conflict` when an id was used and is gone, or a key belongs to another current memory.
    pub fn recreate(&self, rows: Vec<Kept>) -> Result<Vec<Option<Outcome>>> {
        self.put_back(rows, None, true).map(|part| part.outcomes)
    }

    /// As [`Namespace::recreate`], for a part of an export: what leads to memories of a later part is left out, and the
    /// answer says what that is.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let part = team.recreate_part(Vec::new())?;
    /// assert!(part.outcomes.is_empty() && part.ahead.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::recreate`].
    pub fn recreate_part(&self, rows: Vec<Kept>) -> Result<PutBack> {
        self.put_back(rows, None, false)
    }

    /// As [`Namespace::recreate_part`], of an import, whose run counts the rows. Memories keep the runs that first brought
    /// them, so undoing the import takes none of them away.
    ///
    /// # Errors
    /// As [`Namespace::recreate_part`].
    pub(crate) fn recreate_part_of(&self, run: RunId, rows: Vec<Kept>) -> Result<PutBack> {
        self.put_back(rows, Some(run), false)
    }

    fn put_back(&self, rows: Vec<Kept>, run: Option<RunId>, whole: bool) -> Result<PutBack> {
        let (namespace, weight) = (self.name.clone(), weight_of(rows.len()));
        self.db.submit(weight, move |session| {
            let mut writer = session.writer(&namespace, None, false)?;
            let part = writer.put_back(&rows)?;
            if let Some(run) = run {
                let counts = rows
                    .iter()
                    .zip(&part.outcomes)
                    .map(|(row, outcome)| (counted_as(row, outcome.as_ref()), 1));
                let is_put_back = |outcome: &&Outcome| outcome.decision == Decision::Stored;
                let put_back = part.outcomes.iter().flatten().filter(is_put_back).count() as u64;
                let counts = counts.chain([(RunRow::PUT_BACK, put_back)]);
                writer.ledger.note_part(&writer.context, run, RunSort::Import, counts)?;
            }
            let ahead: Vec<_> =
                part.ahead.into_iter().map(|(place, joint)| (place as u64 + 1, joint)).collect();
            let differing = part.differing.into_iter().map(|(place, fields)| (place as u64 + 1, fields));
            if let Some((place, joint)) = ahead.first().filter(|_| whole) {
                let field = if joint.number.is_some() { "links" } else { "sources" };
                let why = "must lead to memories of the namespace";
                return Err(Error::invalid(field, why, joint.to).at_line(*place));
            }
            session.forget_nothing();
            Ok(PutBack {
                outcomes: part.outcomes,
                ahead,
                differing: differing.collect(),
                vectors_left_out: part.vectors_left_out,
                vectors_apart: part.vectors_apart,
            })
        })
    }
}

/// What the row of an import calls a row of an export.
fn counted_as(row: &Kept, outcome: Option<&Outcome>) -> &'static str {
    match (outcome, row) {
        (Some(outcome), _) => outcome.decision.as_str(),
        (None, Kept::Tombstone(_)) => "tombstones",
        (None, _) => "told",
    }
}
