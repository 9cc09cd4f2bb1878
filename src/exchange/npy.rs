//! NumPy files of vectors: float32 or float16, little-endian, C order, one row a vector.
//!
//! ```text
//! offset  bytes   what
//!      0      6   93 4e 55 4d 50 59  ("\x93NUMPY")
//!      6      2   version: 1.0, 2.0 or 3.0
//!      8      2   length of the header, little-endian (version 1.0); 4 bytes in 2.0 and 3.0
//!      .      .   header: a Python dict literal in ASCII, such as
//!                 {'descr': '<f4', 'fortran_order': False, 'shape': (10, 384), }
//!      .      .   rows, one after the other
//! ```
//! Source: the document of the format, `numpy/lib/format.py`.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::f16;

use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, NPY_HEADER_BYTES_MAX};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The name that errors give to the file: that of the option which takes it.
const FIELD: &str = "vectors";
/// Bytes before the rows in a file that we write; NumPy wants a multiple of 64.
const WRITTEN_HEADER_BYTES: usize = 128;

/// Width of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Float {
    /// IEEE 754 binary16.
    Half,
    /// IEEE 754 binary32.
    Single,
}

impl Float {
    const fn bytes(self) -> usize {
        match self {
            Float::Half => 2,
            Float::Single => 4,
        }
    }
}

/// What the header says, within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    float: Float,
    rows: u64,
    dim: usize,
}

/// Reads the vectors of a NumPy file, one after the other.
///
/// ```
/// use oubliette::exchange::{NpyReader, NpyWriter};
/// let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
/// writer.write_row(&[0.5, -1.0])?;
/// let bytes = writer.finish()?.into_inner();
/// let mut reader = NpyReader::from_reader(bytes.as_slice(), "v.npy")?;
/// assert_eq!((reader.rows(), reader.dim()), (1, 2));
/// let mut row = Vec::new();
/// assert!(reader.next_row(&mut row)?);
/// assert_eq!(row, [0.5, -1.0]);
/// assert!(!reader.next_row(&mut row)?);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug)]
pub struct NpyReader<R> {
    reader: R,
    path: PathBuf,
    shape: Shape,
    read: u64,
    buffer: Vec<u8>,
}

impl NpyReader<BufReader<File>> {
    /// Opens the file at `path`.
    ///
    /// ```
    /// use oubliette::exchange::{NpyReader, NpyWriter, Target};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let mut writer = NpyWriter::new(Target::create(&path)?, 2, &path)?;
    /// writer.write_row(&[0.6, 0.8])?;
    /// writer.finish()?.finish()?;
    /// assert_eq!(NpyReader::open(&path)?.rows(), 1);
    /// assert!(NpyReader::open("Cargo.toml").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Io`: it can't be opened or read.
    /// - `Invalid` with the field `vectors`: not a NumPy file of float32 or float16 rows in C order, little-endian,
    ///   of 1 to 4096 dimensions; or fewer bytes than its header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let io = |source| Error::io("open", path, source);
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?;
        let mut reader = NpyReader::from_reader(BufReader::new(file), path)?;
        // A pipe has no length; its rows are counted as they come.
        if bytes.is_file() {
            let start = reader.reader.stream_position().map_err(io)?;
            reader.check_length(bytes.len().saturating_sub(start))?;
        }
        Ok(reader)
    }
}

impl<R> NpyReader<R> {
    fn check_length(&self, found: u64) -> Result<()> {
        let row = self.shape.dim as u64 * self.shape.float.bytes() as u64;
        let wanted = self.shape.rows.saturating_mul(row);
        if found < wanted {
            return Err(invalid(
                "is truncated",
                format!("{found} bytes of {} rows that need {wanted}", self.shape.rows),
            ));
        }
        Ok(())
    }

