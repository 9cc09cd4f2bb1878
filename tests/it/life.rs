//! Two years of an agent's life, in small. `cargo bench --bench life` lives it whole.

#[allow(dead_code, reason = "the bench tells more of a month than the test asks")]
#[path = "../../benches/life/story.rs"]
mod story;

use story::{DAYS, Life, MONTH};

#[test]
fn two_years_of_a_life_leave_what_is_current() {
    let mut life = Life::new(3_600, 5);
    let mut months = Vec::new();
    for _ in 0..DAYS / MONTH {
        let month = life.month();
        let number = month.number;
        assert_eq!(month.over, 0, "month {number}: memories are visible whose end is past");
        assert_eq!(month.findings, 0, "month {number}: check");
        assert!(month.recall >= 0.98, "month {number}: recall {}", month.recall);
        assert!(
            month.is_compact(),
            "month {number}: {} bytes of rows in a file of {}",
            month.live,
            month.file
        );
        months.push(month);
    }
    assert!(life.recalls() >= 350);
    let (young, old) = (&months[5], &months[23]);
    assert!(old.writes > 3 * young.writes);
    let visible = |month: &story::Month| month.tiers.iter().sum::<u64>();
    assert!(visible(old) <= visible(young) * 3, "{} memories, then {}", visible(young), visible(old));
    assert!(old.kept > visible(old) * 5, "a store that keeps everything has {}", old.kept);
    assert!(old.live <= young.live * 4, "{} bytes, then {}", young.live, old.live);
}
