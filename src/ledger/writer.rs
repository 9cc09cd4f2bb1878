//! The one writer of truth within a transaction, and how it reads the rows that it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Error, Result, sound};
use crate::index::Staged;
use crate::ledger::counters::Counters;
use crate::ledger::derived::Declared;
use crate::ledger::ranked::KeptWriters;
use crate::model::{Actor, Content, Evidence, Holder, Life, MemoryId, RuleId, RunId, Time, Vitals};
use crate::policy::{Confidence, TombstoneHash, Ttl};
use crate::store::control::Clock;
use crate::store::{JunctionRow, Keeper, Lock, NsId, Rows, Truth, WriteTx};
use crate::text::Secret;

/// Who makes a change, when and under which policy. It is the same for all changes of a unit.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The namespace of the unit.
    pub(crate) ns: NsId,
    /// The transaction time.
    pub(crate) now: Time,
    /// Who makes the change.
    pub(crate) actor: Actor,
    /// The run, if there is one.
    pub(crate) run: Option<RunId>,
    /// The number of the policy in force.
    pub(crate) policy_number: u64,
    /// The hash of the policy in force.
    pub(crate) policy_hash: [u8; 8],
    /// Whether memories that maintenance removes wait in limbo. Otherwise they are erased at once.
    pub(crate) keeps_limbo: bool,
    /// Lifetimes of the short-term tiers: what expired and comes back lives anew.
    pub(crate) ttl: Ttl,
    /// The confidence of memories that come without one.
    pub(crate) confidence: Confidence,
}

/// The rule and the evidence of the present change.
#[derive(Clone, Debug)]
pub(crate) struct Why {
    pub(crate) rule: RuleId,
    pub(crate) evidence: Evidence,
}

/// The key to the writes of the truth: nobody but this room can make one.
pub(crate) struct TruthKey(());

impl Keeper for Lock {
    type Key = TruthKey;
}

/// The writes of the truth in a transaction.
pub(super) fn truth<'a, 't>(tx: &'a mut WriteTx<'t>) -> Truth<'a, 't> {
    tx.truth(TruthKey(()))
}

/// The one writer of truth within a transaction.
pub(crate) struct Ledger<'a, 't> {
    pub(crate) tx: &'a mut WriteTx<'t>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) secret: &'a Secret,
    /// How a tombstone names erased content.
    pub(crate) tombstone_hash: TombstoneHash,
    /// The id of the analyzer for new full-text indexes.
    pub(crate) analyzer: String,
    /// The vectors that the transaction has written so far.
    pub(crate) staged: Staged,
    /// Whether the transaction has found that every row of a namespace can be read: who makes many namespaces asks once.
    pub(crate) namespaces_are_sound: bool,
    /// The rows whose text keys have left for another one while others go on to say it, since the last outcome was told.
    pub(crate) left_to_others: BTreeSet<MemoryId>,
    /// The memories that wait for a vector since this transaction.
    pub(crate) waiting: Vec<(NsId, MemoryId)>,
    /// The paths of metadata with an index, for the namespaces to which the transaction has written.
    pub(super) declared: BTreeMap<NsId, Arc<Declared>>,
    /// What the holders of one row bring: the row that a holder left last.
    pub(super) brought: Option<Brought>,
    /// The writers of one row: the row that a writer left last.
    pub(super) writers: Option<KeptWriters>,
    /// How far the journal of one row was redacted: the row that a holder left last.
    pub(super) swept: Option<Swept>,
    /// From where the holders of rows came to which the transaction has asked for copies.
    pub(super) copies: BTreeMap<(NsId, MemoryId), Copies>,
    /// Which holders of a row have a link to which memory: rows whose links the transaction has looked for.
    pub(super) links: BTreeMap<(NsId, MemoryId), BTreeMap<MemoryId, BTreeSet<u32>>>,
    /// The memories and holders of which a row of the journal tells: the last row that told of many.
    pub(super) named: Option<Named>,
    /// Rows of the journal whose values the transaction has all redacted.
    pub(super) redacted: BTreeSet<(NsId, u64)>,
    /// The holders that are about to leave their rows: what they say there is no later word of their keys.
    pub(crate) leaving: BTreeSet<(MemoryId, u32)>,
    /// The import that is undone, with the holders that the present slice takes. The others are about to leave as well.
    pub(crate) undoing: Option<(RunId, BTreeSet<(MemoryId, u32)>)>,
    /// The name of one namespace: the one from which the transaction erased a memory in place of setting it aside.
    pub(super) purging: Option<(NsId, String)>,
    /// Namespaces whose counters are counted again at the end, because it is unknown how a damaged row was counted, or because
    /// all memories have left.
    pub(super) recount: BTreeSet<NsId>,
}

