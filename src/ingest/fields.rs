//! From the fields that a caller gave to the row that they make, and to the HMACs by which a repeat is known.

use serde_json::Value;

use crate::model::{Access, Content, ExpiresBy, Expiry, Fields, Holder, Life, Summary, Time, Vitals};
use crate::policy::Policy;
use crate::text::{Secret, canonical};

/// Code of the expiry among a holder's fields; those of [`Fields`] count up from 0.
const EXPIRY_CODE: u8 = 250;
/// Code of the sources among a holder's fields.
const SOURCES_CODE: u8 = 251;
const _: () = assert!(Fields::NAMES.len() < EXPIRY_CODE as usize);
/// Domain of the HMACs of fields.
const DOMAIN: &str = "field";

/// Code and short HMAC of each field that was given, by code. What was cleared counts as not given: an absent
/// field and a null one leave the same row (DEDUP-56).
pub(super) fn given(
    fields: &Fields,
    expiry: Option<Expiry>,
    sources: Option<&[crate::model::MemoryId]>,
    secret: &Secret,
) -> Vec<(u8, [u8; 8])> {
    let mut all = Vec::new();
    fields.for_each_given(|code, value| {
        if let (Ok(code), false) = (u8::try_from(code), value.is_null()) {
            all.push((code, short(secret, code, &value)));
        }
    });
    if let Some(expiry) = expiry {
        let shown = match expiry {
            Expiry::Tier => "tier".to_owned(),
            Expiry::Never => "never".to_owned(),
            Expiry::At(at) => at.to_string(),
            Expiry::After(span) => format!("+{span}"),
        };
        all.push((EXPIRY_CODE, short(secret, EXPIRY_CODE, &Value::String(shown))));
    }
    if let Some(sources) = sources.filter(|sources| !sources.is_empty()) {
        let list = sources.iter().map(|id| Value::String(id.to_string())).collect();
        all.push((SOURCES_CODE, short(secret, SOURCES_CODE, &Value::Array(list))));
    }
    all
}

/// HMACs of the fields named by `codes`, from the row as it stands: for a holder of an export, whose own values
/// are not in it.
pub(super) fn given_by_code(holder: &mut Holder, fields: &Fields, secret: &Secret) {
    let known = given(fields, None, None, secret);
    for (code, hmac) in &mut holder.fields {
        if let Some((_, value)) = known.iter().find(|(at, _)| at == code) {
            *hmac = *value;
        }
    }
}

/// Whether the write that a holder stands for said when it ends.
pub(super) fn carries_expiry(holder: &Holder) -> bool {
    holder.fields.iter().any(|(code, _)| *code == EXPIRY_CODE)
}

fn short(secret: &Secret, code: u8, value: &Value) -> [u8; 8] {
    let mut bytes = vec![code];
    canonical(value, &mut bytes);
    secret.short(DOMAIN, &bytes)
}

/// The part of a row that fields decide.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowParts {
    pub(super) vitals: Vitals,
    pub(super) content: Content,
    pub(super) access: Access,
}

impl RowParts {
    /// Puts what was given in place of what is there.
    pub(super) fn apply(&mut self, fields: &Fields) {
        self.apply_vitals(fields);
        self.apply_content(fields);
        self.apply_summary(fields);
        self.apply_access(fields);
    }

    /// Name and value of each field that the journal tells the change of.
    pub(super) fn shown(&self) -> Vec<(&'static str, Value)> {
        let (vitals, content) = (&self.vitals, &self.content);
        let time = |at: Option<Time>| at.map(|at| at.to_string()).into();
        vec![
            ("kind", crate::store::kind_of(vitals, content).to_string().into()),
            ("tier", vitals.tier.as_str().into()),
            ("significance", vitals.significance.as_str().into()),
            ("importance", vitals.importance.into()),
            ("confidence", vitals.confidence.into()),
            ("reinforcement_count", vitals.reinforcement_count.into()),
            ("pinned", vitals.pinned.into()),
            ("admin_locked", vitals.admin_locked.into()),
            ("system_locked", vitals.system_locked.into()),
            ("expires_at", time(vitals.times.expires_at)),
            ("expires_by", vitals.expires_by.as_str().into()),
            ("valid_from", time(vitals.times.valid_from)),
            ("valid_to", time(vitals.times.valid_to)),
            ("created_at", time(Some(vitals.created_at))),
            ("happened_at", time(vitals.happened_at)),
            ("scope_label", content.scope_label.clone().into()),
            ("channel", content.channel.clone().into()),
            ("thread", content.thread.clone().into()),
            ("session", content.session.clone().into()),
            ("author_kind", content.author_kind.map(|kind| kind.as_str()).into()),
            ("author_id", content.author_id.clone().into()),
            ("event_type", content.event_type.clone().into()),
            ("step", content.step.into()),
            ("agent_id", content.agent_id.clone().into()),
            ("series", content.series.clone().into()),
            ("resource", content.resource.clone().into()),
            ("metadata", content.metadata.clone()),
        ]
    }

