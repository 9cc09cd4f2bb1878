//! Round trips of any value, every damage found, the bytes of one record of each sort, sizes.

mod arbitrary;
mod bits;
mod golden;
mod layout;
mod texts;

use proptest::prelude::*;
use serde_json::json;

use super::frame::{CRC_BYTES, HEADER_BYTES, begin, seal};
use super::*;
use crate::error::ErrorKind;
use crate::limits::{BLOCK_PAGE_BYTES, BLOCK_PAGE_OVERHEAD, PAYLOAD_BYTES_MAX, TIME_MAX_MS};
use crate::model::field::tests::sample;
use crate::model::{
    Access, Actor, Announced, Content, Counted, Delta, Entity, Evidence, ExpiresBy, Fields, Holder,
    JournalRow, Kind, MemoryId, Overtaken, Parts, Payload, Place, RuleId, RunId, Significance, SupersedeMode,
    Supersession, Tier, Time, Times, Tombstone, TombstoneReason, Usage, Vitals,
};

const KEY: &[u8] = b"\x00\x00\x00\x01key";

fn at() -> At<'static> {
    At::new("table", KEY)
}

fn id(byte: u8) -> MemoryId {
    MemoryId::from_bytes([byte; 16])
}

fn ms(millis: i64) -> Time {
    Time::from_millis(millis)
}

fn encoded<T: ?Sized>(encode: impl Fn(&T, &[u8], &mut Vec<u8>), value: &T) -> Vec<u8> {
    // What lay in the buffer before must not matter.
    let mut out = b"before".to_vec();
    encode(value, KEY, &mut out);
    out
}

fn vitals() -> Vitals {
    Vitals {
        kind_code: Kind::Knowledge.code(),
        tier: Tier::Procedural,
        significance: Significance::Core,
        importance: 0.5,
        confidence: Some(0.25),
        reinforcement_count: 3,
        pinned: true,
        admin_locked: false,
        system_locked: true,
        deletes_source: false,
        times: Times {
            recorded_at: ms(1_000),
            valid_from: Some(ms(-2)),
            expires_at: Some(ms(9_000)),
            superseded: Some(Supersession {
                at: ms(5_000),
                by: id(2),
                mode: SupersedeMode::Correction,
                via: None,
            }),
            ..Times::default()
        },
        overtaken: Vec::new(),
        expires_by: ExpiresBy::Tier,
        created_at: ms(1_001),
        updated_at: ms(1_002),
        happened_at: None,
        last_reinforced_at: Some(ms(1_003)),
        version: 7,
        content_bytes: 300,
        place: Place {
            partition: 4,
            space: 5,
            slot: Some(6),
            doc: None,
            fingerprint: Some([0xAB; 16]),
            likeness: [0xCD; 12],
            payload: false,
            counted: Counted::Superseded,
            next_holder: 8,
            holders: 2,
            usage: Usage { uses: 5, is_promoted: true, is_consolidated: false },
        },
    }
}

fn plain(text: &str) -> Content {
    Content {
        text: text.to_owned(),
        metadata: json!({}),
        scope_label: "global".to_owned(),
        series: "profile".to_owned(),
        ..Content::default()
    }
}

fn content() -> Content {
    Content {
        tags: vec!["rust".to_owned(), "a longer tag".to_owned()],
        metadata: json!({"n": 1}),
        session: Some("s-1".to_owned()),
        custom_kind: Some("gossip".to_owned()),
        ..plain("the text")
    }
}

fn access() -> Access {
    Access {
        retrieval_count: 3,
        last_retrieved: Some(ms(1_767_434_400_000)),
        relevance_max: 0.5,
        ..Access::default()
    }
}

fn holder() -> Holder {
    Holder {
        number: 1,
        key: Some("key-1".to_owned()),
        count: 1,
        share: 1,
        tags: vec!["rust".to_owned()],
        entities: vec![Entity { name: "Ann".to_owned(), role: "author".to_owned() }],
        fields: vec![(3, [7; 8]), (9, [8; 8])],
        ..Holder::default()
    }
}