/// How many holders of a row bring each of its junction rows. When many holders leave one after the other, this is
/// counted once.
#[derive(Debug)]
pub(super) struct Brought {
    /// The row.
    pub(super) of: (NsId, MemoryId),
    /// The number of watched changes after which the counts hold.
    pub(super) changes: u64,
    pub(super) counts: BTreeMap<JunctionRow, u32>,
}

/// How far what the journal tells of a row, and of none of its holders, was redacted after holders had left.
#[derive(Debug)]
pub(super) struct Swept {
    pub(super) of: (NsId, MemoryId),
    /// The number of the first step that was not looked at.
    pub(super) next: u64,
    /// The tags that holders of the row brought; none if all values were redacted, whatever they name.
    pub(super) tags: Option<Vec<String>>,
}

/// The memories and holders of which a row of the journal tells.
pub(super) type Named = ((NsId, u64), BTreeSet<(MemoryId, Option<u32>)>);

/// The numbers of a row's holders, by the row from which each came. Rows that come back from one row one after the other
/// find their copies here, so the holders are walked once and not for each of them.
#[derive(Debug)]
pub(super) struct Copies {
    /// The next number of a holder when the numbers were read. Another holder changes it.
    pub(super) next: u32,
    pub(super) numbers: BTreeMap<MemoryId, Vec<u32>>,
    /// Those that can't be read.
    pub(super) damaged: BTreeSet<u32>,
}

/// A row whose parts can all be read.
pub(crate) struct Whole {
    pub(crate) vitals: Vitals,
    pub(crate) content: Content,
    pub(crate) holders: Vec<Holder>,
}

/// The end of a row's life, and who has written the row.
pub(crate) struct End {
    pub(super) life: Life,
    /// Its one writer, if each that has written it has done so without a key. Nobody can leave the row then and let another stay.
    pub(super) writer: Option<Writer>,
}

/// Whoever writes without a key, as far as writes tell.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    author_id: Option<String>,
    tags: Vec<String>,
    run: Option<RunId>,
}

impl Whole {
    /// Reads a row; none if there is no row.
    ///
    /// # Errors
    /// `Corrupted` if a part of it is damaged.
    pub(crate) fn read<R: Rows>(rows: &R, ns: NsId, id: MemoryId) -> Result<Option<Self>> {
        let Some(vitals) = rows.vitals(ns, id)? else { return Ok(None) };
        let (content, holders) = (content_of(rows, ns, id)?, rows.holders(ns, id)?);
        Ok(Some(Whole { vitals, content, holders }))
    }

    /// The end of the row.
    pub(crate) fn end(&self) -> End {
        let author_id = self.content.author_id.clone();
        let writer =
            self.holders.first().map(|first| Writer { author_id, tags: first.tags.clone(), run: first.run });
        let writer = writer.filter(|Writer { tags, run, .. }| {
            self.holders.iter().all(|holder| holder.takes_keyless(tags, *run, holder.text.as_deref()))
        });
        End { life: self.vitals.life(), writer }
    }
}

impl End {
    pub(crate) fn life(&self) -> Life {
        self.life
    }

    pub(crate) fn writer(&self) -> Option<&Writer> {
        self.writer.as_ref()
    }

    /// Whether a pass may make one row of both. The row lives as long as the longer of the two, and only a writer can move the
    /// end that the same writer set: not even for a while, since the others may leave the row.
    pub(crate) fn may_join(&self, other: &End) -> bool {
        let shorter = if self.life.longer(other.life) == self.life { other } else { self };
        self.life.agrees_with(other.life) || !shorter.life.is_promised_end() || self.is_of_writer_of(other)
    }

    /// Takes in the end of a row that may join; says whether it may. What was in another row can leave again by itself, so nobody is
    /// the one writer any more.
    pub(crate) fn join(&mut self, other: &End) -> bool {
        let may_join = self.may_join(other);
        if may_join {
            self.writer = None;
            self.life = self.life.longer(other.life);
        }
        may_join
    }

    /// Whether both are of one writer without a key.
    pub(super) fn is_of_writer_of(&self, other: &End) -> bool {
        self.writer.is_some() && self.writer == other.writer
    }
}

