//! Evaluation: on the hot part of a row in three values, on the whole row in two.

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::filter::column::{Cold, Column, Hot};
use crate::model::filter::datum::{Datum, Number};
use crate::model::filter::{Node, Op, Relation, RowView, Set, Test, VitalsView};
use crate::model::id::MemoryId;
use crate::model::kind::Kind;
use crate::model::time::Time;

impl Node {
    /// Kleene's logic: a part that is unknown decides nothing, another part still may.
    pub(super) fn on_vitals(&self, row: &VitalsView<'_>) -> Option<bool> {
        match self {
            Node::And(parts) => decided(parts, row, false),
            Node::Or(parts) => decided(parts, row, true),
            Node::Not(part) => part.on_vitals(row).map(|holds| !holds),
            Node::Test(test) => test.on_vitals(row),
        }
    }

    pub(super) fn matches(&self, row: &RowView<'_>) -> bool {
        match self {
            Node::And(parts) => parts.iter().all(|part| part.matches(row)),
            Node::Or(parts) => parts.iter().any(|part| part.matches(row)),
            Node::Not(part) => !part.matches(row),
            Node::Test(test) => test.matches(row),
        }
    }
}

/// `early` as soon as one part says so; the contrary when every part does; else unknown.
fn decided(parts: &[Node], row: &VitalsView<'_>, early: bool) -> Option<bool> {
    let mut unknown = false;
    for part in parts {
        match part.on_vitals(row) {
            Some(holds) if holds == early => return Some(early),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!early)
}

impl Test {
    fn on_vitals(&self, row: &VitalsView<'_>) -> Option<bool> {
        match self.column {
            Column::Hot(hot) => Some(self.holds(|f| hot.datum(row).is_some_and(f))),
            // A kind of ours has no name in the content.
            Column::Cold(Cold::CustomKind) if row.vitals.kind_code != Kind::CUSTOM_CODE => {
                Some(self.holds(|f| f(Datum::Kind(row.vitals.kind_code, ""))))
            }
            Column::Cold(_) | Column::Metadata(_) => None,
        }
    }

    fn matches(&self, row: &RowView<'_>) -> bool {
        match &self.column {
            Column::Hot(hot) => self.holds(|f| hot.datum(&row.hot()).is_some_and(f)),
            Column::Cold(cold) => self.holds(|f| cold.any(row, f)),
            Column::Metadata(path) => self.holds(|f| any_at(&row.content.metadata, path, f)),
        }
    }

    /// `any(f)` says whether `f` holds of any value of the field.
    fn holds(&self, any: impl FnOnce(&mut dyn FnMut(Datum<'_>) -> bool) -> bool) -> bool {
        let holds = match &self.op {
            Op::In(set) => set.holds(any),
            Op::Order(relation, bound) => {
                let bound = bound.datum();
                any(&mut |datum| datum.order(bound).is_some_and(|order| relation.admits(order)))
            }
            Op::Exists => any(&mut |_| true),
        };
        holds != self.negated
    }
}

impl Set {
    fn holds(&self, any: impl FnOnce(&mut dyn FnMut(Datum<'_>) -> bool) -> bool) -> bool {
        let mut missing = true;
        let found = any(&mut |datum| {
            missing = false;
            match datum {
                Datum::Null => self.null,
                _ => self.values.binary_search_by(|value| value.datum().cmp(&datum)).is_ok(),
            }
        });
        found || (missing && self.null)
    }
}

impl Relation {
    fn admits(self, order: Ordering) -> bool {
        match self {
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
        }
    }
}

fn number(value: f64) -> Option<Datum<'static>> {
    Number::of_f64(value).map(Datum::Number)
}

fn whole(value: u64) -> Datum<'static> {
    Datum::Number(Number::Whole(i128::from(value)))
}

fn time(value: Option<Time>) -> Option<Datum<'static>> {
    value.map(Datum::Time)
}

impl Hot {
    fn datum<'a>(self, row: &VitalsView<'a>) -> Option<Datum<'a>> {
        let vitals = row.vitals;
        let times = &vitals.times;
        match self {
            Hot::Id => Some(Datum::Id(row.id)),
            Hot::Agent => row.partition.agent_name().map(Datum::Text),
            Hot::Kind => Some(Datum::Kind(vitals.kind_code, "")),
            Hot::Tier => Some(Datum::Code(vitals.tier.code())),
            Hot::Significance => Some(Datum::Code(vitals.significance.code())),
            Hot::Importance => number(f64::from(vitals.importance)),
            Hot::Confidence => vitals.confidence.and_then(|c| number(f64::from(c))),
            Hot::ReinforcementCount => Some(whole(u64::from(vitals.reinforcement_count))),
            Hot::LastReinforcedAt => time(vitals.last_reinforced_at),
            Hot::Pinned => Some(Datum::Bool(vitals.pinned)),
            Hot::AdminLocked => Some(Datum::Bool(vitals.admin_locked)),
            Hot::SystemLocked => Some(Datum::Bool(vitals.system_locked)),
            Hot::DeletesSource => Some(Datum::Bool(vitals.deletes_source)),
            Hot::CreatedAt => Some(Datum::Time(vitals.created_at)),
            Hot::UpdatedAt => Some(Datum::Time(vitals.updated_at)),
            Hot::HappenedAt => time(vitals.happened_at),
            Hot::ExpiresAt => time(times.expires_at),
            Hot::ValidFrom => time(times.valid_from),
            Hot::ValidTo => time(times.valid_to),
            Hot::ValidToBefore => time(times.valid_to_before),
            Hot::RecordedAt => Some(Datum::Time(times.recorded_at)),
            Hot::SupersededAt => time(times.superseded.map(|s| s.at)),
            Hot::SupersededBy => times.superseded_by().map(Datum::Id),
            Hot::SupersedeMode => times.superseded.map(|s| Datum::Code(s.mode.code())),
            Hot::Version => Some(whole(vitals.version)),
            Hot::Pending => Some(Datum::Bool(vitals.place.slot.is_none())),
        }
    }
}