fn insert() -> JournalRow {
    JournalRow {
        seq: 1_000_000,
        at: ms(1_767_434_400_000),
        actor: Actor::Caller,
        run: None,
        op: crate::model::Op::Insert,
        rule: RuleId::STORE,
        subject: Some(id(1)),
        holder: Some(0),
        deltas: Vec::new(),
        evidence: Evidence::default(),
        policy_number: 1,
        policy_hash: [9; 8],
    }
}

fn update() -> JournalRow {
    JournalRow {
        op: crate::model::Op::Update,
        rule: RuleId::UPDATE,
        run: Some(RunId::from_bytes([5; 16])),
        deltas: vec![Delta { field: "importance".to_owned(), before: json!(null), after: json!(0.5) }],
        evidence: Evidence { score: Some(0.5), transferred: Some(2), ..Evidence::default() },
        ..insert()
    }
}

fn tombstone() -> Tombstone {
    Tombstone {
        id: id(1),
        deleted_at: ms(1_767_434_400_000),
        reason: TombstoneReason::Collapsed,
        run: None,
        replaced_by: Some(id(2)),
        made_by: None,
        merged_from: Vec::new(),
        key_hashes: vec![[4; 32]],
        erased_at: None,
        forgotten_at: None,
        content_hash: [3; 32],
        rows: 1,
    }
}

fn slot(byte: u8) -> SlotMeta {
    let id = id(byte);
    SlotMeta { id, from: -1, until: 9_000, born: 3, died: ALIVE, scale: 0.5, residual: 0.25 }
}

fn slots() -> SlotBlock {
    let mut block = SlotBlock::new(4);
    block.put(0, slot(1), &[1, -1, 127, -127]);
    block.put(2, slot(3), &[0, 2, 0, -2]);
    block
}

fn vectors() -> VectorBlock {
    let mut block = VectorBlock::new(2);
    block.put(0, &[0.6, 0.8]);
    block.put(2, &[-1.0, 0.0]);
    block
}

/// Nodes 0 of level 0, 2 of level 2 with an empty list, 3 a twin of 2, and 15 without links.
fn graph(_: &(), key: &[u8], out: &mut Vec<u8>) {
    let upper = [vec![7, 8], Vec::new()];
    let mut nodes = [None; NODES_PER_BLOCK];
    nodes[0] = Some(GraphNode::linked(&[1, 0x0403_0201], &[]));
    nodes[2] = Some(GraphNode::linked(&[u32::MAX], &upper));
    nodes[3] = Some(GraphNode { bottom: &[], upper: &[], host: Some(2) });
    nodes[15] = Some(GraphNode::linked(&[], &[]));
    encode_graph_block(&nodes, key, out);
}

/// What [`GraphBlockRef`] reads: bottom and upper lists of each node.
fn read_graph(bytes: &[u8]) -> Vec<Option<arbitrary::Lists>> {
    let block = GraphBlockRef::open(at(), bytes).unwrap();
    let node = |node: GraphNodeRef<'_>| {
        let upper = (1..=node.level()).map(|level| node.upper(level).collect()).collect();
        (node.bottom().collect(), upper, node.host())
    };
    block.nodes().map(|found| found.map(node)).collect()
}

