//! The tools of a server, and an export, go past a damaged memory.

use std::io::Cursor;

use crate::growth::{cost, linear};
use crate::world::{World, axis, keeping};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{DistinctQuery, SupersedeMode};
use oubliette::tools::{KnowledgeGraph, Toolbox};
use oubliette::{Database, Draft, Filter, MemoryId, Query, WriteOptions};
use serde_json::{Value, json};

use super::store::{overwrite, tables};

/// Changes one byte in the row of a memory, where it begins with `at`.
fn damage(world: &mut World, table: &str, row: &[u8]) {
    world.db.clone().close().unwrap();
    let all = tables(&world.path());
    let (key, value) = all[table].iter().find(|(key, _)| key.starts_with(row)).expect("a row");
    let mut value = value.clone();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    overwrite(&world.path(), table, key, &value);
    world.open_again(keeping);
}

fn row_of(id: MemoryId) -> Vec<u8> {
    [&[0, 0, 0, 1], id.as_bytes().as_slice()].concat()
}

#[test]
fn a_search_by_a_tool_tells_the_hits_beside_a_damaged_one() {
    let mut world = World::with(keeping);
    let ids: Vec<MemoryId> =
        (0..3).map(|at| world.add(Draft::new(format!("tea for {at}")).key(format!("k{at}"))).id).collect();
    damage(&mut world, "holder", &row_of(ids[1]));
    let told = Toolbox::new(world.ns.clone()).call("search_memories", json!({ "query": "tea" })).unwrap();
    let hits: Vec<&Value> = told["hits"].as_array().unwrap().iter().collect();
    assert_eq!(hits.len(), world.ns.search("tea").unwrap().hits.len());
    assert!(hits.len() >= 2 && hits.iter().all(|hit| hit["text"].is_string()), "{told}");
    world.forget(&[&ids[1].to_string()]);
}

/// Whoever forgets all of a person is told which memories stay, because nobody can read whose they are.
#[test]
fn a_tool_that_forgets_names_what_it_could_not_decide() {
    let mut world = World::with(keeping);
    let draft = |at: usize| Draft::new(format!("note {at} of Ann")).metadata(json!({ "user": "ann" }));
    let ids: Vec<MemoryId> = (0..3).map(|at| world.add(draft(at)).id).collect();
    damage(&mut world, "memory", &row_of(ids[1]));
    for dry_run in [true, false] {
        let args = json!({ "filter": { "metadata.user": "ann" }, "dry_run": dry_run });
        let told = Toolbox::new(world.ns.clone()).call("forget_memories", args).unwrap();
        assert_eq!((&told["memories"], &told["undecided"]), (&json!(2), &json!([ids[1]])), "{told}");
    }
    let args = json!({ "ids": [ids[1]], "dry_run": false });
    let told = Toolbox::new(world.ns.clone()).call("forget_memories", args).unwrap();
    assert_eq!((&told["memories"], &told["undecided"]), (&json!(1), &json!([])), "{told}");
}

/// However a search, or a count of values, comes by its rows: what it leaves out because nobody can read it is told.
#[test]
fn whatever_is_left_out_of_an_answer_because_of_damage_is_told() {
    let mut world = World::with(keeping);
    let draft = |at: usize| {
        let draft = Draft::new(format!("tea for {at}")).vector([1.0, at as f32 / 50.0, 0.0, 0.0]);
        draft.tag("t").metadata(json!({ "n": 1 }))
    };
    let ids: Vec<MemoryId> = (0..20).map(|at| world.add(draft(at)).id).collect();
    world.advance("1h");
    damage(&mut world, "vitals", &row_of(ids[7]));
    let filters =
        [json!({ "tags": "t" }), json!({ "importance": { "$gte": 0 } }), json!({ "metadata.n": 1 })];
    let filters = filters.iter().map(|filter| Some(Filter::parse(&filter.to_string()).unwrap()));
    for filter in filters.chain([None]) {
        let text = Query::text("tea");
        let near = Query::vector([1.0, 0.0, 0.0, 0.0]);
        let both = Query { text: text.text.clone(), ..near.clone() };
        for mut query in [text, near.clone(), both, near.as_of(world.ago("30m"))] {
            query.filter.clone_from(&filter);
            let found = world.ns.search(query.clone().k(50)).unwrap();
            assert_eq!(found.hits.len() as u64 + found.plan.damaged, 20, "{query:?}");
        }
        let mut query = DistinctQuery::from("n");
        query.filter.clone_from(&filter);
        let values = world.ns.distinct(query).unwrap();
        assert_eq!(values.memories + values.damaged, 20, "{filter:?}");
    }
    world.forget(&[&ids[7].to_string()]);
}

