//! The proof of erasure: nothing that an erased memory consisted of stands anywhere in the bytes of the file.
//!
//! Searched for are: every window of 16 bytes of the text, every run of four components of the vector as f32, every
//! run of 16 bytes of its int8 code, and every key. Texts of 5 to 15 bytes are searched whole. A key is searched in the form of
//! its index row, between the number of a namespace and the id of a memory; one of 8 bytes and more also as rows hold it, behind
//! its length, as the journal quotes it, and anywhere. So a key of which a live key or text contains every byte is still found.
//! A text below 5 bytes is found in any file by chance, so nothing can be proved of it; the same is true of a run of a vector with
//! fewer than six different bytes, such as zeros.
//!
//! What a memory that is still there says as well is no residue: what the rows hold, in whatever state, is taken out of the
//! search first, and so are the terms of their texts. The same holds for messages and their aggregates, which have a retention of their own, but for those of a memory that somebody has forgotten. A past query is no memory, so what it says of one is a residue. A text or a key of which nothing is left to search for is counted as unproven. Memory: 16 bytes and an entry for each window of the probes, and an entry for each key and namespace; the file is read in chunks.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as Bytes;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result, sound};
use crate::hygiene::report::{CheckReport, Code};
use crate::index::text::analyzer_of;
use crate::model::MemoryId;
use crate::record::put_varint;
use crate::store::{
    Id, IndexId, MessageRows, NsId, PartId, Read, Rows, Snapshot, SpaceId, Table, TextId, TextRows, Walk,
    keys,
};
use crate::vector::{UnitVector, encode};

/// Bytes of a window.
const WINDOW: usize = 16;
/// Texts that are shorter are found in any file.
const TEXT_BYTES_MIN: usize = 5;
/// Keys that are shorter are searched for in the form of their index row alone.
const KEY_BYTES_MIN: usize = 8;
/// A run of a vector with fewer different bytes is found in any file.
const DISTINCT_MIN: usize = 6;
/// Bytes of the number of a namespace.
const TENANT_BYTES: usize = 4;
/// Bytes of a needle by which it is looked up.
const ANCHOR: usize = 5;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A memory, a message or a goal of an earlier export that was erased since: what must be left nowhere in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErasedProbe {
    /// Its texts: its own, and those of the writes that it stands for.
    pub texts: Vec<String>,
    /// Its vector, of whatever length; it is brought to length 1 as a write does.
    pub vector: Option<Vec<f32>>,
    /// Its keys.
    pub keys: Vec<String>,
}

/// What a pattern was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Text,
    Vector,
    Code,
    Key,
    /// A key as its index row has it. The branches of a tree shorten their keys, so there the beginning of a live key may stand
    /// behind the number of a namespace and before another number. In a row, the id of a memory follows.
    KeyRow,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Part::Text => "text",
            Part::Vector => "vector",
            Part::Code => "code of the vector",
            Part::Key | Part::KeyRow => "key",
        }
    }

    /// The part of a memory that a finding names.
    const fn told(self) -> Self {
        match self {
            Part::KeyRow => Part::Key,
            told => told,
        }
    }
}

/// Of which probe a pattern is, and of which part of it.
type Origin = (usize, Part);

/// Patterns that begin with the same bytes, by their length: many may, such as keys that are made by a rule.
type Needles = BTreeMap<usize, HashMap<Vec<u8>, Vec<Origin>>>;

/// The patterns of all probes.
struct Search {
    /// Windows as they stand, by their 16 bytes.
    windows: HashMap<u128, Origin>,
    /// Patterns that are searched whole, by their first bytes.
    needles: HashMap<u64, Needles>,
    /// One bit for each hash of a window or an anchor: most bytes of a file end here.
    filter: Vec<u64>,
    /// Length of the longest pattern, with what has to follow it.
    longest: usize,
    /// The highest number of a namespace. The first bytes of an id are a later instant than that.
    tenant_max: u32,
}