    /// Rows, as the header says.
    ///
    /// ```
    /// # use oubliette::exchange::{NpyReader, NpyWriter};
    /// # let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// # writer.write_row(&[0.6, 0.8])?;
    /// # let bytes = writer.finish()?.into_inner();
    /// let mut reader = NpyReader::from_reader(bytes.as_slice(), "v.npy")?;
    /// assert_eq!(reader.rows(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows(&self) -> u64 {
        self.shape.rows
    }

    /// Numbers in a row.
    ///
    /// ```
    /// # use oubliette::exchange::{NpyReader, NpyWriter};
    /// # let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// # writer.write_row(&[0.6, 0.8])?;
    /// # let bytes = writer.finish()?.into_inner();
    /// let mut reader = NpyReader::from_reader(bytes.as_slice(), "v.npy")?;
    /// assert_eq!(reader.dim(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dim(&self) -> usize {
        self.shape.dim
    }

    /// Rows that were read.
    ///
    /// ```
    /// # use oubliette::exchange::{NpyReader, NpyWriter};
    /// # let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// # writer.write_row(&[0.6, 0.8])?;
    /// # let bytes = writer.finish()?.into_inner();
    /// let mut reader = NpyReader::from_reader(bytes.as_slice(), "v.npy")?;
    /// assert_eq!(reader.position(), 0);
    /// reader.next_row(&mut Vec::new())?;
    /// assert_eq!(reader.position(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn position(&self) -> u64 {
        self.read
    }
}

impl<R: Read> NpyReader<R> {
    /// Reads the header from `reader`; `path` is the name that an `Io` error gives.
    ///
    /// ```
    /// use oubliette::exchange::NpyReader;
    /// let why = NpyReader::from_reader("no vectors".as_bytes(), "v.npy").unwrap_err();
    /// assert!(why.to_string().starts_with("vectors: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`NpyReader::open`]; missing rows are found when they are read.
    pub fn from_reader(mut reader: R, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let header = read_header(&mut reader, &path)?;
        let shape = parse_header(&header)?;
        let buffer = vec![0; shape.dim * shape.float.bytes()];
        Ok(NpyReader { reader, path, shape, read: 0, buffer })
    }

    /// Puts the next row into `row`, float16 widened; false after the last one.
    ///
    /// ```
    /// # use oubliette::exchange::{NpyReader, NpyWriter};
    /// # let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// # writer.write_row(&[0.6, 0.8])?;
    /// # let bytes = writer.finish()?.into_inner();
    /// let mut reader = NpyReader::from_reader(bytes.as_slice(), "v.npy")?;
    /// let mut row = Vec::new();
    /// assert!(reader.next_row(&mut row)?);
    /// assert_eq!(row, [0.6, 0.8]);
    /// assert!(!reader.next_row(&mut row)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the file ends before the rows that its header says, `Io` when it can't be read. The
    /// numbers are not judged: NaN and zero vectors come through.
    pub fn next_row(&mut self, row: &mut Vec<f32>) -> Result<bool> {
        row.clear();
        if self.read == self.shape.rows {
            return Ok(false);
        }
        fill(&mut self.reader, &mut self.buffer, &self.path, || {
            format!("row {} of {}", self.read + 1, self.shape.rows)
        })?;
        match self.shape.float {
            Float::Single => {
                let (numbers, _) = self.buffer.as_chunks::<4>();
                row.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
            Float::Half => {
                let (numbers, _) = self.buffer.as_chunks::<2>();
                row.extend(numbers.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()));
            }
        }
        self.read += 1;
        Ok(true)
    }
}

fn invalid(why: &str, value: impl std::fmt::Display) -> Error {
    Error::invalid(FIELD, why, value)
}

/// Fills `buffer`; an end before that is a truncated file, told as the place that `place` names.
fn fill(reader: &mut impl Read, buffer: &mut [u8], path: &Path, place: impl Fn() -> String) -> Result<()> {
    reader.read_exact(buffer).map_err(|source| match source.kind() {
        ErrorKind::UnexpectedEof => invalid("is truncated", format!("the file ends in {}", place())),
        _ => Error::io("read", path, source),
    })
}

