//! Content: [`Content`] in rkyv, so that a text can be read where it lies.
//!
//! ```text
//! header 4 | strings … | Context 56 | Rare 125 | Row 34 | crc 4       (Context and Rare only where needed)
//! ```
//! The plain memory is text, tags and metadata: [`Row`], 42 bytes with the frame. What a message has lies behind
//! one optional pointer, what few memories have behind a second. JSON is kept as text (empty for an empty
//! object); the default scope label and series are not written.

use rkyv::rancor;
use rkyv::with::InlineAsBox;
use rkyv::{Archive, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::model::{Attachment, AuthorKind, Content, Embed, MemoryId, Summary, TimeRange};
use crate::record::{At, begin, no_flags, open, seal, tag};

/// What every memory has.
#[derive(Archive, Serialize)]
struct Row<'a> {
    #[rkyv(with = InlineAsBox)]
    text: &'a str,
    #[rkyv(with = InlineAsBox)]
    tags: &'a [String],
    /// JSON text of the metadata, empty for `{}`.
    metadata: String,
    context: Option<Box<Context>>,
    rare: Option<Box<Rare>>,
}

/// Where and by whom a memory was said.
#[derive(Archive, Serialize, Default, PartialEq)]
struct Context {
    /// None for [`Content::SCOPE_LABEL`].
    scope_label: Option<String>,
    channel: Option<String>,
    thread: Option<String>,
    session: Option<String>,
    author_kind: Option<u8>,
    author_id: Option<String>,
    step: Option<u64>,
}

/// What few memories have.
#[derive(Archive, Serialize, Default, PartialEq)]
struct Rare {
    custom_kind: Option<String>,
    reply_to: Option<[u8; 16]>,
    event_type: Option<String>,
    agent_id: Option<String>,
    attachments: Vec<AttachmentRow>,
    embeds: Vec<EmbedRow>,
    family_id: Option<[u8; 16]>,
    aggregate_id: Option<[u8; 16]>,
    summary: Option<Box<SummaryRow>>,
    /// None for [`Content::SERIES`].
    series: Option<String>,
    resource: Option<String>,
    consolidated_from: Vec<[u8; 16]>,
}

#[derive(Archive, Serialize, PartialEq)]
struct AttachmentRow {
    media_type: String,
    size: u64,
    blob_id: Option<String>,
}

#[derive(Archive, Serialize, PartialEq)]
struct EmbedRow {
    url: String,
    title: Option<String>,
}

#[derive(Archive, Serialize, PartialEq)]
struct SummaryRow {
    topic: Option<String>,
    time_range: Option<[i64; 2]>,
    bullet_events: Option<String>,
    decisions: Option<String>,
    open_loops: Option<String>,
    spam_patterns: Option<String>,
}

/// Writes `content` into `out`, replacing what is there.
pub(crate) fn encode_content(content: &Content, key: &[u8], out: &mut Vec<u8>) {
    let row = Row {
        text: &content.text,
        tags: &content.tags,
        metadata: match &content.metadata {
            Value::Object(map) if map.is_empty() => String::new(),
            value => value.to_string(),
        },
        context: boxed(context_of(content)),
        rare: boxed(rare_of(content)),
    };
    begin(tag::CONTENT, out);
    // Offsets are relative, so the header before the archive does not matter.
    #[expect(clippy::expect_used, reason = "a content within its bounds is far below the 2 GiB of an offset")]
    let written = rkyv::api::high::to_bytes_in::<_, rancor::Error>(&row, std::mem::take(out))
        .expect("content is serialized into memory");
    *out = written;
    seal(0, key, out);
}

/// None where there is nothing but defaults.
fn boxed<T: Default + PartialEq>(part: T) -> Option<Box<T>> {
    (part != T::default()).then(|| Box::new(part))
}

fn context_of(content: &Content) -> Context {
    Context {
        scope_label: (content.scope_label != Content::SCOPE_LABEL).then(|| content.scope_label.clone()),
        channel: content.channel.clone(),
        thread: content.thread.clone(),
        session: content.session.clone(),
        author_kind: content.author_kind.map(AuthorKind::code),
        author_id: content.author_id.clone(),
        step: content.step,
    }
}

fn rare_of(content: &Content) -> Rare {
    let bytes = |id: Option<MemoryId>| id.map(|id| *id.as_bytes());
    Rare {
        custom_kind: content.custom_kind.clone(),
        reply_to: bytes(content.reply_to),
        event_type: content.event_type.clone(),
        agent_id: content.agent_id.clone(),
        attachments: content
            .attachments
            .iter()
            .cloned()
            .map(|Attachment { media_type, size, blob_id }| AttachmentRow { media_type, size, blob_id })
            .collect(),
        embeds: content.embeds.iter().cloned().map(|Embed { url, title }| EmbedRow { url, title }).collect(),
        family_id: bytes(content.family_id),
        aggregate_id: bytes(content.aggregate_id),
        summary: content.summary.as_deref().map(|summary| Box::new(summary_row(summary))),
        series: (content.series != Content::SERIES).then(|| content.series.clone()),
        resource: content.resource.clone(),
        consolidated_from: content.consolidated_from.iter().map(|id| *id.as_bytes()).collect(),
    }
}

