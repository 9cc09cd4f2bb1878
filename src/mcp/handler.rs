//! What the server answers: tools, resources, a prompt.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role, ServerCapabilities, ServerConfig, SubscribeRequestParams, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::mcp::asking::{ask, check_page, own_name, read, tools, unknown};
use crate::mcp::desk::{Desk, Question};
use crate::tools::{ToolError, known_names};

/// How a memory is named as a resource.
const SCHEME: &str = "memory://";
/// What of the memories a session should know from the start.
const BRIEFING: &str = "memory://briefing";
/// Where the arguments stand in an envelope.
const ARGS: &str = "/args";
/// What a client is told of the server.
const INSTRUCTIONS: &str = "A memory that lasts from one conversation to the next. Search it before you answer from memory \
     (search_memories). Remember what will matter later, one fact at a time (add_memory). Facts about the user are the profile: \
     remember with the kind profile what the user states, preferences too, and nothing that you only infer. Replace what is no longer true \
     (supersede_memory), and correct what never was (update_memory). Tools that remove something tell first what would go; \
     call them again with dry_run false to do it.";

/// Whoever answers, for a client of the Model Context Protocol.
#[derive(Clone)]
pub(super) struct Handler(pub(super) Arc<dyn Desk>);

/// The name of a tool as a client knows it: dots are not allowed everywhere.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

/// The name of a tool by the name that a client has for it.
pub(super) fn tool(name: &str) -> Option<&'static str> {
    known_names().find(|own| plain(own) == name)
}

/// The error for a tool that does not exist. It says which ones there are.
fn no_tool(name: &str, listed: &[Tool]) -> ErrorData {
    let names: Vec<String> = listed.iter().map(|tool| plain(&tool.name)).collect();
    let why = match names.iter().find(|own| **own == plain(name)) {
        Some(own) => format!("there is no tool {name}; its name is {own}"),
        None => format!("there is no tool {name}; there are {}", names.join(", ")),
    };
    ErrorData::invalid_params(why, None)
}

/// Takes alternatives from the top of a schema, which some servers of language models refuse. The description says them
/// instead, and the call is checked all the same.
fn flatten(tool: &mut Tool) {
    let mut schema = tool.input_schema.as_ref().clone();
    let Some(Value::Array(alternatives)) = schema.remove("oneOf") else { return };
    let required = alternatives.iter().filter_map(|one| one.pointer("/required/0")?.as_str());
    let names = required.collect::<Vec<_>>().join(", ");
    let about = tool.description.as_deref().unwrap_or_default();
    tool.description = Some(format!("{about} Give exactly one of {names}.").into());
    tool.input_schema = schema.into();
}

/// A tool as the protocol tells it.
fn told(mut tool: Tool) -> Tool {
    tool.name = plain(&tool.name).into();
    flatten(&mut tool);
    let hints = tool.annotations.take().unwrap_or_default();
    tool.with_annotations(hints.open_world(false))
}

/// The text of an answer that is one.
fn text_of(answer: &Value) -> String {
    answer.as_str().unwrap_or_default().to_owned()
}

/// Whether nothing has the name that was asked for.
fn is_absent(why: &ToolError) -> bool {
    ["memory_not_found", "invalid_args"].contains(&why.code.as_str())
}

