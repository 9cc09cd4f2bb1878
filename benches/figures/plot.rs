//! Plots as SVG, readable on light and on dark pages.

use std::fmt::Write;

/// One line of a plot. Of curves: recall and queries a second, by growing `ef`; one point for an exact library.
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

/// An axis: what it measures, and the places of its ticks with their texts.
struct Axis<'a> {
    label: &'a str,
    ticks: Vec<(f64, String)>,
}

/// Lines whose points are places of the page, over two axes. The first line is ours and is drawn above the others.
fn chart(title: &str, across: Axis<'_>, up: Axis<'_>, lines: &[(&str, Vec<(f64, f64)>)]) -> String {
    let height = BOTTOM + 66.0 + 22.0 * lines.len().div_ceil(3) as f64;
    let mut svg = opening(title, height);
    for (y, tick) in up.ticks {
        line(&mut svg, "grid", (LEFT, y), (RIGHT, y));
        text(&mut svg, "soft", (LEFT - 8.0, y + 4.0), "end", &tick);
    }
    for (x, tick) in across.ticks {
        line(&mut svg, "grid", (x, TOP), (x, BOTTOM));
        text(&mut svg, "soft", (x, BOTTOM + 18.0), "middle", &tick);
    }
    line(&mut svg, "axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    line(&mut svg, "axis", (LEFT, TOP), (LEFT, BOTTOM));
    text(&mut svg, "", ((LEFT + RIGHT) / 2.0, BOTTOM + 38.0), "middle", across.label);
    let turned = format!("<g transform=\"translate(18 {:.1}) rotate(-90)\">", (TOP + BOTTOM) / 2.0);
    svg.push_str(&turned);
    text(&mut svg, "", (0.0, 0.0), "middle", up.label);
    svg.push_str("</g>\n");
    for (number, (_, points)) in lines.iter().enumerate().rev() {
        curve(&mut svg, number, points);
    }
    for (number, (name, _)) in lines.iter().enumerate() {
        let at = (LEFT + (number % 3) as f64 * 258.0, BOTTOM + 64.0 + 22.0 * (number / 3) as f64);
        legend(&mut svg, number, at, name);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A logarithmic scale from `low` to `high`, and its ticks.
fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> (impl Fn(f64) -> f64, Vec<(f64, String)>) {
    let place = move |value: f64| from + (value / low).ln() / (high / low).ln() * (to - from);
    let ticks = ticks(low, high).into_iter().map(|tick| (place(tick), grouped(tick)));
    (place, ticks.collect())
}

/// The least and the largest of one coordinate of all points.
fn ends(series: &[Series], of: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
    let all = series.iter().flat_map(|series| &series.points).map(of);
    all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)))
}

/// Recall to the right, on a scale that widens towards 1; queries a second upwards, on a logarithmic one.
pub fn curves(title: &str, series: &[Series]) -> String {
    let least = ends(series, |(recall, _)| *recall).0.clamp(0.5, 0.9);
    let (slowest, fastest) = ends(series, |(_, speed)| *speed);
    let (from, to) = (place(least), place(1.0));
    let x = |recall: f64| LEFT + (place(recall.max(least)) - from) / (to - from) * (RIGHT - LEFT);
    let (y, up) = logarithmic(slowest / 1.3, fastest * 1.3, BOTTOM, TOP);
    let recalls = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0];
    let across = recalls.into_iter().filter(|tick| *tick >= least).map(|tick| (x(tick), tick.to_string()));
    let lines = series.iter().map(|series| {
        let points = visible(&series.points).iter().map(|(recall, speed)| (x(*recall), y(*speed)));
        (series.name.as_str(), points.collect())
    });
    chart(
        title,
        Axis { label: "recall@10, by distance", ticks: across.collect() },
        Axis { label: "queries per second (1 / p50)", ticks: up },
        &lines.collect::<Vec<_>>(),
    )
}

/// What grows: both scales are logarithmic.
pub fn growth(title: &str, across: &str, up: &str, series: &[Series]) -> String {
    let (few, many) = ends(series, |(x, _)| *x);
    let (low, high) = ends(series, |(_, y)| *y);
    let (x, x_ticks) = logarithmic(few / 1.1, many * 1.1, LEFT, RIGHT);
    let (y, y_ticks) = logarithmic(low / 1.3, high * 1.3, BOTTOM, TOP);
    let lines = series.iter().map(|series| {
        (series.name.as_str(), series.points.iter().map(|(of, value)| (x(*of), y(*value))).collect())
    });
    let (across, up) = (Axis { label: across, ticks: x_ticks }, Axis { label: up, ticks: y_ticks });
    chart(title, across, up, &lines.collect::<Vec<_>>())
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
