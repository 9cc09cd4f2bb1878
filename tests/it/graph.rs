//! The tools of `@modelcontextprotocol/server-memory` over the memories of a namespace.

use crate::world::World;
use oubliette::exchange::{Format, Import, LineReader};
use oubliette::memory::SupersedeMode;
use oubliette::tools::KnowledgeGraph;
use oubliette::{Draft, Patch};
use serde_json::{Value, json};

/// Calls and the answers of the reference 2026.8.31, as `tests/mcp-compat --record` writes them.
const RECORDED: &str = include_str!("../fixtures/server-memory.json");

fn entity(name: &str, sort: &str, observations: &[&str]) -> Value {
    json!({ "name": name, "entityType": sort, "observations": observations })
}

fn relation(from: &str, relation: &str, to: &str) -> Value {
    json!({ "from": from, "to": to, "relationType": relation })
}

fn graph(world: &World) -> KnowledgeGraph {
    KnowledgeGraph::new(world.ns.clone())
}

#[track_caller]
fn done(world: &World, name: &str, args: Value) -> Value {
    graph(world).call(name, args).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn the_answers_are_those_of_the_reference() {
    let world = World::new();
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded["tools"], json!(graph(&world).schemas()));
    let calls = recorded["calls"].as_array().unwrap();
    assert!(calls.len() > 25);
    for call in calls {
        let (name, answer) = (call["name"].as_str().unwrap(), &call["answer"]);
        match graph(&world).call(name, call["arguments"].clone()) {
            Ok(told) => assert_eq!(told, answer["structuredContent"], "{call}"),
            Err(why) => {
                assert_eq!(answer["isError"], true, "{call}: {why}");
                if why.code == "entity_not_found" {
                    assert_eq!(answer["content"][0]["text"], why.message);
                }
            }
        }
    }
    world.check();
}

#[test]
fn elements_are_memories_that_everything_else_finds() {
    let world = World::new();
    let args =
        json!({ "entities": [entity("Ann", "person", &["prefers tea"]), entity("Acme", "company", &[])] });
    done(&world, "create_entities", args);
    done(&world, "create_relations", json!({ "relations": [relation("Ann", "works at", "Acme")] }));
    let texts = |query: &str| -> Vec<String> {
        world.ns.search(query).unwrap().hits.into_iter().map(|hit| hit.text).collect()
    };
    assert_eq!(texts("tea"), ["Ann: prefers tea"]);
    assert_eq!(texts("works"), ["Ann works at Acme"]);
    let tea = world.ns.search("tea").unwrap().hits[0].id;
    let row = world.row(tea);
    assert_eq!(
        (row.entities[0].name.as_str(), row.categories.as_slice()),
        ("Ann", &["person".to_owned()][..])
    );
    // What is changed there is changed here.
    world.ns.update(tea, Patch { text: Some("Ann: prefers coffee".to_owned()), ..Patch::new() }).unwrap();
    world.add(Draft::new("A memory that is no element").key("entity:ann"));
    let told = done(&world, "open_nodes", json!({ "names": ["Ann", "nobody"] }));
    assert_eq!(told["entities"], json!([entity("Ann", "person", &["prefers coffee"])]));
    assert_eq!(done(&world, "read_graph", json!({}))["entities"].as_array().unwrap().len(), 2);
    let gone = json!({ "deletions": [{ "entityName": "Ann", "observations": ["prefers coffee"] }] });
    done(&world, "delete_observations", gone);
    assert!(!world.is_live(tea) && texts("coffee").is_empty());
    done(&world, "delete_entities", json!({ "entityNames": ["Ann", "Acme"] }));
    assert_eq!(texts("works"), Vec::<String>::new());
    assert_eq!(world.live().len(), 1, "only the memory that is no element is left");
    world.check();
}

