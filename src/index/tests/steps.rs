//! Steps of upkeep that came too late: what they were worked out on is not there any more.

use super::*;

#[test]
fn a_step_on_what_has_changed_is_not_written() {
    let mut world = World::new(64, 29);
    let at = index(0);
    let rows: Vec<_> = (1..=200).map(|n| (at, id(n), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let published = world.first(usize::MAX);
    let mut crew = Crew::new(1);
    let edit = upkeep::link(&published, at, 100, &mut crew).unwrap().unwrap();
    // A row of the slice goes, and another memory takes its slot.
    world.release(&[(at, 5)]);
    let vector = world.vector(None);
    world.add(vec![(at, id(999), vector, times(None, None))]);
    assert!(!world.write(&edit), "slot 5 holds another memory");
    let published = world.first(usize::MAX);
    let (one, two) = (
        upkeep::link(&published, at, 100, &mut crew).unwrap().unwrap(),
        upkeep::link(&published, at, 50, &mut crew).unwrap().unwrap(),
    );
    assert!(world.write(&one));
    assert!(!world.write(&two), "the graph has another version");
    assert_eq!(upkeep::Counts::read(&world.store.snapshot().unwrap(), at).unwrap().in_graph, 100);
}

/// A copy without holes has other numbers for its slots, and versions that the file before it had as well.
#[test]
fn a_step_on_a_file_that_was_replaced_is_not_written() {
    let mut world = World::new(64, 37);
    let at = index(0);
    let rows: Vec<_> = (1..=100).map(|n| (at, id(n), world.vector(None), times(None, None))).collect();
    world.add(rows);
    world.release(&[(at, 0), (at, 1), (at, 2)]);
    let published = world.first(usize::MAX);
    let mut crew = Crew::new(1);
    let edit = upkeep::link(&published, at, 50, &mut crew).unwrap().unwrap();
    world.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    assert!(!world.write(&edit), "its slots are those of other memories");
    // Dead slots that a pass has noted are left to the next one.
    let rows: Vec<_> = (101..=110).map(|n| (at, id(n), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let published = world.first(usize::MAX);
    let edit = upkeep::link(&published, at, 200, &mut crew).unwrap().unwrap();
    assert!(world.write(&edit));
    world.release(&[(at, 3), (at, 4)]);
    let mut work = upkeep::Work::default();
    let published = world.first(usize::MAX);
    assert!(upkeep::repair(&published, at, 1, &mut work, &mut crew).unwrap().is_some());
    world.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    let published = world.first(usize::MAX);
    assert!(upkeep::repair(&published, at, 1, &mut work, &mut crew).unwrap().is_none());
}
