//! The fields that a filter can name: where each stands in a row and of what type it is.

use crate::model::filter::Needs;

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Column {
    /// In the hot part of a row.
    Hot(Hot),
    /// Elsewhere in a row.
    Cold(Cold),
    /// Names on the way down into the metadata, at least one.
    Metadata(Vec<String>),
}

/// Fields of the hot part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hot {
    Id,
    Agent,
    Kind,
    Tier,
    Significance,
    Importance,
    Confidence,
    ReinforcementCount,
    LastReinforcedAt,
    Pinned,
    AdminLocked,
    SystemLocked,
    DeletesSource,
    CreatedAt,
    UpdatedAt,
    HappenedAt,
    ExpiresAt,
    ValidFrom,
    ValidTo,
    ValidToBefore,
    RecordedAt,
    SupersededAt,
    SupersededBy,
    SupersedeMode,
    Version,
    Pending,
}

/// Fields of the other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cold {
    /// A kind that is compared with a custom one, whose name stands in the content.
    CustomKind,
    Text,
    Tags,
    ScopeLabel,
    Channel,
    Thread,
    Session,
    ReplyTo,
    AuthorKind,
    AuthorId,
    EventType,
    Step,
    AgentId,
    FamilyId,
    AggregateId,
    Topic,
    Series,
    Resource,
    ConsolidatedFrom,
    RetrievalCount,
    LastRetrieved,
    RelevanceScoreSum,
    RelevanceScoreCount,
    RelevanceMax,
    IncludedCountTotal,
    IncludedCountDecay,
    LastIncludedAt,
    ProtectedUntil,
    SummarizedAt,
    PromotedAt,
    LastConsolidatedAt,
    AccessSeq,
    Keys,
    Categories,
    Entities,
    Sources,
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Id,
    /// A number stored in single precision.
    Single,
    Number,
    Whole,
    Bool,
    Time,
    Kind,
    Tier,
    Significance,
    AuthorKind,
    SupersedeMode,
    /// Whatever the metadata hold: text, a number, a bool.
    Any,
}

impl Type {
    /// Whether its values have an order that means something.
    pub(super) fn is_ordered(self) -> bool {
        !matches!(self, Type::Bool | Type::Kind | Type::AuthorKind | Type::SupersedeMode)
    }
}

