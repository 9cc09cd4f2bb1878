//! The tools of the reference memory server, over the memories of a namespace.
//!
//! The reference (`@modelcontextprotocol/server-memory`) keeps a graph of entities, observations and relations in a file. Here each of them is a memory
//! (`exchange`), so everything else finds them too, and `nodes.rs` reads the graph back. Each call is one transaction. It reads the memories that say what
//! it names, however much else is said of the same entities. `open_nodes` and `delete_entities` name all of an entity; `read_graph` and `search_nodes` name
//! nothing, and read the text of the whole graph once.

mod nodes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::{Batch, Namespace, WriteOptions};
use crate::error::{Error, Result};
use crate::exchange::Element;
use crate::limits::TAG_BYTES_MAX;
use crate::model::{MemoryId, Time, check_text};
use crate::recall::{Keyed, Sought};
use crate::tools::arguments::typed;
use crate::tools::error::ToolError;
use crate::tools::graph::nodes::{Edge, Graph, element_of};

/// What a client is told of the tools: the list of the reference, word for word, but for members that say what holds anyway.
const SCHEMAS: &str = include_str!("schemas.json");

/// The nine tools of `@modelcontextprotocol/server-memory`, on the memories of a namespace.
///
/// An observation is a memory about its entity, so a search finds it, and what an import of the reference's file has written is part of the graph.
///
/// ```
/// use oubliette::Database;
/// use oubliette::tools::KnowledgeGraph;
/// use serde_json::json;
/// # let folder = tempfile::tempdir()?;
/// let team = Database::open(folder.path().join("memory.oub"))?.namespace("team")?;
/// let graph = KnowledgeGraph::new(team.clone());
/// let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["prefers tea"] });
/// graph.call("create_entities", json!({ "entities": [ann] }))?;
/// assert_eq!(graph.call("read_graph", json!({}))?["entities"], json!([ann]));
/// assert_eq!(team.search("tea")?.hits[0].text, "Ann: prefers tea");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct KnowledgeGraph(Namespace);

impl fmt::Debug for KnowledgeGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnowledgeGraph").field(&self.0).finish()
    }
}

