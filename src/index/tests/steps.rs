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

/// A node and its twins go together: a twin that died while the pass was at work keeps its node until the next run frees both.
#[test]
fn a_twin_that_dies_during_a_repair_is_freed_by_the_next() {
    let mut world = World::new(64, 41);
    let at = index(0);
    let mut rows = Vec::new();
    for pair in 0..60 {
        let vector = world.vector(None);
        rows.extend([1, 2].map(|n| (at, id(2 * pair + n), vector.clone(), times(None, None))));
    }
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 500);
    let slots = |of: u32| (0..60).map(|pair| (at, 2 * pair + of)).collect::<Vec<_>>();
    let graph = Arc::clone(&published.view(at).unwrap().linked().unwrap().graph);
    assert!(slots(1).iter().all(|(_, twin)| graph.host(*twin) == Some(twin - 1)));
    world.linked.clear();
    world.release(&slots(0));
    published = world.next(&published);
    let (mut crew, mut work) = (Crew::new(1), upkeep::Work::default());
    // One twin has taken the place of its host when the twins of the others die.
    let edit = upkeep::repair(&published, at, 1, &mut work, &mut crew).unwrap().unwrap();
    assert!(world.write(&edit));
    assert_eq!((edit.rows(), work.mended()), (0, 1), "nothing is freed yet, and the work has moved on");
    published = world.next(&published);
    world.linked.clear();
    world.release(&slots(1)[5..50]);
    published = world.next(&published);
    world.steps(&mut published, |published| upkeep::repair(published, at, 7, &mut work, &mut crew));
    let graph = Arc::clone(&published.view(at).unwrap().linked().unwrap().graph);
    let dead = published.snapshot().dead_slots(at, usize::MAX).unwrap();
    assert!(dead.iter().all(|(_, slot)| graph.contains(*slot)), "a dead slot is a node until it is freed");
    repair_all(&mut world, &mut published, at, 7);
    let counts = upkeep::Counts::read(&**published.snapshot(), at).unwrap();
    assert_eq!((counts.dead, counts.tail, counts.live), (0, 0, 15));
    assert_eq!(published.snapshot().dead_slots(at, usize::MAX).unwrap(), []);
    check_image(&world, &published, at);
}
