//! The tools of one namespace, to be called by name or by envelope.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::Namespace;
use crate::summary::Summarizer;
use crate::tools::envelope;
use crate::tools::error::ToolError;
use crate::tools::host::{Caller, Host, Patient};
#[cfg(feature = "mcp")]
use crate::tools::reading;
use crate::tools::shape::Detail;
#[cfg(feature = "mcp")]
use crate::tools::shape::Shape;
use crate::tools::table::{Effect, Set, TOOLS, Tool};

/// The definition of a tool, as a host registers it with a language model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolSchema {
    /// The name.
    pub name: &'static str,
    /// What the tool is for.
    pub description: &'static str,
    /// The JSON Schema (draft 2020-12) of its arguments.
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
    /// The JSON Schema of what it answers.
    #[serde(rename = "outputSchema")]
    pub output_schema: Value,
    /// What it does to the memories.
    pub annotations: ToolHints,
}

/// What a tool does to the memories, by the names of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolHints {
    /// It changes none.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// It may change or remove what is there.
    #[serde(rename = "destructiveHint")]
    pub destructive: bool,
    /// The same call again changes nothing more.
    #[serde(rename = "idempotentHint")]
    pub idempotent: bool,
}

impl ToolHints {
    fn of(effect: Effect) -> Self {
        ToolHints {
            read_only: effect == Effect::Reads,
            destructive: matches!(effect, Effect::Changes | Effect::Removes),
            idempotent: !matches!(effect, Effect::Adds | Effect::Retrieves),
        }
    }
}

/// The definitions of the tools that are called by envelopes, made from the types that read the arguments.
///
/// ```
/// use oubliette::tools::tool_schemas;
/// let schemas = tool_schemas();
/// assert_eq!(schemas.len(), 10);
/// assert!(schemas.iter().all(|tool| tool.input_schema["additionalProperties"] == false));
/// ```
pub fn tool_schemas() -> Vec<ToolSchema> {
    schemas_of(Detail::Bare, |tool| tool.set == Set::Envelope)
}

/// The names of all tools, those with the others that the policy must allow.
#[cfg(feature = "mcp")]
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Whether a tool changes no memory, but for the count of how often one was found.
#[cfg(feature = "mcp")]
pub(crate) fn only_reads(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name && tool.only_reads())
}

/// Tools that work through many memories.
#[cfg(feature = "mcp")]
const LONG: [&str; 4] = ["run_maintenance", "memory.hygiene", "memory.undo", "memory.summarize_and_compact"];

/// Whether a tool can take long, so that nobody waits for its end before the next call.
#[cfg(feature = "mcp")]
pub(crate) fn can_take_long(name: &str) -> bool {
    LONG.contains(&name)
}

fn schemas_of(detail: Detail, wanted: impl Fn(&Tool) -> bool) -> Vec<ToolSchema> {
    TOOLS.iter().filter(|tool| wanted(tool)).map(|tool| schema_of(tool, detail)).collect()
}

fn schema_of(tool: &Tool, detail: Detail) -> ToolSchema {
    ToolSchema {
        name: tool.name,
        description: tool.about,
        input_schema: (tool.arguments)().schema(detail),
        output_schema: tool.answer().schema(Detail::Full),
        annotations: ToolHints::of(tool.effect),
    }
}

/// The tools of one namespace. A call reaches this namespace and no other, whatever its arguments say.
///
/// ```
/// use oubliette::Database;
/// use oubliette::tools::Toolbox;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("memory.oub");
/// let team = Database::open(&path)?.namespace("team")?;
/// team.add("Ann prefers tea")?;
/// let tools = Toolbox::new(team);
/// let answer = tools.answer(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
/// assert!(answer.starts_with(r#"{"type":"tool_result","name":"get_memory_stats","result":{"local":{"total":1"#));
/// let answer = tools.answer(r#"{"type":"tool_call","name":"get_memory_stats","args":{"namespace":"other"}}"#);
/// assert!(answer.contains(r#""code":"invalid_args""#) && answer.contains(r#""pointers":["/args/namespace"]"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Toolbox(Host);

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Toolbox(host) = self;
        f.debug_struct("Toolbox")
            .field("namespace", &host.namespace)
            .field("summarizer", &host.summarizer.is_some())
            .finish()
    }
}

