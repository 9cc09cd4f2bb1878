//! Whatever way a memory goes, nothing that hung on it stays: not in a row, not in an index, and after `compact` not
//! in a byte of the file (MODEL-23, MODEL-30).

use std::collections::BTreeSet;

use crate::damage::store::{overwrite, tables};
use crate::world::{World, axis, text};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::Expiry;
use oubliette::memory::{AuthorKind, Entity, Got, Link, SupersedeMode, Tier};
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{Draft, Filter, Forget, Kind, MemoryId, PageRequest, Scope, State};
use serde_json::json;

const TEXT: &str = "Quetzalcoatl keeps the only spare key of the lighthouse under a blue stone";
const OLD: &str = "Before that the spare key of the lighthouse hung behind the Quetzal clock";
const TWIN: &str = "Quetzalcoatl has the only spare key of the lighthouse beneath a blue stone";
const KEY: &str = "lighthouse:spare-key:quetzal";
const TAG: &str = "tag-of-the-quetzal";
const CATEGORY: &str = "category-of-the-quetzal";
const ENTITY: &str = "Entity Quetzalcoatl the Second";
const AUTHOR: &str = "author-quetzal-4711";
const NOTE: &str = "metadata note about the quetzal";
const VECTOR: [f32; 4] = [0.123, -0.456, 0.789, 0.321];

/// A memory with everything on it, and those that it has to do with.
struct Scene {
    world: World,
    victim: MemoryId,
    /// Superseded by the victim.
    old: MemoryId,
    /// Links to the victim and stays.
    friend: MemoryId,
    /// Is made from the victim and stays.
    summary: MemoryId,
    run: RunId,
}

fn victim(target: MemoryId, key: &str) -> Draft {
    let mut draft = text(TEXT).key(key).tag(TAG).vector(VECTOR).metadata(json!({"note": NOTE}));
    draft.categories = Some(vec![CATEGORY.to_owned()]);
    draft.entities = Some(vec![Entity { name: ENTITY.to_owned(), role: "subject".to_owned() }]);
    draft.links = Some(vec![Link { to: target, relation: "about".to_owned() }]);
    draft.sources = Some(vec![target]);
    draft.fields.author_id = Some(AUTHOR.to_owned()).into();
    draft.expiry = Some(Expiry::After("30d".parse().unwrap()));
    draft
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        let target = world.add(text("the lighthouse").vector(axis(0))).id;
        let run = world.start_import();
        let old = world.import(run, vec![text(OLD).key(KEY).tag(TAG)])[0].id;
        let victim = world.import(run, vec![victim(target, KEY)])[0].id;
        let mut friend = text("a friend").vector(axis(1));
        friend.links = Some(vec![Link { to: victim, relation: "knows".to_owned() }]);
        let friend = world.add(friend).id;
        let mut summary = text("a summary");
        summary.sources = Some(vec![victim]);
        let summary = world.add(summary).id;
        Scene { world, victim, old, friend, summary, run }
    }

    /// Memories in any state.
    fn rows(&self) -> Vec<oubliette::Memory> {
        let states = [State::Live, State::Superseded, State::Expired];
        states.into_iter().flat_map(|state| self.world.list_in(Scope::Any, state)).collect()
    }

    /// Nothing of the victim is left but its tombstone, before and after a compaction.
    fn assert_gone(mut self, gone: &[MemoryId], texts: &[&str]) {
        let world = &self.world;
        for id in gone {
            assert!(matches!(world.get(id), Ok(Got::Tombstone(_))), "{id}");
            assert_eq!(world.ns.text(*id).unwrap(), None);
            assert!(world.ns.keys_of(*id).unwrap().is_empty());
        }
        self.assert_unheard_of(gone);
        let events = world.ns.history(self.victim.to_string()).unwrap().events;
        let told = format!("{events:?}").to_lowercase();
        assert!(!told.contains("quetzal"), "the journal tells: {told}");
        self.world.check();
        self.assert_erased(texts);
        self.world.reopen();
        self.assert_unheard_of(gone);
    }

    /// No row and no index answers with anything of it.
    fn assert_unheard_of(&self, gone: &[MemoryId]) {
        let world = &self.world;
        for row in self.rows() {
            assert!(!gone.contains(&row.id));
            assert!(row.links.iter().all(|link| !gone.contains(&link.to)), "{row:?}");
            let shown = format!("{row:?}");
            assert!(!shown.to_lowercase().contains("quetzal"), "{shown}");
        }
        let found = world.find_in(VECTOR, 10, Scope::Any);
        assert!(found.iter().all(|id| !gone.contains(id)));
        for filter in [
            json!({"tags": TAG}),
            json!({"categories": CATEGORY}),
            json!({"entities": ENTITY}),
            json!({"keys": KEY}),
            json!({"author_id": AUTHOR}),
            json!({"metadata.note": NOTE}),
        ] {
            let filter = Some(Filter::from_json(&filter).unwrap_or_else(|why| panic!("{filter}: {why}")));
            let request = PageRequest { scope: Scope::Any, filter, ..PageRequest::default() };
            assert!(world.ns.list(&request).unwrap().items.is_empty(), "{request:?}");
        }
        assert_eq!(world.forget_tag(TAG), oubliette::report::Forgotten::default());
    }

    /// After a compaction no window of what was erased is in the file.
    fn assert_erased(&self, texts: &[&str]) {
        let world = &self.world;
        world.db.compact().unwrap();
        let file = std::fs::read(world.path()).unwrap();
        let mut windows: BTreeSet<&[u8]> = BTreeSet::new();
        for secret in texts.iter().chain(&[KEY, TAG, CATEGORY, ENTITY, AUTHOR, NOTE]) {
            windows.extend(secret.as_bytes().windows(16));
        }
        assert!(windows.len() > 30);
        for (at, window) in file.windows(16).enumerate() {
            assert!(!windows.contains(window), "at {at}: {:?}", String::from_utf8_lossy(window));
        }
        let erased = texts.iter().map(|text| ErasedProbe {
            texts: vec![(*text).to_owned()],
            vector: Some(VECTOR.to_vec()),
            keys: vec![KEY.to_owned()],
        });
        let options = CheckOptions { deep: true, erased: erased.collect() };
        let report = world.db.check(&options).unwrap();
        assert!(report.ok, "{:#?}", report.findings);
    }
}