/// One record of each sort: its tag and its bytes.
fn samples() -> Vec<(u8, Vec<u8>)> {
    let meta = |value: &(u64, String, Vec<u32>), key: &[u8], out: &mut Vec<u8>| {
        encode_meta(19, key, value, out);
    };
    vec![
        (tag::VITALS, encoded(encode_vitals, &vitals())),
        (tag::CONTENT, encoded(encode_content, &content())),
        (tag::ACCESS, encoded(encode_access, &access())),
        (tag::HOLDER, encoded(encode_holder, &holder())),
        (tag::JOURNAL, encoded(encode_journal, &update())),
        (tag::TOMBSTONE, encoded(encode_tombstone, &tombstone())),
        (tag::SLOT_BLOCK, encoded(SlotBlock::encode, &slots())),
        (tag::VECTOR_BLOCK, encoded(VectorBlock::encode, &vectors())),
        (tag::GRAPH_BLOCK, encoded(graph, &())),
        (tag::DOC_BLOCK, encoded(DocBlock::encode, &texts::docs())),
        (tag::POSTING_BLOCK, encoded(Postings::encode, &texts::postings())),
        (tag::PAYLOAD, encoded(encode_payload, &Payload::Json(json!({ "n": 7 })))),
        (tag::BIT_ROW, encoded(BitRow::encode, &bits::bits())),
        (19, encoded(meta, &(300, "name".to_owned(), vec![1, 2]))),
    ]
}

/// That the decoder of `tag` refuses `bytes` as corrupted.
fn assert_corrupted(tag: u8, at: At<'_>, bytes: &[u8], what: &str) {
    match decode_tagged(tag, at, bytes) {
        Ok(()) => panic!("tag {tag}: {what} was read"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupted, "tag {tag}: {what}: {error}"),
    }
}