impl Cold {
    /// Whether `f` holds of any value of the field.
    fn any(self, row: &RowView<'_>, f: &mut dyn FnMut(Datum<'_>) -> bool) -> bool {
        let content = row.content;
        match self {
            Cold::Tags => any_text(&content.tags, f),
            Cold::Keys => any_text(row.keys, f),
            Cold::Categories => any_text(row.categories, f),
            Cold::Entities => row.entities.iter().any(|entity| f(Datum::Text(&entity.name))),
            Cold::Sources => any_id(row.sources, f),
            Cold::ConsolidatedFrom => any_id(&content.consolidated_from, f),
            one => one.datum(row).is_some_and(f),
        }
    }

    /// The value of a field that has one at most; none for lists.
    fn datum<'a>(self, row: &RowView<'a>) -> Option<Datum<'a>> {
        let (content, access) = (row.content, row.access);
        let text = |field: &'a Option<String>| field.as_deref().map(Datum::Text);
        match self {
            Cold::CustomKind => {
                Some(Datum::Kind(row.vitals.kind_code, content.custom_kind.as_deref().unwrap_or_default()))
            }
            Cold::Text => Some(Datum::Text(&content.text)),
            Cold::ScopeLabel => Some(Datum::Text(&content.scope_label)),
            Cold::Channel => text(&content.channel),
            Cold::Thread => text(&content.thread),
            Cold::Session => text(&content.session),
            Cold::ReplyTo => content.reply_to.map(Datum::Id),
            Cold::AuthorKind => content.author_kind.map(|kind| Datum::Code(kind.code())),
            Cold::AuthorId => text(&content.author_id),
            Cold::EventType => text(&content.event_type),
            Cold::Step => content.step.map(whole),
            Cold::AgentId => text(&content.agent_id),
            Cold::FamilyId => content.family_id.map(Datum::Id),
            Cold::AggregateId => content.aggregate_id.map(Datum::Id),
            Cold::Topic => content.summary.as_ref().and_then(|summary| text(&summary.topic)),
            Cold::Series => Some(Datum::Text(&content.series)),
            Cold::Resource => text(&content.resource),
            Cold::RetrievalCount => Some(whole(access.retrieval_count)),
            Cold::LastRetrieved => time(access.last_retrieved),
            Cold::RelevanceScoreSum => number(access.relevance_score_sum),
            Cold::RelevanceScoreCount => Some(whole(access.relevance_score_count)),
            Cold::RelevanceMax => number(f64::from(access.relevance_max)),
            Cold::IncludedCountTotal => Some(whole(access.included_count_total)),
            Cold::IncludedCountDecay => number(access.included_count_decay),
            Cold::LastIncludedAt => time(access.last_included_at),
            Cold::ProtectedUntil => time(access.protected_until),
            Cold::SummarizedAt => time(access.summarized_at),
            Cold::PromotedAt => time(access.promoted_at),
            Cold::LastConsolidatedAt => time(access.last_consolidated_at),
            Cold::AccessSeq => Some(whole(access.access_seq)),
            Cold::Tags
            | Cold::Keys
            | Cold::Categories
            | Cold::Entities
            | Cold::Sources
            | Cold::ConsolidatedFrom => None,
        }
    }
}

fn any_text(texts: &[String], f: &mut dyn FnMut(Datum<'_>) -> bool) -> bool {
    texts.iter().any(|text| f(Datum::Text(text)))
}

fn any_id(ids: &[MemoryId], f: &mut dyn FnMut(Datum<'_>) -> bool) -> bool {
    ids.iter().any(|&id| f(Datum::Id(id)))
}

/// Whether `f` holds of any value at `path` below `value`. A list on the way is gone through one level deep, as
/// is one at the end, where the list itself counts as a value that equals nothing. Each call takes one name off
/// the path or leaves one list, so the depth is at most twice the length of the path.
pub(super) fn any_at(value: &Value, path: &[String], f: &mut dyn FnMut(Datum<'_>) -> bool) -> bool {
    match (value, path.split_first()) {
        (Value::Array(items), None) => f(Datum::Opaque) || items.iter().any(|item| f(Datum::of_json(item))),
        (_, None) => f(Datum::of_json(value)),
        (Value::Object(map), Some((name, rest))) => map.get(name).is_some_and(|next| any_at(next, rest, f)),
        (Value::Array(items), Some(_)) => items.iter().any(|item| item.is_object() && any_at(item, path, f)),
        _ => false,
    }
}