/// A name without the escapes of a URI; none where it has none, or where they are no text.
fn decoded(name: &str) -> Option<String> {
    let (first, rest) = name.split_once('%')?;
    let mut bytes = first.as_bytes().to_vec();
    for escaped in rest.split('%') {
        let (digits, plain) = escaped.split_at_checked(2)?;
        // A number may have a sign, and an escape has none.
        let byte = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(byte, 16).ok()?);
        bytes.extend_from_slice(plain.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Why a call was refused, in the words of the protocol: arguments have no level of their own, and a model hears what to try.
fn error_of(why: &ToolError) -> Value {
    let next = match why.code.as_str() {
        "memory_not_found" => "; search_memories and list_memories tell ids and keys",
        "run_not_found" => "; the answers of run_maintenance and memory_compact_commit tell the ids of runs",
        "before_purge_horizon" => "; ask for a later time, or give allow_partial true for what is left",
        "key_in_other_partition" => "; no search reads the part of an agent: write under another key",
        "read_only" => {
            "; the server was started with --read-only, and forget_memory can't look ahead there either"
        }
        "conflict" => "; memory_explain tells what happened to a memory",
        _ => "",
    };
    let pointers: Vec<&str> =
        why.pointers.iter().map(|pointer| pointer.strip_prefix(ARGS).unwrap_or(pointer)).collect();
    let told = why.message.replace(&format!("{ARGS}/"), "/").replace(&format!("{ARGS} "), "the arguments ");
    let message = format!("{told}{next}");
    json!({ "code": why.code, "message": message, "pointers": pointers })
}

impl Handler {
    /// What a client is told of the server, and of what to store: by the policy, or by the file of the host.
    async fn instructions(&self, context: &RequestContext<RoleServer>) -> String {
        // A client is better told the half than refused.
        let own = ask(&self.0, Question::Instructions, context).await.ok().and_then(Result::ok);
        match own.as_ref().map(text_of).filter(|own| !own.is_empty()) {
            Some(own) => format!("{INSTRUCTIONS}\n\nWhat to store:\n\n{own}"),
            None => INSTRUCTIONS.to_owned(),
        }
    }
}

impl ServerHandler for Handler {
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut info = self.negotiate_initialize(&request)?;
        info.instructions = Some(self.instructions(&context).await);
        Ok(info)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let info = self.get_info().with_instructions(self.instructions(&context).await);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(can).with_server_info(own_name()).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        check_page(request)?;
        let tools = tools(&self.0, &context).await?;
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(told).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(name) = tool(&request.name) else {
            return Err(no_tool(&request.name, &tools(&self.0, &context).await?));
        };
        let args = Value::Object(request.arguments.unwrap_or_default());
        let answer = match ask(&self.0, Question::call(name, args), &context).await? {
            Ok(answer) => CallToolResult::structured(answer),
            Err(why) if why.code == ToolError::UNKNOWN => {
                return Err(no_tool(&request.name, &tools(&self.0, &context).await?));
            }
            Err(why) => CallToolResult::error(vec![ContentBlock::text(error_of(&why).to_string())]),
        };
        Ok(answer.into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(unknown("resources/subscribe"))
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(unknown("resources/unsubscribe"))
    }

    /// A request of a sort that is known, with parameters of another form, or of one that is not.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown(&request.method))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        check_page(request)?;
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
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        check_page(request)?;
        let memory = ResourceTemplate::new("memory://{id}", "memory")
            .with_title("Memory")
            .with_description("One memory, by its id or key")
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
            let text = text_of(&read(&self.0, Question::Briefing, &context).await?);
            return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into());
        }
        let not_found = |why: &str| ErrorData::resource_not_found(format!("{uri}: {why}"), None);
        let name = uri.strip_prefix(SCHEME).ok_or_else(|| not_found("a memory is named as memory://id"))?;
        let look_up = async |name: String| ask(&self.0, Question::Memory { name }, &context).await;
        let mut found = look_up(name.to_owned()).await?;
        // A client that fills in the template writes some characters of a key by their bytes.
        if let (Err(why), Some(plain)) = (&found, decoded(name))
            && is_absent(why)
        {
            found = look_up(plain).await?;
        }
        // A client may drop a memory that is not found. Where nobody could look, it may be there.
        let memory = found.map_err(|why| match is_absent(&why) {
            true => not_found(&why.message),
            false => ErrorData::internal_error(format!("{uri}: {}", why.message), None),
        })?;
        let contents =
            ResourceContents::text(memory.to_string(), uri.clone()).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        check_page(request)?;
        let topic = PromptArgument::new("topic")
            .with_description("What the conversation is about")
            .with_required(true);
        let about = "Begin with what is remembered of a topic";
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("recall", Some(about), Some(vec![topic]))]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "recall" {
            return Err(ErrorData::invalid_params(format!("there is no prompt {}", request.name), None));
        }
        let topic = request.arguments.as_ref().and_then(|given| given.get("topic")).and_then(Value::as_str);
        let topic = topic.filter(|topic| !topic.trim().is_empty()).map(str::to_owned);
        let topic = topic.ok_or_else(|| ErrorData::invalid_params("topic: must be given", None))?;
        let answer = ask(&self.0, Question::Recall { topic }, &context).await?;
        let text = answer.map_err(|why| match why.code.as_str() {
            "invalid" => ErrorData::invalid_params(why.message, None),
            _ => ErrorData::internal_error(why.message, None),
        })?;
        let text = text_of(&text);
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).into())
    }
}
