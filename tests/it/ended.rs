//! A writer that has ended its record, or said something since that has ended, is not brought back by an undo, however many passes had
//! united its row with others (MODEL-67, LIFE-56).

use crate::backup::copy_of;
use crate::growth::{constant, cost};
use crate::world::{World, axis, text};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{Expiry, Significance};
use oubliette::{Draft, Kind, MemoryId, Patch, WriteOptions};

/// What `k` said before it was united with others, in the words of nobody else.
const SAID: &str = "Gateway status: 7 apps pending";
/// What `o` said.
const OTHER: &str = "Gateway status: 4 apps pending";

fn pass(world: &World, passes: &[Pass]) -> Option<RunId> {
    world.db.maintain_with(&MaintainOptions::live().passes(passes.to_vec())).unwrap().run
}

/// A row of its own.
fn apart(world: &World, draft: Draft) -> MemoryId {
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let id = world.ns.add_all(vec![draft], &how).unwrap().remove(0).id;
    world.advance("1s");
    id
}

fn said(words: &str, key: &str) -> Draft {
    text(words).key(key).vector(axis(0)).kind(Kind::Profile)
}

/// How the record of `k` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// `touch k --ttl 0s`.
    AtOnce,
    /// An end that comes and is swept.
    Ahead,
    /// The same, after another change that had given the text a row of its own.
    AfterChange,
    /// A later text, and its end.
    LaterText,
    /// A later text that stands, and one after it with an end.
    LaterVersion,
    /// The same after more versions than are looked at.
    ManyVersions,
}

const ENDS: [End; 6] =
    [End::AtOnce, End::Ahead, End::AfterChange, End::LaterText, End::LaterVersion, End::ManyVersions];

/// A story of the keys `o`, `k`, `p` and `q` whose rows passes have united, one after the other.
struct United {
    world: World,
    /// The row in which `k` wrote.
    own: MemoryId,
    runs: Vec<RunId>,
}

/// `versions` of `k` come before what is united, `first` says whether they are older than all else.
fn united(steps: usize, versions: bool, first: bool, words: &str) -> United {
    let world = World::new();
    let before = |world: &World| {
        for at in 0..usize::from(versions) * 2 {
            apart(world, text(&format!("something else {at}")).key("k").vector(axis(1)));
        }
    };
    if first {
        before(&world);
    }
    apart(&world, said(OTHER, "o"));
    if !first {
        before(&world);
    }
    let own = apart(&world, said(words, "k"));
    let unite = if words == OTHER { Pass::NearDuplicates } else { Pass::Collapse };
    let mut runs = vec![pass(&world, &[unite]).unwrap()];
    assert_eq!(world.live().len(), 1, "one row of o and k");
    world.advance("1m");
    let near = said("Gateway status: 4 apps pending.", "p");
    let status = said("Gateway status: 9 apps pending", "q");
    let others = [
        (near, Significance::Noteworthy, Pass::VectorDuplicates),
        (status, Significance::Core, Pass::Collapse),
    ];
    for (mut other, significance, unite) in others.into_iter().take(steps - 1) {
        other.fields.significance = Some(significance);
        apart(&world, other);
        runs.push(pass(&world, &[unite]).unwrap());
        assert_eq!(world.live().len(), 1, "one row of all");
        world.advance("1m");
    }
    United { world, own, runs }
}

fn end(world: &World, how: End) {
    let left = || text("the gateway is gone").key("k").vector(axis(2));
    let at = Expiry::At(world.ahead("2h"));
    match how {
        End::AtOnce => drop(world.ns.touch(["k"], Expiry::At(world.now())).unwrap()),
        End::Ahead => drop(world.ns.touch(["k"], at).unwrap()),
        End::AfterChange => {
            let mut change = Patch::default();
            change.fields.importance = Some(0.9);
            world.ns.update("k", change).unwrap();
            world.ns.touch(["k"], at).unwrap();
        }
        End::LaterText => drop(world.add(left().expiry(at))),
        End::LaterVersion | End::ManyVersions => {
            let versions = if how == End::ManyVersions { 40 } else { 1 };
            for version in 0..versions {
                world.add(text(&format!("the gateway goes {version}")).key("k").vector(axis(1)));
                world.advance("1s");
            }
            world.add(left().expiry(at));
        }
    }
    world.advance("1d");
    pass(world, &[Pass::Expire]);
}

/// The keys of the live rows, those of each row in one string.
fn live(world: &World) -> Vec<String> {
    let mut all: Vec<String> = world.live().into_iter().map(|id| world.row(id).keys.join("+")).collect();
    all.sort();
    all
}

/// The orders in which so many runs can be taken back.
fn orders(runs: usize) -> Vec<Vec<usize>> {
    match runs {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![vec![0, 1, 2], vec![2, 1, 0], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![0, 2, 1]],
    }
}

