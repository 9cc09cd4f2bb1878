//! How many bytes does an index take for each vector?

use super::Built;
use crate::dataset::{DIM, Dataset};
use crate::ours::Ours;

/// The table of bytes per vector.
pub fn memory(data: &Dataset, peers: &[Built]) {
    println!("### Memory\n");
    println!("| library | bytes per vector | counted by |\n|---|---|---|");
    let ours = Ours::filled(data);
    ours.index(1);
    let each = |bytes: f64| bytes / data.len() as f64;
    let image = each(ours.image_bytes(&data.queries[0]) as f64);
    println!(
        "| Oubliette, the image of the partition (f32 rows stay in the file) | {image:.0} | the allocator |"
    );
    for built in peers.iter().filter(|built| built.peer.is_approximate()) {
        let name = built.peer.name();
        match built.peer.own_account_bytes() {
            Some(bytes) => {
                // What the caller of the library keeps beside it is seen by Rust's allocator.
                let own = if built.heap_bytes > 0 { each(built.heap_bytes as f64) } else { 0.0 };
                let with = if own > DIM as f64 {
                    format!(", {own:.0} for the caller's f32 rows")
                } else {
                    String::new()
                };
                println!("| {name} | {:.0} | the library's own account{with} |", each(bytes as f64));
            }
            None => println!("| {name} | {:.0} | the allocator |", each(built.heap_bytes as f64)),
        }
    }
    println!();
}