impl Search {
    /// The patterns of `probes`; the index row of a key begins with one of `tenants`.
    fn new(probes: &[ErasedProbe], tenants: &[u32]) -> Self {
        let mut search = Search {
            windows: HashMap::new(),
            needles: HashMap::new(),
            filter: Vec::new(),
            longest: WINDOW,
            tenant_max: tenants.iter().copied().max().unwrap_or_default(),
        };
        for (at, probe) in probes.iter().enumerate() {
            for text in probe.texts.iter().map(String::as_bytes) {
                search.add_windows(text, 1, 1, (at, Part::Text));
                if (TEXT_BYTES_MIN..WINDOW).contains(&text.len()) {
                    search.add_needle(text.to_vec(), (at, Part::Text));
                }
            }
            if let Some(vector) = probe.vector.as_deref().and_then(|v| UnitVector::new("vector", v).ok()) {
                let (floats, code) = patterns_of(&vector);
                search.add_windows(&floats, 4, DISTINCT_MIN, (at, Part::Vector));
                search.add_windows(&code, 1, DISTINCT_MIN, (at, Part::Code));
            }
            for key in &probe.keys {
                forms_of(key, tenants)
                    .into_iter()
                    .for_each(|(form, part)| search.add_needle(form, (at, part)));
            }
        }
        search.fill_filter();
        search
    }

    fn add_windows(&mut self, bytes: &[u8], step: usize, distinct: usize, origin: Origin) {
        for window in bytes.windows(WINDOW).step_by(step) {
            if let Some(window) = window.first_chunk::<WINDOW>()
                && distinct_bytes(window) >= distinct
            {
                self.windows.entry(u128::from_le_bytes(*window)).or_insert(origin);
            }
        }
    }

    fn add_needle(&mut self, needle: Vec<u8>, origin: Origin) {
        self.longest = self.longest.max(needle.len() + TENANT_BYTES);
        if let Some(anchor) = anchor_of(&needle) {
            let of_length = self.needles.entry(anchor).or_default().entry(needle.len()).or_default();
            of_length.entry(needle).or_default().push(origin);
        }
    }

    /// Eight bits for each pattern, so that one byte of the file in eight or fewer is looked up.
    fn fill_filter(&mut self) {
        let bits = ((self.windows.len() + self.needles.len()) * 8).next_power_of_two().max(1 << 12);
        self.filter = vec![0; bits / 64];
        let windows = self.windows.keys().map(|window| mix(*window));
        let hashes: Vec<u64> = windows.chain(self.needles.keys().map(|a| mix(u128::from(*a)))).collect();
        for hash in hashes {
            let (word, bit) = self.place(hash);
            if let Some(word) = self.filter.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let bit = hash as usize & (self.filter.len() * 64 - 1);
        (bit / 64, 1 << (bit % 64))
    }

    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether anything of a text is searched for.
    fn has(&self, text: &str) -> bool {
        let window = |window: &[u8]| {
            let window = window.first_chunk::<WINDOW>().map(|window| u128::from_le_bytes(*window));
            window.is_some_and(|window| self.windows.contains_key(&window))
        };
        let text = text.as_bytes();
        text.windows(WINDOW).any(window) || self.has_needle(text)
    }

    /// Whether any form of a key is searched for.
    fn has_key(&self, key: &str, tenants: &[u32]) -> bool {
        forms_of(key, tenants).iter().any(|(form, _)| self.has_needle(form))
    }

    fn has_needle(&self, needle: &[u8]) -> bool {
        let of_length = || self.needles.get(&anchor_of(needle)?)?.get(&needle.len());
        of_length().is_some_and(|needles| needles.contains_key(needle))
    }

    /// Whether bytes begin as an id does. Behind a shortened key stands the number of a namespace, of which the 0 that ends the
    /// pattern is the first byte, or nothing.
    fn is_id(&self, bytes: &[u8]) -> bool {
        bytes.first_chunk().is_some_and(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]) > self.tenant_max)
    }

    fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.needles.is_empty()
    }

    /// Calls `hit` for every pattern in `bytes`: where it begins, the window or the needle, and of what it is.
    fn scan(&self, bytes: &[u8], hit: &mut dyn FnMut(usize, Pattern<'_>, Origin)) {
        for at in 0..bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            if let Some(window) = rest.first_chunk::<WINDOW>() {
                let window = u128::from_le_bytes(*window);
                if self.may_have(mix(window))
                    && let Some(origin) = self.windows.get(&window)
                {
                    hit(at, Pattern::Window(window), *origin);
                }
            }
            let Some(anchor) = anchor_of(rest).filter(|anchor| self.may_have(mix(u128::from(*anchor))))
            else {
                continue;
            };
            for (length, needles) in self.needles.get(&anchor).into_iter().flatten() {
                let found = rest.get(..*length).and_then(|bytes| needles.get_key_value(bytes));
                if let Some((needle, origins)) = found {
                    let ends_row = self.is_id(rest.get(*length..).unwrap_or_default());
                    let is_met = |origin: &&Origin| origin.1 != Part::KeyRow || ends_row;
                    origins
                        .iter()
                        .filter(is_met)
                        .for_each(|origin| hit(at, Pattern::Needle(needle), *origin));
                }
            }
        }
    }

    /// Takes every pattern that a live row has out of the search.
    fn subtract(&mut self, live: &[u8]) {
        let (mut windows, mut needles) = (Vec::new(), Vec::new());
        self.scan(live, &mut |_, pattern, _| match pattern {
            Pattern::Window(window) => windows.push(window),
            Pattern::Needle(needle) => needles.push(needle.to_vec()),
        });
        for window in windows {
            self.windows.remove(&window);
        }
        needles.iter().for_each(|needle| self.remove_needle(needle));
    }

    fn remove_needle(&mut self, needle: &[u8]) {
        let of_anchor = anchor_of(needle).and_then(|anchor| self.needles.get_mut(&anchor));
        if let Some(of_length) = of_anchor.and_then(|all| all.get_mut(&needle.len())) {
            of_length.remove(needle);
        }
    }
}

