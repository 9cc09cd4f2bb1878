//! A store of a few rows for the planners.

use std::sync::Arc;

use crate::error::Result;
use crate::hygiene::plan::Field;
use crate::ledger::{Change, Context, Entry, Ledger, Moves, NewRow};
use crate::model::{
    Access, Actor, Content, Holder, Kind, MemoryId, PINNED_TAG, RuleId, SupersedeMode, Time, TombstoneReason,
    Vitals,
};
use crate::store::control::NamespaceRow;
use crate::store::disk::Folder;
use crate::store::{Durability, NsId, Options, Snapshot, Store, Truth};
use crate::text::{Secret, normal_form};

pub(super) const NS: NsId = NsId(1);
pub(super) const NOW: Time = Time::from_millis(1_800_000_000_000);

pub(super) struct Bed {
    pub(super) store: Store,
    _folder: tempfile::TempDir,
}

impl Bed {
    /// A store with these rows.
    pub(super) fn of(rows: Vec<NewRow>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: folder.path().join("plan.db"),
            cache_bytes: 1 << 22,
            shared: false,
            read_only: false,
            create: true,
            paranoid: false,
            secret: [7; 32],
            opener: [1; 8],
        };
        let bed = Bed { store: Store::open(Arc::new(Folder), options).unwrap(), _folder: folder };
        bed.write(|tx| {
            let row = NamespaceRow {
                number: NS.0,
                created_ms: 0,
                next_part: 1,
                horizon_known_ms: i64::MIN,
                horizon_valid_ms: i64::MIN,
                dropping: false,
            };
            tx.put_namespace("team", &row)?;
            tx.put_policy(1, "")
        });
        bed.apply(rows.into_iter().map(|row| Change::Insert(Box::new(row))));
        bed
    }

    pub(super) fn write(&self, unit: impl FnOnce(&mut Truth<'_, '_>) -> Result<()>) {
        self.store.write(Durability::Batch, |tx| unit(&mut tx.forged())).unwrap();
    }

    pub(super) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        self.ledger(|ledger, context| {
            for change in changes {
                ledger.apply(context, Entry::new(RuleId::STORE, change))?;
            }
            Ok(())
        });
    }

    /// One transaction of the ledger.
    pub(super) fn ledger(&self, unit: impl FnOnce(&mut Ledger<'_, '_>, &Context) -> Result<()>) {
        self.write(|tx| {
            let secret = Secret::from_bytes([7; 32]);
            let mut ledger = Ledger::open(tx, &secret, crate::limits::ANALYZER.to_owned(), NOW)?;
            let context = Context {
                ns: NS,
                now: NOW,
                actor: Actor::Caller,
                run: None,
                policy_number: 1,
                policy_hash: [0; 8],
                keeps_limbo: true,
                ttl: crate::policy::Ttl::default(),
                confidence: crate::policy::Confidence::default(),
            };
            ledger.clock.next_ns = 2;
            ledger.clock.policy = 1;
            unit(&mut ledger, &context)?;
            ledger.finish().map(|_| ())
        });
    }

    pub(super) fn supersede(&self, old: u8, new: u8, mode: SupersedeMode) {
        let (old, new) = (id(old), id(new));
        self.apply([Change::Supersede {
            old,
            new,
            mode,
            at: NOW,
            moves: Moves::All,
            since: None,
            via: None,
        }]);
    }

    pub(super) fn remove(&self, gone: u8, reason: TombstoneReason, replaced_by: Option<u8>) {
        self.apply([Change::Remove { id: id(gone), reason, replaced_by: replaced_by.map(id) }]);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.store.snapshot().unwrap()
    }
}

/// All partitions, at the instant of the rows.
pub(super) fn field() -> Field {
    Field::new(NS, NOW, Arc::default())
}

/// An answer to every question whether to stop.
pub(super) fn go(_: u64) -> bool {
    false
}

pub(super) fn id(n: u8) -> MemoryId {
    MemoryId::from_bytes([n; 16])
}

/// A row of kind profile, created at `n` ms.
pub(super) fn profile(n: u8, text: &str) -> NewRow {
    let mut row = row(id(n), text);
    row.vitals.kind_code = Kind::Profile.code();
    row.vitals.created_at = Time::from_millis(i64::from(n));
    row
}

/// Pinned, as a caller does it: by tag.
pub(super) fn pin(row: &mut NewRow) {
    row.vitals.pinned = true;
    row.holder.tags = vec![PINNED_TAG.to_owned()];
    row.content.tags = row.holder.tags.clone();
}

/// A row of kind knowledge.
pub(super) fn row(id: MemoryId, text: &str) -> NewRow {
    let mut vitals = Vitals::new(text, NOW);
    vitals.place.fingerprint = normal_form(text).prefix();
    let content = Content::new(text);
    let holder = Holder { count: 1, share: 1, ..Holder::default() };
    NewRow {
        id,
        vitals,
        content,
        access: Access::default(),
        holder,
        vector: None,
        sources: Vec::new(),
        payload: None,
    }
}
