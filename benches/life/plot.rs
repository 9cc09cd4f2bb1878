//! The months as SVG, readable on light and on dark pages.

use std::fmt::Write;

use crate::story::Month;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 320.0;

/// A line of the plot: its name, its class, and its value in a month.
type Line = (&'static str, &'static str, fn(&Month) -> f64);

const LINES: [Line; 3] = [
    ("writes so far", "l0", |month| month.writes as f64),
    ("visible, nothing forgotten", "l1", |month| month.kept as f64),
    ("visible, forgetting", "l2", |month| month.tiers.iter().sum::<u64>() as f64),
];

/// Memories that are visible at the end of each month, with and without forgetting, on a logarithmic scale.
pub fn months(months: &[Month]) -> String {
    let all = || months.iter().flat_map(|month| LINES.iter().map(|(_, _, value)| value(month).max(1.0)));
    let (low, high) = (all().fold(f64::INFINITY, f64::min) / 1.5, all().fold(1.0, f64::max) * 1.5);
    let x = |at: usize| LEFT + at as f64 / (months.len().max(2) - 1) as f64 * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - (value.max(1.0) / low).ln() / (high / low).ln() * (BOTTOM - TOP);
    let mut svg = opening();
    for power in low.log10().ceil() as i32..=high.log10().floor() as i32 {
        let tick = 10_f64.powi(power);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{RIGHT}\"/>", y(tick));
        text(&mut svg, "soft", (LEFT - 8.0, y(tick) + 4.0), "end", &format!("{tick:.0}"));
    }
    for (at, month) in months.iter().enumerate().filter(|(_, month)| month.number % 3 == 0) {
        text(&mut svg, "soft", (x(at), BOTTOM + 20.0), "middle", &month.number.to_string());
    }
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>");
    text(&mut svg, "", ((LEFT + RIGHT) / 2.0, BOTTOM + 42.0), "middle", "month");
    for (number, (name, class, value)) in LINES.iter().enumerate() {
        let points: Vec<String> = months
            .iter()
            .enumerate()
            .map(|(at, month)| format!("{:.1},{:.1}", x(at), y(value(month))))
            .collect();
        let _ = writeln!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
        let left = LEFT + number as f64 * 250.0;
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{left:.1} {0:.1}h28\"/>", BOTTOM + 64.0);
        text(&mut svg, "", (left + 36.0, BOTTOM + 68.0), "start", name);
    }
    svg.push_str("</svg>\n");
    svg
}

fn opening() -> String {
    let rules = |page, words, soft, grid, lines: [&str; 3]| {
        let mut rules = format!(
            ".page{{fill:{page}}}text{{fill:{words}}}.soft{{fill:{soft}}}.grid{{stroke:{grid};fill:none}}\
             .axis{{stroke:{soft};fill:none}}"
        );
        for (number, colour) in lines.iter().enumerate() {
            let dashes = ["stroke-dasharray:2 4", "stroke-dasharray:8 4", "stroke-width:2.5"][number];
            let _ = write!(rules, ".l{number}{{stroke:{colour};fill:none;{dashes}}}");
        }
        rules
    };
    let light = rules("#ffffff", "#1f2328", "#59636e", "#d8dee4", ["#59636e", "#1c5fb8", "#c2255c"]);
    let dark = rules("#0d1117", "#e6edf3", "#9198a1", "#2b3138", ["#9198a1", "#74b0ff", "#ff6b9d"]);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Memories in two years\">\n<style>svg{{font:13px system-ui,sans-serif}}\
         .title{{font-size:15px;font-weight:600}}{light}\n@media(prefers-color-scheme:dark){{{dark}}}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"20\" y=\"28\">Memories in two years of an agent's life</text>\n"
    )
}

fn text(svg: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, what: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>"
    );
}