/// What a scan met.
enum Pattern<'s> {
    Window(u128),
    Needle(&'s [u8]),
}

/// Searches the bytes of files, each with its name, for what erased memories consisted of. One finding is reported for
/// each part of each probe and file, with the first place where it stands. Nothing must be written to the files meanwhile.
///
/// # Errors
/// `Io` when a file can't be read; what keeps the snapshot from being read.
pub(crate) fn check_erased(
    snapshot: &Snapshot,
    files: impl IntoIterator<Item = (PathBuf, impl Bytes)>,
    probes: &[ErasedProbe],
    report: &mut CheckReport,
) -> Result<()> {
    let tenants: Vec<u32> = snapshot.namespaces()?.iter().map(|(_, row)| row.number).collect();
    let mut search = Search::new(probes, &tenants);
    if !search.is_empty() {
        subtract_rows(snapshot, &mut search)?;
        subtract_keys(snapshot, &mut search)?;
        subtract_terms(snapshot, &mut search)?;
        subtract_vectors(snapshot, &mut search)?;
    }
    let is_unproven = |text: &String| !text.is_empty() && !search.has(text);
    let is_key_unproven = |key: &String| !key.is_empty() && !search.has_key(key, &tenants);
    let is_unproven =
        |probe: &&ErasedProbe| probe.texts.iter().any(is_unproven) || probe.keys.iter().any(is_key_unproven);
    report.unproven = probes.iter().filter(is_unproven).count() as u64;
    for (path, file) in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for ((probe, part), offset) in residues(&search, &path, file)? {
            let (part, probe) = (part.as_str(), probe + 1);
            let what = format!("the {part} of record {probe} of the earlier export is left in {name}");
            report.add(Code::Residue, "file", format!("{offset:x}"), what);
        }
    }
    Ok(())
}

/// What is left in a file, each with the first place where it stands.
fn residues(search: &Search, path: &Path, mut file: impl Bytes) -> Result<Vec<(Origin, u64)>> {
    let mut residues: HashMap<Origin, u64> = HashMap::new();
    let (mut held, mut begin) = (Vec::with_capacity(CHUNK + search.longest), 0_u64);
    loop {
        let kept = held.len();
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut held);
        let read = read.map_err(|source| Error::io("read", path, source))?;
        if read == 0 {
            break;
        }
        search.scan(&held, &mut |at, _, (probe, part)| {
            residues.entry((probe, part.told())).or_insert(begin + at as u64);
        });
        // A pattern that begins in the last bytes may go on in the next chunk.
        let done = (kept + read).saturating_sub(search.longest - 1);
        held.drain(..done);
        begin += done as u64;
    }
    let mut residues: Vec<_> = residues.into_iter().collect();
    residues.sort_unstable();
    Ok(residues)
}

