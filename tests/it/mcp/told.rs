//! What answers and refusals tell a language model, so that it can go on by itself.

use super::{call, connect, done, refused, run, text, world};
use ::tokio::io::{AsyncReadExt, duplex};
use oubliette::Draft;
use oubliette::mcp::Server;
use oubliette::memory::{Actor, AuthorKind, Significance, SupersedeMode};
use oubliette::policy::Syntax;
use oubliette::tools::Toolbox;
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

#[test]
fn writes_say_what_became_of_them() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let add =
            |text: &str| json!({ "text": text, "key": "home", "ttl": "30d", "metadata": { "user": "ann" } });
        let first = done(&client, "add_memory", add("Ann lives in Ghent")).await;
        assert_eq!(first["decision"], "stored");
        assert_eq!(done(&client, "add_memory", add("Ann lives in Ghent")).await["decision"], "unchanged");
        let second = done(&client, "add_memory", add("Ann lives in Bruges")).await;
        assert_eq!((&second["decision"], &second["old_id"]), (&json!("revised"), &first["id"]));
        let third = done(
            &client,
            "supersede_memory",
            json!({ "old_ids": ["home"], "text": "Ann lives in Lille", "mode": "correction" }),
        )
        .await;
        assert_eq!(third["superseded"], json!(["home"]));
        let old = done(&client, "get_memory", json!({ "id": second["id"] })).await;
        assert_eq!((&old["state"], &old["replaced_by"]), (&json!("superseded"), &third["id"]));
        let other = done(&client, "add_memory", json!({ "text": "Ann has moved to Lille" })).await;
        let told = done(
            &client,
            "supersede_memory",
            json!({ "old_ids": [third["id"]], "new_id": other["id"], "mode": "duplicate" }),
        )
        .await;
        assert_eq!(told["id"], other["id"]);
        assert_eq!(refused(&client, "update_memory", json!({ "id": other["id"] })).await.1, ["/text"]);
        assert_eq!(
            refused(&client, "add_memory", json!({ "text": "x", "ttl": "soon" })).await,
            ("invalid_args".to_owned(), vec!["/ttl".to_owned()])
        );
        assert_eq!(refused(&client, "add_memory", json!({ "text": "x", "kind": "fact" })).await.1, ["/kind"]);
        done(&client, "update_memory", json!({ "id": other["id"], "pinned": true, "importance": 0.9 })).await;
        assert!(world.row(other["id"].as_str().unwrap()).pinned);
        world.advance("1d");
        done(&client, "add_memory", json!({ "text": "Ann runs in Lille", "kind": "event", "tags": ["run"] }))
            .await;
        let count = |told: &Value, items: &str| told[items].as_array().unwrap().len();
        for (args, items) in
            [(json!({ "kind": "event" }), 1), (json!({ "tag": "run", "kind": "profile" }), 0)]
        {
            assert_eq!(count(&done(&client, "list_memories", args.clone()).await, "items"), items, "{args}");
            let mut args = args;
            args["query"] = json!("Lille");
            assert_eq!(count(&done(&client, "search_memories", args.clone()).await, "hits"), items, "{args}");
        }
        let before = json!({ "query": "runs", "as_of": world.ago("1h") });
        let found = done(&client, "search_memories", before).await;
        assert!(found["hits"].as_array().unwrap().iter().all(|hit| hit["kind"] != "event"), "{found}");
        assert_eq!(
            refused(&client, "search_memories", json!({ "query": "x", "as_of": "monday" })).await.1,
            ["/as_of"]
        );
        let events = world.ns.history(other["id"].as_str().unwrap()).unwrap().events;
        assert!(events.iter().all(|event| event.actor == Actor::Tool));
    });
}