fn read_header(reader: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut start = [0; 8];
    let place = || "its header".to_owned();
    fill(reader, &mut start, path, place)?;
    let [magic @ .., major, minor] = &start;
    if magic != MAGIC {
        return Err(invalid(
            "must be a NumPy file",
            format!("a file that starts with {}", magic.escape_ascii()),
        ));
    }
    let bytes = match (major, minor) {
        (1, 0) => {
            let mut length = [0; 2];
            fill(reader, &mut length, path, place)?;
            usize::from(u16::from_le_bytes(length))
        }
        (2 | 3, 0) => {
            let mut length = [0; 4];
            fill(reader, &mut length, path, place)?;
            usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX)
        }
        _ => return Err(invalid("must be NumPy format 1.0, 2.0 or 3.0", format!("{major}.{minor}"))),
    };
    if bytes > NPY_HEADER_BYTES_MAX {
        let why = format!("header must be at most {NPY_HEADER_BYTES_MAX} bytes");
        return Err(invalid(&why, bytes));
    }
    let mut header = vec![0; bytes];
    fill(reader, &mut header, path, place)?;
    Ok(header)
}

fn parse_header(header: &[u8]) -> Result<Shape> {
    if !header.is_ascii() {
        return Err(invalid("header must be ASCII", header.escape_ascii()));
    }
    let mut literal = Literal { rest: header };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    literal.expect(b'{')?;
    while !literal.take(b'}') {
        let name = literal.string()?;
        literal.expect(b':')?;
        let twice = match name {
            b"descr" => descr.replace(literal.descr()?).is_some(),
            b"fortran_order" => fortran_order.replace(literal.boolean()?).is_some(),
            b"shape" => shape.replace(literal.tuple()?).is_some(),
            _ => return Err(invalid("header has an unknown key", name.escape_ascii())),
        };
        if twice {
            return Err(invalid("header has a key twice", name.escape_ascii()));
        }
        if !literal.take(b',') {
            literal.expect(b'}')?;
            break;
        }
    }
    literal.end()?;
    let (Some(float), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
        return Err(invalid("header must have descr, fortran_order and shape", header.escape_ascii()));
    };
    if fortran_order {
        return Err(invalid("must be in C order", "Fortran order"));
    }
    let (rows, dim) = match shape.as_slice() {
        [dim] => (1, *dim),
        [rows, dim] => (*rows, *dim),
        _ => return Err(invalid("must have 1 or 2 axes", shape.len())),
    };
    let dim = usize::try_from(dim).ok().filter(|dim| (1..=DIM_MAX).contains(dim)).ok_or_else(|| {
        let why = format!("must have 1 to {DIM_MAX} dimensions");
        invalid(&why, dim)
    })?;
    let bytes = (dim * float.bytes()) as u64;
    if rows.checked_mul(bytes).is_none_or(|total| i64::try_from(total).is_err()) {
        return Err(invalid("must have fewer than 2^63 bytes of rows", format!("{rows} rows")));
    }
    Ok(Shape { float, rows, dim })
}

/// The part of Python's literals that a header needs, read from the left.
struct Literal<'a> {
    rest: &'a [u8],
}

impl<'a> Literal<'a> {
    fn malformed(&self) -> Error {
        let shown = self.rest.get(..self.rest.len().min(40)).unwrap_or_default();
        invalid("header must be a Python dict of descr, fortran_order and shape", shown.escape_ascii())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.malformed()) }
    }

    /// What stands before the first byte that does not satisfy `belongs`.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let at = self.rest.iter().position(|byte| !belongs(*byte)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, &[]));
        self.rest = rest;
        run
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let quote = if self.take(b'\'') { b'\'' } else { b'"' };
        if quote == b'"' {
            self.expect(b'"')?;
        }
        let text = self.run(|byte| byte != quote && byte != b'\\');
        match self.rest.split_first() {
            Some((end, rest)) if *end == quote => self.rest = rest,
            _ => return Err(self.malformed()),
        }
        Ok(text)
    }

    /// Type of the numbers. `=` and a bare `f4` mean the writer's own byte order, which the file does not
    /// tell, and `|` means none at all: NumPy writes neither for floats.
    fn descr(&mut self) -> Result<Float> {
        const WHY: &str = "must be float32 or float16, little-endian (<f4 or <f2)";
        self.skip_space();
        if self.rest.starts_with(b"[") {
            return Err(invalid(WHY, "a record type"));
        }
        match self.string()? {
            b"<f4" => Ok(Float::Single),
            b"<f2" => Ok(Float::Half),
            other => Err(invalid(WHY, other.escape_ascii())),
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_space();
        match self.run(|byte| byte.is_ascii_alphabetic()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.malformed()),
        }
    }

    /// At most three numbers of a tuple, for more axes than two are refused anyway.
    fn tuple(&mut self) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            let number = self.integer()?;
            if numbers.len() < 3 {
                numbers.push(number);
            }
            if !self.take(b',') {
                // One number in parentheses is no tuple without its comma.
                if numbers.len() == 1 {
                    return Err(self.malformed());
                }
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }

    fn integer(&mut self) -> Result<u64> {
        self.skip_space();
        let digits = self.run(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.malformed());
        }
        let number = digits.iter().try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit.saturating_sub(b'0')))
        });
        number.ok_or_else(|| invalid("shape must be below 2^64", digits.escape_ascii()))
    }

    fn end(&mut self) -> Result<()> {
        self.skip_space();
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}

