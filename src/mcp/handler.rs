//! What the server answers: tools, resources, a prompt.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptArgument, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::model::{Query, Scope};
use crate::tools::{Caller, ToolError, ToolSchema, Toolbox};

/// How a memory is named as a resource.
const SCHEME: &str = "memory://";
/// What of the memories a session should know from the start.
const BRIEFING: &str = "memory://briefing";
/// Where the arguments stand in an envelope.
const ARGS: &str = "/args";
/// Tokens of the briefing and of the prompt.
const TOKENS: usize = 1_500;
/// Hits of the prompt.
const HITS: usize = 10;
/// What a client is told of the server.
const INSTRUCTIONS: &str = "A memory that lasts from one conversation to the next. Search it before you answer from memory \
     (search_memories). Remember what will matter later, one fact at a time (add_memory); when a fact is no longer true, \
     replace it (supersede_memory). Tools that remove something tell first what would go; call them again with dry_run \
     false to do it.";

/// The tools of a namespace, for a client of the Model Context Protocol.
#[derive(Clone)]
pub(super) struct Handler(pub(super) Toolbox);

/// Who waits for the answer of a call.
struct Waiting<F> {
    progress: UnboundedSender<(u64, Option<u64>)>,
    is_gone: F,
}

impl<F: Fn() -> bool> Caller for Waiting<F> {
    fn progress(&self, done: u64, of: Option<u64>) {
        // Nobody hears it where nobody asked.
        let _ = self.progress.send((done, of));
    }

    fn is_gone(&self) -> bool {
        (self.is_gone)()
    }
}

/// The name of a tool as a client knows it: dots are not allowed everywhere.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

impl Handler {
    /// The name of a tool by the name that a client has for it.
    fn tool(&self, name: &str) -> Option<&'static str> {
        self.0.all_names().into_iter().find(|own| plain(own) == name)
    }

    /// Says that there is no such tool, and which one or which ones there are.
    fn no_tool(&self, name: &str) -> String {
        let names: Vec<String> = self.0.all_names().into_iter().map(plain).collect();
        match names.iter().find(|own| **own == plain(name)) {
            Some(own) => format!("there is no tool {name}; its name is {own}"),
            None => format!("there is no tool {name}; there are {}", names.join(", ")),
        }
    }

    /// Calls a tool on a thread that may block, and tells the client how far it is.
    async fn call(
        &self,
        name: &'static str,
        args: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<Value, ToolError>, ErrorData> {
        let (progress, mut told) = unbounded_channel();
        // A client that hangs up cancels what it waits for.
        let cancelled = context.ct.clone();
        let caller = Waiting { progress, is_gone: move || cancelled.is_cancelled() };
        let tools = self.0.clone();
        let mut call = tokio::task::spawn_blocking(move || tools.call_for(name, args, &caller));
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                biased;
                Some((done, of)) = told.recv() => {
                    let Some(token) = token.clone() else { continue };
                    let mut note = ProgressNotificationParam::new(token, done as f64);
                    note.total = of.map(|of| of as f64);
                    // A client that has hung up is noticed where the answer is sent.
                    let _ = context.peer.notify_progress(note).await;
                }
                answer = &mut call => {
                    return answer.map_err(|why| ErrorData::internal_error(format!("the tool failed: {why}"), None));
                }
            }
        }
    }

    /// Reads on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Toolbox) -> crate::error::Result<T> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let tools = self.0.clone();
        let answer = tokio::task::spawn_blocking(move || read(&tools)).await;
        let answer =
            answer.map_err(|why| ErrorData::internal_error(format!("the read failed: {why}"), None))?;
        answer.map_err(|why| ErrorData::internal_error(why.to_string(), None))
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// A description and a schema without alternatives at the top of the schema, which some servers of language models refuse. The
/// description says them instead, and the call is checked all the same.
fn flat(about: &str, mut schema: JsonObject) -> (String, JsonObject) {
    let Some(Value::Array(alternatives)) = schema.remove("oneOf") else {
        return (about.to_owned(), schema);
    };
    let required = alternatives.iter().filter_map(|one| one.pointer("/required/0")?.as_str());
    let names = required.collect::<Vec<_>>().join(", ");
    (format!("{about} Give exactly one of {names}."), schema)
}