/// Every name; two names of one field stand beside each other.
pub(super) const COLUMNS: &[(&str, Column, Type)] = &[
    ("id", Column::Hot(Hot::Id), Type::Id),
    ("key", Column::Cold(Cold::Keys), Type::Text),
    ("keys", Column::Cold(Cold::Keys), Type::Text),
    ("agent", Column::Hot(Hot::Agent), Type::Text),
    ("kind", Column::Hot(Hot::Kind), Type::Kind),
    ("tier", Column::Hot(Hot::Tier), Type::Tier),
    ("text", Column::Cold(Cold::Text), Type::Text),
    ("content", Column::Cold(Cold::Text), Type::Text),
    ("significance", Column::Hot(Hot::Significance), Type::Significance),
    ("importance", Column::Hot(Hot::Importance), Type::Single),
    ("confidence", Column::Hot(Hot::Confidence), Type::Single),
    ("reinforcement_count", Column::Hot(Hot::ReinforcementCount), Type::Whole),
    ("last_reinforced_at", Column::Hot(Hot::LastReinforcedAt), Type::Time),
    ("pinned", Column::Hot(Hot::Pinned), Type::Bool),
    ("admin_locked", Column::Hot(Hot::AdminLocked), Type::Bool),
    ("system_locked", Column::Hot(Hot::SystemLocked), Type::Bool),
    ("tags", Column::Cold(Cold::Tags), Type::Text),
    ("categories", Column::Cold(Cold::Categories), Type::Text),
    ("entities", Column::Cold(Cold::Entities), Type::Text),
    ("scope_label", Column::Cold(Cold::ScopeLabel), Type::Text),
    ("channel", Column::Cold(Cold::Channel), Type::Text),
    ("thread", Column::Cold(Cold::Thread), Type::Text),
    ("session", Column::Cold(Cold::Session), Type::Text),
    ("reply_to", Column::Cold(Cold::ReplyTo), Type::Id),
    ("author_kind", Column::Cold(Cold::AuthorKind), Type::AuthorKind),
    ("author.kind", Column::Cold(Cold::AuthorKind), Type::AuthorKind),
    ("author_id", Column::Cold(Cold::AuthorId), Type::Text),
    ("author.id", Column::Cold(Cold::AuthorId), Type::Text),
    ("event_type", Column::Cold(Cold::EventType), Type::Text),
    ("step", Column::Cold(Cold::Step), Type::Whole),
    ("agent_id", Column::Cold(Cold::AgentId), Type::Text),
    ("family_id", Column::Cold(Cold::FamilyId), Type::Id),
    ("aggregate_id", Column::Cold(Cold::AggregateId), Type::Id),
    ("topic", Column::Cold(Cold::Topic), Type::Text),
    ("series", Column::Cold(Cold::Series), Type::Text),
    ("resource", Column::Cold(Cold::Resource), Type::Text),
    ("sources", Column::Cold(Cold::Sources), Type::Id),
    ("source_memory_ids", Column::Cold(Cold::Sources), Type::Id),
    ("consolidated_from", Column::Cold(Cold::ConsolidatedFrom), Type::Id),
    ("deletes_source", Column::Hot(Hot::DeletesSource), Type::Bool),
    ("pending", Column::Hot(Hot::Pending), Type::Bool),
    ("retrieval_count", Column::Cold(Cold::RetrievalCount), Type::Whole),
    ("last_retrieved", Column::Cold(Cold::LastRetrieved), Type::Time),
    ("relevance_score_sum", Column::Cold(Cold::RelevanceScoreSum), Type::Number),
    ("relevance_score_count", Column::Cold(Cold::RelevanceScoreCount), Type::Whole),
    ("relevance_max", Column::Cold(Cold::RelevanceMax), Type::Single),
    ("included_count_total", Column::Cold(Cold::IncludedCountTotal), Type::Whole),
    ("included_count_decay", Column::Cold(Cold::IncludedCountDecay), Type::Number),
    ("last_included_at", Column::Cold(Cold::LastIncludedAt), Type::Time),
    ("protected_until", Column::Cold(Cold::ProtectedUntil), Type::Time),
    ("summarized_at", Column::Cold(Cold::SummarizedAt), Type::Time),
    ("promoted_at", Column::Cold(Cold::PromotedAt), Type::Time),
    ("last_consolidated_at", Column::Cold(Cold::LastConsolidatedAt), Type::Time),
    ("created_at", Column::Hot(Hot::CreatedAt), Type::Time),
    ("updated_at", Column::Hot(Hot::UpdatedAt), Type::Time),
    ("happened_at", Column::Hot(Hot::HappenedAt), Type::Time),
    ("valid_from", Column::Hot(Hot::ValidFrom), Type::Time),
    ("valid_to", Column::Hot(Hot::ValidTo), Type::Time),
    ("valid_to_before", Column::Hot(Hot::ValidToBefore), Type::Time),
    ("recorded_at", Column::Hot(Hot::RecordedAt), Type::Time),
    ("superseded_at", Column::Hot(Hot::SupersededAt), Type::Time),
    ("superseded_by", Column::Hot(Hot::SupersededBy), Type::Id),
    ("supersede_mode", Column::Hot(Hot::SupersedeMode), Type::SupersedeMode),
    ("expires_at", Column::Hot(Hot::ExpiresAt), Type::Time),
    ("version", Column::Hot(Hot::Version), Type::Whole),
    ("access_seq", Column::Cold(Cold::AccessSeq), Type::Whole),
];

impl Column {
    /// Notes which part of a row it stands in.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Column::Hot(_) => {}
            Column::Metadata(_) => needs.content = true,
            Column::Cold(cold) => match cold {
                Cold::CustomKind
                | Cold::Text
                | Cold::Tags
                | Cold::ScopeLabel
                | Cold::Channel
                | Cold::Thread
                | Cold::Session
                | Cold::ReplyTo
                | Cold::AuthorKind
                | Cold::AuthorId
                | Cold::EventType
                | Cold::Step
                | Cold::AgentId
                | Cold::FamilyId
                | Cold::AggregateId
                | Cold::Topic
                | Cold::Series
                | Cold::Resource
                | Cold::ConsolidatedFrom => needs.content = true,
                Cold::RetrievalCount
                | Cold::LastRetrieved
                | Cold::RelevanceScoreSum
                | Cold::RelevanceScoreCount
                | Cold::RelevanceMax
                | Cold::IncludedCountTotal
                | Cold::IncludedCountDecay
                | Cold::LastIncludedAt
                | Cold::ProtectedUntil
                | Cold::SummarizedAt
                | Cold::PromotedAt
                | Cold::LastConsolidatedAt
                | Cold::AccessSeq => needs.access = true,
                Cold::Keys => needs.keys = true,
                Cold::Categories | Cold::Entities | Cold::Sources => needs.links = true,
            },
        }
    }
}