/// Writes vectors as a NumPy file of float32 rows, format 1.0; the number of rows is filled in at the end.
#[derive(Debug)]
pub struct NpyWriter<W> {
    writer: W,
    path: PathBuf,
    start: u64,
    dim: usize,
    rows: u64,
    buffer: Vec<u8>,
}

impl<W: Write + Seek> NpyWriter<W> {
    /// Begins a file of rows of `dim` numbers; `path` is the name that an `Io` error gives.
    ///
    /// ```
    /// use oubliette::exchange::NpyWriter;
    /// use std::io::Cursor;
    /// assert!(NpyWriter::new(Cursor::new(Vec::new()), 384, "v.npy").is_ok());
    /// assert!(NpyWriter::new(Cursor::new(Vec::new()), 0, "v.npy").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` unless `dim` is 1 to 4096; `Io`.
    pub fn new(mut writer: W, dim: usize, path: impl AsRef<Path>) -> Result<Self> {
        if !(1..=DIM_MAX).contains(&dim) {
            return Err(invalid(&format!("must have 1 to {DIM_MAX} dimensions"), dim));
        }
        let path = path.as_ref().to_owned();
        let io = |source| Error::io("write", &path, source);
        let start = writer.stream_position().map_err(io)?;
        writer.write_all(&written_header(0, dim)).map_err(io)?;
        Ok(NpyWriter { writer, path, start, dim, rows: 0, buffer: Vec::with_capacity(dim * 4) })
    }

    /// Appends one row.
    ///
    /// ```
    /// use oubliette::exchange::NpyWriter;
    /// let mut writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// writer.write_row(&[0.6, 0.8])?;
    /// assert!(writer.write_row(&[1.0]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when it has another length than the rows before; `Io`.
    pub fn write_row(&mut self, row: &[f32]) -> Result<()> {
        if row.len() != self.dim {
            return Err(invalid(&format!("must have {} dimensions", self.dim), row.len()));
        }
        self.buffer.clear();
        self.buffer.extend(row.iter().flat_map(|number| number.to_le_bytes()));
        self.writer.write_all(&self.buffer).map_err(|source| self.io(source))?;
        self.rows += 1;
        Ok(())
    }

    /// Writes the number of rows into the header and gives the writer back, flushed, at its end.
    ///
    /// ```
    /// use oubliette::exchange::{NpyReader, NpyWriter};
    /// let writer = NpyWriter::new(std::io::Cursor::new(Vec::new()), 2, "v.npy")?;
    /// let bytes = writer.finish()?.into_inner();
    /// assert_eq!(NpyReader::from_reader(bytes.as_slice(), "v.npy")?.rows(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(mut self) -> Result<W> {
        let header = written_header(self.rows, self.dim);
        let mut close = || {
            self.writer.seek(SeekFrom::Start(self.start))?;
            self.writer.write_all(&header)?;
            self.writer.seek(SeekFrom::End(0))?;
            self.writer.flush()
        };
        close().map_err(|source| Error::io("write", &self.path, source))?;
        Ok(self.writer)
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::io("write", &self.path, source)
    }
}

fn written_header(rows: u64, dim: usize) -> Vec<u8> {
    let mut header = Vec::with_capacity(WRITTEN_HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    const LENGTH: u16 = (WRITTEN_HEADER_BYTES - 10) as u16;
    header.extend_from_slice(&LENGTH.to_le_bytes());
    let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    header.extend_from_slice(dict.as_bytes());
    header.resize(WRITTEN_HEADER_BYTES - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests;
