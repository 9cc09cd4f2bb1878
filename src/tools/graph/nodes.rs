//! A knowledge graph, as it is read from memories.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::exchange::Element;
use crate::model::{MemoryId, Time};
use crate::recall::{Keyed, Said};

/// An entity with what was observed of it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) sort: String,
    /// Texts, each with the key of its memory.
    pub(super) observations: Vec<(String, String)>,
    /// The key of the memory that is the entity itself; none where only observations tell of it.
    pub(super) key: Option<String>,
    /// When the first of its memories was made.
    pub(super) since: Time,
}

impl Node {
    fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        let (name, sort) = (self.name.as_str(), "");
        let observed = self.observations.iter();
        let observed = observed.map(move |(text, _)| Element::Observation { entity: name, sort, text });
        self.key.iter().map(move |_| Element::Entity { name, sort }).chain(observed)
    }
}

/// A relation, with the key of its memory.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) relation: String,
    pub(super) to: String,
    pub(super) key: String,
}

impl Edge {
    /// What it says: from, relation, to.
    pub(super) fn words(&self) -> [&str; 3] {
        [&self.from, &self.relation, &self.to]
    }

    fn element(&self) -> Element<'_> {
        Element::Relation { from: &self.from, relation: &self.relation, to: &self.to }
    }
}

/// Entities and relations, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// Where an entity stands, by its name.
    places: HashMap<String, usize>,
    /// Memories that can't be read. Nothing tells what they say.
    pub(super) damaged: Vec<MemoryId>,
}

impl Graph {
    /// The graph of those memories whose keys are those of elements ([`Element::KEYS`]), without those that are damaged.
    pub(super) fn of(Keyed { memories, damaged }: Keyed) -> Self {
        let damaged = damaged.into_iter().map(|(id, _)| id).collect();
        let mut graph = Graph { damaged, ..Graph::default() };
        for memory in &memories {
            for key in &memory.keys {
                if let Some(element) = element_of(memory, key) {
                    graph.put(element, key, memory.created_at);
                }
            }
        }
        graph
    }

    fn put(&mut self, element: Element<'_>, key: &str, at: Time) {
        match element {
            Element::Entity { name, sort } => self.node(name, sort, at, |node| {
                (node.sort, node.key) = (sort.to_owned(), Some(key.to_owned()));
            }),
            Element::Observation { entity, sort, text } => self.node(entity, sort, at, |node| {
                node.observations.push((text.to_owned(), key.to_owned()));
            }),
            Element::Relation { from, relation, to } => {
                let (from, relation, to) = (from.to_owned(), relation.to_owned(), to.to_owned());
                self.edges.push(Edge { from, relation, to, key: key.to_owned() });
            }
        }
    }

    /// Changes an entity, which may be new.
    fn node(&mut self, name: &str, sort: &str, at: Time, change: impl FnOnce(&mut Node)) {
        let end = self.nodes.len();
        let place = *self.places.entry(name.to_owned()).or_insert(end);
        if place == end {
            let (name, sort) = (name.to_owned(), sort.to_owned());
            self.nodes.push(Node { name, sort, observations: Vec::new(), key: None, since: at });
        }
        if let Some(node) = self.nodes.get_mut(place) {
            change(node);
        }
    }

    /// An entity by its name.
    pub(super) fn find(&self, name: &str) -> Option<&Node> {
        self.nodes.get(*self.places.get(name)?)
    }

    /// What it tells: relations, observations, and the entities that have a memory of their own, all without the sort of the entity.
    pub(super) fn elements(&self) -> HashSet<Element<'_>> {
        self.edges.iter().map(Edge::element).chain(self.nodes.iter().flat_map(Node::elements)).collect()
    }

    /// The entities that are wanted, and the relations that begin or end at one of them.
    pub(super) fn part(&self, wanted: impl Fn(&Node) -> bool) -> Value {
        let nodes: Vec<&Node> = self.nodes.iter().filter(|node| wanted(node)).collect();
        let names: HashSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let meets = |edge: &&Edge| names.contains(edge.from.as_str()) || names.contains(edge.to.as_str());
        told(&nodes, self.edges.iter().filter(meets))
    }

    /// All of it.
    pub(super) fn whole(&self) -> Value {
        told(&self.nodes.iter().collect::<Vec<_>>(), self.edges.iter())
    }
}

/// The element that a memory is by one of its keys.
pub(super) fn element_of<'m>(memory: &'m Said, key: &str) -> Option<Element<'m>> {
    let sort = memory.categories.first().map_or("", String::as_str);
    Element::of(&memory.text, &memory.entities, sort, key)
}

fn told<'g>(nodes: &[&Node], edges: impl Iterator<Item = &'g Edge>) -> Value {
    let entity = |node: &&Node| {
        // Two memories can say the same, where the text of one was changed.
        let mut seen = HashSet::new();
        let texts = node.observations.iter().map(|(text, _)| text.as_str());
        let texts: Vec<&str> = texts.filter(|text| seen.insert(*text)).collect();
        json!({ "name": node.name, "entityType": node.sort, "observations": texts })
    };
    let relation = |edge: &Edge| json!({ "from": edge.from, "to": edge.to, "relationType": edge.relation });
    json!({
        "entities": nodes.iter().map(entity).collect::<Vec<_>>(),
        "relations": edges.map(relation).collect::<Vec<_>>(),
    })
}
