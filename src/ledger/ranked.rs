//! The holders of a row with the ranks of the rows from which they came.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::order::{Rank, canonical};
use crate::model::{Holder, MemoryId, Significance, Time, Vitals};
use crate::store::NsId;

/// The holders of a row. Who of them comes first is known without a look at the others, because thousands may leave one after the
/// other.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) id: MemoryId,
    /// By their numbers.
    all: BTreeMap<u32, Ranked>,
    /// Those that wrote the text of the row, into it or into the row from which they came.
    wrote: Order,
    /// Those that have a text of their own.
    own: Order,
    /// The numbers of those that have a text of their own, by its hash.
    texts: BTreeMap<u64, BTreeSet<u32>>,
    /// The numbers of those that have no key and only follow the row.
    followers: BTreeSet<u32>,
    /// The numbers of those that wrote the text into the row itself.
    here: BTreeSet<u32>,
    /// The numbers of those that came from each row.
    came: BTreeMap<MemoryId, BTreeSet<u32>>,
}

/// Writers that were read before, and the number of changes after which they are what the row has.
#[derive(Debug)]
pub(super) struct KeptWriters {
    pub(super) ns: NsId,
    pub(super) changes: u64,
    pub(super) writers: Writers,
}

/// A holder, and the rank of the row from which it came; none if that row is gone or damaged.
#[derive(Debug)]
struct Ranked {
    holder: Holder,
    rank: Option<Rank>,
}

/// A rank that sorts in canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InOrder(Rank);

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        canonical(&self.0, &other.0)
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The numbers of some holders in the order of the rows from which they came.
#[derive(Debug, Default)]
struct Order {
    ranked: BTreeSet<(InOrder, u32)>,
    /// Those without a rank of their own. They count as made when the present row was, which may change.
    unranked: BTreeSet<(InOrder, u32)>,
}

impl Order {
    fn set(&mut self, one: &Ranked) -> &mut BTreeSet<(InOrder, u32)> {
        if one.rank.is_some() { &mut self.ranked } else { &mut self.unranked }
    }

    /// The first of them that stays.
    fn first(&self, row: &Vitals, stays: impl Fn(u32) -> bool) -> Option<u32> {
        let of = |all: &BTreeSet<(InOrder, u32)>| all.iter().find(|(_, number)| stays(*number)).copied();
        let unranked = of(&self.unranked).map(|(InOrder(rank), number)| {
            let created_at = row.created_at;
            (InOrder(Rank { created_at, ..rank }), number)
        });
        of(&self.ranked).into_iter().chain(unranked).min().map(|(_, number)| number)
    }
}

impl Writers {
    /// Holders of a row, each with the rank of the row from which it came.
    pub(super) fn new(id: MemoryId, all: impl IntoIterator<Item = (Holder, Option<Rank>)>) -> Self {
        let mut writers = Writers {
            id,
            all: BTreeMap::new(),
            wrote: Order::default(),
            own: Order::default(),
            texts: BTreeMap::new(),
            followers: BTreeSet::new(),
            here: BTreeSet::new(),
            came: BTreeMap::new(),
        };
        for (holder, rank) in all {
            writers.put(Ranked { holder, rank });
        }
        writers
    }

