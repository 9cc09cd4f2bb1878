//! The pass `near-duplicates` beside the write path.

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Significance};
use oubliette::policy::Syntax;
use oubliette::{Draft, Kind, Memory, Scope, State, WriteOptions};
use proptest::prelude::*;
use serde_json::json;

use super::{live, run};
use crate::world::{World, ms, text};

/// Text, metadata, kind, validity, significance, observations, whether there is a key.
type Write = (usize, usize, usize, bool, usize, i64, bool);

/// The draft of a write, the `at`th of its kind. `calm`: the row that stays is the first.
fn write((words, about, kind, bounded, weight, count, keyed): Write, at: usize, calm: bool) -> Draft {
    let words = ["uses the lamp", "uses  THE lamp", "Uses the  lamp", "likes tea"][words];
    let kind = [Kind::Knowledge, Kind::Profile, Kind::Message][kind].clone();
    let mut draft = text(words).kind(kind.clone());
    draft.key = (keyed || kind == Kind::Message).then(|| format!("k{at}"));
    let fields = &mut draft.fields;
    fields.metadata =
        [None, Some(json!({ "project": "a" })), Some(json!({ "note": "a" }))].get(about).cloned().flatten();
    fields.valid_from = bounded.then(|| ms(5)).into();
    if kind == Kind::Message {
        fields.author_kind = Some(AuthorKind::Bot).into();
    }
    if !calm {
        fields.significance = Some([Significance::Routine, Significance::Core][weight]);
        fields.reinforcement_count = Some(count);
    }
    draft
}

/// What stands: texts with all that makes rows differ, keys, and reinforcement.
fn standing(world: &World) -> Vec<(String, String, u32, Vec<String>)> {
    let row = |row: &Memory| {
        let like = format!("{} {:?} {:?} {:?}", row.kind, row.valid_from, row.significance, row.metadata);
        let mut keys = row.keys.clone();
        keys.sort();
        (row.text.clone(), like, row.reinforcement_count, keys)
    };
    let mut all: Vec<_> = world.list_in(Scope::Any, State::Live).iter().map(row).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// DEDUP-55: of rows that were let in side by side the pass makes what the door would have made of them.
    #[test]
    fn near_duplicates_makes_of_rows_what_the_door_makes_of_drafts(
        writes in prop::collection::vec(
            (0..4_usize, 0..3_usize, 0..3_usize, prop::bool::weighted(0.2), 0..2_usize, 1..4_i64, any::<bool>()),
            2..16,
        ),
        absorb in any::<bool>(),
    ) {
        let (door, pass) = (World::new(), World::new());
        if absorb {
            for world in [&door, &pass] {
                world.db.set_policy("write.normalized_match = \"absorb\"", Syntax::Toml).unwrap();
            }
        }
        let drafts = || writes.iter().enumerate().map(|(at, of)| write(*of, at, absorb)).collect::<Vec<_>>();
        door.ns.add_all(drafts(), &WriteOptions::default()).unwrap();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        pass.ns.add_all(drafts(), &apart).unwrap();
        prop_assert_eq!(pass.live().len(), writes.len());
        live(&pass, Pass::NearDuplicates);
        prop_assert_eq!(standing(&pass), standing(&door));
        let again = run(&pass, Pass::NearDuplicates, &MaintainOptions::default());
        prop_assert_eq!((again.planned, run(&door, Pass::NearDuplicates, &MaintainOptions::default()).planned), (0, 0));
    }
}
