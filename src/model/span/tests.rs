//! The one grammar of durations.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

#[test]
fn a_duration_is_a_whole_number_with_a_unit_or_iso_8601() {
    for (text, millis) in [
        ("0", 0),
        ("00", 0),
        ("0s", 0),
        ("1ms", 1),
        ("1500ms", 1_500),
        ("72h", 259_200_000),
        ("30d", 2_592_000_000),
        ("3600s", 3_600_000),
        ("360m", 21_600_000),
        ("2w", 1_209_600_000),
        ("PT12H", 43_200_000),
        ("P1DT1H30M", 91_800_000),
    ] {
        assert_eq!(text.parse::<Span>().unwrap(), Span::from_millis(millis), "{text}");
        let quoted = format!("{text:?}");
        assert_eq!(serde_json::from_str::<Span>(&quoted).unwrap(), Span::from_millis(millis), "{text}");
    }
    for text in [
        "",
        "h",
        "72",
        "-1h",
        "1.5h",
        "1h30m",
        " 1h",
        "1 h",
        "1H",
        "1é",
        "99999999999999999999d",
        "99999999999999999999",
        "P",
        "-PT1H",
        "P1Y",
    ] {
        assert!(text.parse::<Span>().is_err(), "{text:?}");
    }
}

#[test]
fn a_number_is_no_duration_but_for_zero() {
    assert_eq!(serde_json::from_str::<Span>("0").unwrap(), Span::ZERO);
    for json in ["7", "-7", "0.0", "true", "null", "[]", "18446744073709551615"] {
        assert!(serde_json::from_str::<Span>(json).is_err(), "{json}");
    }
    let said = serde_json::from_str::<Span>("7").unwrap_err().to_string();
    assert_eq!(said, r#"7 has no unit; write "7s", "7h" or another of ms, s, m, h, d, w at line 1 column 1"#);
}

#[test]
fn a_duration_is_shown_in_its_largest_unit_up_to_days() {
    for (millis, text) in [
        (0, "0"),
        (1, "1ms"),
        (1_500, "1500ms"),
        (90_000, "90s"),
        (3_600_000, "1h"),
        (86_400_000, "1d"),
        (7 * 86_400_000, "7d"),
        (i64::MAX, "9223372036854775807ms"),
    ] {
        assert_eq!(Span::from_millis(millis).to_string(), text);
    }
    assert_eq!([Span::from_mins(60), Span::from_hours(24)], [Span::from_hours(1), Span::from_days(1)]);
}

proptest! {
    #[test]
    fn durations_read_back_equal(millis in 0..=i64::MAX) {
        prop_assert_eq!(Span::from_millis(millis).to_string().parse::<Span>().unwrap(), Span::from_millis(millis));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = text.parse::<Span>();
    }
}