#[test]
fn a_graph_goes_on_beside_a_damaged_memory() {
    for table in ["memory", "vitals", "holder"] {
        let mut world = World::with(keeping);
        let entity = |name: &str| json!({ "name": name, "entityType": "person", "observations": [format!("{name} walks")] });
        let call = |world: &World, name: &str, args: Value| {
            KnowledgeGraph::new(world.ns.clone())
                .call(name, args)
                .unwrap_or_else(|why| panic!("{table} {name}: {why}"))
        };
        call(&world, "create_entities", json!({ "entities": [entity("Ann"), entity("Bob")] }));
        let bad = world.ns.search("Bob walks").unwrap().hits[0].id;
        damage(&mut world, table, &row_of(bad));
        let names = |world: &World| -> Vec<String> {
            let all = call(world, "read_graph", json!({}));
            all["entities"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(&world), ["Ann", "Bob"], "{table}");
        call(&world, "create_entities", json!({ "entities": [entity("Cy")] }));
        assert_eq!(names(&world), ["Ann", "Bob", "Cy"], "{table}");
        // Nobody is told that all of it is gone.
        let gone = call(&world, "delete_entities", json!({ "entityNames": ["Ann", "Bob"] }));
        let told = gone["message"].as_str().unwrap();
        assert!(told.contains(&bad.to_string()) && told.contains("stays"), "{table}: {told}");
        // What it says can be read where its holder alone is damaged.
        let is_told = table == "holder";
        assert_eq!(names(&world), if is_told { vec!["Bob", "Cy"] } else { vec!["Cy"] }, "{table}");
        world.forget(&[&bad.to_string()]);
        let gone = call(&world, "delete_entities", json!({ "entityNames": ["Cy"] }));
        assert_eq!(gone["message"], "Entities deleted successfully", "{table}");
    }
}

/// What is asked for by its name goes though nobody can read it, and keeps nothing else from going.
#[test]
fn a_damaged_element_of_a_graph_is_deleted_by_what_it_is() {
    let deletions = |text: &str| json!({ "deletions": [{ "entityName": "Bob", "observations": [text] }] });
    let relations = || json!({ "relations": [{ "from": "Bob", "to": "Ann", "relationType": "knows" }] });
    for table in ["memory", "vitals", "holder"] {
        for (damaged, tool, args) in [
            ("Bob (person)", "delete_entities", json!({ "entityNames": ["Bob"] })),
            ("Bob walks", "delete_observations", deletions("Bob walks")),
            ("Bob knows Ann", "delete_relations", relations()),
        ] {
            let mut world = World::with(keeping);
            let call = |world: &World, name: &str, args: Value| {
                let graph = KnowledgeGraph::new(world.ns.clone());
                graph.call(name, args).unwrap_or_else(|why| panic!("{table} {name}: {why}"))
            };
            let bob =
                json!({ "name": "Bob", "entityType": "person", "observations": ["Bob walks", "Bob sings"] });
            call(&world, "create_entities", json!({ "entities": [bob] }));
            call(&world, "create_relations", relations());
            let hits = world.ns.search(damaged).unwrap().hits;
            let bad = hits.iter().find(|hit| hit.text == damaged).expect("the element").id;
            damage(&mut world, table, &row_of(bad));
            if tool == "delete_entities" {
                // The entity is written anew under its next key before its first observation goes.
                call(&world, "delete_observations", deletions("Bob walks"));
                let whole = call(&world, "read_graph", json!({}));
                assert_eq!(whole["entities"][0]["observations"], json!(["Bob sings"]), "{table}");
            }
            let gone = call(&world, tool, args);
            assert!(gone["message"].as_str().unwrap().ends_with("deleted successfully"), "{table}: {gone}");
            assert!(world.ns.get(bad).is_ok_and(|found| found.is_none()), "{table}: {damaged} stays");
            world.check();
        }
    }
}

/// Damages the vector along the first axis.
fn lose_vector(world: &World) {
    for (key, mut value) in tables(&world.path()).remove("vector").unwrap() {
        let unit: Vec<u8> = axis(0).iter().flat_map(|number| number.to_le_bytes()).collect();
        let at = value.windows(unit.len()).position(|bytes| bytes == unit).expect("the vector");
        value[at] ^= 1;
        overwrite(&world.path(), "vector", &key, &value);
    }
}

/// A memory that is left out makes no export follow the versions of a key once for each of them.
#[test]
fn an_export_past_a_damaged_memory_reads_each_version_once() {
    let of = |n: usize| {
        let mut world = World::with(keeping);
        let versions = (0..n).map(|at| Draft::new(format!("version {at} of {}", at * at)).key("k"));
        world.ns.add_all(versions.collect(), &WriteOptions::default()).unwrap();
        let bare = world.add(Draft::new("").vector(axis(0))).id;
        world.db.clone().close().unwrap();
        lose_vector(&world);
        world.open_again(keeping);
        let snapshot = world.db.snapshot().unwrap();
        let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
        let to = VectorsTo::<Cursor<Vec<u8>>>::Lines;
        let cost = cost(|| {
            let report = export.write(&snapshot, &mut Vec::new(), "lines", to).unwrap();
            assert_eq!((report.memories, report.damaged.len()), (n as u64, 1));
        });
        drop(snapshot);
        world.forget(&[&bare.to_string()]);
        cost
    };
    linear(of(50), of(200), 4);
}

/// A memory that is nothing but its vector is left out where that is damaged. The lines beside it, and those that name it, come
/// back.
#[test]
fn an_export_leaves_out_what_has_neither_text_nor_a_readable_vector() {
    let mut world = World::with(keeping);
    let bare = world.add(Draft::new("").vector(axis(0))).id;
    let old = world.add(Draft::new("what it took the place of").vector(axis(1))).id;
    world.supersede(old, bare, SupersedeMode::Replaced, None).unwrap();
    world.add(Draft::new("another").vector(axis(2)));
    world.db.clone().close().unwrap();
    lose_vector(&world);
    world.open_again(keeping);
    // Once the index is written anew, nothing is damaged, and the memory waits for a vector again.
    for (all_states, reindexed) in [(false, false), (true, false), (true, true)] {
        if reindexed {
            world.db.reindex().unwrap();
            world.check();
        }
        let (mut out, snapshot) = (Vec::new(), world.db.snapshot().unwrap());
        let export = Export { namespaces: vec![world.ns.name().clone()], all_states };
        let report = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        assert!(report.damaged.iter().any(|(_, id)| *id == bare), "{report:?}");
        let folder = tempfile::tempdir().unwrap();
        let copy = Database::open(folder.path().join("copy.oub")).unwrap();
        let done = Import::default().run(&copy, LineReader::new(out.as_slice(), "lines"), &mut ()).unwrap();
        assert_eq!(done.stored, report.memories, "{all_states}");
        assert_eq!(report.memories, if all_states { 2 } else { 1 });
    }
    world.forget(&[&bare.to_string()]);
}

/// A run whose last step can't be read is written with the steps that can be, so that an import takes it; and the same export
/// stores no step twice where the store itself has lost one.
#[test]
fn a_run_travels_past_a_damaged_step() {
    let mut world = World::with(keeping);
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let texts = ["Ann likes tea", "Bob likes pie", "the office is in Oslo"];
    let drafts = [0, 1].map(|at| texts.map(|said| Draft::new(said).key(format!("{said} {at}"))));
    world.ns.add_all(drafts.concat(), &apart).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
    let write = |world: &World| {
        let (mut out, snapshot) = (Vec::new(), world.db.snapshot().unwrap());
        let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
        export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        out
    };
    let steps = |lines: &[u8]| String::from_utf8_lossy(lines).matches("\"step\":").count();
    let whole = write(&world);
    assert!(steps(&whole) >= 3, "a step for each pair");
    world.db.clone().close().unwrap();
    let journal = tables(&world.path()).remove("journal").unwrap();
    let (key, value) = journal.last().unwrap();
    let mut value = value.clone();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    overwrite(&world.path(), "journal", key, &value);
    world.open_again(keeping);
    let less = write(&world);
    assert_eq!(steps(&less) + 1, steps(&whole));
    let folder = tempfile::tempdir().unwrap();
    let copy = Database::open(folder.path().join("copy.oub")).unwrap();
    Import::default().run(&copy, LineReader::new(less.as_slice(), "lines"), &mut ()).unwrap();
    Import::default().run(&world.db, LineReader::new(whole.as_slice(), "lines"), &mut ()).unwrap();
    assert_eq!(steps(&write(&world)), steps(&less));
    world.db.reindex().unwrap();
}