/// A text that has the end of the text before is gone with that, so whoever writes it hears of the end.
#[test]
fn a_write_tells_the_end_of_its_memory() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let end = json!(world.ahead("1h"));
        for (tool, again) in [
            ("add_memory", json!({ "text": "The build is green", "key": "add_memory" })),
            ("update_memory", json!({ "text": "The build is green", "id": "update_memory" })),
            ("supersede_memory", json!({ "text": "The build is green", "old_ids": ["supersede_memory"] })),
        ] {
            let first = json!({ "text": format!("The build of {tool} is red"), "key": tool, "ttl": "1h" });
            assert_eq!(done(&client, "add_memory", first).await["expires_at"], end, "{tool}");
            let second = done(&client, tool, again).await;
            assert_eq!((&second["decision"], &second["expires_at"]), (&json!("revised"), &end), "{tool}");
            let kept = done(&client, "update_memory", json!({ "id": tool, "ttl": "never" })).await;
            assert_eq!(kept.get("expires_at"), None, "{tool}");
        }
        for (ttl, ends) in [("1h", end.clone()), ("never", json!(null))] {
            let text = format!("The build is yellow for {ttl}");
            let args = json!({ "text": text, "old_ids": ["add_memory"], "ttl": ttl });
            assert_eq!(done(&client, "supersede_memory", args).await["expires_at"], ends, "{ttl}");
        }
        let by = json!({ "new_id": "add_memory", "old_ids": ["update_memory"], "ttl": "1h" });
        assert_eq!(refused(&client, "supersede_memory", by).await.0, "invalid_args");
        world.add(Draft::new("Ann lives in Ghent").key("home").valid_to(world.ahead("30d")));
        let moved = done(&client, "add_memory", json!({ "text": "Ann lives in Gent", "key": "home" })).await;
        assert_eq!(moved["valid_to"], json!(world.ahead("30d")));
        let old = json!({ "text": "The sky is green", "key": "sky" });
        let old = done(&client, "add_memory", old).await["id"].clone();
        let new = json!({ "text": "The sky is blue", "ttl": "1h" });
        let new = done(&client, "add_memory", new).await["id"].clone();
        let told = done(&client, "supersede_memory", json!({ "old_ids": [old], "new_id": new })).await;
        assert_eq!(told["expires_at"], end);
    });
}

/// A model that asks when, who and whose reads the answer in the list, and the rest in the memory itself.
#[test]
fn what_is_read_says_when_and_whose() {
    let world = world();
    let at: oubliette::Time = "2026-01-01T12:00:00Z".parse().unwrap();
    let moved = Draft::new("Ann moved")
        .key("move")
        .tag("home")
        .metadata(json!({ "user": "ann" }))
        .happened_at(at)
        .valid_from(at)
        .thread("t-1")
        .author_kind(AuthorKind::Human)
        .author_id("ann")
        .significance(Significance::Core)
        .payload(json!({ "x": 1 }));
    world.add(Draft { categories: Some(vec!["life".to_owned()]), ..moved });
    let long = json!({ "note": "n".repeat(300) });
    world.add(Draft::new("Ann sang").metadata(long.clone()));
    run(async {
        let client = connect(&world).await;
        for (tool, args, items) in [
            ("search_memories", json!({ "query": "Ann" }), "hits"),
            ("list_memories", json!({ "oldest_first": true }), "items"),
        ] {
            let told = done(&client, tool, args).await;
            let find = |text: &str| {
                let all = told[items].as_array().unwrap().iter();
                all.clone().find(|one| one["text"] == text).unwrap_or_else(|| panic!("{told}")).clone()
            };
            let moved = find("Ann moved");
            assert_eq!((&moved["happened_at"], &moved["valid_from"]), (&json!(at), &json!(at)), "{tool}");
            assert_eq!(
                (&moved["tags"], &moved["metadata"]),
                (&json!(["home"]), &json!({ "user": "ann" })),
                "{tool}"
            );
            let sang = find("Ann sang");
            assert!(
                ["metadata", "tags", "happened_at"].iter().all(|name| sang.get(name).is_none()),
                "{sang}"
            );
        }
        let whole = done(&client, "get_memory", json!({ "id": "move" })).await;
        let expected = json!({
            "thread": "t-1", "author": { "kind": "human", "id": "ann" }, "categories": ["life"],
            "significance": "core", "payload": true,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&whole[name], value, "{whole}");
        }
        assert_eq!(whole.get("scope_label"), None, "{whole}");
        let listed = done(&client, "list_memories", json!({})).await["items"][0]["id"].clone();
        assert_eq!(done(&client, "get_memory", json!({ "id": listed })).await["metadata"], long);
    });
}

