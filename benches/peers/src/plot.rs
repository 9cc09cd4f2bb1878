//! Plots as SVG, readable on light and on dark pages.

use std::fmt::Write;

/// One line of a plot of curves: recall and queries a second, by growing `ef`; one point for an exact library.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 410.0;
/// Recall that is drawn as complete.
const COMPLETE: f64 = 0.9995;

/// Page, text, soft text, grid, and one colour for each series; the first is ours.
type Colours = [&'static str; 14];
const LIGHT: Colours = [
    "#ffffff", "#1f2328", "#59636e", "#d8dee4", "#c2255c", "#b35900", "#6741d9", "#1c5fb8", "#0b8a8a",
    "#4f7a00", "#9a8700", "#8c6d46", "#59636e", "#000000",
];
const DARK: Colours = [
    "#0d1117", "#e6edf3", "#9198a1", "#2b3138", "#ff6b9d", "#ffa94d", "#b197fc", "#74b0ff", "#4fd1c5",
    "#a9d94a", "#ffe066", "#d6b88a", "#adb5bd", "#ffffff",
];

/// Rules of one set of colours, without variables, which some viewers do not know.
fn rules(colours: Colours) -> String {
    let [page, text, soft, grid, series @ ..] = colours;
    let mut rules = format!(
        ".page{{fill:{page}}}text{{fill:{text}}}.soft{{fill:{soft}}}.grid{{stroke:{grid}}}.axis{{stroke:{soft}}}"
    );
    for (number, colour) in series.iter().enumerate() {
        let _ = write!(
            rules,
            ".l{number}{{stroke:{colour};fill:none}}.m{number}{{stroke:{colour};fill:{colour}}}"
        );
    }
    rules
}

fn opening(title: &str, height: f64) -> String {
    let title = escaped(title);
    let (light, dark) = (rules(LIGHT), rules(DARK));
    let style = format!(
        "<style>svg{{font:13px system-ui,sans-serif}}.title{{font-size:15px;font-weight:600}}{light}\n\
         @media(prefers-color-scheme:dark){{{dark}}}</style>"
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         {style}\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"20\" y=\"28\">{title}</text>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn line(svg: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, what: &str) {
    let what = escaped(what);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>"
    );
}

/// A mark of the series' own shape, so that colour is not the only sign.
fn mark(svg: &mut String, number: usize, (x, y): (f64, f64)) {
    let shape = match number % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\""),
        1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"", x - 3.5, y - 3.5),
        2 => format!("<path d=\"M{x:.1} {:.1}l4.5 8h-9z\"", y - 5.0),
        _ => format!("<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5-5z\"", y - 5.0),
    };
    let _ = writeln!(svg, "{shape} class=\"m{number}\"/>");
}

/// How far right a recall stands: each halving of what is missed takes the same width.
fn place(recall: f64) -> f64 {
    -(1.0 - recall.min(COMPLETE)).ln()
}

/// Tick marks of a logarithmic axis, 1, 2 and 5 of each power of ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Recall to the right, on a scale that widens towards 1; queries a second upwards, on a logarithmic one.
pub fn curves(title: &str, series: &[Series]) -> String {
    let all = || series.iter().flat_map(|series| &series.points);
    let least = all().map(|(recall, _)| *recall).fold(0.9, f64::min).max(0.5);
    let slowest = all().map(|(_, speed)| *speed).fold(f64::INFINITY, f64::min) / 1.3;
    let fastest = all().map(|(_, speed)| *speed).fold(0.0, f64::max) * 1.3;
    let (from, to) = (place(least), place(1.0));
    let x = |recall: f64| LEFT + (place(recall.max(least)) - from) / (to - from) * (RIGHT - LEFT);
    let y = |speed: f64| BOTTOM - (speed / slowest).ln() / (fastest / slowest).ln() * (BOTTOM - TOP);
    let height = BOTTOM + 66.0 + 22.0 * series.len().div_ceil(3) as f64;
    let mut svg = opening(title, height);
    for tick in ticks(slowest, fastest) {
        line(&mut svg, "grid", (LEFT, y(tick)), (RIGHT, y(tick)));
        text(&mut svg, "soft", (LEFT - 8.0, y(tick) + 4.0), "end", &grouped(tick));
    }
    for tick in [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999] {
        if tick >= least {
            line(&mut svg, "grid", (x(tick), TOP), (x(tick), BOTTOM));
            text(&mut svg, "soft", (x(tick), BOTTOM + 18.0), "middle", &tick.to_string());
        }
    }
    text(&mut svg, "soft", (RIGHT, BOTTOM + 18.0), "middle", "1");
    line(&mut svg, "axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    line(&mut svg, "axis", (LEFT, TOP), (LEFT, BOTTOM));
    text(&mut svg, "", ((LEFT + RIGHT) / 2.0, BOTTOM + 38.0), "middle", "recall@10, by distance");
    let turned = format!("<g transform=\"translate(18 {:.1}) rotate(-90)\">", (TOP + BOTTOM) / 2.0);
    svg.push_str(&turned);
    text(&mut svg, "", (0.0, 0.0), "middle", "queries per second (1 / p50)");
    svg.push_str("</g>\n");
    // Ours is drawn last, above the others.
    for (number, series) in series.iter().enumerate().rev() {
        let points = visible(&series.points).iter().map(|(recall, speed)| (x(*recall), y(*speed)));
        curve(&mut svg, number, &points.collect::<Vec<_>>());
    }
    for (number, series) in series.iter().enumerate() {
        let at = (LEFT + (number % 3) as f64 * 258.0, BOTTOM + 64.0 + 22.0 * (number / 3) as f64);
        legend(&mut svg, number, at, &series.name);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The points up to the first that is complete: what follows is only slower.
fn visible(points: &[(f64, f64)]) -> &[(f64, f64)] {
    let whole = points.iter().position(|(recall, _)| *recall >= COMPLETE);
    &points[..whole.map_or(points.len(), |at| at + 1)]
}

fn curve(svg: &mut String, number: usize, points: &[(f64, f64)]) {
    let joined: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let width = if number == 0 { 3.0 } else { 1.8 };
    if points.len() > 1 {
        let _ = writeln!(
            svg,
            "<polyline class=\"l{number}\" stroke-width=\"{width}\" points=\"{}\"/>",
            joined.join(" ")
        );
    }
    points.iter().for_each(|point| mark(svg, number, *point));
}

fn legend(svg: &mut String, number: usize, (x, y): (f64, f64), name: &str) {
    mark(svg, number, (x + 6.0, y - 4.0));
    text(svg, "", (x + 18.0, y), "start", name);
}

/// Bars to the right, the longest the largest.
pub fn bars(title: &str, bars: &[(String, f64)]) -> String {
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let height = 64.0 + 30.0 * bars.len() as f64;
    let mut svg = opening(title, height);
    for (number, (name, value)) in bars.iter().enumerate() {
        let y = 50.0 + 30.0 * number as f64;
        let class = if name.starts_with("Oubliette") { 0 } else { 8 };
        text(&mut svg, "", (330.0, y + 15.0), "end", name);
        let width = value / most * 420.0;
        let _ = writeln!(
            svg,
            "<rect class=\"m{class}\" x=\"340\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"20\" rx=\"2\"/>"
        );
        text(&mut svg, "", (348.0 + width, y + 15.0), "start", &grouped(*value));
    }
    svg.push_str("</svg>\n");
    svg
}