#[test]
fn an_imported_graph_is_gone_on_with() {
    let world = World::new();
    let lines = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["prefers tea","Ann: walks"]}
{"type":"entity","name":"Acme","entityType":"","observations":[]}
{"type":"relation","from":"Ann","to":"Acme","relationType":"works at"}
"#;
    let import = || {
        let namespace = world.ns.name().clone();
        let import = Import { format: Format::ServerMemory, namespace, ..Import::default() };
        import.run(&world.db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).unwrap()
    };
    assert_eq!(import().stored, 5);
    let told = json!({
        "entities": [entity("Ann", "person", &["prefers tea", "Ann: walks"]), entity("Acme", "", &[])],
        "relations": [relation("Ann", "works at", "Acme")],
    });
    assert_eq!(done(&world, "read_graph", json!({})), told);
    let again = json!({ "entities": [entity("Ann", "robot", &["never"])] });
    assert_eq!(done(&world, "create_entities", again)["entities"], json!([]));
    let more = json!({ "observations": [{ "entityName": "Ann", "contents": ["prefers tea", "swims"] }] });
    let added = done(&world, "add_observations", more);
    assert_eq!(added["results"], json!([{ "entityName": "Ann", "addedObservations": ["swims"] }]));
    // Its first observation goes, and then all of them: the entity stays, as in the reference.
    for (texts, left) in
        [(vec!["prefers tea"], vec!["Ann: walks", "swims"]), (vec!["Ann: walks", "swims"], vec![])]
    {
        done(
            &world,
            "delete_observations",
            json!({ "deletions": [{ "entityName": "Ann", "observations": texts }] }),
        );
        let told = done(&world, "open_nodes", json!({ "names": ["Ann"] }));
        assert_eq!(told["entities"], json!([entity("Ann", "person", &left)]));
    }
    world.check();
}

/// An entity stays when the last that was observed of it goes, in whatever way, and whatever has become of its own memory.
#[test]
fn an_imported_entity_stays_without_observations() {
    let line = r#"{"type":"entity","name":"Zoe","entityType":"person","observations":["sings"]}"#;
    for own_goes_first in [false, true] {
        let world = World::new();
        let namespace = world.ns.name().clone();
        let import = Import { format: Format::ServerMemory, namespace, ..Import::default() };
        import.run(&world.db, LineReader::new(line.as_bytes(), "lines"), &mut ()).unwrap();
        let with_text = |text: &str| {
            world.ns.search("Zoe").unwrap().hits.into_iter().find(|hit| hit.text == text).unwrap().id
        };
        match own_goes_first {
            false => drop(world.forget_id(with_text("Zoe: sings"))),
            true => {
                world.forget_id(with_text("Zoe (person)"));
                let gone = json!({ "deletions": [{ "entityName": "Zoe", "observations": ["sings"] }] });
                done(&world, "delete_observations", gone);
            }
        }
        let told = done(&world, "read_graph", json!({}));
        assert_eq!(told["entities"], json!([entity("Zoe", "person", &[])]), "{own_goes_first}");
        world.check();
    }
}

#[test]
fn a_call_that_is_refused_changes_nothing() {
    let world = World::new();
    done(&world, "create_entities", json!({ "entities": [entity("Ann", "person", &["tea"])] }));
    let before = done(&world, "read_graph", json!({}));
    let long = "x".repeat(2 << 20);
    for (name, args, code) in [
        (
            "add_observations",
            json!({ "observations": [
            { "entityName": "Ann", "contents": ["swims"] }, { "entityName": "Bob", "contents": ["walks"] },
        ] }),
            "entity_not_found",
        ),
        (
            "create_entities",
            json!({ "entities": [entity("Bob", "person", &["walks"]), { "name": 7 }] }),
            "invalid",
        ),
        (
            "create_entities",
            json!({ "entities": [entity("Bob", "person", &["walks"]), entity("Cy", "", &[&long])] }),
            "invalid",
        ),
        ("create_entities", json!({ "entities": [entity("Bob\u{0}", "person", &[])] }), "invalid"),
        ("create_relations", json!({}), "invalid"),
        ("open_nodes", json!({ "names": "Ann" }), "invalid"),
        ("search_nodes", json!([]), "invalid"),
        ("delete_everything", json!({}), "unknown_tool"),
    ] {
        let why = graph(&world).call(name, args).unwrap_err();
        assert_eq!(why.code, code, "{name}: {why}");
        assert_eq!(done(&world, "read_graph", json!({})), before);
    }
    assert_eq!(
        done(&world, "search_nodes", json!({ "query": "TEA", "more": 1 }))["entities"],
        before["entities"]
    );
    assert!(
        done(&world, "search_nodes", json!({ "query": "coffee" }))["entities"].as_array().unwrap().is_empty()
    );
}

#[test]
fn no_pass_unites_elements() {
    let world = World::new();
    let twins = [
        entity("a", "letter", &["a is a letter of the alphabet"]),
        entity("alphabet", "list", &["a is a letter of the alphabet"]),
    ];
    done(&world, "create_entities", json!({ "entities": twins }));
    world.db.maintain().unwrap();
    assert_eq!(done(&world, "read_graph", json!({}))["entities"], json!(twins));
}