fn summary_row(summary: &Summary) -> SummaryRow {
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    SummaryRow {
        topic: summary.topic.clone(),
        time_range: summary.time_range.map(|range| [range.start.as_millis(), range.end.as_millis()]),
        bullet_events: text(&summary.bullet_events),
        decisions: text(&summary.decisions),
        open_loops: text(&summary.open_loops),
        spam_patterns: text(&summary.spam_patterns),
    }
}

/// The checked archive in a value.
fn archive<'b>(at: At<'_>, bytes: &'b [u8]) -> Result<&'b ArchivedRow<'b>> {
    let (flags, body) = open(tag::CONTENT, at, bytes)?;
    no_flags(at, flags)?;
    rkyv::access::<ArchivedRow<'b>, rancor::Error>(body)
        .map_err(|why| at.corrupted(format!("the archive does not fit: {why}")))
}

/// The text alone, where it lies.
///
/// # Errors
/// `Corrupted` for bytes that [`encode_content`] did not write.
pub(crate) fn decode_text<'b>(at: At<'_>, bytes: &'b [u8]) -> Result<&'b str> {
    archive(at, bytes).map(|row| &*row.text)
}

/// The content that [`encode_content`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown code, text that is not JSON, metadata that are no object.
pub(crate) fn decode_content(at: At<'_>, bytes: &[u8]) -> Result<Content> {
    let row = archive(at, bytes)?;
    let metadata = match row.metadata.as_str() {
        "" => Value::Object(Map::new()),
        text => at.json("metadata", text)?,
    };
    if !metadata.is_object() && !metadata.is_null() {
        return Err(at.corrupted("metadata are not a JSON object"));
    }
    let mut content = Content {
        text: String::from(&*row.text),
        tags: row.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
        metadata,
        scope_label: Content::SCOPE_LABEL.to_owned(),
        series: Content::SERIES.to_owned(),
        ..Content::default()
    };
    if let Some(context) = row.context.as_ref() {
        read_context(at, context, &mut content)?;
    }
    if let Some(rare) = row.rare.as_ref() {
        read_rare(at, rare, &mut content)?;
    }
    Ok(content)
}

type Text = rkyv::option::ArchivedOption<rkyv::string::ArchivedString>;

fn owned(text: &Text) -> Option<String> {
    text.as_ref().map(|text| text.as_str().to_owned())
}

fn read_context(at: At<'_>, context: &ArchivedContext, content: &mut Content) -> Result<()> {
    if let Some(label) = owned(&context.scope_label) {
        content.scope_label = label;
    }
    content.channel = owned(&context.channel);
    content.thread = owned(&context.thread);
    content.session = owned(&context.session);
    let author_kind = context.author_kind.as_ref();
    content.author_kind =
        author_kind.map(|code| at.member("author_kind", *code, AuthorKind::from_code)).transpose()?;
    content.author_id = owned(&context.author_id);
    content.step = context.step.as_ref().map(|step| step.to_native());
    Ok(())
}

fn read_rare(at: At<'_>, rare: &ArchivedRare, content: &mut Content) -> Result<()> {
    let id = |id: &rkyv::option::ArchivedOption<[u8; 16]>| id.as_ref().map(|id| MemoryId::from_bytes(*id));
    content.custom_kind = owned(&rare.custom_kind);
    content.reply_to = id(&rare.reply_to);
    content.event_type = owned(&rare.event_type);
    content.agent_id = owned(&rare.agent_id);
    let attachment = |row: &ArchivedAttachmentRow| Attachment {
        media_type: row.media_type.as_str().to_owned(),
        size: row.size.to_native(),
        blob_id: owned(&row.blob_id),
    };
    content.attachments = rare.attachments.iter().map(attachment).collect();
    let embed = |row: &ArchivedEmbedRow| Embed { url: row.url.as_str().to_owned(), title: owned(&row.title) };
    content.embeds = rare.embeds.iter().map(embed).collect();
    content.family_id = id(&rare.family_id);
    content.aggregate_id = id(&rare.aggregate_id);
    let summary = rare.summary.as_ref();
    content.summary = summary.map(|row| read_summary(at, row).map(Box::new)).transpose()?;
    if let Some(series) = owned(&rare.series) {
        content.series = series;
    }
    content.resource = owned(&rare.resource);
    content.consolidated_from = rare.consolidated_from.iter().map(|id| MemoryId::from_bytes(*id)).collect();
    Ok(())
}

fn read_summary(at: At<'_>, row: &ArchivedSummaryRow) -> Result<Summary> {
    let json = |field: &str, text: &Text| text.as_ref().map(|text| at.json(field, text.as_str())).transpose();
    let range = row.time_range.as_ref().map(|[start, end]| {
        let start = at.time("time_range.start", start.to_native())?;
        Ok(TimeRange { start, end: at.time("time_range.end", end.to_native())? })
    });
    Ok(Summary {
        topic: owned(&row.topic),
        time_range: range.transpose()?,
        bullet_events: json("bullet_events", &row.bullet_events)?,
        decisions: json("decisions", &row.decisions)?,
        open_loops: json("open_loops", &row.open_loops)?,
        spam_patterns: json("spam_patterns", &row.spam_patterns)?,
    })
}