impl<'a, 't> Ledger<'a, 't> {
    /// Opens the ledger of a transaction at clock `now`. The commit gets the next number, and a time that does not run
    /// backwards.
    pub(crate) fn open(
        tx: &'a mut WriteTx<'t>,
        secret: &'a Secret,
        analyzer: String,
        now: Time,
    ) -> Result<Self> {
        let mut clock = tx.clock()?;
        clock.commit += 1;
        // A clock that was set back must not give a later commit an earlier time: reads by transaction time rely on it.
        clock.at_ms = clock.at_ms.max(now.as_millis());
        Ok(Ledger {
            tx,
            clock,
            counters: Counters::default(),
            secret,
            tombstone_hash: TombstoneHash::Hmac,
            analyzer,
            staged: Staged::default(),
            left_to_others: BTreeSet::new(),
            waiting: Vec::new(),
            declared: BTreeMap::new(),
            brought: None,
            writers: None,
            swept: None,
            copies: BTreeMap::new(),
            links: BTreeMap::new(),
            named: None,
            redacted: BTreeSet::new(),
            namespaces_are_sound: false,
            leaving: BTreeSet::new(),
            undoing: None,
            purging: None,
            recount: BTreeSet::new(),
        })
    }

    /// The transaction time.
    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.clock.at_ms)
    }

    /// The vitals and the content of a row that must exist.
    pub(crate) fn load(&self, ns: NsId, id: MemoryId) -> Result<(Vitals, Content)> {
        let vitals = self.tx.vitals(ns, id)?.ok_or_else(|| gone(id))?;
        Ok((vitals, self.content_of(ns, id)?))
    }

    /// The vitals and the content of a row that must be of this version.
    pub(super) fn load_at(&self, ns: NsId, id: MemoryId, version: u64) -> Result<(Vitals, Content)> {
        let row = self.load(ns, id)?;
        if row.0.version == version {
            return Ok(row);
        }
        Err(Error::Conflict { what: format!("memory {id}"), why: "it has changed meanwhile".to_owned() })
    }

    /// Refuses an id that a row or a tombstone has, however damaged.
    pub(super) fn refuse_used(&self, ns: NsId, id: MemoryId) -> Result<()> {
        if let Some(stone) = self.tx.tombstone(ns, id)? {
            let went = match stone.reason.is_asked_for() {
                true => "is forgotten",
                false => "is gone",
            };
            let why = format!(
                "the memory {went} here since {} ({}), and no line of an export brings it back: leave the line out (`--skip-bad`)",
                stone.deleted_at, stone.reason
            );
            return Err(Error::Conflict { what: format!("id {id}"), why });
        }
        if self.tx.has_row(ns, id)? { Err(used(id)) } else { Ok(()) }
    }

    /// The vitals and the content of a row; none if there is no row.
    pub(crate) fn load_there(&self, ns: NsId, id: MemoryId) -> Result<Option<(Vitals, Content)>> {
        let Some(vitals) = self.tx.vitals(ns, id)? else { return Ok(None) };
        Ok(Some((vitals, self.content_of(ns, id)?)))
    }

    /// The content of a row that has vitals.
    pub(super) fn content_of(&self, ns: NsId, id: MemoryId) -> Result<Content> {
        content_of(&*self.tx, ns, id)
    }

    /// A row of which vitals, content and holders can be read; none if there is no row.
    ///
    /// # Errors
    /// `Corrupted` if one of these parts is damaged.
    pub(crate) fn whole(&self, ns: NsId, id: MemoryId) -> Result<Option<Whole>> {
        Whole::read(&*self.tx, ns, id)
    }

    /// Whether a row exists and can be read. Work on many rows leaves unreadable rows alone.
    pub(crate) fn is_whole(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        Ok(sound(self.whole(ns, id))?.flatten().is_some())
    }

    /// Whether an id is, or once was, that of a memory, as far as rows and tombstones tell, damaged ones among them.
    pub(crate) fn has_been(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        Ok(self.tx.has_row(ns, id)? || sound(self.tx.tombstone(ns, id))? != Some(None))
    }

    /// The hot part of a row that can be read as a whole.
    pub(crate) fn whole_vitals(&self, ns: NsId, id: MemoryId) -> Result<Option<Vitals>> {
        Ok(sound(self.whole(ns, id))?.flatten().map(|whole| whole.vitals))
    }
}

/// The content of a row that has vitals.
fn content_of<R: Rows>(rows: &R, ns: NsId, id: MemoryId) -> Result<Content> {
    let content = rows.content(ns, id)?;
    content.ok_or_else(|| Error::corrupted("memory", id.as_bytes(), "vitals without content"))
}

/// The error if the row on which a change was decided no longer exists.
pub(super) fn gone(id: MemoryId) -> Error {
    Error::NotFound { what: "memory", name: id.to_string() }
}

/// The error for a new row of an id that was given out before.
pub(super) fn used(id: MemoryId) -> Error {
    Error::Conflict { what: format!("id {id}"), why: "ids are never used again".to_owned() }
}
