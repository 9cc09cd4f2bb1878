//! Damage to the rows of an index, while it is at work.

use super::*;

/// A graph that is dropped takes the damage to its own rows along, and no damage to the codes: a graph on what is left would lack
/// the others for ever.
#[test]
fn codes_stay_damaged_when_a_graph_is_dropped() {
    let mut world = World::new(64, 43);
    let at = index(0);
    let rows: Vec<_> = (1..=300).map(|n| (at, id(n), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 300);
    world.commit(|tx, _| tx.put(Table::Slot, &keys::block(at, 1), &[7; 40]));
    published = world.first(usize::MAX);
    let why = published.view(at).unwrap().fault().map(str::to_owned);
    assert_eq!(why.as_deref(), Some("block 1 is damaged"));
    let edit = upkeep::unlink_all(&published, at).unwrap().unwrap();
    assert!(world.write(&edit));
    published = world.next(&published);
    assert_eq!(published.view(at).unwrap().fault(), why.as_deref());
    let refused = upkeep::link(&published, at, 10, &mut Crew::new(1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupted);
}