/// A tool as the protocol tells it.
fn told(tool: ToolSchema) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(tool.annotations.read_only)
        .destructive(tool.annotations.destructive)
        .idempotent(tool.annotations.idempotent)
        .open_world(false);
    let (description, input) = flat(tool.description, object(tool.input_schema));
    Tool::new(plain(tool.name), description, input)
        .with_raw_output_schema(object(tool.output_schema).into())
        .with_annotations(hints)
}

/// Why a call was refused, in the words of the protocol: arguments have no level of their own, and a model hears what to try.
fn error_of(why: &ToolError) -> Value {
    let next = match why.code.as_str() {
        "memory_not_found" => "; search_memories and list_memories tell ids and keys",
        "run_not_found" => "; the answers of run_maintenance and memory_compact_commit tell the ids of runs",
        _ => "",
    };
    let pointers: Vec<&str> =
        why.pointers.iter().map(|pointer| pointer.strip_prefix(ARGS).unwrap_or(pointer)).collect();
    let message = format!("{}{next}", why.message.replace(&format!("{ARGS}/"), "/"));
    json!({ "code": why.code, "message": message, "pointers": pointers })
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(can)
            .with_server_info(Implementation::new("oubliette", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.all_schemas().into_iter().map(told).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(name) = self.tool(&request.name) else {
            return Err(ErrorData::invalid_params(self.no_tool(&request.name), None));
        };
        let args = Value::Object(request.arguments.unwrap_or_default());
        let answer = match self.call(name, args, &context).await? {
            Ok(answer) => CallToolResult::structured(answer),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(error_of(&why).to_string())]),
        };
        Ok(answer.into())
    }

    /// A request of a sort that is known, with parameters of another form, or of one that is not.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if ["tools/call", "resources/read", "prompts/get"].contains(&method.as_str()) {
            return Err(ErrorData::invalid_params(format!("{method} has parameters of another form"), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let briefing = Resource::new(BRIEFING, "briefing")
            .with_title("Briefing")
            .with_description(
                "What a conversation should know from the start: pinned memories, then the most valuable",
            )
            .with_mime_type("text/plain");
        Ok(ListResourcesResult::with_all_items(vec![briefing]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let memory = ResourceTemplate::new("memory://{id}", "memory")
            .with_title("Memory")
            .with_description("One memory, by its id")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![memory]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        if uri == BRIEFING {
            let briefed = self.read(|tools| tools.namespace().briefing(&Scope::Shared, TOKENS)).await?;
            let text: String = briefed.iter().map(|one| format!("- {}\n", one.memory.row_text)).collect();
            return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into());
        }
        let unknown = |why: &str| ErrorData::resource_not_found(format!("{uri}: {why}"), None);
        let name = uri.strip_prefix(SCHEME).ok_or_else(|| unknown("a memory is named as memory://id"))?;
        let args = json!({ "id": name, "max_tokens": 64_000 });
        let answer = self.call("get_memory", args, &context).await?;
        let memory = answer.map_err(|why| unknown(&why.message))?;
        let contents =
            ResourceContents::text(memory.to_string(), uri.clone()).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let topic = PromptArgument::new("topic")
            .with_description("What the conversation is about")
            .with_required(true);
        let about = "Begin with what is remembered of a topic";
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("recall", Some(about), Some(vec![topic]))]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "recall" {
            return Err(ErrorData::invalid_params(format!("there is no prompt {}", request.name), None));
        }
        let topic = request.arguments.as_ref().and_then(|given| given.get("topic")).and_then(Value::as_str);
        let topic = topic.filter(|topic| !topic.trim().is_empty()).map(str::to_owned);
        let topic = topic.ok_or_else(|| ErrorData::invalid_params("topic: must be given", None))?;
        let query = Query::text(topic.clone()).k(HITS).track(true);
        let found = self.read(|tools| tools.namespace().search(query)).await?;
        let mut text = format!("What is remembered of {topic}:\n");
        let mut left = TOKENS * crate::limits::TOKEN_BYTES;
        for hit in found.hits {
            let Some(rest) = left.checked_sub(hit.text.len()) else { break };
            left = rest;
            text.push_str(&format!("- {}\n", hit.text));
        }
        text.push_str("Use what fits. Say so where it does not answer the question.");
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).into())
    }
}