/// The past as it was known then, and as it is known now.
#[test]
fn a_past_that_was_corrected_since_is_asked_for_in_two_ways() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        done(&client, "add_memory", json!({ "text": "Ann lives in Gent", "key": "home" })).await;
        world.advance("30d");
        done(&client, "update_memory", json!({ "id": "home", "text": "Ann lives in Ghent" })).await;
        world.advance("30d");
        done(&client, "supersede_memory", json!({ "old_ids": ["home"], "text": "Ann lives in Lier" })).await;
        for (name, says) in [("as_of", "Ann lives in Gent"), ("valid_at", "Ann lives in Ghent")] {
            let args = json!({ "query": "Ann lives", name: world.ago("45d") });
            let told = done(&client, "search_memories", args).await;
            let texts: Vec<_> = told["hits"].as_array().unwrap().iter().map(|hit| &hit["text"]).collect();
            assert_eq!(texts, [says], "{name}");
        }
        let asked = json!({ "query": "x", "valid_at": "monday" });
        assert_eq!(refused(&client, "search_memories", asked).await.1, ["/valid_at"]);
    });
}

/// A memory that is forgotten by its id leaves what it said before: the answer tells these texts, before and after.
#[test]
fn a_forget_by_id_tells_the_versions_that_stay() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let ghent = done(&client, "add_memory", json!({ "text": "Ann lives in Ghent" })).await["id"].clone();
        let move_to = json!({ "old_ids": [ghent], "text": "Ann lives in Bruges" });
        let bruges = done(&client, "supersede_memory", move_to).await["id"].clone();
        for dry_run in [true, false] {
            let args = json!({ "id": bruges, "dry_run": dry_run });
            let told = done(&client, "forget_memory", args).await;
            let staying = json!([{ "id": ghent, "text": "Ann lives in Ghent" }]);
            assert_eq!((&told["versions_left"], &told["staying"]), (&json!(1), &staying), "{told}");
        }
        assert_eq!(done(&client, "forget_memory", json!({ "id": ghent })).await.get("staying"), None);
    });
}

/// What an agent keeps in a part of its own is found by no search, and goes with all that is forgotten of somebody.
#[test]
fn what_is_in_the_part_of_an_agent_is_forgotten_by_a_filter() {
    let world = world();
    let note = Draft::new("The planner's note: buy a boat").agent("planner").key("note");
    world.add(note.metadata(json!({ "user": "ann" })));
    world.add(Draft::new("Ann wants a boat").metadata(json!({ "user": "ann" })));
    run(async {
        let client = connect(&world).await;
        let found = done(&client, "search_memories", json!({ "query": "boat" })).await;
        assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(done(&client, "get_memory", json!({ "id": "note" })).await["agent"], "planner");
        let answer = call(&client, "add_memory", json!({ "text": "x", "key": "note" })).await;
        assert!(text(&answer).contains("write under another key"), "{}", text(&answer));
        let all = json!({ "filter": { "metadata.user": "ann" }, "dry_run": false });
        assert_eq!(done(&client, "forget_memories", all).await["memories"], 2);
        let tools = client.list_all_tools().await.unwrap();
        let about = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            tool.description.clone().unwrap_or_default()
        };
        assert!(["search_memories", "list_memories"].iter().all(|name| about(name).contains("agents keep")));
    });
}