/// Whether a tool of the graph changes nothing.
#[cfg(feature = "mcp")]
pub(crate) fn only_reads_graph(name: &str) -> bool {
    matches!(name, "read_graph" | "search_nodes" | "open_nodes")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntityGiven {
    name: String,
    entity_type: String,
    observations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RelationGiven {
    from: String,
    to: String,
    relation_type: String,
}

impl RelationGiven {
    fn words(&self) -> [&str; 3] {
        [&self.from, &self.relation_type, &self.to]
    }

    fn element(&self) -> Element<'_> {
        Element::Relation { from: &self.from, relation: &self.relation_type, to: &self.to }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addition {
    entity_name: String,
    contents: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deletion {
    entity_name: String,
    observations: Vec<String>,
}

#[derive(Deserialize)]
struct Entities {
    entities: Vec<EntityGiven>,
}

#[derive(Deserialize)]
struct Relations {
    relations: Vec<RelationGiven>,
}

#[derive(Deserialize)]
struct Additions {
    observations: Vec<Addition>,
}

#[derive(Deserialize)]
struct Deletions {
    deletions: Vec<Deletion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntityNames {
    entity_names: Vec<String>,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Words {
    query: String,
}

impl KnowledgeGraph {
    /// The graph of a namespace.
    ///
    /// ```
    /// use oubliette::tools::KnowledgeGraph;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let graph = KnowledgeGraph::new(team);
    /// assert_eq!(graph.call("read_graph", serde_json::json!({}))?["entities"], serde_json::json!([]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(namespace: Namespace) -> Self {
        KnowledgeGraph(namespace)
    }

    /// The definitions of the nine tools, as the reference gives them.
    ///
    /// ```
    /// use oubliette::tools::KnowledgeGraph;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let schemas = KnowledgeGraph::new(team).schemas();
    /// assert_eq!(schemas.len(), 9);
    /// assert_eq!(schemas[0]["name"], "create_entities");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schemas(&self) -> Vec<Value> {
        let told: std::result::Result<Vec<Value>, _> = serde_json::from_str(SCHEMAS);
        assert!(told.is_ok(), "the list in the program is JSON");
        told.unwrap_or_default()
    }

    /// Calls a tool by its name. The answer is the structured content of the reference's.
    ///
    /// ```
    /// use oubliette::tools::KnowledgeGraph;
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let graph = KnowledgeGraph::new(team);
    /// let nobody = json!({ "observations": [{ "entityName": "Bob", "contents": ["walks"] }] });
    /// let why = graph.call("add_observations", nobody).unwrap_err();
    /// assert_eq!(why.message, "Entity with name Bob not found");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the call is refused. Nothing has changed then.
    pub fn call(&self, name: &str, args: Value) -> Result<Value, ToolError> {
        // Members that nobody knows are let be, as in the reference.
        let answer = match name {
            "create_entities" => typed(&args).and_then(|args| self.create_entities(args)),
            "create_relations" => typed(&args).and_then(|args| self.create_relations(&args)),
            "add_observations" => typed(&args).and_then(|args| self.add_observations(args)),
            "delete_entities" => typed(&args).and_then(|args| self.delete_entities(args)),
            "delete_observations" => typed(&args).and_then(|args| self.delete_observations(&args)),
            "delete_relations" => typed(&args).and_then(|args| self.delete_relations(&args)),
            "read_graph" => self.graph().map(|graph| graph.whole()),
            "search_nodes" => typed(&args).and_then(|args| self.search(&args)),
            "open_nodes" => typed(&args).and_then(|Names { names }| {
                let names: HashSet<&str> = names.iter().map(String::as_str).collect();
                let about = names.iter().map(|name| vec![*name]).collect();
                let sought = Sought { about, roles: &Element::ROLES, ..Sought::default() };
                let graph = Graph::of(self.0.sought(&sought)?);
                Ok(graph.part(|node| names.contains(node.name.as_str())))
            }),
            _ => {
                let why = "there is no such tool of a knowledge graph";
                return Err(ToolError::new(Some(name), ToolError::UNKNOWN, why));
            }
        };
        answer.map_err(|why| match why {
            Error::NotFound { what: "entity", name: entity } => {
                let why = format!("Entity with name {entity} not found");
                ToolError::new(Some(name), "entity_not_found", why)
            }
            why => ToolError { name: Some(name.to_owned()), ..ToolError::of_error(&why) },
        })
    }

    /// The graph as it stands.
    fn graph(&self) -> Result<Graph> {
        Ok(Graph::of(self.0.keyed(&Element::KEYS)?))
    }

    /// Reads what the graph says of some elements, and changes it in one transaction. `all` says of an element, and of whether the graph
    /// has told it, whether all that is said of its entities is read.
    fn change<R>(
        &self,
        of: &[Element<'_>],
        all: impl Fn(&Element<'_>, bool) -> bool,
        mut unit: impl FnMut(Change<'_, '_, '_, '_, '_>, &Graph) -> Result<R>,
    ) -> Result<R> {
        let keys = of.iter().flat_map(Element::keys).collect();
        let texts = of.iter().flat_map(|one| one.texts().into_iter().map(|text| (text, one.about())));
        let (texts, roles) = (texts.collect(), &Element::ROLES);
        let mut sought = Sought { keys, texts, about: Vec::new(), roles };
        self.0.database().batch(|batch| {
            sought.about.clear();
            let mut graph = Graph::of(batch.sought(self.0.name(), &sought)?);
            let told = graph.elements();
            let rest: BTreeSet<Vec<&str>> =
                of.iter().filter(|one| all(one, told.contains(one))).map(Element::about).collect();
            sought.about.extend(rest);
            if !sought.about.is_empty() {
                graph = Graph::of(batch.sought(self.0.name(), &sought)?);
            }
            let (leaving, asked) = (BTreeSet::new(), BTreeSet::new());
            unit(Change { batch, namespace: &self.0, graph: &graph, leaving, asked }, &graph)
        })
    }

    fn create_entities(&self, Entities { entities }: Entities) -> Result<Value> {
        for (at, given) in entities.iter().enumerate() {
            check_text(&format!("entities.{at}.name"), &given.name, TAG_BYTES_MAX)?;
        }
        let named: Vec<Element<'_>> = entities.iter().map(|given| entity(&given.name)).collect();
        // What is no memory of its own is an entity if something is observed of it.
        self.change(&named, if_untold, |mut change, graph| {
            let mut seen = HashSet::new();
            let is_new = |given: &&EntityGiven| graph.find(&given.name).is_none();
            let new: Vec<&EntityGiven> =
                entities.iter().filter(is_new).filter(|given| seen.insert(&given.name)).collect();
            for EntityGiven { name, entity_type: sort, observations } in &new {
                change.add(Element::Entity { name, sort })?;
                for text in observations {
                    change.add(Element::Observation { entity: name, sort, text })?;
                }
            }
            let told = new.iter().map(|given| {
                let (name, sort) = (&given.name, &given.entity_type);
                json!({ "name": name, "entityType": sort, "observations": given.observations })
            });
            Ok(json!({ "entities": told.collect::<Vec<_>>() }))
        })
    }

    fn create_relations(&self, Relations { relations }: &Relations) -> Result<Value> {
        for (at, given) in relations.iter().enumerate() {
            check_text(&format!("relations.{at}.from"), &given.from, TAG_BYTES_MAX)?;
            check_text(&format!("relations.{at}.to"), &given.to, TAG_BYTES_MAX)?;
        }
        let named: Vec<Element<'_>> = relations.iter().map(RelationGiven::element).collect();
        self.change(&named, never, |mut change, graph| {
            let mut told = Vec::new();
            let mut known: HashSet<[&str; 3]> = graph.edges.iter().map(Edge::words).collect();
            for given in relations {
                if !known.insert(given.words()) {
                    continue;
                }
                change.add(given.element())?;
                let (from, to, relation) = (&given.from, &given.to, &given.relation_type);
                told.push(json!({ "from": from, "to": to, "relationType": relation }));
            }
            Ok(json!({ "relations": told }))
        })
    }

    fn add_observations(&self, Additions { observations }: Additions) -> Result<Value> {
        let mut named = Vec::new();
        for Addition { entity_name: name, contents } in &observations {
            named.push(entity(name));
            named.extend(contents.iter().map(|text| observation(name, text)));
        }
        let all = |one: &Element<'_>, is_told: bool| matches!(one, Element::Entity { .. }) && !is_told;
        self.change(&named, all, |mut change, graph| {
            let (mut told, mut known) = (Vec::new(), HashMap::new());
            for Addition { entity_name: name, contents } in &observations {
                let unknown = || Error::NotFound { what: "entity", name: name.clone() };
                let node = graph.find(name).ok_or_else(unknown)?;
                let of_node = || node.observations.iter().map(|(text, _)| text.as_str()).collect();
                let texts: &mut HashSet<&str> = known.entry(name).or_insert_with(of_node);
                let mut new = Vec::new();
                for text in contents {
                    if texts.insert(text) {
                        change.add(Element::Observation { entity: name, sort: &node.sort, text })?;
                        new.push(text);
                    }
                }
                told.push(json!({ "entityName": name, "addedObservations": new }));
            }
            Ok(json!({ "results": told }))
        })
    }

    fn delete_entities(&self, EntityNames { entity_names }: EntityNames) -> Result<Value> {
        let names: HashSet<&str> = entity_names.iter().map(String::as_str).collect();
        let named: Vec<Element<'_>> = names.iter().map(|name| entity(name)).collect();
        self.change(&named, always, |mut change, graph| {
            for name in &names {
                let node = graph.find(name).into_iter();
                let of_node =
                    node.flat_map(|node| node.observations.iter().map(|(_, key)| key).chain(&node.key));
                change.leave(of_node.cloned());
                change.leave_unreadable(&entity(name))?;
            }
            let ends = |edge: &&Edge| names.contains(edge.from.as_str()) || names.contains(edge.to.as_str());
            change.leave(graph.edges.iter().filter(ends).map(|edge| edge.key.clone()));
            change.deleted("Entities")
        })
    }

    /// An entity stays when the last that was observed of it goes, as in the reference.
    fn delete_observations(&self, Deletions { deletions }: &Deletions) -> Result<Value> {
        let mut all: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for Deletion { entity_name, observations } in deletions {
            all.entry(entity_name).or_default().extend(observations.iter().map(String::as_str));
        }
        let mut named: Vec<Element<'_>> = all.keys().map(|name| entity(name)).collect();
        named.extend(all.iter().flat_map(|(name, texts)| texts.iter().map(|text| observation(name, text))));
        self.change(&named, if_untold, |mut change, graph| {
            for (&name, observations) in &all {
                for &text in observations {
                    change.leave_unreadable(&observation(name, text))?;
                }
                let Some(node) = graph.find(name) else { continue };
                let goes = |text: &str| observations.contains(text);
                if node.key.is_none() && node.observations.first().is_some_and(|(text, _)| goes(text)) {
                    change.add_since(
                        Element::Entity { name: &node.name, sort: &node.sort },
                        Some(node.since),
                    )?;
                }
                let gone = node.observations.iter().filter(|(text, _)| goes(text));
                change.leave(gone.map(|(_, key)| key.clone()));
            }
            change.deleted("Observations")
        })
    }

    fn delete_relations(&self, Relations { relations }: &Relations) -> Result<Value> {
        let given: HashSet<[&str; 3]> = relations.iter().map(RelationGiven::words).collect();
        let named: Vec<Element<'_>> = relations.iter().map(RelationGiven::element).collect();
        self.change(&named, if_untold, |mut change, graph| {
            let goes = |edge: &&Edge| given.contains(&edge.words());
            change.leave(graph.edges.iter().filter(goes).map(|edge| edge.key.clone()));
            for given in relations {
                change.leave_unreadable(&given.element())?;
            }
            change.deleted("Relations")
        })
    }

    /// Entities whose name, type or observations contain the query, in any case of letters.
    fn search(&self, Words { query }: &Words) -> Result<Value> {
        let query = query.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&query);
        let graph = self.graph()?;
        Ok(graph.part(|node| {
            has(&node.name) || has(&node.sort) || node.observations.iter().any(|(text, _)| has(text))
        }))
    }
}

/// A transaction that changes the graph of a namespace.
struct Change<'c, 'b, 's, 'a, 't> {
    batch: &'c mut Batch<'b, 's, 'a, 't>,
    namespace: &'c Namespace,
    /// What was read of the graph as it was before.
    graph: &'c Graph,
    /// The keys of elements that go.
    leaving: BTreeSet<String>,
    /// Memories among them that can't be read.
    asked: BTreeSet<MemoryId>,
}

impl Change<'_, '_, '_, '_, '_> {
    fn add(&mut self, element: Element<'_>) -> Result<()> {
        self.add_since(element, None)
    }

    /// Adds an element that is older than now. No dedup and no pass unites an element with another memory: the graph would
    /// lose it.
    fn add_since(&mut self, element: Element<'_>, since: Option<Time>) -> Result<()> {
        let mut draft = element.draft().key(self.key_for(&element)?);
        draft.fields.created_at = since;
        let how = WriteOptions { verbatim: true, ..WriteOptions::default() };
        self.batch.add_with(self.namespace.name(), draft, &how).map(|_| ())
    }

    /// The key for a new element: its own, or the next where the memory with its own has been given another text, or can't be read.
    fn key_for(&self, element: &Element<'_>) -> Result<String> {
        for key in element.keys() {
            let Keyed { memories, damaged } = self.with_key(&key)?;
            if damaged.is_empty() && !memories.iter().any(|memory| element_of(memory, &key).is_some()) {
                return Ok(key);
            }
        }
        Ok(element.key())
    }

    fn with_key(&self, key: &str) -> Result<Keyed> {
        let sought = Sought { keys: vec![key.to_owned()], ..Sought::default() };
        self.batch.sought(self.namespace.name(), &sought)
    }

    /// Lets a memory go that can't be read, and that is this element by its key.
    fn leave_unreadable(&mut self, element: &Element<'_>) -> Result<()> {
        for key in element.keys() {
            let damaged = self.with_key(&key)?.damaged;
            self.asked.extend(damaged.iter().map(|(id, _)| id));
            self.leave((!damaged.is_empty()).then_some(key));
        }
        Ok(())
    }

    fn leave(&mut self, keys: impl IntoIterator<Item = String>) {
        self.leaving.extend(keys);
    }

    /// Forgets the elements that go, and gives the answer of the reference. A damaged memory that was not asked for by its key
    /// may tell of what was to go, and stays.
    fn deleted(self, what: &str) -> Result<Value> {
        let mut message = format!("{what} deleted successfully");
        let mut damaged = self.graph.damaged.iter().filter(|id| !self.asked.contains(id));
        if let Some(first) = damaged.next() {
            let others = match damaged.count() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            message.push_str(&format!(
                ". Memory {first}{others} can't be read, may tell of the same, and stays: `check` tells more"
            ));
        }
        if !self.leaving.is_empty() {
            self.batch.forget(self.namespace.name(), self.leaving)?;
        }
        Ok(json!({ "success": true, "message": message }))
    }
}

fn always(_: &Element<'_>, _: bool) -> bool {
    true
}

fn never(_: &Element<'_>, _: bool) -> bool {
    false
}

fn if_untold(_: &Element<'_>, is_told: bool) -> bool {
    !is_told
}

/// An entity that is looked for, of whatever sort.
fn entity(name: &str) -> Element<'_> {
    Element::Entity { name, sort: "" }
}

/// An observation that is looked for, of an entity of whatever sort.
fn observation<'e>(entity: &'e str, text: &'e str) -> Element<'e> {
    Element::Observation { entity, sort: "", text }
}
