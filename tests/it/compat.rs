//! The version of the file format: a file of another one is refused, with both numbers, and left as it is.
//!
//! No format is published yet. With the first release a file of its format comes here, which every later build must read.

use std::path::Path;

use oubliette::{Database, Draft, Error, NamespaceName};
use redb::ReadableDatabase;

const META: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("meta");

/// The identity row: a header of 4 bytes, then the format number as a varint, as `docs/format.md` says.
fn identity(db: &redb::Database) -> Vec<u8> {
    let read = db.begin_read().unwrap().open_table(META).unwrap();
    let value = read.get(b"identity".as_slice()).unwrap().unwrap().value().to_vec();
    assert_eq!(value[..4], [1, 16, 0, 0]);
    value
}

/// Writes another format number into the identity row, and gives the one that stood there.
fn set_format(path: &Path, format: u8) -> u8 {
    let db = redb::Database::open(path).unwrap();
    let mut value = identity(&db);
    let before = std::mem::replace(&mut value[4], format);
    let body = value.len() - 4;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&value[..body]);
    crc.update(b"identity");
    value[body..].copy_from_slice(&crc.finalize().to_le_bytes());
    let write = db.begin_write().unwrap();
    write.open_table(META).unwrap().insert(b"identity".as_slice(), value.as_slice()).unwrap();
    write.commit().unwrap();
    before
}

#[test]
fn a_file_of_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let ns = NamespaceName::default();
    let db = Database::open(&path).unwrap();
    db.namespace(&ns).unwrap().add(Draft::new("still there").key("k")).unwrap();
    assert_eq!(db.format(), 17);
    db.close().unwrap();
    for other in [0, 16, 18] {
        let own = set_format(&path, other);
        for read_only in [false, true] {
            let refused = Database::builder().read_only(read_only).open(&path).unwrap_err();
            let Error::Format { found, expected } = refused else { panic!("{refused:?}") };
            assert_eq!((found, expected), (u32::from(other), 17));
            assert_eq!(refused.to_string(), format!("file format {other}; this build reads format 17"));
        }
        set_format(&path, own);
    }
    Database::open(&path).unwrap().namespace(&ns).unwrap().look_up("k", false).unwrap();
}