/// What the policy or the host says of storing reaches the model with the first answer.
/// DEDUP-57, MODEL-61: a model hears who goes on to say the text before, and what a key that it forgets has led to.
#[test]
fn what_stays_beside_a_change_and_a_forget_is_told() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let first =
            done(&client, "add_memory", json!({ "text": "Ann lives in Ghent", "key": "ann:home" })).await;
        done(&client, "add_memory", json!({ "text": "Ann lives in Ghent" })).await;
        let now = json!({ "old_ids": ["ann:home"], "text": "Ann lives in Bruges" });
        let told = done(&client, "supersede_memory", now).await;
        let kept = json!([{ "id": first["id"], "keys": [], "writers": 1 }]);
        assert_eq!(told["kept_for_others"], kept, "{told}");
        let all = json!({ "old_ids": [first["id"]], "new_id": "ann:home" });
        let told = done(&client, "supersede_memory", all).await;
        assert_eq!(told.get("kept_for_others"), None, "{told}");
        for key in ["cy:home", "chat"] {
            world.add(Draft::new("Cy lives in Ghent").key(key));
        }
        world.add(Draft::new("Cy lives in Bruges").key("cy"));
        let moved = json!({ "old_ids": ["cy:home"], "new_id": "cy" });
        let told = done(&client, "supersede_memory", moved).await;
        assert_eq!(told["kept_for_others"][0]["keys"], json!(["chat"]), "{told}");
        assert_eq!(told["kept_for_others"][0]["writers"], 1, "{told}");
        world.forget(&["chat", "cy"]);
        let found = done(&client, "search_memories", json!({ "query": "where does Ann live?" })).await;
        assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
        world.add(Draft::new("Bob lives in Ghent").key("bob:home"));
        let bonn = world.ns.supersede("bob:home", "Bob lives in Bonn").unwrap().id;
        let gone = done(&client, "forget_memory", json!({ "id": "bob:home", "dry_run": false })).await;
        assert_eq!((&gone["later_versions"], &gone["versions_left"]), (&json!([bonn]), &json!(1)), "{gone}");
        assert_eq!(gone["staying"][0]["text"], "Bob lives in Bonn", "{gone}");
    });
}

#[test]
fn a_client_is_told_what_to_store() {
    let world = world();
    let told = |world: &super::World| {
        run(async {
            let client = connect(world).await;
            client.peer_info().unwrap().instructions.clone().unwrap()
        })
    };
    let first = told(&world);
    assert!(first.starts_with("A memory that lasts"), "{first}");
    assert!(first.ends_with(&world.db.instructions()), "{first}");
    // DEDUP-61: what is stated is stored, though the text names the profile among what is not.
    assert!(
        first.contains("remember with the kind profile what the user states, preferences too"),
        "{first}"
    );
    world.db.set_policy("rules.text = \"Keep it short.\"", Syntax::Toml).unwrap();
    assert!(told(&world).ends_with("What to store:\n\nKeep it short."));
    world.db.set_policy("rules.text = \"\"", Syntax::Toml).unwrap();
    assert!(told(&world).ends_with("with dry_run false to do it."));
}

#[test]
fn a_plan_without_groups_says_why() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        done(&client, "add_memory", json!({ "text": "Ann looked at a flat" })).await;
        let told = done(&client, "memory_gc_plan", json!({})).await;
        assert_eq!(told["groups"], json!([]));
        let why = told["why"].as_str().unwrap();
        assert!(why.contains("of the kinds message,") && why.contains("stay as they are"), "{why}");
    });
}

