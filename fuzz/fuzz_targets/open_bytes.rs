//! A file from a hostile disk: it opens and answers, or gives a typed error; no panic escapes.
//!
//! An input that begins with `M` is a list of changes to a sound file, six bytes each: where (4) and what (2).
#![no_main]

#[path = "../../tests/it/disk.rs"]
#[allow(dead_code)]
mod disk;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use disk::{Image, SimDisk};
use libfuzzer_sys::fuzz_target;
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, NamespaceName, PageRequest, Query, Result, Scope};

const FILE: &str = "/db/memory.oub";

fn open(disk: &SimDisk) -> Result<Database> {
    Database::builder().disk(Arc::new(disk.clone())).create(false).cache_bytes(1 << 20).open(FILE)
}

/// A sound file with some rows.
fn sound() -> &'static Image {
    static SOUND: OnceLock<Image> = OnceLock::new();
    SOUND.get_or_init(|| {
        // The store fences panics of redb. libFuzzer's own hook would end the process at the first of them, so it is
        // asked only for those of other crates.
        let fatal = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_none_or(|place| !place.file().contains("redb")) {
                fatal(panic);
            }
        }));
        let disk = SimDisk::new(Image::default());
        let builder = Database::builder().disk(Arc::new(disk.clone())).secret([3; 32]).cache_bytes(1 << 20);
        let db = builder.open(FILE).unwrap();
        for at in 0..20_u8 {
            let draft = Draft::new(format!("memory {at}")).key(format!("k{at}")).tag("t");
            db.namespace(&NamespaceName::default())
                .unwrap()
                .add(draft.vector([f32::from(at), 1.0, 2.0]))
                .unwrap();
        }
        db.close().unwrap();
        disk.image()
    })
}

fn read(db: &Database) -> Result<()> {
    let ns = db.namespace("default").unwrap();
    for memory in ns.list(&PageRequest { scope: Scope::Any, ..PageRequest::default() })?.items {
        ns.look_up(&memory.id.to_string(), true)?;
        ns.history(&memory.id.to_string())?;
    }
    ns.search(Query::vector([1.0, 0.0, 0.0]))?;
    db.stats()?;
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let mut image = sound().clone();
    let file = image.names[Path::new(FILE)];
    match data.split_first() {
        Some((b'M', changes)) => {
            let bytes = &mut image.files[file];
            for change in changes.chunks_exact(6).take(64) {
                let place =
                    u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize % bytes.len();
                match change[4] % 3 {
                    0 => bytes[place] = change[5],
                    1 => bytes[place] ^= 1 << (change[5] % 8),
                    _ => bytes[place..].iter_mut().take(512).for_each(|byte| *byte = change[5]),
                }
            }
        }
        _ => {
            image = Image { files: vec![data.to_vec()], names: [(PathBuf::from(FILE), 0)].into() };
        }
    }
    let disk = SimDisk::new(image);
    let Ok(db) = open(&disk) else { return };
    let _ = read(&db);
    let _ = db.check(&CheckOptions { deep: true, ..CheckOptions::default() });
    let _ = db
        .namespace(&NamespaceName::default())
        .unwrap()
        .add(Draft::new("after the damage").vector([1.0, 2.0, 3.0]));
    let _ = db.compact();
});
