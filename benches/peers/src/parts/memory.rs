//! How many bytes does an index take for each vector?

use super::Built;
use crate::dataset::{DIM, Dataset};
use crate::ours::Ours;

/// The table of bytes per vector.
pub fn memory(data: &Dataset, peers: &[Built]) {
    println!("### Memory\n");
    println!("| library | bytes per vector | counted by |\n|---|---|---|");
    let ours = Ours::filled(data);
    let each = |bytes: f64| bytes / data.len() as f64;
    let image = each(ours.image_bytes(&data.queries[0]) as f64);
    println!("| Oubliette, the image of the partition | {image:.0} | the allocator |");
    for built in peers.iter().filter(|built| built.peer.is_approximate()) {
        let (bytes, by) = match built.peer.own_account_bytes() {
            Some(bytes) => (bytes as f64, "the library's own account"),
            None => (built.heap_bytes as f64, "the allocator"),
        };
        println!("| {} | {:.0} | {by} |", built.peer.name(), each(bytes));
    }
    let row = DIM * size_of::<f32>();
    println!("\nWho ranks by f32 rows that are not in the index keeps {row} bytes a vector beside it.\n");
}