/// A client writes a key into the template as the rules of URIs say.
#[test]
fn a_resource_is_found_by_the_escapes_of_its_key() {
    let world = world();
    world.add(Draft::new("Ann lives in Ghent").key("ann:home/köln"));
    world.add(Draft::new("Half is left").key("50%25"));
    run(async {
        let client = connect(&world).await;
        let read = async |name: &str| {
            let asked = ReadResourceRequestParams::new(format!("memory://{name}"));
            client.read_resource(asked).await.map(|told| format!("{:?}", told.contents))
        };
        for name in ["ann:home/köln", "ann%3Ahome%2Fk%C3%B6ln"] {
            assert!(read(name).await.unwrap().contains("Ann lives in Ghent"), "{name}");
        }
        assert!(read("50%25").await.unwrap().contains("Half is left"));
        assert!(read("50%2525").await.unwrap().contains("Half is left"));
        for name in ["ann%3Ahom", "ann%3", "ann%+1x", "%FF"] {
            assert!(read(name).await.is_err(), "{name}");
        }
        let client = connect(&super::world()).await;
        let topic = json!({ "topic": "tea" }).as_object().unwrap().clone();
        let told =
            client.get_prompt(GetPromptRequestParams::new("recall").with_arguments(topic)).await.unwrap();
        assert_eq!(told.messages[0].content.as_text().unwrap().text, "Nothing is remembered of tea.");
    });
}

#[test]
fn a_past_that_is_erased_is_refused_with_a_way_to_what_is_left() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        done(&client, "add_memory", json!({ "text": "Ann prefers tea" })).await;
        done(&client, "add_memory", json!({ "text": "The tea is hot", "ttl": "1h" })).await;
        world.advance("2h");
        done(&client, "run_maintenance", json!({ "passes": ["expire"], "dry_run": false })).await;
        let asked =
            |partial: bool| json!({ "query": "tea", "as_of": world.ago("90m"), "allow_partial": partial });
        let answer = call(&client, "search_memories", asked(false)).await;
        let told: Value = serde_json::from_str(&text(&answer)).unwrap();
        assert_eq!((&told["code"], &told["pointers"]), (&json!("before_purge_horizon"), &json!(["/as_of"])));
        assert!(told["message"].as_str().unwrap().contains("allow_partial"), "{told}");
        let told = done(&client, "search_memories", asked(true)).await;
        assert_eq!(told["hits"][0]["text"], "Ann prefers tea", "{told}");
        assert!(told["note"].as_str().unwrap().contains("may be missing"), "{told}");
    });
}

/// A model that repeats a call after a time-out sees that its first call has done it.
#[test]
fn a_supersession_that_is_repeated_names_what_has_been_done() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let add = json!({ "text": "The port is 8080", "key": "port" });
        let old = done(&client, "add_memory", add).await["id"].clone();
        let again = json!({ "old_ids": [old], "text": "The port is 9090" });
        let new = done(&client, "supersede_memory", again.clone()).await["id"].clone();
        let why = |answer| serde_json::from_str::<Value>(&text(&answer)).unwrap();
        let told = why(call(&client, "supersede_memory", again).await);
        let message = told["message"].as_str().unwrap();
        let (old, new) = (old.as_str().unwrap(), new.as_str().unwrap());
        let expected = format!("supersede {old}: it is superseded already, by {new}; memory_explain");
        assert!(told["code"] == "conflict" && message.starts_with(&expected), "{told}");
        let itself = json!({ "old_ids": [new], "new_id": new });
        let told = why(call(&client, "supersede_memory", itself).await);
        let expected = format!("supersede {new}: it is itself the memory that is to take its place");
        assert!(told["message"].as_str().unwrap().starts_with(&expected), "{told}");
    });
    assert_eq!(world.live().len(), 1);
}

/// No argument leaves a model to guess, and no two tools read the same.
#[test]
fn every_argument_says_what_it_is_for() {
    fn undescribed(at: &str, schema: &Value) -> Vec<String> {
        let members = schema["properties"].as_object().into_iter().flatten();
        let within = members.flat_map(|(name, member)| {
            let at = format!("{at}/{name}");
            let own = member["description"].is_null().then(|| at.clone());
            own.into_iter().chain(undescribed(&at, member)).chain(undescribed(&at, &member["items"]))
        });
        within.collect()
    }
    let world = world();
    run(async {
        let tools = connect(&world).await.list_all_tools().await.unwrap();
        for tool in &tools {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            assert_eq!(undescribed(&tool.name, &schema), Vec::<String>::new());
            let about = tool.description.as_deref().unwrap();
            let same = tools.iter().filter(|other| other.description.as_deref() == Some(about));
            assert_eq!(same.count(), 1, "{}", tool.name);
        }
    });
}

