//! What work on a memory of many writers costs for each of them, in rows read and written: as much, however many there are.

use crate::growth::{cost, fill, linear, world};
use crate::world::text;
use oubliette::{Decision, Draft};

/// Each of many keys of one memory brings other tags and categories than before. What the other keys bring is not read.
#[test]
fn tags_and_categories_of_many_keys_of_one_memory() {
    let of = |n: usize, say: &dyn Fn(usize, &str) -> Draft| {
        let world = world();
        fill(&world, 0, n, |at| say(at, "before"));
        let [id] = world.live()[..] else { panic!("one memory") };
        let drafts = (0..n).map(|at| say(at, "after")).collect();
        let mut told = Vec::new();
        let cost = cost(|| told = world.ns.add_all(drafts, &Default::default()).unwrap());
        assert!(told.iter().all(|one| one.decision == Decision::Updated && one.id == id), "{:?}", told[0]);
        let row = world.row(id);
        assert!(row.tags.iter().chain(&row.categories).all(|name| name.starts_with("after")), "{row:?}");
        world.check();
        cost
    };
    let draft = |at: usize| text("one text for all").key(format!("k{at}"));
    let tags = |at: usize, when: &str| draft(at).tag(when).tag(format!("{when} {}", at % 9));
    let categories = |at: usize, when: &str| Draft { categories: Some(vec![when.to_owned()]), ..draft(at) };
    linear(of(50, &tags), of(200, &tags), 4);
    linear(of(50, &categories), of(200, &categories), 4);
}