/// The searches of this file find what they look for while it is there.
#[test]
fn a_memory_that_is_there_is_found_in_the_file() {
    let scene = Scene::new();
    scene.world.db.compact().unwrap();
    let file = std::fs::read(scene.world.path()).unwrap();
    for secret in [TEXT, OLD, KEY, TAG, CATEGORY, ENTITY, AUTHOR, NOTE] {
        let bytes = secret.as_bytes();
        assert!(file.windows(bytes.len()).any(|window| window == bytes), "{secret}");
    }
    let erased =
        vec![ErasedProbe { texts: vec!["never written by anyone".to_owned()], vector: None, keys: vec![] }];
    assert!(scene.world.db.check(&CheckOptions { deep: true, erased }).unwrap().ok);
    assert_eq!(scene.world.row(scene.friend).links.len(), 1);
    assert_eq!(scene.world.row(scene.summary).sources, [scene.victim]);
}

#[test]
fn forgotten_by_key_with_its_versions() {
    let scene = Scene::new();
    let answer = scene.world.forget(&[KEY]);
    assert_eq!((answer.forgotten, answer.derived.as_slice()), (1, &[scene.summary][..]));
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn forgotten_by_id_with_its_duplicates() {
    let scene = Scene::new();
    let twin = scene.world.add(text(TWIN).vector([0.12, -0.45, 0.78, 0.32]).tag(TAG)).id;
    scene.world.supersede(twin, scene.victim, SupersedeMode::Duplicate, None).unwrap();
    scene.world.forget_id(scene.victim);
    assert_eq!(scene.world.row(scene.old).state, State::Superseded, "other predecessors stay");
    scene.world.forget_id(scene.old);
    let gone = [scene.victim, twin, scene.old];
    scene.assert_gone(&gone, &[TEXT, TWIN, OLD]);
}

#[test]
fn forgotten_by_tag() {
    let scene = Scene::new();
    assert_eq!(scene.world.forget_tag(TAG).forgotten, 2);
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn forgotten_by_filter() {
    let scene = Scene::new();
    let filter = Filter::from_json(&json!({"metadata.note": NOTE})).unwrap();
    let answer = scene.world.ns.forget(Forget::filter(filter, Scope::Any)).unwrap();
    assert_eq!(answer.tombstones, [scene.victim]);
    scene.world.forget_id(scene.old);
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn forgotten_while_superseded() {
    let scene = Scene::new();
    let new = scene.world.add(text("what came after")).id;
    scene.world.supersede(scene.victim, new, SupersedeMode::Correction, None).unwrap();
    assert_eq!(scene.world.row(new).categories, [CATEGORY], "holders moved");
    scene.world.forget(&[KEY]);
    let row = scene.world.row(new);
    assert!(
        row.categories.is_empty() && row.entities.is_empty() && row.links.is_empty() && row.keys.is_empty()
    );
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn forgotten_after_it_expired() {
    let scene = Scene::new();
    scene.world.advance("31d");
    assert_eq!(scene.world.row(scene.victim).state, State::Expired);
    scene.world.forget(&[KEY]);
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn an_import_undone() {
    let scene = Scene::new();
    let undone = scene.world.ns.undo(scene.run).unwrap();
    assert_eq!((undone.removed, undone.restored), (2, 0));
    let gone = [scene.victim, scene.old];
    scene.assert_gone(&gone, &[TEXT, OLD]);
}

#[test]
fn a_namespace_dropped() {
    let mut scene = Scene::new();
    let other = scene.world.db.namespace("other").unwrap();
    other.add(text("another tenant").key("k").vector(axis(2))).unwrap();
    scene.world.db.drop_namespace(scene.world.ns.name()).unwrap();
    assert!(scene.rows().is_empty());
    assert!(scene.world.unknown(scene.victim));
    assert!(scene.world.unknown(KEY));
    scene.world.check();
    scene.assert_erased(&[TEXT, OLD]);
    scene.world.reopen();
    let other = scene.world.db.namespace("other").unwrap();
    assert_eq!(other.list(&PageRequest::default()).unwrap().items.len(), 1);
}

/// One of two writes of the same text leaves: the text stays, what only that write brought goes.
#[test]
fn a_holder_detached() {
    let world = World::new();
    let target = world.add(text("the lighthouse")).id;
    let mut first = text("the shared text of two writes").key(KEY).tag(TAG);
    first.categories = Some(vec![CATEGORY.to_owned()]);
    first.entities = Some(vec![Entity { name: ENTITY.to_owned(), role: "subject".to_owned() }]);
    first.links = Some(vec![Link { to: target, relation: "about".to_owned() }]);
    let id = world.add(first).id;
    let mut second = text("the shared text of two writes").key("other");
    second.entities = Some(vec![Entity { name: "Ann".to_owned(), role: "subject".to_owned() }]);
    assert_eq!(world.add(second).id, id);
    assert_eq!(world.row(id).entities.len(), 2);
    assert_eq!(world.forget(&[KEY]).detached, 1);
    let row = world.row(id);
    assert!(row.categories.is_empty() && row.links.is_empty() && row.tags.is_empty());
    assert_eq!(row.entities.iter().map(|entity| entity.name.as_str()).collect::<Vec<_>>(), ["Ann"]);
    assert_eq!(row.keys, ["other"]);
    world.check();
    let scene =
        Scene { victim: id, old: id, friend: id, summary: id, run: RunId::from_bytes([0; 16]), world };
    scene.assert_unheard_of(&[]);
    scene.assert_erased(&[]);
}

/// A message that was left behind with the text of a forgotten memory is a residue. A message whose memory maintenance has
/// removed stays until its own time is over, and is none.
#[test]
fn the_text_of_a_forgotten_message_is_looked_for_in_its_event() {
    let erased = || vec![ErasedProbe { texts: vec![TEXT.to_owned()], ..ErasedProbe::default() }];
    let check = |world: &World| world.db.check(&CheckOptions { deep: true, erased: erased() }).unwrap();
    let message = || {
        let mut draft = text(TEXT).kind(Kind::Message).key("k").tier(Tier::Working);
        draft.fields.author_kind = Some(AuthorKind::Human).into();
        draft
    };
    let mut world = World::new();
    world.add(message());
    world.db.clone().close().unwrap();
    let (key, value) = tables(&world.path())["event"].first().unwrap().clone();
    world.open_again(|builder| builder);
    world.forget(&["k"]);
    world.db.compact().unwrap();
    assert!(check(&world).ok);
    world.db.clone().close().unwrap();
    let forgotten = tables(&world.path())["event"].first().unwrap().clone();
    overwrite(&world.path(), "event", &key, &value);
    world.open_again(|builder| builder);
    let report = check(&world);
    assert!(report.findings.iter().any(|finding| finding.code == "residue"), "{report:?}");
    world.db.clone().close().unwrap();
    overwrite(&world.path(), "event", &forgotten.0, &forgotten.1);
    world.open_again(|builder| builder);

    let world = World::new();
    let gone = world.add(message()).id;
    world.advance("9d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    world.advance("9d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    world.db.compact().unwrap();
    assert!(matches!(world.get(gone).unwrap(), Got::Tombstone(_)), "{:?}", world.get(gone));
    let report = check(&world);
    assert_eq!((report.ok, report.unproven), (true, 1), "{report:?}");
}