#[test]
fn model_67_no_undo_brings_a_writer_back_that_has_ended_since() {
    let others = ["o", "p", "q"];
    for how in ENDS {
        for steps in 1..=3 {
            // One number of steps is enough for the many writes of that.
            if how == End::ManyVersions && steps != 2 {
                continue;
            }
            for (versions, first) in [(false, false), (true, false), (true, true)] {
                let orders =
                    orders(steps).into_iter().flat_map(|order| [(SAID, order.clone()), (OTHER, order)]);
                for (at, (words, order)) in orders.enumerate() {
                    let United { world, runs, .. } = united(steps, versions, first, words);
                    end(&world, how);
                    let copy = (steps == 2 && at < 2).then(|| copy_of(&world));
                    for world in copy.iter().chain([&world]) {
                        for run in &order {
                            // A copy does not know a run of which nothing is left.
                            let undone = world.ns.undo(runs[*run]);
                            assert!(undone.is_ok() || copy.is_some());
                        }
                        let what = format!("{how:?}, {steps} steps, {versions} {first}, {words}, {order:?}");
                        assert_eq!(live(world), others[..steps], "{what}");
                    }
                }
            }
        }
    }
}

/// The undo names what it does not bring back.
#[test]
fn model_67_an_undo_names_a_writer_that_has_ended_since() {
    for how in [End::LaterText, End::LaterVersion] {
        let United { world, own, runs } = united(1, true, true, SAID);
        end(&world, how);
        let undone = world.ns.undo(runs[0]).unwrap();
        assert_eq!((undone.restored, undone.lost.len()), (0, 1), "{undone:?}");
        assert!(undone.lost[0].contains("key k ") && undone.lost[0].contains(&own.to_string()), "{undone:?}");
    }
}

/// Whoever asks for the row by its id gets it, and its writer has not ended any more.
#[test]
fn life_7_a_caller_brings_back_a_writer_that_has_ended_since() {
    let United { world, own, runs } = united(2, true, true, SAID);
    end(&world, End::LaterText);
    world.ns.restore(own.to_string()).unwrap();
    assert_eq!((world.row("k").id, live(&world)), (own, vec!["k".to_owned(), "o+p".to_owned()]));
    for run in runs {
        world.ns.undo(run).unwrap();
    }
    assert_eq!(live(&world), ["k", "o", "p"]);
    let again = pass(&world, &[Pass::Collapse]).unwrap();
    assert_eq!(world.live().len(), 1);
    world.ns.undo(again).unwrap();
    assert_eq!(live(&world), ["k", "o", "p"]);
}

/// What a key says anew is what takes the place of the row.
#[test]
fn model_67_what_is_said_after_an_end_takes_the_place() {
    let United { world, own, runs } = united(2, false, false, SAID);
    end(&world, End::LaterText);
    let anew = world.add(text("the gateway is back").key("k").vector(axis(3))).id;
    for run in runs.into_iter().rev() {
        world.ns.undo(run).unwrap();
    }
    assert_eq!(world.row(own).superseded.unwrap().by, anew);
    assert_eq!(
        (world.row("k").id, live(&world)),
        (anew, vec!["k".to_owned(), "o".to_owned(), "p".to_owned()])
    );
}

/// LIFE-56: nothing of the words is left in the file, also where passes had united their row with others.
#[test]
fn life_56_no_words_of_a_promised_end_stay_with_united_rows() {
    for how in [End::AtOnce, End::Ahead, End::AfterChange] {
        for steps in 1..=3 {
            let United { world, .. } = united(steps, true, steps == 2, SAID);
            assert!(world.has_bytes_of(SAID));
            end(&world, how);
            if how == End::AfterChange {
                // What it had given no end itself goes with the next sweep.
                pass(&world, &[Pass::Expire]);
            }
            assert!(!world.has_bytes_of(SAID), "{how:?}, {steps} steps");
            assert!(!world.has_bytes_of("the gateway is gone"));
        }
    }
}

/// A writer that has written the same text as another leaves the row that waits, and the other stays.
#[test]
fn model_67_a_writer_of_a_shared_row_ends_alone() {
    for how in ENDS {
        let world = World::new();
        apart(&world, said(OTHER, "o"));
        apart(&world, said(SAID, "l"));
        assert_eq!(world.add(said(SAID, "k")).id, world.row("l").id);
        let run = pass(&world, &[Pass::Collapse]).unwrap();
        assert_eq!(world.live().len(), 1);
        world.advance("1m");
        end(&world, how);
        world.ns.undo(run).unwrap();
        let keys = live(&world).join("+");
        assert!(!keys.contains('k') && keys.contains('l') && keys.contains('o'), "{how:?}: {keys}");
    }
}

/// The end of a key costs no more where the key has many versions.
#[test]
fn the_end_of_a_key_of_many_versions_is_no_dearer() {
    let of = |n: usize| {
        let world = World::new();
        for at in 0..n {
            apart(&world, text(&format!("status {at} of the machine is {}", at * 7)).key("k"));
        }
        let say = text("the machine is off").key("k");
        world.add(say.expiry(Expiry::At(world.ahead("1h"))));
        world.advance("2h");
        cost(|| {
            pass(&world, &[Pass::Expire]);
        })
    };
    constant(of(100), of(400));
}
