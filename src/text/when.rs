//! Which time does a query name?
//!
//! A query can name months by their English names, with the years that stand beside them, and one full date. A year
//! alone names no time, because most memories are of one or two years.

/// The names of the months.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Words that make a month of the "may" or "march" after them.
const BEFORE_MONTH: [&str; 8] = ["in", "on", "of", "since", "by", "during", "last", "next"];
/// The numbers that count as years.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2099;

/// The times that a text names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedTimes {
    /// Months, 1 to 12, ascending.
    months: Vec<i8>,
    /// Years, in the order of the text.
    years: Vec<i16>,
    /// The first full date: year, month, day.
    day: Option<(i16, i8, i8)>,
}

impl NamedTimes {
    /// The times that a text names.
    pub(crate) fn of(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut named = NamedTimes::default();
        named.years.extend(words.iter().filter_map(|word| year(word)));
        let mut day = None;
        for (at, word) in words.iter().enumerate() {
            let Some(month) = (1..).zip(MONTHS).find(|(_, name)| name == word).map(|(month, _)| month) else {
                continue;
            };
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let after = words.get(at + 1);
            let number = |word: Option<&&str>| word.and_then(|word| day_of_month(word));
            // "2 of May" and "2 May"; "May 2".
            let first = match before {
                Some(&"of") => number(at.checked_sub(2).and_then(|at| words.get(at))),
                before => number(before),
            };
            let beside = first.or_else(|| number(after));
            let told = beside.is_some()
                || before.is_some_and(|before| BEFORE_MONTH.contains(before))
                || after.is_some_and(|after| year(after).is_some());
            if !matches!(*word, "may" | "march") || told {
                named.months.push(month);
                day = day.or_else(|| Some((month, beside?)));
            }
        }
        named.months.sort_unstable();
        named.months.dedup();
        named.day = named.years.first().zip(day).map(|(year, (month, day))| (*year, month, day));
        named
    }

    /// Whether no time is named.
    pub(crate) fn is_none(&self) -> bool {
        self.months.is_empty()
    }

    /// Whether a month is named, and in a named year if there are years.
    pub(crate) fn holds(&self, year: i16, month: i8) -> bool {
        self.months.contains(&month) && (self.years.is_empty() || self.years.contains(&year))
    }

    /// The named full date: year, month, day of the month.
    pub(crate) fn day(&self) -> Option<(i16, i8, i8)> {
        self.day
    }
}

fn year(word: &str) -> Option<i16> {
    if word.len() != 4 {
        return None;
    }
    word.parse().ok().filter(|year| YEARS.contains(year))
}

/// "2", "2nd".
fn day_of_month(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::NamedTimes;

    type Read = (Vec<i8>, Vec<i16>, Option<(i16, i8, i8)>);

    fn named(text: &str) -> Read {
        let NamedTimes { months, years, day } = NamedTimes::of(text);
        (months, years, day)
    }

    #[test]
    fn months_years_and_days_are_read() {
        assert_eq!(named("What did Ann do in June 2023?"), (vec![6], vec![2023], None));
        assert_eq!(named("on 7 May 2023"), (vec![5], vec![2023], Some((2023, 5, 7))));
        assert_eq!(named("the 2nd of March, 2022"), (vec![3], vec![2022], Some((2022, 3, 2))));
        assert_eq!(named("July 4th 1999 or August"), (vec![7, 8], vec![1999], Some((1999, 7, 4))));
        assert_eq!(named("last May"), (vec![5], vec![], None));
        assert_eq!(named("May 2023"), (vec![5], vec![2023], None));
    }

    #[test]
    fn what_only_looks_like_a_time_is_none() {
        for text in ["you may march on", "in 2023", "Mayday", "12345", "", "🦀 ٣ may", "may may may"] {
            assert!(NamedTimes::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_month_holds_in_its_year() {
        let named = NamedTimes::of("December 2023");
        assert!(named.holds(2023, 12) && !named.holds(2022, 12) && !named.holds(2023, 11));
        assert!(NamedTimes::of("in December").holds(1970, 12));
    }
}