/// A refusal names the value that is wrong, by the argument in which it stands.
#[test]
fn a_refusal_names_its_argument_and_shows_the_value() {
    let world = World::new();
    for (name, args, told) in [
        ("create_entities", json!({}), "arguments: missing field `entities` (got {})"),
        (
            "open_nodes",
            json!({ "names": ["Ann", 7] }),
            "names.1: invalid type: integer `7`, expected a text (got 7)",
        ),
        (
            "create_relations",
            json!({ "relations": [relation("Ann", "knows", "")] }),
            "relations.0.to: must be 1 to 128 bytes (got an empty text)",
        ),
        (
            "create_entities",
            json!({ "entities": [entity(&"x".repeat(129), "", &[])] }),
            "entities.0.name: must be 1 to 128 bytes (got 129 bytes)",
        ),
    ] {
        assert_eq!(graph(&world).call(name, args).unwrap_err().message, told);
    }
}

/// What somebody has changed by its id or key is not what is observed anew.
#[test]
fn an_observation_that_was_changed_stays_beside_its_first_text() {
    let world = World::new();
    done(&world, "create_entities", json!({ "entities": [entity("Ann", "person", &["likes tea"])] }));
    let observe = |text: &str| {
        let args = json!({ "observations": [{ "entityName": "Ann", "contents": [text] }] });
        done(&world, "add_observations", args)["results"][0]["addedObservations"].clone()
    };
    for (text, left) in [("Ann: likes coffee", "likes coffee"), ("Ann: likes milk", "likes milk")] {
        let tea = world.ns.search("tea").unwrap().hits[0].id;
        world.ns.update(tea, Patch { text: Some(text.to_owned()), ..Patch::new() }).unwrap();
        assert_eq!(observe("likes tea"), json!(["likes tea"]));
        assert_eq!(observe("likes tea"), json!([]));
        let told = done(&world, "read_graph", json!({}))["entities"][0]["observations"].clone();
        assert!(told.as_array().unwrap().contains(&json!(left)), "{told}");
    }
    let told = done(&world, "read_graph", json!({}))["entities"][0]["observations"].clone();
    assert_eq!(told.as_array().unwrap().len(), 3, "{told}");
    let milk = world.ns.search("milk").unwrap().hits[0].id;
    let again = world.ns.update(milk, Patch { text: Some("Ann: likes tea".to_owned()), ..Patch::new() });
    let again = again.unwrap().id;
    let told = done(&world, "read_graph", json!({}))["entities"][0]["observations"].clone();
    assert_eq!(told.as_array().unwrap().len(), 2, "what two memories say is told once: {told}");
    world.ns.update(again, Patch { text: Some("Ann: likes milk".to_owned()), ..Patch::new() }).unwrap();
    done(&world, "create_relations", json!({ "relations": [relation("Ann", "likes", "Ann")] }));
    let likes =
        world.ns.search("likes").unwrap().hits.into_iter().find(|hit| hit.text == "Ann likes Ann").unwrap();
    world.ns.update(likes.id, Patch { text: Some("Ann loves Ann".to_owned()), ..Patch::new() }).unwrap();
    done(&world, "create_relations", json!({ "relations": [relation("Ann", "likes", "Ann")] }));
    let told = done(&world, "read_graph", json!({}))["relations"].clone();
    assert_eq!(told, json!([relation("Ann", "loves", "Ann"), relation("Ann", "likes", "Ann")]));
    let gone = json!({ "deletions": [{ "entityName": "Ann", "observations": ["likes tea", "likes milk"] }] });
    done(&world, "delete_observations", gone);
    let told = done(&world, "read_graph", json!({}))["entities"][0]["observations"].clone();
    assert_eq!(told, json!(["likes coffee"]));
    world.check();
}

/// What was observed and is to end at an instant ahead is known until then, also where its text was changed since (LIFE-6).
#[test]
fn an_observation_that_is_to_end_is_not_stored_again() {
    let world = World::new();
    let many: Vec<String> = (0..100).map(|at| format!("has seen {at} films")).collect();
    let seen: Vec<&str> = many.iter().map(String::as_str).chain(["prefers tea"]).collect();
    done(&world, "create_entities", json!({ "entities": [entity("Ann", "person", &seen)] }));
    let tea = world.ns.search("prefers tea").unwrap().hits[0].id;
    world.ns.update(tea, Patch { text: Some("Ann: prefers coffee".to_owned()), ..Patch::new() }).unwrap();
    let key = world.row(tea).keys[0].clone();
    let at = Some(world.ahead("1d"));
    world.ns.replace([key], "Ann: prefers milk", SupersedeMode::Replaced, at).unwrap();
    let before = world.live();
    let again = json!({ "observations": [{ "entityName": "Ann", "contents": ["prefers coffee"] }] });
    let told = done(&world, "add_observations", again);
    assert_eq!(told["results"][0]["addedObservations"], json!([]));
    assert_eq!(world.live(), before);
}