/// What live rows hold: content, holders and their keys and tags, names.
fn subtract_rows(snapshot: &Snapshot, search: &mut Search) -> Result<()> {
    for table in [Table::Memory, Table::Holder, Table::HolderKey, Table::HolderTag] {
        snapshot.walk(table, &Walk::all(), &mut |key, value| {
            let (address, _) = table.address(key);
            // A row that its memory has left behind is a residue itself.
            if let Some((ns, id)) = address.ns.zip(address.id)
                && snapshot.vitals(ns, id)?.is_some()
            {
                search.subtract(key);
                search.subtract(value);
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    snapshot.walk(Table::MetaKey, &Walk::all(), &mut |key, _| {
        // As it stands in front of each of its rows.
        search.subtract(&[key, &[0]].concat());
        Ok(ControlFlow::Continue(()))
    })?;
    snapshot.walk(Table::MetaValue, &Walk::all(), &mut |key, _| {
        let keys::MetaValue { ns, id, .. } = keys::MetaValue::read(Table::MetaValue, key)?;
        if snapshot.vitals(ns, id)?.is_some() {
            search.subtract(key);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for table in [Table::Event, Table::Aggregate] {
        snapshot.walk(table, &Walk::all(), &mut |key, value| {
            let (address, _) = table.address(key);
            if let Some((ns, id)) = address.ns.zip(address.id)
                && tells_of_nobody_forgotten(snapshot, table, (ns, id.as_bytes()))?
            {
                search.subtract(key);
                search.subtract(value);
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    for table in [Table::Namespace, Table::Partition, Table::Policy, Table::Run, Table::Goal] {
        snapshot.walk(table, &Walk::all(), &mut |key, value| {
            search.subtract(key);
            search.subtract(value);
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(())
}

/// Whether a message, or an aggregate of messages, is of no memory that somebody has forgotten: with such a memory its text goes.
/// With a memory that maintenance has removed, the message stays until its own time is over, and so do the messages of others when
/// an undo takes the memory that told them.
fn tells_of_nobody_forgotten(snapshot: &Snapshot, table: Table, (ns, id): (NsId, &Id)) -> Result<bool> {
    let of_aggregate = |id: &Id| -> Result<Option<Id>> {
        Ok(sound(snapshot.aggregate(ns, id))?.flatten().and_then(|row| row.memory))
    };
    let memories = match table {
        Table::Event => match sound(snapshot.event(ns, id))?.flatten() {
            Some(row) => [row.memory, row.aggregate.as_ref().map(of_aggregate).transpose()?.flatten()],
            None => return Ok(false),
        },
        _ => [of_aggregate(id)?, None],
    };
    for memory in memories.into_iter().flatten().map(MemoryId::from_bytes) {
        let stone = sound(snapshot.tombstone(ns, memory))?.flatten();
        let is_forgotten =
            stone.is_none_or(|stone| stone.reason.is_forgotten() || stone.forgotten_at.is_some());
        if is_forgotten && !snapshot.has_row(ns, memory)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The keys of live rows, in whatever form they stand somewhere: the journal quotes them, and of a step that tells of a live row
/// nothing is a residue. What only contains such a key is searched for.
fn subtract_keys(snapshot: &Snapshot, search: &mut Search) -> Result<()> {
    snapshot.walk(Table::HolderKey, &Walk::all(), &mut |key, _| {
        let keys::HolderKey { ns, key: name, id, .. } = keys::HolderKey::read(Table::HolderKey, key)?;
        if snapshot.vitals(ns, id)?.is_some() {
            for (form, _) in forms_of(name.0, &[ns.0]) {
                search.remove_needle(&form);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The terms of live texts as the full-text index has them. The index folds a word, and an erased text may have had the folded form.
fn subtract_terms(snapshot: &Snapshot, search: &mut Search) -> Result<()> {
    let mut analyzers = HashMap::new();
    for (text, head) in snapshot.text_heads(None)? {
        analyzers.extend(analyzer_of(text, &head.analyzer).ok().map(|analyzer| (text, analyzer)));
    }
    snapshot.walk(Table::Vitals, &Walk::all(), &mut |key, _| {
        let Some(keys::Vitals { ns, id }) = keys::Vitals::parse(key) else {
            return Ok(ControlFlow::Continue(()));
        };
        let place = sound(snapshot.vitals(ns, id))?.flatten().map(|vitals| vitals.place);
        let indexed = place.filter(|place| place.doc.is_some());
        let text = indexed.map(|place| TextId { ns, part: PartId(place.partition) });
        if let Some(analyzer) = text.and_then(|text| analyzers.get(&text))
            && let Some(content) = sound(snapshot.content(ns, id))?.flatten()
        {
            analyzer.analyze(&content.text, &mut |term, _| search.subtract(term.as_bytes()));
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The vectors of live rows and of those in limbo, and their codes.
fn subtract_vectors(snapshot: &Snapshot, search: &mut Search) -> Result<()> {
    let mut values = Vec::new();
    let subtract = |search: &mut Search, values: &[f32]| {
        if let Some(vector) = UnitVector::from_stored(values) {
            let (floats, code) = patterns_of(&vector);
            search.subtract(&floats);
            search.subtract(&code);
        }
    };
    snapshot.walk(Table::Limbo, &Walk::all(), &mut |key, _| {
        // A row in limbo has given its slot up, and keeps its vector itself.
        let (address, _) = Table::Limbo.address(key);
        if let Some((ns, id)) = address.ns.zip(address.id)
            && let Some(row) = sound(snapshot.limbo(ns, id))?.flatten()
        {
            subtract(search, &row.vector);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    snapshot.walk(Table::Vitals, &Walk::all(), &mut |key, _| {
        let Some(keys::Vitals { ns, id }) = keys::Vitals::parse(key) else {
            return Ok(ControlFlow::Continue(()));
        };
        let place = snapshot.vitals(ns, id)?.map(|vitals| vitals.place);
        if let Some(place) = place
            && let Some(slot) = place.slot
            && let Some(space) = snapshot.space(SpaceId(place.space))?
        {
            let index = IndexId { ns, part: PartId(place.partition), space: SpaceId(place.space) };
            if snapshot.vector(index, space.dim as usize, slot, &mut values)? {
                subtract(search, &values);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The forms in which a key stands in a file; none of an empty one.
fn forms_of(key: &str, tenants: &[u32]) -> Vec<(Vec<u8>, Part)> {
    if key.is_empty() {
        return Vec::new();
    }
    let row = |tenant: &u32| ([&tenant.to_be_bytes(), key.as_bytes(), &[0]].concat(), Part::KeyRow);
    let mut forms: Vec<_> = tenants.iter().map(row).collect();
    if key.len() >= KEY_BYTES_MIN {
        let mut held = Vec::new();
        put_varint(&mut held, u32::try_from(key.len()).unwrap_or(u32::MAX));
        held.extend(key.as_bytes());
        let quoted = Value::from(key).to_string().into_bytes();
        forms.extend([held, quoted, key.as_bytes().to_vec()].map(|form| (form, Part::Key)));
    }
    forms
}

/// A vector as its f32 values and as its code stand in the file.
fn patterns_of(vector: &UnitVector) -> (Vec<u8>, Vec<u8>) {
    let floats = vector.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut code = vec![0_i8; vector.dim()];
    encode(vector, &mut code);
    (floats, code.iter().map(|byte| byte.cast_unsigned()).collect())
}

fn anchor_of(bytes: &[u8]) -> Option<u64> {
    let &[a, b, c, d, e] = bytes.first_chunk::<ANCHOR>()?;
    Some(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]))
}

fn distinct_bytes(window: &[u8; WINDOW]) -> usize {
    let mut bytes = *window;
    bytes.sort_unstable();
    bytes.chunk_by(|a, b| a == b).count()
}

/// A hash whose low bits depend on every bit of the value: multiplication by odd constants (as in `splitmix64`).
fn mix(value: u128) -> u64 {
    let (low, high) = (value as u64, (value >> 64) as u64);
    let mut hash = low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 32)
}
