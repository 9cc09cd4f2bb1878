//! Days of a zone, and other periods.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

const DAY: i64 = DAY_MS;

fn same(zone: &str, length_ms: i64, a: &str, b: &str) -> bool {
    let periods = Periods::new(zone, Span::from_millis(length_ms)).unwrap();
    let [a, b] = [a, b].map(|text| periods.of(text.parse().unwrap()));
    assert!(a <= b, "periods are in the order of time");
    a == b
}

#[test]
fn a_day_is_one_of_the_zone() {
    assert!(same("UTC", DAY, "2026-03-29T00:00:00Z", "2026-03-29T23:59:59.999Z"));
    assert!(!same("UTC", DAY, "2026-03-28T23:59:59.999Z", "2026-03-29T00:00:00Z"));
    assert!(same("+02:00", DAY, "2026-03-28T22:00:00Z", "2026-03-29T21:59:59Z"));
    assert!(!same("+02:00", DAY, "2026-03-28T21:59:59Z", "2026-03-28T22:00:00Z"));
    assert!(!same("-0530", DAY, "2026-03-29T05:29:59Z", "2026-03-29T05:30:00Z"));
    assert!(same("UTC", DAY, "1969-12-31T00:00:00Z", "1969-12-31T23:00:00Z"), "before 1970 as well");
}

#[test]
fn a_day_on_which_clocks_change_is_one_day() {
    // Clocks go forward at 2026-03-29T01:00Z and back at 2026-10-25T01:00Z.
    let vienna = "Europe/Vienna";
    assert!(same(vienna, DAY, "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"), "23 hours");
    assert!(!same(vienna, DAY, "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"));
    assert!(same(vienna, DAY, "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"), "25 hours");
    assert!(!same(vienna, DAY, "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"));
    assert!(
        same(vienna, 2 * DAY, "2026-10-23T22:00:00Z", "2026-10-25T22:59:59Z"),
        "two days, counted from 1970"
    );
}

#[test]
fn an_hour_that_clocks_show_twice_is_two() {
    let hour = 3_600_000;
    assert!(!same("Europe/Vienna", hour, "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"));
    assert!(!same("+05:30", hour, "2026-10-25T00:29:59Z", "2026-10-25T00:30:00Z"));
    assert!(same("+05:30", hour, "2026-10-25T00:30:00Z", "2026-10-25T01:29:59Z"));
}

#[test]
fn a_zone_that_is_none_is_refused() {
    for zone in ["", "Europe/Nowhere", "+2", "+02:60", "+0x:00", "+99:00", "+2:000", "++2:00", "+é0"] {
        let why = Periods::new(zone, Span::from_days(1)).unwrap_err().to_string();
        assert!(why.contains("zone"), "{zone}: {why}");
    }
    let shortest = Span::from_millis(1);
    assert!(Periods::new("UTC", Span::ZERO).is_err());
    assert!(Periods::new("utc", shortest).is_ok() && Periods::new("-12:00", shortest).is_ok());
}