    fn apply_vitals(&mut self, fields: &Fields) {
        let vitals = &mut self.vitals;
        if let Some(kind) = &fields.kind {
            vitals.kind_code = kind.code();
            self.content.custom_kind = match kind {
                crate::model::Kind::Custom(name) => Some(name.clone()),
                _ => None,
            };
        }
        set(&mut vitals.tier, fields.tier);
        set(&mut vitals.significance, fields.significance);
        set(&mut vitals.importance, fields.importance);
        vitals.confidence = fields.confidence.over(vitals.confidence);
        if let Some(count) = fields.reinforcement_count {
            vitals.reinforcement_count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        }
        vitals.last_reinforced_at = fields.last_reinforced_at.over(vitals.last_reinforced_at);
        set(&mut vitals.pinned, fields.pinned);
        set(&mut vitals.admin_locked, fields.admin_locked);
        set(&mut vitals.system_locked, fields.system_locked);
        set(&mut vitals.created_at, fields.created_at);
        set(&mut vitals.updated_at, fields.updated_at);
        vitals.happened_at = fields.happened_at.over(vitals.happened_at);
        vitals.times.valid_from = fields.valid_from.over(vitals.times.valid_from);
        vitals.times.valid_to = fields.valid_to.over(vitals.times.valid_to);
    }

    fn apply_content(&mut self, fields: &Fields) {
        let content = &mut self.content;
        if let Some(metadata) = &fields.metadata {
            content.metadata = metadata.clone();
        }
        set(&mut content.scope_label, fields.scope_label.clone());
        content.channel = fields.channel.over(content.channel.take());
        content.thread = fields.thread.over(content.thread.take());
        content.session = fields.session.over(content.session.take());
        content.reply_to = fields.reply_to.over(content.reply_to);
        content.author_kind = fields.author_kind.over(content.author_kind);
        content.author_id = fields.author_id.over(content.author_id.take());
        content.event_type = fields.event_type.over(content.event_type.take());
        content.step = fields.step.over(content.step);
        content.agent_id = fields.agent_id.over(content.agent_id.take());
        set(&mut content.attachments, fields.attachments.clone());
        set(&mut content.embeds, fields.embeds.clone());
        content.family_id = fields.family_id.over(content.family_id);
        content.aggregate_id = fields.aggregate_id.over(content.aggregate_id);
        set(&mut content.series, fields.series.clone());
        content.resource = fields.resource.over(content.resource.take());
        set(&mut content.consolidated_from, fields.consolidated_from.clone());
    }

    fn apply_summary(&mut self, fields: &Fields) {
        let mut summary = self.content.summary.take().map(|summary| *summary).unwrap_or_default();
        summary.topic = fields.topic.over(summary.topic);
        summary.time_range = fields.time_range.over(summary.time_range);
        summary.bullet_events = fields.bullet_events.over(summary.bullet_events);
        summary.decisions = fields.decisions.over(summary.decisions);
        summary.open_loops = fields.open_loops.over(summary.open_loops);
        summary.spam_patterns = fields.spam_patterns.over(summary.spam_patterns);
        self.content.summary = (summary != Summary::default()).then(|| Box::new(summary));
    }

    fn apply_access(&mut self, fields: &Fields) {
        let access = &mut self.access;
        set(&mut access.retrieval_count, fields.retrieval_count);
        access.last_retrieved = fields.last_retrieved.over(access.last_retrieved);
        set(&mut access.relevance_score_sum, fields.relevance_score_sum);
        set(&mut access.relevance_score_count, fields.relevance_score_count);
        set(&mut access.relevance_max, fields.relevance_max);
        set(&mut access.included_count_total, fields.included_count_total);
        set(&mut access.included_count_decay, fields.included_count_decay);
        access.last_included_at = fields.last_included_at.over(access.last_included_at);
        access.protected_until = fields.protected_until.over(access.protected_until);
        access.summarized_at = fields.summarized_at.over(access.summarized_at);
        access.promoted_at = fields.promoted_at.over(access.promoted_at);
        access.last_consolidated_at = fields.last_consolidated_at.over(access.last_consolidated_at);
    }

