//! Memories of a snapshot out to a file.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use crate::engine::Snapshot;
use crate::error::{Error, Result};
use crate::exchange::{NpyWriter, write_memory, write_tombstone};
use crate::model::{Memory, Namespace, PageRequest, Scope};

/// Rows that are read at a time.
const PAGE_ROWS: usize = 1_000;

/// Where the vectors of an export go.
#[derive(Debug)]
pub enum VectorsTo<'a, W> {
    /// Nowhere: the memories come back without vectors.
    Nowhere,
    /// Into the lines.
    Lines,
    /// Into a NumPy file, a row for each line: zeros where a line has no vector.
    Npy(&'a mut NpyWriter<W>, usize),
}

/// An export: every line from one snapshot, in the order of partition, creation and id.
///
/// ```
/// use oubliette::{Database, Draft, Namespace};
/// use oubliette::exchange::{Export, VectorsTo};
/// # let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("m.oub"))?;
/// db.add(&Namespace::default(), Draft::new("Ann prefers tea").key("ann"))?;
/// let mut lines = Vec::new();
/// let export = Export::new([Namespace::default()]);
/// let report = export.write(&db.snapshot()?, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines)?;
/// assert_eq!((report.memories, lines.iter().filter(|byte| **byte == b'\n').count()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Export {
    /// The namespaces, one after the other.
    pub namespaces: Vec<Namespace>,
    /// Also rows that are superseded, expired, not yet or no longer valid, and tombstones.
    pub all_states: bool,
}

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Memories.
    pub memories: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Memories with a vector.
    pub vectors: u64,
}

impl Export {
    /// Of what is visible in some namespaces.
    pub fn new(namespaces: impl IntoIterator<Item = Namespace>) -> Self {
        Export { namespaces: namespaces.into_iter().collect(), all_states: false }
    }

    /// Writes every line to `out`; `path` is the name that an `Io` error gives.
    ///
    /// # Errors
    /// `Io`; `Corrupted`; `SnapshotExpired` when the writing takes longer than the lease of the snapshot.
    pub fn write<W: Write + Seek>(
        &self,
        snapshot: &Snapshot,
        out: &mut dyn Write,
        path: impl AsRef<Path>,
        vectors: VectorsTo<'_, W>,
    ) -> Result<ExportReport> {
        let (path, line) = (path.as_ref().to_owned(), Vec::new());
        let mut lines = Lines { snapshot, out, path, vectors, line, report: ExportReport::default() };
        for namespace in &self.namespaces {
            lines.memories(namespace, self.all_states)?;
            if self.all_states {
                lines.tombstones(namespace)?;
            }
        }
        let Lines { out, path, report, .. } = lines;
        out.flush().map_err(|source| Error::Io { action: "write", path, source })?;
        Ok(report)
    }
}

/// An export under way.
struct Lines<'a, W> {
    snapshot: &'a Snapshot,
    out: &'a mut dyn Write,
    path: PathBuf,
    vectors: VectorsTo<'a, W>,
    line: Vec<u8>,
    report: ExportReport,
}

impl<W: Write + Seek> Lines<'_, W> {
    fn memories(&mut self, namespace: &Namespace, all_states: bool) -> Result<()> {
        let mut request = PageRequest { scope: Scope::Any, limit: PAGE_ROWS, ..PageRequest::default() };
        request.any_state = all_states;
        loop {
            let page = self.snapshot.list(namespace, &request)?;
            for memory in page.items {
                self.memory(namespace, memory)?;
            }
            match page.next {
                Some(next) => request.cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn memory(&mut self, namespace: &Namespace, mut memory: Memory) -> Result<()> {
        if !matches!(self.vectors, VectorsTo::Nowhere) {
            let found = self.snapshot.get(namespace, &memory.id.to_string(), true)?;
            memory.vector = found.into_memory().and_then(|found| found.vector);
        }
        self.report.memories += 1;
        self.report.vectors += u64::from(memory.vector.is_some());
        write_memory(&memory, matches!(self.vectors, VectorsTo::Lines), &mut self.line);
        self.end_line(memory.vector.as_deref())
    }

    fn tombstones(&mut self, namespace: &Namespace) -> Result<()> {
        let mut cursor = None;
        loop {
            let page = self.snapshot.tombstones(namespace, cursor.as_deref(), PAGE_ROWS)?;
            for tombstone in page.items {
                self.report.tombstones += 1;
                write_tombstone(namespace, &tombstone, &mut self.line);
                self.end_line(None)?;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn end_line(&mut self, vector: Option<&[f32]>) -> Result<()> {
        let written = self.out.write_all(&self.line);
        written.map_err(|source| Error::Io { action: "write", path: self.path.clone(), source })?;
        self.line.clear();
        match (&mut self.vectors, vector) {
            (VectorsTo::Npy(writer, _), Some(vector)) => writer.write_row(vector),
            (VectorsTo::Npy(writer, dim), None) => writer.write_row(&vec![0.0; *dim]),
            _ => Ok(()),
        }
    }
}