impl Toolbox {
    /// The tools of a namespace. Nobody writes summaries but the caller.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(Toolbox::new(team).schemas().len(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(namespace: Namespace) -> Self {
        Toolbox(Host { namespace, summarizer: None })
    }

    /// With somebody who writes summaries: `memory.summarize` then answers with a summary in place of what is to be
    /// summarized.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use oubliette::gc::Extractive;
    /// use oubliette::tools::Toolbox;
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let rest = "That is how it was, and so it will be for all of us. ".repeat(6);
    /// let tea = team.add(format!("Ann prefers tea. {rest}"))?.id;
    /// let asked = json!({ "source_ids": [tea] });
    /// let tools = Toolbox::new(team);
    /// assert!(tools.call("memory.summarize", asked.clone())?["instructions"].is_string());
    /// let tools = tools.summarizer(Arc::new(Extractive::default()));
    /// assert!(tools.call("memory.summarize", asked)?["topic"].is_string());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.0.summarizer = Some(summarizer);
        self
    }

    /// The definitions of the tools that can be called by envelopes: those of [`tool_schemas`], and
    /// `memory.summarize_and_compact` where the policy allows it (`tools.allow_combined`).
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    /// use oubliette::tools::{Toolbox, tool_schemas};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let tools = Toolbox::new(db.namespace("team")?);
    /// assert_eq!(tools.schemas(), tool_schemas());
    /// db.set_policy("tools.allow_combined = true", Syntax::Toml)?;
    /// assert_eq!(tools.schemas().len(), 11);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schemas(&self) -> Vec<ToolSchema> {
        schemas_of(Detail::Bare, |tool| self.may_be_called(tool))
    }

    /// The definitions of all tools that can be called by name, for servers: those of [`Toolbox::schemas`], and ten to remember, find
    /// and forget. Each says what its arguments are for.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let all = Toolbox::new(team).all_schemas();
    /// assert_eq!(all.len(), 20);
    /// let forgets = all.iter().find(|tool| tool.name == "forget_memory").unwrap();
    /// assert!(forgets.annotations.destructive);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn all_schemas(&self) -> Vec<ToolSchema> {
        schemas_of(Detail::Full, |tool| tool.set == Set::Memory || self.may_be_called(tool))
    }

    /// The JSON Schema of an envelope.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let schema = Toolbox::new(team).envelope_schema();
    /// assert_eq!(schema["properties"]["type"]["const"], "tool_call");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn envelope_schema(&self) -> Value {
        envelope::shape(self.names()).schema(Detail::Bare)
    }

    /// Answers an envelope, `{"type":"tool_call","name":…,"args":{…}}`, with one line of JSON without its line feed: a `tool_result`,
    /// or a `tool_error` with a code and JSON pointers to what is wrong.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tools = Toolbox::new(team);
    /// assert!(tools.answer(r#"{"type":"tool_call","name":"memory.gc_report","args":{}}"#).contains("tool_result"));
    /// assert!(tools.answer("{").contains(r#""code":"invalid_json""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answer(&self, envelope: impl AsRef<[u8]>) -> String {
        let called = envelope::read(envelope.as_ref(), self.names()).and_then(|(name, args)| {
            let result = self.call(&name, Value::Object(args))?;
            Ok(json!({ "type": "tool_result", "name": name, "result": result }))
        });
        called.unwrap_or_else(|why| why.to_json()).to_string()
    }

    /// Calls a tool by its name: one of [`Toolbox::schemas`], or one of those that a server hands out beside them, such as
    /// `search_memories`.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tools = Toolbox::new(team);
    /// assert_eq!(tools.call("get_memory_stats", json!({}))?["local"]["total"], 0);
    /// assert!(tools.call("add_memory", json!({ "text": "Ann prefers tea" }))?["id"].is_string());
    /// assert_eq!(tools.call("memory.forget_all", json!({})).unwrap_err().code, "unknown_tool");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the call is refused. Nothing has changed then.
    pub fn call(&self, name: &str, args: Value) -> Result<Value, ToolError> {
        self.call_for(name, args, &Patient)
    }

    /// As [`Toolbox::call`], for somebody who may leave before the end.
    ///
    /// ```
    /// use oubliette::tools::{Caller, Toolbox};
    /// use serde_json::json;
    ///
    /// struct Person;
    /// impl Caller for Person {
    ///     fn progress(&self, _done: u64, _of: Option<u64>) {}
    ///     fn is_gone(&self) -> bool {
    ///         false
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert!(Toolbox::new(team).call_for("memory.gc_report", json!({}), &Person).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Toolbox::call`].
    pub fn call_for(&self, name: &str, mut args: Value, caller: &dyn Caller) -> Result<Value, ToolError> {
        let tool = TOOLS.iter().find(|tool| tool.name == name);
        let tool =
            tool.filter(|tool| tool.set == Set::Memory || self.may_be_called(tool)).ok_or_else(|| {
                let message = format!("there is no such tool; there are {}", self.all_names().join(", "));
                ToolError {
                    pointers: vec!["/name".to_owned()],
                    ..ToolError::new(Some(name), ToolError::UNKNOWN, message)
                }
            })?;
        let shape = (tool.arguments)();
        let faults = shape.check(&mut args, "/args");
        if !faults.is_empty() {
            return Err(ToolError::of_faults(Some(name), "invalid_args", &faults));
        }
        // The names in a filter are the caller's own.
        let filter = args.get("filter").cloned().unwrap_or_default();
        tool.run(&self.0, args, caller).map_err(|error| ToolError::of(name, (&shape, &filter), &error))
    }

    /// What `get_memory` tells of a memory, with its whole text.
    ///
    /// # Errors
    /// As [`Toolbox::call`].
    #[cfg(feature = "mcp")]
    pub(crate) fn whole_memory(&self, name: String) -> Result<Value, ToolError> {
        let told = reading::get_whole(&self.0, name);
        told.map_err(|error| ToolError::of("get_memory", (&Shape::Object, &Value::Null), &error))
    }

    /// The names of all tools that can be called.
    fn all_names(&self) -> Vec<&'static str> {
        let all = TOOLS.iter().filter(|tool| tool.set == Set::Memory || self.may_be_called(tool));
        all.map(|tool| tool.name).collect()
    }

    /// The namespace that the tools reach.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(Toolbox::new(team).namespace().name().as_str(), "team");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// Whether a tool can be called by an envelope.
    fn may_be_called(&self, tool: &Tool) -> bool {
        match tool.set {
            Set::Envelope => true,
            Set::Memory => false,
            Set::Combined => self.0.namespace.database().policy().0.tools.allow_combined,
        }
    }

    fn names(&self) -> Vec<&'static str> {
        TOOLS.iter().filter(|tool| self.may_be_called(tool)).map(|tool| tool.name).collect()
    }
}