    /// Sets the end of life that a caller asked for, or that the tier has (LIFE-1).
    pub(super) fn expire(&mut self, expiry: Expiry, policy: &Policy) {
        let vitals = &mut self.vitals;
        // Imported history is not born expired.
        let base = vitals.created_at.max(vitals.times.recorded_at);
        let callers = |end: Option<Time>| Life { end, by: ExpiresBy::Caller };
        vitals.set_life(match expiry {
            Expiry::Never => callers(None),
            Expiry::At(at) => callers(Some(at)),
            Expiry::After(span) => callers(Some(base.plus(span))),
            Expiry::Tier => Life::of_tier(base, tier_ttl(vitals.tier, policy)),
        });
    }
}

/// How long a row of a tier lives by default; none for the durable ones (LIFE-1).
pub(super) fn tier_ttl(tier: crate::model::Tier, policy: &Policy) -> Option<crate::model::Span> {
    let ttl = match tier {
        crate::model::Tier::Working => policy.ttl.working,
        crate::model::Tier::Episodic => policy.ttl.episodic,
        crate::model::Tier::Semantic | crate::model::Tier::Procedural => return None,
    };
    Some(ttl.into())
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// The fields of a memory as a caller would give them, those that are not set left out.
pub(super) fn fields_of(memory: &crate::model::Memory) -> Fields {
    let (vitals, content, access) = (&memory.vitals, &memory.content, &memory.access);
    let summary = content.summary.as_deref().cloned().unwrap_or_default();
    Fields {
        kind: Some(memory.kind()),
        tier: Some(vitals.tier),
        significance: Some(vitals.significance),
        importance: Some(vitals.importance),
        confidence: vitals.confidence.into(),
        reinforcement_count: Some(i64::from(vitals.reinforcement_count)),
        last_reinforced_at: vitals.last_reinforced_at.into(),
        pinned: Some(vitals.pinned),
        admin_locked: Some(vitals.admin_locked),
        system_locked: Some(vitals.system_locked),
        metadata: Some(content.metadata.clone()),
        scope_label: Some(content.scope_label.clone()),
        channel: content.channel.clone().into(),
        thread: content.thread.clone().into(),
        session: content.session.clone().into(),
        reply_to: content.reply_to.into(),
        author_kind: content.author_kind.into(),
        author_id: content.author_id.clone().into(),
        event_type: content.event_type.clone().into(),
        step: content.step.into(),
        agent_id: content.agent_id.clone().into(),
        attachments: Some(content.attachments.clone()),
        embeds: Some(content.embeds.clone()),
        family_id: content.family_id.into(),
        aggregate_id: content.aggregate_id.into(),
        topic: summary.topic.into(),
        time_range: summary.time_range.into(),
        bullet_events: summary.bullet_events.into(),
        decisions: summary.decisions.into(),
        open_loops: summary.open_loops.into(),
        spam_patterns: summary.spam_patterns.into(),
        series: Some(content.series.clone()),
        resource: content.resource.clone().into(),
        consolidated_from: Some(content.consolidated_from.clone()),
        retrieval_count: Some(access.retrieval_count),
        last_retrieved: access.last_retrieved.into(),
        relevance_score_sum: Some(access.relevance_score_sum),
        relevance_score_count: Some(access.relevance_score_count),
        relevance_max: Some(access.relevance_max),
        included_count_total: Some(access.included_count_total),
        included_count_decay: Some(access.included_count_decay),
        last_included_at: access.last_included_at.into(),
        protected_until: access.protected_until.into(),
        summarized_at: access.summarized_at.into(),
        promoted_at: access.promoted_at.into(),
        last_consolidated_at: access.last_consolidated_at.into(),
        created_at: Some(vitals.created_at),
        updated_at: Some(vitals.updated_at),
        happened_at: vitals.happened_at.into(),
        valid_from: vitals.times.valid_from.into(),
        valid_to: vitals.times.valid_to.into(),
    }
}
