//! What a call of the knowledge graph costs as the graph grows, in rows read and written: as much as what it adds, shows or deletes.

use crate::growth::{constant, cost, linear, world};
use oubliette::faults::Tally;
use oubliette::tools::KnowledgeGraph;
use oubliette::{PageRequest, Patch};
use serde_json::{Value, json};

fn entity(at: usize) -> Value {
    json!({ "name": format!("person {at}"), "entityType": "person", "observations": [format!("lives at {at}")] })
}

fn relation(from: &str, to: &str) -> Value {
    json!({ "relations": [{ "from": from, "to": to, "relationType": "knows" }] })
}

/// Every call but those that ask for all of it reads what it names, however large the graph is around.
#[test]
fn a_call_of_the_graph_reads_what_it_names() {
    let of = |n: usize| -> Vec<(&str, Tally)> {
        let world = world();
        let graph = KnowledgeGraph::new(world.ns.clone());
        let call =
            |name: &str, args: Value| graph.call(name, args).unwrap_or_else(|why| panic!("{name}: {why}"));
        call("create_entities", json!({ "entities": (0..n).map(entity).collect::<Vec<_>>() }));
        for at in 1..n {
            call("create_relations", relation(&format!("person {at}"), &format!("person {}", at - 1)));
        }
        let deletion = json!([{ "entityName": "person 5", "observations": ["walks"] }]);
        let calls = [
            ("create_entities", json!({ "entities": [entity(n), entity(3)] })),
            ("create_relations", relation("person 3", "person 7")),
            (
                "add_observations",
                json!({ "observations": [{ "entityName": "person 5", "contents": ["walks"] }] }),
            ),
            ("open_nodes", json!({ "names": ["person 5", "nobody"] })),
            ("delete_observations", json!({ "deletions": deletion })),
            ("delete_relations", relation("person 3", "person 7")),
            ("delete_entities", json!({ "entityNames": ["person 9"] })),
        ];
        let costs = calls.map(|(name, args)| (name, cost(|| drop(call(name, args)))));
        let whole = call("read_graph", json!({}));
        assert_eq!(whole["entities"].as_array().unwrap().len(), n);
        assert_eq!(whole["relations"].as_array().unwrap().len(), n - 3);
        world.check();
        costs.to_vec()
    };
    for ((name, small), (_, large)) in of(20).into_iter().zip(of(200)) {
        println!("{name}");
        constant(small, large);
    }
}

/// However much is said of an entity: what is said anew of it, or taken back, costs the same.
#[test]
fn a_call_about_entities_of_whom_much_is_said() {
    let of = |n: usize| {
        let world = world();
        let graph = KnowledgeGraph::new(world.ns.clone());
        let call =
            |name: &str, args: Value| graph.call(name, args).unwrap_or_else(|why| panic!("{name}: {why}"));
        let known = |name: &str| {
            let texts: Vec<String> = (0..n).map(|at| format!("did thing {at}")).collect();
            json!({ "name": name, "entityType": "person", "observations": texts })
        };
        call("create_entities", json!({ "entities": [known("Ann"), known("Bob")] }));
        let thing = world.ns.list(&PageRequest::default()).unwrap().items;
        let thing = thing.iter().find(|memory| memory.text == "Ann: did thing 4").unwrap().id;
        world.ns.update(thing, Patch { text: Some("Ann: slept".to_owned()), ..Patch::new() }).unwrap();
        let say = |texts: &[&str]| json!({ "observations": [{ "entityName": "Ann", "contents": texts }] });
        let delete =
            |texts: &[&str]| json!({ "deletions": [{ "entityName": "Ann", "observations": texts }] });
        let calls = [
            ("add_observations", say(&["walks"]), json!(["walks"])),
            ("add_observations", say(&["did thing 7", "slept", "sings", "sings"]), json!(["sings"])),
            ("create_entities", json!({ "entities": [known("Ann")] }), json!(null)),
            ("create_relations", relation("Ann", "Bob"), json!(null)),
            ("create_relations", relation("Ann", "Bob"), json!(null)),
            ("delete_relations", relation("Ann", "Bob"), json!(null)),
            ("delete_observations", delete(&["walks", "sings", "did thing 7", "slept"]), json!(null)),
        ];
        let costs = calls.map(|(name, args, added)| {
            let mut told = json!(null);
            let cost = cost(|| told = call(name, args));
            assert_eq!(told["results"][0]["addedObservations"], added, "{told}");
            (name, cost)
        });
        let left = call("open_nodes", json!({ "names": ["Ann"] }));
        assert_eq!(left["entities"][0]["observations"].as_array().unwrap().len(), n - 2);
        assert_eq!(left["relations"], json!([]));
        world.check();
        costs
    };
    for ((name, small), (_, large)) in of(20).into_iter().zip(of(200)) {
        println!("{name}");
        constant(small, large);
    }
}

/// What is asked of the whole graph reads of each memory its key, its times, its text and what it is joined to, and of each name one row.
#[test]
fn a_pass_over_the_graph_reads_what_it_shows() {
    let of = |n: usize| {
        let world = world();
        let graph = KnowledgeGraph::new(world.ns.clone());
        graph.call("create_entities", json!({ "entities": (0..n).map(entity).collect::<Vec<_>>() })).unwrap();
        for at in 1..n {
            graph.call("create_relations", relation(&format!("person {at}"), "person 0")).unwrap();
        }
        let calls = [("read_graph", json!({})), ("search_nodes", json!({ "query": "LIVES AT 1" }))];
        calls.map(|(name, args)| cost(|| drop(graph.call(name, args).unwrap())))
    };
    for (small, large) in of(20).into_iter().zip(of(200)) {
        linear(small, large, 10);
        assert!(large.read < 200 * (3 * 5 + 1) + 20, "{large:?}");
    }
}

/// One that everybody knows: whoever is little known is asked whom they know.
#[test]
fn a_relation_with_one_that_everybody_knows() {
    let of = |n: usize| {
        let world = world();
        let graph = KnowledgeGraph::new(world.ns.clone());
        let all = (0..n).map(|at| relation(&format!("person {at}"), "Ann")["relations"][0].clone());
        graph.call("create_relations", json!({ "relations": all.collect::<Vec<_>>() })).unwrap();
        let tell =
            |from: &str, to: &str| cost(|| drop(graph.call("create_relations", relation(from, to)).unwrap()));
        let costs = [tell("Bob", "Ann"), tell("Ann", "Bob"), tell("person 7", "Ann")];
        let whole = graph.call("read_graph", json!({})).unwrap();
        assert_eq!(whole["relations"].as_array().unwrap().len(), n + 2);
        costs
    };
    for (small, large) in of(100).into_iter().zip(of(1_000)) {
        constant(small, large);
    }
}