/// The same body with a header and a checksum that fit, as an attacker would write it.
fn forged(tag: u8, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    begin(tag, &mut out);
    out.extend_from_slice(body);
    seal(flags, KEY, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn vitals_round_trip(value in arbitrary::vitals()) {
        let bytes = encoded(encode_vitals, &value);
        let doc = if value.place.doc.is_some() { size_of::<u32>() } else { 0 };
        let began = if value.times.valid_from_recorded_at.is_some() { size_of::<i64>() } else { 0 };
        let announced = if value.times.announced.is_some() { 2 * size_of::<i64>() } else { 0 };
        let via = if value.times.superseded.and_then(|by| by.via).is_some() { 16 } else { 0 };
        let overtaken = value.overtaken.iter().map(|one| if one.via.is_some() { 49 } else { 33 }).sum::<usize>();
        let parts = doc + began + announced + via + overtaken;
        prop_assert_eq!(bytes.len(), vitals::VITALS_BYTES + parts);
        prop_assert_eq!(decode_vitals(at(), &bytes)?, value);
    }

    #[test]
    fn content_round_trip(value in arbitrary::content()) {
        let bytes = encoded(encode_content, &value);
        prop_assert_eq!(decode_text(at(), &bytes)?, &value.text);
        prop_assert_eq!(decode_content(at(), &bytes)?, value);
    }

    #[test]
    fn access_round_trip(value in arbitrary::access()) {
        let read = decode_access(at(), &encoded(encode_access, &value))?;
        prop_assert_eq!(read.relevance_score_sum.to_bits(), value.relevance_score_sum.to_bits());
        prop_assert_eq!(read, value);
    }

    #[test]
    fn holder_round_trip(value in arbitrary::holder()) {
        prop_assert_eq!(decode_holder(at(), &encoded(encode_holder, &value))?, value);
    }

    #[test]
    fn journal_round_trip(value in arbitrary::journal()) {
        prop_assert_eq!(decode_journal(at(), &encoded(encode_journal, &value))?, value);
    }

    #[test]
    fn tombstone_round_trip(value in arbitrary::tombstone()) {
        prop_assert_eq!(decode_tombstone(at(), &encoded(encode_tombstone, &value))?, value);
    }

    #[test]
    fn slot_block_round_trip(
        entries in proptest::collection::vec((arbitrary::slot(), any::<[i8; 3]>()), 0..9),
        vacant in 0_usize..9,
    ) {
        let mut block = SlotBlock::new(3);
        for (meta, code) in &entries {
            block.put(block.len(), *meta, code);
        }
        if vacant < block.len() {
            block.erase(vacant);
        }
        let bytes = encoded(SlotBlock::encode, &block);
        prop_assert_eq!(&SlotBlock::decode(at(), 3, &bytes)?, &block);
        let view = SlotBlockRef::open(at(), 3, &bytes)?;
        prop_assert_eq!(view.len(), block.len());
        for (slot, meta) in view.metas().enumerate() {
            prop_assert_eq!(Some(&meta), block.meta(slot));
            let code: Vec<i8> = view.code(slot).unwrap().iter().map(|c| *c as i8).collect();
            prop_assert_eq!(Some(&*code), block.code(slot));
        }
        prop_assert_eq!(view.codes().len(), 3 * block.len());
    }

    #[test]
    fn vector_block_round_trip(
        vectors in proptest::collection::vec(proptest::option::of(arbitrary::vector(3)), 0..9),
    ) {
        let mut block = VectorBlock::new(3);
        for (position, vector) in vectors.iter().enumerate() {
            if let Some(vector) = vector {
                block.put(position, vector);
            }
        }
        let bytes = encoded(VectorBlock::encode, &block);
        prop_assert_eq!(&VectorBlock::decode(at(), 3, &bytes)?, &block);
        let mut out = vec![1.0];
        for position in 0..10 {
            let present = read_vector(at(), &bytes, 3, position, &mut out)?;
            prop_assert_eq!(present.then_some(&*out), block.get(position));
        }
    }

    #[test]
    fn graph_block_round_trip(nodes in arbitrary::graph_nodes()) {
        let borrowed: Vec<_> = nodes
            .iter()
            .map(|node| node.as_ref().map(|(bottom, upper, host)| GraphNode { bottom, upper, host: *host }))
            .collect();
        let mut bytes = b"before".to_vec();
        encode_graph_block(&borrowed, KEY, &mut bytes);
        let mut expected = nodes.clone();
        expected.resize(NODES_PER_BLOCK, None);
        prop_assert_eq!(read_graph(&bytes), expected);
        let block = GraphBlockRef::open(at(), &bytes)?;
        for slot in 0..20 {
            prop_assert_eq!(block.has(slot), nodes.get(slot).is_some_and(Option::is_some));
        }
    }

    #[test]
    fn meta_round_trip(value in any::<(u64, String, Vec<u32>)>()) {
        let mut out = Vec::new();
        encode_meta(18, KEY, &value, &mut out);
        prop_assert_eq!(&decode_meta::<(u64, String, Vec<u32>)>(18, at(), &out)?, &value);
        prop_assert!(decode_meta::<(u64, String, Vec<u32>)>(19, at(), &out).is_err());
    }

    #[test]
    fn any_bytes_are_an_error(tag: u8, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode_tagged(tag, at(), &bytes).is_err());
    }

    /// Behind a checksum that fits a decoder meets bytes that nobody wrote: it may read or refuse them, but it
    /// must come back.
    #[test]
    fn forged_bodies_do_not_panic(
        sort in 0_usize..12,
        flags in prop_oneof![Just(0_u16), any::<u16>()],
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let (tag, sample) = &samples()[sort];
        let _ = decode_tagged(*tag, at(), &forged(*tag, flags, &bytes));
        let mut body = sample[HEADER_BYTES..sample.len() - CRC_BYTES].to_vec();
        for (place, byte) in edits {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let kept = u16::from_le_bytes([sample[2], sample[3]]);
        if let Err(error) = decode_tagged(*tag, at(), &forged(*tag, kept, &body)) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupted);
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for (tag, bytes) in samples() {
        decode_tagged(tag, at(), &bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_corrupted(tag, at(), &damaged, &format!("a record with bit {bit} flipped"));
        }
    }
}

#[test]
fn every_truncation_and_extension_is_found() {
    for (tag, mut bytes) in samples() {
        for len in 0..bytes.len() {
            assert_corrupted(tag, at(), &bytes[..len], &format!("a record cut to {len} bytes"));
        }
        bytes.push(0);
        assert_corrupted(tag, at(), &bytes, "a record with a byte more");
    }
}

#[test]
fn a_value_under_another_key_or_of_another_sort_is_found() {
    for (tag, bytes) in samples() {
        assert_corrupted(tag, At::new("table", b"\x00\x00\x00\x02key"), &bytes, "a record of another key");
        for (other, _) in samples().iter().filter(|(other, _)| *other != tag) {
            assert_corrupted(*other, at(), &bytes, "a record of another sort");
        }
    }
}

#[test]
fn corruption_names_table_and_key() {
    let error = decode_vitals(at(), &[]).unwrap_err();
    let shown = "corrupted value in table table at key 000000016b6579: 0 bytes are no value";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn forged_vitals_out_of_bounds_are_refused() {
    let bytes = encoded(encode_vitals, &vitals());
    let body = &bytes[HEADER_BYTES..bytes.len() - CRC_BYTES];
    // Offset in the value, and a byte pattern that no encoder writes there.
    let cases: [(usize, &[u8], &str); 9] = [
        (4, &[200], "kind"),
        (5, &[4], "tier"),
        (6, &[4], "significance"),
        (8, &f32::NAN.to_le_bytes(), "importance"),
        (12, &1.5_f32.to_le_bytes(), "confidence"),
        (32, &i64::MIN.to_le_bytes(), "recorded_at"),
        (40, &(TIME_MAX_MS + 1).to_le_bytes(), "valid_from"),
        (80, &i64::MIN.to_le_bytes(), "superseded_at"),
        (143, &[7], "counted"),
    ];
    for (offset, pattern, field) in cases {
        let mut body = body.to_vec();
        body[offset - HEADER_BYTES..][..pattern.len()].copy_from_slice(pattern);
        let error = decode_vitals(at(), &forged(tag::VITALS, 0, &body)).unwrap_err().to_string();
        assert!(error.contains(field), "{field}: {error}");
    }
}

#[test]
fn forged_parts_behind_vitals_are_refused() {
    let mut whole = vitals();
    whole.place.doc = Some(9);
    whole.times.valid_from_recorded_at = Some(ms(1_004));
    whole.times.announced = Some(Announced { end: ms(1_005), at: ms(1_006) });
    whole.overtaken = vec![Overtaken { by: id(3), end: ms(1_007), at: ms(1_008), via: None }];
    let bytes = encoded(encode_vitals, &whole);
    let (body, flags) =
        (&bytes[HEADER_BYTES..bytes.len() - CRC_BYTES], u16::from_le_bytes([bytes[2], bytes[3]]));
    assert_eq!(decode_vitals(at(), &forged(tag::VITALS, flags, body)).unwrap(), whole);
    let (fixed, _) = body.split_last_chunk::<8>().unwrap();
    let cases = [
        (flags, [fixed, &i64::MIN.to_le_bytes()].concat(), "overtaken"),
        (flags & !64, body.to_vec(), "bytes with flags"),
        (flags | 32, body.to_vec(), "bytes with flags"),
        (flags, fixed.to_vec(), "bytes with flags"),
        (flags, [body, &[0]].concat(), "bytes with flags"),
        (flags & !1, body.to_vec(), "overtaken"),
        (flags | 1 << 15, body.to_vec(), "bytes with flags"),
    ];
    for (flags, body, why) in cases {
        let error = decode_vitals(at(), &forged(tag::VITALS, flags, &body)).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn a_holder_is_mostly_as_old_as_its_memory() {
    let place = |millis: u64| [&[0, 0, 0, 1], &millis.to_be_bytes()[2..], &[7; 10], &[0; 4]].concat();
    let key = place(1_767_434_400_000);
    let bytes = |since: i64| {
        let mut out = Vec::new();
        encode_holder(&Holder { since: ms(since), ..holder() }, &key, &mut out);
        out
    };
    let at = At::new("holder", &key);
    let made = bytes(1_767_434_400_000);
    for (since, more) in [(0, 0), (63, 1), (-64, 1), (86_400_000, 4), (-1_767_434_400_000, 6)] {
        let since = 1_767_434_400_000 + since;
        let written = bytes(since);
        assert_eq!(written.len(), made.len() + more, "{since}");
        assert_eq!(decode_holder(at, &written).unwrap().since, ms(since));
    }
    // An id without a time, and an instant that no encoder writes.
    let (end, wild) = (place(u64::MAX >> 16), bytes(TIME_MAX_MS));
    let mut beyond = Vec::new();
    begin(tag::HOLDER, &mut beyond);
    beyond.extend_from_slice(&wild[HEADER_BYTES..wild.len() - CRC_BYTES]);
    seal(u16::from_le_bytes([wild[2], wild[3]]), &end, &mut beyond);
    let error = decode_holder(At::new("holder", &end), &beyond).unwrap_err();
    assert!(error.to_string().contains("since"), "{error}");
}

#[test]
fn a_forged_list_length_allocates_nothing() {
    // A holder whose tags claim 2^32 - 1 entries in a row of 12 bytes.
    let body = [1, 1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
    assert_corrupted(tag::HOLDER, at(), &forged(tag::HOLDER, 1 << 1, &body), "a list without its entries");
}

#[test]
fn forged_graph_blocks_out_of_bounds_are_refused() {
    // Present nodes, then level and count of links: what no encoder writes, behind a checksum that fits.
    let links = |count: u8| [vec![count], vec![0; 4 * usize::from(count)]].concat();
    let node = |level: u8, lists: &[u8]| {
        let lists: Vec<u8> = lists.iter().flat_map(|count| links(*count)).collect();
        [vec![level], lists].concat()
    };
    let cases = [
        (1, node(0, &[33]), "a list of level 0 that is too long"),
        (1, node(1, &[0, 17]), "a list of level 1 that is too long"),
        (1, node(16, &[0; 17]), "a node of level 16"),
        (3, node(0, &[1]), "a node that is missing"),
        (1, vec![0, 200], "a list without its links"),
        (1, vec![2, 0, 0], "a level without its list"),
        (1, vec![254, 0], "levels without lists"),
        (1, vec![255, 0, 0, 0], "a twin without its host"),
        (1, [node(0, &[1]), vec![0]].concat(), "a byte after the last node"),
        (0, vec![0], "a byte where no node is"),
    ];
    for (present, nodes, what) in cases {
        let body = [u16::to_le_bytes(present).to_vec(), nodes].concat();
        assert_corrupted(tag::GRAPH_BLOCK, at(), &forged(tag::GRAPH_BLOCK, 0, &body), what);
    }
    let widest = [vec![1, 0], node(15, &[[32].as_slice(), &[16; 15]].concat())].concat();
    decode_tagged(tag::GRAPH_BLOCK, at(), &forged(tag::GRAPH_BLOCK, 0, &widest)).unwrap();
}

#[test]
fn a_level_that_a_node_does_not_have_has_no_links() {
    let bytes = encoded(graph, &());
    let node = GraphBlockRef::open(at(), &bytes).unwrap().nodes().nth(2).flatten().unwrap();
    let links = |level: usize| (node.upper(level).len(), node.upper(level).collect::<Vec<_>>());
    assert_eq!((node.level(), node.bottom().len()), (2, 1));
    assert_eq!(
        [links(0), links(1), links(2), links(3)].map(|(_, links)| links),
        [vec![], vec![7, 8], vec![], vec![]]
    );
    assert_eq!([links(0).0, links(1).0, links(2).0, links(9).0], [0, 2, 0, 0]);
}

#[test]
fn a_buried_slot_keeps_its_code_and_nothing_of_its_memory() {
    let mut block = slots();
    block.bury(0, 77);
    let block = SlotBlock::decode(at(), 4, &encoded(SlotBlock::encode, &block)).unwrap();
    let dead = SlotMeta { born: 3, died: 77, scale: 0.5, residual: 0.25, ..SlotMeta::VACANT };
    assert_eq!(block.meta(0), Some(&dead));
    assert!(dead.is_dead() && dead.is_vacant(), "no reader may take it for a memory");
    assert_eq!(block.code(0), Some(&[1, -1, 127, -127][..]));
    for (slot, what) in [(1, "vacant"), (2, "alive")] {
        assert!(!block.meta(slot).unwrap().is_dead(), "{what}");
    }
}

#[test]
fn unknown_flags_are_refused() {
    for (tag, bytes) in samples() {
        let body = &bytes[HEADER_BYTES..bytes.len() - CRC_BYTES];
        let known = u16::from_le_bytes([bytes[2], bytes[3]]);
        assert_corrupted(tag, at(), &forged(tag, known | 1 << 15, body), "a record with an unknown flag");
    }
}

#[test]
fn a_damaged_vector_does_not_hide_its_neighbours() {
    let mut bytes = encoded(VectorBlock::encode, &vectors());
    let second = HEADER_BYTES + 4 + 2 * (4 + 8);
    bytes[second + 6] ^= 1;
    let mut out = Vec::new();
    assert!(read_vector(at(), &bytes, 2, 0, &mut out).unwrap());
    assert_eq!(out, [0.6, 0.8]);
    assert!(!read_vector(at(), &bytes, 2, 1, &mut out).unwrap(), "vacant");
    assert_eq!(read_vector(at(), &bytes, 2, 2, &mut out).unwrap_err().kind(), ErrorKind::Corrupted);
    assert_eq!(VectorBlock::decode(at(), 2, &bytes).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn erasing_leaves_nothing_behind() {
    let mut vectors = vectors();
    vectors.erase(0);
    vectors.erase(2);
    let bytes = encoded(VectorBlock::encode, &vectors);
    assert!(bytes[HEADER_BYTES + 4..].iter().all(|byte| *byte == 0));

    let mut slots = slots();
    slots.set_times(0, 0, 8_000);
    assert_eq!(slots.meta(0).map(|m| (m.from, m.until, m.died)), Some((0, 8_000, ALIVE)));
    assert!(slots.meta(1).is_some_and(SlotMeta::is_vacant), "skipped by put");
    slots.erase(0);
    slots.erase(2);
    let bytes = encoded(SlotBlock::encode, &slots);
    assert!(bytes[HEADER_BYTES + 4..bytes.len() - CRC_BYTES].iter().all(|byte| *byte == 0));
}

#[test]
fn sizes_are_as_designed() {
    let size = |bytes: Vec<u8>| bytes.len();
    assert_eq!(size(encoded(encode_vitals, &vitals())), 188);
    let mut with_document = vitals();
    with_document.place.doc = Some(9);
    assert_eq!(size(encoded(encode_vitals, &with_document)), 192);
    with_document.times.valid_from_recorded_at = Some(ms(1_004));
    assert_eq!(size(encoded(encode_vitals, &with_document)), 200);
    let text = "x".repeat(300);
    assert_eq!(size(encoded(encode_content, &plain(&text))) - 300, 10);
    let tagged = Content { tags: vec!["project".to_owned(), "rust".to_owned()], ..plain(&text) };
    assert_eq!(size(encoded(encode_content, &tagged)) - 300, 26);
    assert!(size(encoded(encode_journal, &insert())) < 50);
    let keyed = Holder { entities: Vec::new(), ..holder() };
    let strings = "key-1".len() + "rust".len();
    assert!(size(encoded(encode_holder, &keyed)) - strings < 40);
    assert!(size(encoded(encode_access, &access())) < 30);

    for dim in [1, 2, 3, 4, 8, 16, 100, 128, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096] {
        let mut slots = SlotBlock::new(dim);
        while slots.len() < slots_per_block(dim) {
            slots.put(slots.len(), slot(1), &vec![1; dim]);
        }
        let mut vectors = VectorBlock::new(dim);
        (0..vectors_per_block(dim)).for_each(|position| vectors.put(position, &vec![1.0; dim]));
        for (bytes, count, slack) in [
            (encoded(SlotBlock::encode, &slots), slots_per_block(dim), 56 + dim),
            (encoded(VectorBlock::encode, &vectors), vectors_per_block(dim), 4 + 4 * dim),
        ] {
            let room = (bytes.len() + BLOCK_PAGE_OVERHEAD).next_power_of_two().max(BLOCK_PAGE_BYTES);
            assert!(count * slack * 8 >= room * 7, "{count} of dimension {dim} in a page of {room} bytes");
            assert!(bytes.len() + BLOCK_PAGE_OVERHEAD + slack > room, "dimension {dim} leaves room");
        }
    }
}

/// `docs/format.md`, "Records": these bytes are the format. A change of any of them is a new layout version.
#[test]
fn golden_bytes() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let found: Vec<(u8, String)> = samples().iter().map(|(tag, bytes)| (*tag, hex(bytes))).collect();
    let golden = golden::GOLDEN.map(|(tag, hex)| (tag, hex.replace(char::is_whitespace, "")));
    assert_eq!(found, golden);
}

/// Every field of the table comes back from the part that keeps it, and a reader goes past a field that it does not
/// know.
#[test]
fn every_field_of_the_table_is_stored() {
    for &(number, name) in Fields::NAMES {
        let mut fields = Fields::default();
        assert!(fields.set_json(name, sample(name, number)).unwrap());
        let mut parts = Parts::new("text", Time::EPOCH);
        parts.apply(&fields);
        assert_ne!(parts, Parts::new("text", Time::EPOCH), "{name}");
        let read = Parts {
            vitals: decode_vitals(at(), &encoded(encode_vitals, &parts.vitals)).unwrap(),
            content: decode_content(at(), &encoded(encode_content, &parts.content)).unwrap(),
            access: decode_access(at(), &encoded(encode_access, &parts.access)).unwrap(),
        };
        assert_eq!(read, parts, "{name}");
    }
    let mut bytes = Vec::new();
    begin(tag::ACCESS, &mut bytes);
    bytes.extend([40, 1, 7, 200, 3, 1, 2, 3]);
    seal(0, at().key, &mut bytes);
    let access = decode_access(at(), &bytes).unwrap();
    assert_eq!(access, Access { retrieval_count: 7, ..Access::default() });
}

#[test]
fn a_payload_is_read_as_it_was_written() {
    let payloads = [
        Payload::Bytes(Vec::new()),
        Payload::Bytes((0..=255).collect()),
        Payload::Bytes(vec![7; PAYLOAD_BYTES_MAX]),
        Payload::Json(json!({ "a": [1, 2.5, "é", null], "b": { "c": true } })),
        Payload::Json(json!("x".repeat(PAYLOAD_BYTES_MAX - 2))),
    ];
    for payload in payloads {
        let bytes = encoded(encode_payload, &payload);
        assert_eq!(decode_payload(at(), &bytes).unwrap(), payload);
        if payload.size() > 1_000 {
            assert!(bytes.len() < payload.size() / 100, "compressed");
        }
    }
}

#[test]
fn a_payload_that_nobody_wrote_is_refused() {
    let written = |flags: u16, length: u32, data: &[u8]| {
        let mut bytes = Vec::new();
        begin(tag::PAYLOAD, &mut bytes);
        varint::put_varint(&mut bytes, length);
        bytes.extend_from_slice(data);
        seal(flags, KEY, &mut bytes);
        bytes
    };
    assert_eq!(decode_payload(at(), &written(0, 2, b"ab")).unwrap(), Payload::Bytes(b"ab".to_vec()));
    let huge = u32::try_from(PAYLOAD_BYTES_MAX + 1).unwrap();
    for (flags, length, data) in [
        (0, 3, b"ab".as_slice()),
        (0, 1, b"ab"),
        (4, 2, b"ab"),
        (1, 2, b"ab"),
        (1, 0, b""),
        (2, 2, b"ab"),
        (2, 1_000, b"\xff\xff\xff\xff"),
        (0, huge, b""),
        (2, u32::MAX, b""),
    ] {
        assert_corrupted(tag::PAYLOAD, at(), &written(flags, length, data), "a payload");
    }
}
