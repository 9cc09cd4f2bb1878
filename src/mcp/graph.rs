//! What the server answers with the face of the reference memory server: nine tools and one resource.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorData, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::mcp::asking::{ask, check_page, own_name, read, tools, unknown};
use crate::mcp::desk::{Desk, Question};
use crate::tools::ToolError;

/// The whole graph as a resource.
const GRAPH: &str = "memory://knowledge-graph";

/// Whoever answers for a knowledge graph, for a client that expects the reference.
#[derive(Clone)]
pub(super) struct GraphHandler(pub(super) Arc<dyn Desk>);

/// The text beside a structured answer: that of the reference is only the list, or only the message.
fn text_of(structured: &Value) -> String {
    let Value::Object(members) = structured else { return format!("{structured:#}") };
    match (members.get("message"), members.values().next()) {
        (Some(Value::String(message)), _) => message.clone(),
        (None, Some(list)) if members.len() == 1 => format!("{list:#}"),
        _ => format!("{structured:#}"),
    }
}

/// The answer to a call that is refused, in the words of the reference.
fn refused(name: &str, why: &ToolError) -> CallToolResult {
    let text = match why.code.as_str() {
        ToolError::UNKNOWN => format!("MCP error -32602: Tool {name} not found"),
        "invalid" => {
            let why = &why.message;
            format!("MCP error -32602: Input validation error: Invalid arguments for tool {name}: {why}")
        }
        _ => why.message.clone(),
    };
    CallToolResult::error(vec![ContentBlock::text(text)])
}

impl ServerHandler for GraphHandler {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(can).with_server_info(own_name())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        check_page(request)?;
        Ok(ListToolsResult::with_all_items(tools(&self.0, &context).await?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.unwrap_or_default());
        let answer = match ask(&self.0, Question::call(&request.name, args), &context).await? {
            Err(why) => refused(&request.name, &why),
            Ok(structured) => {
                let mut answer = CallToolResult::success(vec![ContentBlock::text(text_of(&structured))]);
                answer.structured_content = Some(structured);
                answer.is_error = None;
                answer
            }
        };
        Ok(answer.into())
    }

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
        let graph = Resource::new(GRAPH, "knowledge-graph")
            .with_title("Knowledge Graph")
            .with_description("The full knowledge graph with all entities and relations")
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![graph]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != GRAPH {
            return Err(ErrorData::resource_not_found(format!("Resource {} not found", request.uri), None));
        }
        let graph = read(&self.0, Question::call("read_graph", json!({})), &context).await?;
        let contents = ResourceContents::text(format!("{graph:#}"), GRAPH).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