/// A request by itself is what people try a server with: `echo … | oubliette serve --mcp`.
#[test]
fn a_request_before_the_beginning_is_answered_even_at_the_end() {
    let world = world();
    for end in ["\n", ""] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"}}{end}"#);
        let (mut answers, write) = duplex(1 << 16);
        // The runtime goes with the server, and what was not written by then is lost.
        let read = std::io::Cursor::new(line.into_bytes());
        run(Server::new(Toolbox::new(world.ns.clone())).serve(read, write)).unwrap();
        let mut told = String::new();
        run(answers.read_to_string(&mut told)).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32_602)));
        let why = told["error"]["message"].as_str().unwrap();
        assert!(why.starts_with("begin with the request initialize;"), "{why}");
    }
}

/// What is true until an instant ahead is live until then, and both memories say when.
#[test]
fn a_memory_that_is_to_be_replaced_is_live_until_then() {
    let world = world();
    let at = world.ahead("30d");
    let old = world.add(Draft::new("Ann lives in Ghent").key("home")).id;
    let new = Draft::new("Ann lives in Bruges");
    let new = world.ns.replace(["home"], new, SupersedeMode::Replaced, Some(at)).unwrap().id;
    run(async {
        let client = connect(&world).await;
        for name in ["home".to_owned(), old.to_string()] {
            let told = done(&client, "get_memory", json!({ "id": name })).await;
            assert_eq!((&told["id"], &told["state"]), (&json!(old), &json!("live")));
            assert_eq!((&told["valid_to"], &told["replaced_by"]), (&json!(at), &json!(new)));
        }
        let told = done(&client, "get_memory", json!({ "id": new })).await;
        assert_eq!((&told["state"], &told["valid_from"]), (&json!("live"), &json!(at)));
        world.advance("31d");
        let told = done(&client, "get_memory", json!({ "id": old })).await;
        assert_eq!((&told["state"], &told["replaced_by"]), (&json!("superseded"), &json!(new)));
    });
}

/// MODEL-38: a clock that was ahead dates each write until it is reached, and a model that gave a ttl heard nothing of it.
#[test]
fn a_write_tells_of_a_clock_that_was_ahead() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let add = |text: &str| json!({ "text": text, "ttl": "1h" });
        let right = done(&client, "add_memory", add("The door code is 4711")).await;
        assert!(right.get("clock").is_none(), "{right}");
        world.set(world.now().as_millis() - 864_000_000);
        let told = done(&client, "add_memory", add("The door code is 4712")).await;
        let (at, last) = (format!("says {}", world.now()), format!("at {}", world.ahead("10d")));
        let clock = told["clock"].as_str().unwrap();
        assert!(clock.contains(&at) && clock.contains(&last), "{clock}");
        let again = done(&client, "add_memory", add("The door code is 4712")).await;
        assert_eq!(again.get("clock").is_some(), again["decision"] != "unchanged", "{again}");
        let change = json!({ "id": told["id"], "text": "The door code is 4713" });
        assert!(done(&client, "update_memory", change).await["clock"].is_string());
        let context = json!({ "context_id": "c", "memory_ids_with_token_costs": [{ "memory_id": right["id"], "tokens": 4 }] });
        let forget = |dry_run: bool| json!({ "id": right["id"], "dry_run": dry_run });
        for (tool, args, writes) in [
            ("memory_context_log_write", context, true),
            ("memory_gc_plan", json!({}), true),
            ("search_memories", json!({ "query": "door" }), false),
            ("forget_memory", forget(true), false),
            ("forget_memory", forget(false), true),
            ("forget_memory", json!({ "id": told["id"], "dry_run": false }), true),
            ("run_maintenance", json!({ "dry_run": false }), true),
        ] {
            let told = done(&client, tool, args).await;
            assert_eq!(told.get("clock").is_some(), writes, "{tool}: {told}");
        }
    });
}
