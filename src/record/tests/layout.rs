//! The table of the vitals, in the source and in `docs/format.md`, against the code.

use crate::record::vitals;

/// `| 4 | 1 | KIND | …` as (4, 1, "KIND").
fn layout_rows(text: &str) -> Vec<(usize, usize, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.trim_start_matches("//!").split('|').map(str::trim).skip(1);
            let (offset, width) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
            Some((offset, width, cells.next()?.trim_matches('`')))
        })
        .collect()
}

#[test]
fn the_layout_of_vitals_is_as_documented() {
    assert_eq!(layout_rows(include_str!("../vitals.rs")), vitals::LAYOUT, "the table in vitals.rs");
    let format = include_str!("../../../docs/format.md");
    let (_, section) = format.split_once("### Vitals").unwrap();
    let section = section.split("\n### ").next().unwrap();
    assert_eq!(layout_rows(section), vitals::LAYOUT, "the table in docs/format.md");
}
