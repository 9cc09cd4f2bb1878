use super::*;

fn t(ms: i64) -> Time {
    Time::from_millis(ms)
}

fn recorded(at: i64) -> Times {
    Times { recorded_at: t(at), ..Times::default() }
}

fn superseded(times: Times, at: i64, mode: SupersedeMode) -> Times {
    Times {
        superseded: Some(Supersession { at: t(at), by: MemoryId::from_bytes([9; 16]), mode, via: None }),
        ..times
    }
}

// The row of V-208: replaced at world time 250, known from 300 on.
fn replaced() -> Times {
    superseded(Times { valid_to: Some(t(250)), ..recorded(100) }, 300, SupersedeMode::Replaced)
}

#[test]
fn v205_a_row_is_known_from_its_transaction_on() {
    assert!(!recorded(100).visible(t(99), t(99)));
    assert!(recorded(100).visible(t(100), t(100)));
}

#[test]
fn v206_expiry_is_exclusive() {
    let row = Times { expires_at: Some(t(200)), ..recorded(100) };
    assert!(row.visible(t(199), t(199)));
    assert!(!row.visible(t(200), t(200)));
    assert_eq!(row.state(t(199)), State::Live);
    assert_eq!(row.state(t(200)), State::Expired);
}

#[test]
fn v207_valid_from_is_inclusive() {
    let row = Times { valid_from: Some(t(150)), ..recorded(100) };
    assert!(!row.visible(t(149), t(149)));
    assert!(row.visible(t(150), t(150)));
}

#[test]
fn v208_v209_v210_replaced_rows_keep_the_older_belief() {
    assert!(replaced().visible(t(240), t(400)));
    assert!(!replaced().visible(t(260), t(400)));
    assert!(replaced().visible(t(260), t(290)));
    assert!(!replaced().visible_live(t(400)));
}

#[test]
fn v212_duplicates_end_in_transaction_time() {
    let row = superseded(recorded(100), 300, SupersedeMode::Duplicate);
    assert!(row.visible(t(299), t(299)));
    assert!(!row.visible(t(300), t(300)));
    assert!(!row.visible(t(200), t(400)));
}

#[test]
fn v213_rows_in_limbo_were_visible_before() {
    let row = Times { removed_at: Some(t(500)), ..recorded(100) };
    assert!(row.visible(t(499), t(499)));
    assert!(!row.visible(t(500), t(500)));
    assert_eq!(row.state(t(500)), State::Limbo);
}

#[test]
fn v211_a_replacement_ahead_leaves_both_to_their_time() {
    let old = superseded(Times { valid_to: Some(t(600)), ..recorded(100) }, 300, SupersedeMode::Replaced);
    let new = Times { valid_from: Some(t(600)), ..recorded(300) };
    assert!(old.visible_live(t(500)) && !new.visible_live(t(500)));
    assert!(!old.visible_live(t(600)) && new.visible_live(t(600)));
    assert!(!old.is_current(t(500)), "a superseded row holds no key against others");
    assert!(new.is_current(t(500)), "a row that is not yet valid does (V-288)");
}

#[test]
fn v318_a_begin_that_a_supersession_gave_was_not_known_before() {
    let known = Some(t(300));
    let row = Times { valid_from: Some(t(250)), valid_from_recorded_at: known, ..recorded(100) };
    assert!(row.visible(t(200), t(299)));
    assert!(!row.visible(t(200), t(300)));
    assert!(row.visible(t(250), t(300)));
    assert!(!row.visible_live(t(249)));
}

#[test]
fn v319_an_end_that_was_announced_was_known_until_it_was_overtaken() {
    let announced = Some(Announced { end: t(600), at: t(200) });
    for mode in SupersedeMode::ALL.iter().copied() {
        let (valid_to, valid_to_before) = match mode {
            SupersedeMode::Replaced => (Some(t(400)), Some(t(900))),
            _ => (Some(t(900)), None),
        };
        let row = Times { valid_to, valid_to_before, announced, ..recorded(100) };
        let row = superseded(row, 300, mode);
        assert!(row.visible(t(899), t(199)) && !row.visible(t(900), t(199)));
        assert!(row.visible(t(599), t(299)) && !row.visible(t(600), t(299)));
        assert_eq!(row.visible(t(399), t(300)), mode == SupersedeMode::Replaced);
        assert!(!row.visible(t(400), t(300)));
    }
}

#[test]
fn v284_a_clock_that_steps_back_hides_nothing() {
    assert!(recorded(1_000).visible_live(t(400)));
}

proptest::proptest! {
    // MODEL-16: the index's `from <= now < until` is the predicate for a live read of any committed row.
    #[test]
    fn slot_interval_equals_the_predicate(
        recorded_at in 0_i64..60, from in proptest::option::of(0_i64..60), to in proptest::option::of(0_i64..60),
        expires in proptest::option::of(0_i64..60), how in 0_u8..6, at in 0_i64..60, now in 0_i64..80,
        begun in proptest::option::of(0_i64..60),
    ) {
        let mut row = Times {
            recorded_at: t(recorded_at), valid_from: from.map(t), valid_to: to.map(t), expires_at: expires.map(t),
            valid_from_recorded_at: begun.map(t), ..Times::default()
        };
        if let Some(mode) = SupersedeMode::from_code(how) {
            row = superseded(row, at, mode);
        }
        // Whatever stands in the row has been committed, though its instants may lie ahead of the clock.
        proptest::prop_assert_eq!(
            row.from() <= t(now) && t(now) < row.until(),
            row.visible_live(t(now))
        );
    }
}