    /// The holders, in the order of their numbers.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.all.values().map(|one| &one.holder)
    }

    /// The first holder that wrote the text of the row and stays, by the order of the rows from which they came.
    pub(super) fn first_that_wrote(&self, row: &Vitals, stays: impl Fn(u32) -> bool) -> Option<&Holder> {
        self.holder(self.wrote.first(row, stays)?)
    }

    /// The same of those that have a text of their own.
    pub(super) fn first_with_text(&self, row: &Vitals, stays: impl Fn(u32) -> bool) -> Option<&Holder> {
        self.holder(self.own.first(row, stays)?)
    }

    /// The first holder by number that wrote the text into the row itself and stays.
    pub(super) fn wrote_here(&self, stays: impl Fn(u32) -> bool) -> Option<&Holder> {
        self.holder(self.here.iter().copied().find(|number| stays(*number))?)
    }

    /// Takes a holder out.
    pub(super) fn take(&mut self, number: u32) {
        if let Some(one) = self.all.remove(&number) {
            self.unplace(&one);
        }
    }

    /// Gives those that came from a row its rank as it is now.
    pub(super) fn rank_anew(&mut self, from: MemoryId, rank: Option<Rank>) {
        for number in self.came.get(&from).cloned().unwrap_or_default() {
            if let Some(one) = self.all.remove(&number) {
                self.unplace(&one);
                self.put(Ranked { rank, ..one });
            }
        }
    }

    /// Changes holders that have this text of their own, or no key and only follow the row, where `change` says so. Gives those that it
    /// has changed.
    pub(super) fn change(&mut self, text: &str, change: impl Fn(&mut Holder) -> bool) -> Vec<Holder> {
        let mut numbers = self.followers.clone();
        numbers.extend(self.texts.get(&hash_of(text)).into_iter().flatten());
        let mut changed = Vec::new();
        for number in numbers {
            if let Some(mut one) = self.all.remove(&number) {
                self.unplace(&one);
                if change(&mut one.holder) {
                    changed.push(one.holder.clone());
                }
                self.put(one);
            }
        }
        changed
    }

    /// The holders that have this text of their own.
    pub(super) fn with_text(&self, text: &str) -> impl Iterator<Item = &Holder> {
        let numbers = self.texts.get(&hash_of(text)).into_iter().flatten();
        numbers.filter_map(|number| self.holder(*number)).filter(move |one| one.text.as_deref() == Some(text))
    }

    fn holder(&self, number: u32) -> Option<&Holder> {
        self.all.get(&number).map(|one| &one.holder)
    }

    fn put(&mut self, one: Ranked) {
        let (number, place) = (one.holder.number, (one.in_order(self.id), one.holder.number));
        if one.holder.wrote_row_text() {
            self.wrote.set(&one).insert(place);
        }
        if let Some(text) = &one.holder.text {
            self.own.set(&one).insert(place);
            self.texts.entry(hash_of(text)).or_default().insert(number);
        }
        if one.holder.follows && one.holder.key.is_none() {
            self.followers.insert(number);
        }
        match one.holder.from {
            Some(from) => drop(self.came.entry(from).or_default().insert(number)),
            None if one.holder.wrote_row_text() => drop(self.here.insert(number)),
            None => {}
        }
        self.all.insert(number, one);
    }

    /// Takes a holder out of the orders.
    fn unplace(&mut self, one: &Ranked) {
        let (number, place) = (one.holder.number, (one.in_order(self.id), one.holder.number));
        self.wrote.set(one).remove(&place);
        self.own.set(one).remove(&place);
        self.followers.remove(&number);
        self.here.remove(&number);
        if let Some(text) = &one.holder.text {
            leave(&mut self.texts, &hash_of(text), number);
        }
        if let Some(from) = &one.holder.from {
            leave(&mut self.came, from, number);
        }
    }
}

/// Takes a number away from those of a key. A key without numbers goes.
fn leave<K: Ord>(all: &mut BTreeMap<K, BTreeSet<u32>>, key: &K, number: u32) {
    if let Some(numbers) = all.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            all.remove(key);
        }
    }
}

/// Texts are long, and there may be thousands of them.
fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl KeptWriters {
    /// Whether these are the writers of a row after so many changes.
    pub(super) fn are_of(&self, ns: NsId, id: MemoryId, changes: Option<u64>) -> bool {
        (self.ns, self.writers.id, Some(self.changes)) == (ns, id, changes)
    }
}

impl Ranked {
    /// If the row from which the holder came is gone or damaged, the rank comes from what the holder still says of it, but for the
    /// instant, which is that of the present row.
    fn in_order(&self, id: MemoryId) -> InOrder {
        InOrder(self.rank.unwrap_or(Rank {
            significance: Significance::default(),
            reinforcement_count: self.holder.share.max(1),
            created_at: Time::from_millis(0),
            id: self.holder.from.unwrap_or(id),
        }))
    }
}
