//! How fast is each library at the same recall?

use std::time::Duration;

use super::{Built, Settings, micros};
use crate::contest::{Entry, race, recall, smallest_ef};
use crate::dataset::Dataset;
use crate::ours::Ours;
use crate::peers::Peer;
use crate::plot::{self, Series};

const EFS: [usize; 11] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
/// The recall at which libraries are compared.
const TARGET: f64 = 0.99;

/// One library's way through the sweep.
struct Curve {
    name: String,
    is_approximate: bool,
    /// `ef`, recall and p50; one for an exact library.
    points: Vec<(usize, f64, Duration)>,
    /// The smallest `ef` that reaches the target, the recall and the p50 there.
    reached: Option<(usize, f64, Duration)>,
}

/// The tables of the sweep and of the race at equal recall, and the plot of both.
pub fn search(data: &Dataset, peers: &mut [Built], settings: &Settings) {
    let mut ours = Ours::filled(data);
    ours.index(1);
    let mut all: Vec<&mut dyn Peer> = vec![&mut ours];
    all.extend(peers.iter_mut().map(|built| built.peer.as_mut() as &mut dyn Peer));
    let mut curves: Vec<Curve> = all.iter().map(|peer| curve(*peer as &dyn Peer)).collect();
    sweep(&mut all, &mut curves, data, settings.rounds);
    equal(&mut all, &mut curves, data, settings.rounds);
    print_sweep(&curves);
    print_equal(&curves);
    draw(&curves, data, settings);
}

fn curve(peer: &dyn Peer) -> Curve {
    Curve { name: peer.name(), is_approximate: peer.is_approximate(), points: Vec::new(), reached: None }
}

fn sweep(all: &mut [&mut dyn Peer], curves: &mut [Curve], data: &Dataset, rounds: usize) {
    for ef in EFS {
        let recalls: Vec<f64> =
            all.iter_mut().filter(|peer| peer.is_approximate()).map(|peer| recall(*peer, ef, data)).collect();
        let graphs = all.iter_mut().filter(|peer| peer.is_approximate());
        let mut entries: Vec<Entry<'_>> = graphs.map(|peer| Entry { peer: *peer, ef }).collect();
        let times = race(&mut entries, data, rounds);
        let graphs = curves.iter_mut().filter(|curve| curve.is_approximate);
        for ((curve, recall), time) in graphs.zip(recalls).zip(times) {
            curve.points.push((ef, recall, time));
        }
    }
}

/// Finds for each library the smallest `ef` that reaches the target, and measures all of them there.
fn equal(all: &mut [&mut dyn Peer], curves: &mut [Curve], data: &Dataset, rounds: usize) {
    let mut runners = Vec::new();
    for (at, (peer, curve)) in all.iter_mut().zip(curves.iter()).enumerate() {
        if !curve.is_approximate {
            runners.push((at, 0, recall(*peer, 0, data)));
        } else if let Some(place) = curve.points.iter().position(|(_, recall, _)| *recall >= TARGET) {
            let low = place.checked_sub(1).map_or(10, |before| curve.points[before].0 + 1);
            let bounds = (low, curve.points[place].0);
            runners.extend(smallest_ef(*peer, TARGET, bounds, data).map(|(ef, recall)| (at, ef, recall)));
        }
    }
    let running = |at: usize| runners.iter().find(|(runner, ..)| *runner == at).copied();
    let entries = all.iter_mut().enumerate();
    let mut entries: Vec<Entry<'_>> =
        entries.filter_map(|(at, peer)| running(at).map(|(_, ef, _)| Entry { peer: *peer, ef })).collect();
    let times = race(&mut entries, data, rounds.max(5));
    for ((at, ef, recall), time) in runners.into_iter().zip(times) {
        curves[at].reached = Some((ef, recall, time));
        if !curves[at].is_approximate {
            curves[at].points.push((0, recall, time));
        }
    }
}

fn print_sweep(curves: &[Curve]) {
    println!("### Search: recall@10 and p50 by ef\n");
    let graphs: Vec<&Curve> = curves.iter().filter(|curve| curve.is_approximate).collect();
    let names: Vec<&str> = graphs.iter().map(|curve| curve.name.as_str()).collect();
    println!("| ef | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    for (row, ef) in EFS.iter().enumerate() {
        let cells = graphs.iter().map(|curve| {
            let (_, recall, time) = curve.points[row];
            format!("{recall:.4}, {}", micros(time))
        });
        println!("| {ef} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    println!();
}

fn print_equal(curves: &[Curve]) {
    println!("### Search: the smallest ef with recall@10 ≥ {TARGET}\n");
    println!(
        "| library | ef | recall@10 | p50 | times the database's | times the graph's |\n|---|---|---|---|---|---|"
    );
    // Ours come first: through the database, and the graph alone.
    let ours = [0, 1].map(|at| curves[at].reached.map(|(_, _, time)| time.as_secs_f64()));
    for curve in curves {
        let name = &curve.name;
        let Some((ef, recall, time)) = curve.reached else {
            let best = curve.points.iter().map(|(_, recall, _)| *recall).fold(0.0, f64::max);
            println!("| {name} | not reached | at most {best:.4} | | | |");
            continue;
        };
        let ef = if curve.is_approximate { ef.to_string() } else { "exact".into() };
        let [database, graph] =
            ours.map(|ours| ours.map_or(String::new(), |ours| format!("{:.2}", time.as_secs_f64() / ours)));
        println!("| {name} | {ef} | {recall:.4} | {} | {database} | {graph} |", micros(time));
    }
    println!();
}

fn draw(curves: &[Curve], data: &Dataset, settings: &Settings) {
    let series: Vec<Series> = curves
        .iter()
        .map(|curve| Series {
            name: curve.name.clone(),
            points: curve
                .points
                .iter()
                .map(|(_, recall, time)| (*recall, 1.0 / time.as_secs_f64()))
                .collect(),
        })
        .collect();
    let title = format!("Recall@10 against speed, one thread ({}, {} × 384)", data.name, data.len());
    settings.plot(&format!("peers_search_{}.svg", data.name), &plot::curves(&title, &series));
}
