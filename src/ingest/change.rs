//! Writing to a memory that exists: through its key, by its id, in place, by revision, by copy on write.

use std::collections::BTreeMap;

use crate::error::{Error, Result, sound};
use crate::index::slots;
use crate::ingest::ahead::{Ahead, Step};
use crate::ingest::edit::{Edit, keeping_imports, keeping_pin, patch_holder};
use crate::ingest::fields::{not_taken, note_replacement, replaced_as};
use crate::ingest::{Embedded, NamespaceWriter, Prepared, Replaces, space_of};
use crate::ledger::{Change, Entry, Moves, NewRow, given, notes_vector, tags_fit, tier_ttl};
use crate::model::{
    Access, Decision, Draft, EXPIRY_CODE, Evidence, ExpiresBy, Field, Holder, Life, MemoryId, Outcome, Parts,
    Patch, RuleId, RunSort, SupersedeMode, Time, Vitals, check_patch,
};
use crate::policy::OnKey;
use crate::store::control::RunRow;
use crate::store::{IndexId, PartId, Rows, SpaceId};
use crate::text::normal_form;
use crate::vector::UnitVector;

/// The holders through which a change is written.
#[derive(Clone, Copy, Debug)]
enum Through {
    /// One holder, by its number.
    Holder(u32),
    /// All holders.
    All,
}

/// From when on a row is known that one of several holders gets for what it says.
#[derive(Clone, Copy)]
enum Known {
    /// From now on: the row of all tells what was said until now.
    SinceNow,
    /// Since the holder has said it. `says_alone` is whether nothing else tells what it says.
    SinceSaid { says_alone: bool },
}

impl NamespaceWriter<'_, '_, '_> {
    /// A write through a key that a current row holds.
    pub(super) fn write_through_key(
        &mut self,
        prepared: &Prepared,
        id: MemoryId,
        number: u32,
        on_key: OnKey,
    ) -> Result<Outcome> {
        let draft = prepared.checked.draft();
        let ns = self.ns();
        let (vitals, content) = self.ledger.load(ns, id)?;
        let holder = self.holder(id, number)?;
        let text = holder.text.as_ref().unwrap_or(&content.text);
        let same_text = *text == draft.text;
        if !same_text {
            match on_key {
                OnKey::Revise => {}
                OnKey::Error => {
                    return Err(Error::Conflict {
                        what: format!("key {}", draft.key.as_deref().unwrap_or_default()),
                        why: "it holds other content, and the policy says write.on_key = error".to_owned(),
                    });
                }
                OnKey::Reinforce => {
                    let change = self.use_of(id, 1)?;
                    self.apply(RuleId::KEY, change)?;
                    let (decision, rule) = (Decision::Reinforced, RuleId::KEY);
                    let outcome = self.outcome(prepared, id, decision, rule, Evidence::default(), Vec::new());
                    let row = Parts { vitals, content, access: Access::default() };
                    let not_taken = std::iter::once("text").chain(not_taken(&draft.fields, &row)).collect();
                    return Ok(Outcome { not_taken, ..outcome });
                }
            }
        }
        let mut edit = self.edit_of(prepared, &holder);
        let mode = replaced_as(draft);
        if same_text {
            if self.changes_nothing((id, &vitals), &holder, &mut edit)? {
                let (decision, rule) = (Decision::Unchanged, RuleId::KEY);
                return Ok(self.outcome(prepared, id, decision, rule, Evidence::default(), Vec::new()));
            }
        } else {
            // New content comes with everything that its write gives, including what the holder had given
            // before.
            edit.says(draft, self.ledger.secret);
            if mode == SupersedeMode::Replaced {
                edit.begins_anew(draft, self.now(), self.ledger.secret);
            }
        }
        let (id, decision, rule) = self.change(id, Through::Holder(number), edit, mode)?;
        Ok(self.outcome(prepared, id, decision, rule, Evidence::default(), Vec::new()))
    }

    /// Whether a draft of equal text is the same write again. Leaves in `edit` what it changes.
    fn changes_nothing(
        &self,
        (id, vitals): (MemoryId, &Vitals),
        holder: &Holder,
        edit: &mut Edit,
    ) -> Result<bool> {
        edit.vector = match (edit.vector.take(), &holder.text) {
            (Some(vector), None) => Some(vector).filter(|vector| !self.has_vector(id, vitals, vector)),
            // The vector of the row is that of another text. An embedder makes of this text what it made of it then.
            (Some(vector), Some(text)) if edit.embedder.is_none() => {
                // A damaged row tells nothing of its vector.
                let origin = sound(self.ledger.origin(self.ns(), holder, text))?.flatten();
                let known = origin.and_then(|origin| origin.vector);
                let is_known = |vector: &UnitVector| match &known {
                    Some(known) => known == vector,
                    // Its row is gone, or it never had one.
                    None => notes_vector(holder, vector, self.ledger.secret),
                };
                Some(vector).filter(|vector| !is_known(vector))
            }
            _ => None,
        };
        let has = self.ledger.tx.payload(self.ns(), id)?;
        edit.patch.payload = edit.patch.payload.take_if(|payload| *payload != has);
        edit.says_text = true;
        edit.patch.tags = keeping_imports(edit.patch.tags.take(), holder);
        Ok(edit.is_of_holder() && !changes_links(&edit.patch, holder) && !holder.follows)
    }

    /// Whether a draft says what a row said through a holder of the draft's key.
    pub(super) fn says_again(&self, prepared: &Prepared, id: MemoryId, holder: &Holder) -> Result<bool> {
        let Some((vitals, content)) = sound(self.ledger.load(self.ns(), id))? else { return Ok(false) };
        let text = holder.text.as_ref().unwrap_or(&content.text);
        let part = self.partition_of(PartId(vitals.place.partition))?;
        if *text != prepared.checked.draft().text || part != *prepared.checked.partition() {
            return Ok(false);
        }
        let mut edit = self.edit_of(prepared, holder);
        // An embedder makes of the same text what it made of it then.
        edit.vector.take_if(|_| !prepared.brings_vector());
        self.changes_nothing((id, &vitals), holder, &mut edit)
    }

    /// The part of a draft that changes the holder of its key: what the draft gives and the holder does not
    /// carry already.
    fn edit_of(&self, prepared: &Prepared, holder: &Holder) -> Edit {
        let draft = prepared.checked.draft();
        let all = given(&draft.fields, draft.expiry, draft.sources.as_deref(), self.ledger.secret);
        let cleared = self.clears(draft, holder);
        let changed: Vec<_> = all.iter().filter(|field| !holder.fields.contains(field)).copied().collect();
        let patch = Patch {
            text: None,
            vector: None,
            fields: if changed.is_empty() && !cleared { Default::default() } else { draft.fields.clone() },
            expiry: draft.expiry.filter(|_| !changed.is_empty() || cleared),
            tags: keeping_pin(draft.tags.clone(), draft.fields.pinned, &holder.tags),
            categories: draft.categories.clone(),
            entities: draft.entities.clone(),
            links: draft.links.clone(),
            payload: draft.payload.clone().map(Some),
        };
        let given = if changed.is_empty() && !cleared { Vec::new() } else { all };
        let (vector, embedder) = (prepared.vector.clone(), prepared.embedder.clone());
        Edit { vector, embedder, given, run: self.context.run, ..Edit::of(patch) }
    }

    /// Whether a draft gives null for a field that the holder carries.
    fn clears(&self, draft: &Draft, holder: &Holder) -> bool {
        let mut any = false;
        draft.fields.for_each_given(|code, value| {
            any |= value.is_null() && holder.fields.iter().any(|(at, _)| *at == code);
        });
        any
    }

    fn has_vector(&self, id: MemoryId, vitals: &Vitals, vector: &UnitVector) -> bool {
        self.vector_of(id, vitals).is_ok_and(|stored| stored.as_ref() == Some(vector))
    }

    /// The unit vector of a row.
    pub(super) fn vector_of(&self, id: MemoryId, vitals: &Vitals) -> Result<Option<UnitVector>> {
        let Some(slot) = vitals.place.slot else { return Ok(None) };
        let index = IndexId::of(self.ns(), vitals);
        let dim = self.ledger.dim_of(vitals)?;
        slots::vector_at(&*self.ledger.tx, index, dim, slot)?.map(Some).ok_or_else(|| {
            let why = "a memory says that it has a vector, and its slot holds none";
            Error::corrupted("vector", id.as_bytes(), why)
        })
    }

    pub(super) fn holder(&self, id: MemoryId, number: u32) -> Result<Holder> {
        let holder = self.ledger.tx.holder(self.ns(), id, number)?;
        holder.ok_or_else(|| no_holder(id))
    }

    /// Changes a memory by id or key. `embedded` is the vector of the new text, if an embedder made one.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, and `Conflict` for a memory that is superseded, or for a key that follows the text of
    /// another write and would need a row of its own.
    pub(crate) fn update(&mut self, name: &str, patch: Patch, embedded: Option<Embedded>) -> Result<Outcome> {
        let mut patch = check_patch(patch)?;
        self.check_link_targets(patch.links.as_deref().unwrap_or_default())?;
        let (id, number) = self.find(name)?;
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        if vitals.times.removed_at.is_some() {
            return Err(Error::Conflict {
                what: format!("change {name}"),
                why: "maintenance removed it; `restore` brings it back".to_owned(),
            });
        }
        // Until the instant at which another memory takes its place, a change is one of what is true.
        if let Some(by) = vitals.times.superseded_by()
            && self.ahead_of(id)?.is_none()
        {
            let why = format!("it is superseded by {by}");
            return Err(Error::Conflict { what: format!("change {name}"), why });
        }
        let through = number.map_or(Through::All, Through::Holder);
        let held = number.map(|number| self.holder(id, number)).transpose()?;
        let text = held.as_ref().and_then(|holder| holder.text.as_ref()).unwrap_or(&content.text);
        let says_text = patch.text.as_ref() == Some(text);
        patch.text = patch.text.filter(|new| new != text);
        let (vector, embedder) = match (patch.vector.take(), embedded) {
            (Some(values), _) => {
                self.check_dim(values.len())?;
                (Some(UnitVector::new("vector", &values)?), None)
            }
            (None, Some(Embedded { vector, space }))
                if patch.text.is_some() && !self.is_stranger(&space)? =>
            {
                (Some(vector), Some(space))
            }
            _ => (None, None),
        };
        let given = given(&patch.fields, patch.expiry, None, self.ledger.secret);
        let key = held.and_then(|holder| holder.key);
        let edit = Edit { vector, embedder, given, says_text, run: self.context.run, ..Edit::of(patch) };
        let (id, decision, rule) = self.change(id, through, edit, SupersedeMode::Correction)?;
        let outcome = Outcome {
            id,
            key,
            partition: self.partition_of(PartId(vitals.place.partition))?,
            decision,
            rule,
            policy_rule: None,
            event: None,
            evidence: Evidence::default(),
            hints: Vec::new(),
            not_taken: Vec::new(),
            kept_for_others: Vec::new(),
            expires_at: None,
            valid_to: None,
            pending: false,
            policy_number: self.context.policy_number,
        };
        self.settled(outcome)
    }

    /// Pins or unpins: the flag and the tag together.
    pub(crate) fn pin(&mut self, name: &str, pinned: bool) -> Result<Outcome> {
        let mut patch = Patch::default();
        patch.fields.pinned = Some(pinned);
        self.update(name, patch, None)
    }

    /// The writers of a row for whom a change is one.
    fn writers_of(&self, id: MemoryId, through: Through) -> Result<Vec<Holder>> {
        match through {
            Through::Holder(number) => Ok(vec![self.holder(id, number)?]),
            Through::All => self.ledger.tx.holders(self.ns(), id),
        }
    }

    /// Changes in place, by revision, or by copy on write. Returns where the write stands now.
    fn change(
        &mut self,
        id: MemoryId,
        through: Through,
        edit: Edit,
        mode: SupersedeMode,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        let mut ahead = self.ahead_of(id)?;
        if let Some(ahead) = &mut ahead {
            for had in self.writers_of(id, through)? {
                self.open_ahead(ahead, &had)?;
            }
        }
        let not_begun = self.not_begun((id, ahead.is_some()), through, &edit)?;
        ahead.as_mut().map_or(Ok(()), |ahead| self.bring_back(ahead))?;
        if let Some(not_begun) = not_begun {
            let changed = self.change_before(id, through, edit, mode, not_begun)?;
            ahead.map_or(Ok(()), |ahead| self.replace_ahead(&[ahead], (id, None)))?;
            return Ok(changed);
        }
        let Some(mut ahead) = ahead else { return self.change_current(id, through, edit, mode) };
        for had in self.writers_of(id, through)? {
            self.change_ahead(&mut ahead, &had, &edit)?;
        }
        let changed = self.change_current(id, through, edit, mode)?;
        self.replace_ahead(&[ahead], (changed.0, None))?;
        Ok(changed)
    }

    /// Writes a text that is true at once, until a memory begins which its key leads to or has announced.
    fn change_before(
        &mut self,
        id: MemoryId,
        through: Through,
        mut edit: Edit,
        mode: SupersedeMode,
        (at, holder): (Time, Holder),
    ) -> Result<(MemoryId, Decision, RuleId)> {
        for end in [&mut edit.patch.fields.valid_from, &mut edit.patch.fields.valid_to] {
            if !end.is_given() {
                *end = Field::Null;
            }
        }
        let changed = match holder.follows {
            true => self.change_current(id, through, edit, mode)?,
            // What is to come stays the key's own.
            false => {
                let mut parts = self.parts_of_row(id)?;
                self.keep_own(&mut parts, &holder)?;
                self.copy(id, parts, holder, edit)?
            }
        };
        self.replace_at(Step::new(changed.0, id, at))?;
        Ok(changed)
    }

    /// Gives the texts that the key of a holder announces what a change of the holder gives: each of them has of the text before it
    /// what a revision has. An import gives nothing to what others have announced, because its undo could not take that back.
    fn change_ahead(&mut self, ahead: &mut Ahead, had: &Holder, edit: &Edit) -> Result<()> {
        for (id, at) in ahead.to_come() {
            // A memory that another write said has what that write gave.
            let own = self.own_ahead(id, had)?;
            let own = own.filter(|own| self.context.run.is_none_or(|run| own.run == Some(run)));
            let kept =
                own.as_ref().and_then(|own| edit.kept_by(own, had, at, self.now(), self.ledger.secret));
            if let Some((edit, own)) = kept.zip(own) {
                let through = Through::Holder(own.number);
                let changed = self.change_current(id, through, edit, SupersedeMode::Correction)?.0;
                ahead.is_now(id, changed);
            }
        }
        Ok(())
    }

    /// When a memory begins that says another text than a key is to say now, and the holder of the key: the key leads there, or
    /// the memory was written to take the place of what the key said. What the key said before is gone already, by its own
    /// end or because it was forgotten.
    fn not_begun(
        &self,
        (id, is_replaced_ahead): (MemoryId, bool),
        through: Through,
        edit: &Edit,
    ) -> Result<Option<(Time, Holder)>> {
        let Through::Holder(number) = through else { return Ok(None) };
        let (vitals, _) = self.ledger.load(self.ns(), id)?;
        let from = vitals.times.valid_from.filter(|from| *from > self.now());
        let given = edit.patch.fields.valid_from.value();
        let begins = from.filter(|from| edit.patch.text.is_some() && given.is_none_or(|given| given < from));
        let stands = is_replaced_ahead || vitals.times.superseded.is_none();
        let Some(begins) = begins.filter(|_| stands) else { return Ok(None) };
        let holder = self.holder(id, number)?;
        Ok(Some((begins, holder)).filter(|(_, holder)| holder.follows || holder.replaces_ahead()))
    }

    fn change_current(
        &mut self,
        id: MemoryId,
        through: Through,
        mut edit: Edit,
        mode: SupersedeMode,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        if let Through::Holder(number) = through {
            let (had, pinned) = (self.holder(id, number)?.tags, edit.patch.fields.pinned);
            edit.patch.tags = keeping_pin(edit.patch.tags, pinned, &had);
        }
        let parts = self.parts_of_row(id)?;
        match through {
            Through::Holder(number)
                if self.has_others(id, number)?
                    && (edit.patch.text.is_some()
                        || !edit.is_of_holder()
                        || !self.tags_stay_within(id, number, &edit)?) =>
            {
                let (holder, gives_text) = (self.holder(id, number)?, edit.patch.text.is_some());
                if gives_text {
                    self.leave_to_others(id, &holder)?;
                }
                if edit.patch.text.is_some() && !self.is_over(&parts.vitals) {
                    let says_alone = self.says_alone(id, &holder)?;
                    if says_alone || self.is_of_before(&holder, &parts.content.text)? {
                        // What the key said until now stays as the version before: nothing else would tell it, or not for
                        // longer than its other writers stay.
                        let apart =
                            self.copy_apart(id, &parts.vitals, &holder, Known::SinceSaid { says_alone })?;
                        return self.revise(apart, Through::All, self.parts_of_row(apart)?, edit, mode);
                    }
                }
                let copied = self.copy_on_write(id, number, edit)?;
                if !gives_text {
                    let (own, _) = self.ledger.load(self.ns(), copied.0)?;
                    if own.times.until() < parts.vitals.times.until() {
                        self.leave_to_others(id, &holder)?;
                    }
                }
                Ok(copied)
            }
            _ if edit.patch.text.is_some() => self.revise(id, through, parts, edit, mode),
            Through::Holder(number) => self.edit_in_place(id, parts, edit, vec![self.holder(id, number)?]),
            Through::All => {
                let holders = self.ledger.tx.holders(self.ns(), id)?;
                self.edit_in_place(id, parts, edit, holders)
            }
        }
    }

    /// Whether a holder of a row with the text `text` has written its text before the import that writes now. The undo of the import
    /// brings the text back, which nobody else can keep for it: other writers may go meanwhile, or with the import. A writer that the
    /// import itself has led to the row may have said the same in a memory that stands, with an end of its own, and comes back.
    fn is_of_before(&self, holder: &Holder, text: &str) -> Result<bool> {
        if holder.follows || self.context.run.is_none_or(|run| holder.run == Some(run)) {
            return Ok(false);
        }
        let own = holder.text.as_deref().unwrap_or(text);
        let origin = sound(self.ledger.origin(self.ns(), holder, own))?.flatten();
        let stands = origin.is_some_and(|origin| origin.parts.content.text == own);
        Ok(!(stands && self.is_led_here(holder)?))
    }

    /// Whether the run that writes now has led a holder to its row, from a memory that is still there: its undo brings that back.
    fn is_led_here(&self, holder: &Holder) -> Result<bool> {
        let (Some(from), Some(run)) = (holder.from, self.context.run) else { return Ok(false) };
        let times = sound(self.ledger.tx.vitals(self.ns(), from))?.flatten().map(|row| row.times);
        let led = times.filter(|times| times.removed_at.is_none()).and_then(|times| times.superseded);
        if led.is_none_or(|by| by.mode == SupersedeMode::Duplicate) {
            return Ok(false);
        }
        // Somebody else may have led it here in the instant in which the run began.
        Ok(self.last_supersession(from)?.is_some_and(|step| step.run == Some(run)))
    }

    /// Whether the new tags of one of several holders fit the row beside those of the others.
    fn tags_stay_within(&self, id: MemoryId, number: u32, edit: &Edit) -> Result<bool> {
        let Some(tags) = &edit.patch.tags else { return Ok(true) };
        let (_, content) = self.ledger.load(self.ns(), id)?;
        let holder = self.holder(id, number)?;
        Ok(tags_fit(&self.ledger.tags_beside(self.ns(), id, &content.tags, &[holder])?, tags))
    }

    /// Writes new content: a new row takes the place of the old one, and keeps whatever the edit does not
    /// change.
    fn revise(
        &mut self,
        old: MemoryId,
        through: Through,
        parts: Parts,
        edit: Edit,
        mode: SupersedeMode,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        let mut first = match through {
            Through::Holder(number) => self.holder(old, number)?,
            Through::All => {
                let holders = self.ledger.tx.holders(self.ns(), old)?;
                holders
                    .into_iter()
                    .next()
                    .ok_or_else(|| Error::corrupted("holder", old.as_bytes(), "a row without a holder"))?
            }
        };
        if let Some(end) = parts.vitals.times.expires_at.filter(|end| *end <= self.now()) {
            return Err(ended(first.key.as_deref(), old, end));
        }
        let moves = if parts.vitals.place.holders > 1 { Moves::AllBut(first.number) } else { Moves::None };
        // Nobody has imported the new text before.
        first.leave_imports();
        let mut parts = parts;
        // New content makes a new memory, which begins now. The world may have changed before.
        let now = self.now();
        let began = edit.patch.fields.valid_from.value().copied().filter(|at| *at < now);
        let at = began.filter(|_| mode == SupersedeMode::Replaced).unwrap_or(now);
        parts.vitals.created_at = now;
        let beside = edit.beside_the_text();
        let mut row = self.row_like(parts, edit, first)?;
        row.sources = self.sources_of(old)?;
        let new = row.id;
        self.apply(RuleId::REVISE, Change::Insert(Box::new(row)))?;
        self.apply(RuleId::REVISE, Change::Supersede { old, new, mode, at, moves, since: None, via: None })?;
        if let (Through::All, Some(edit)) = (through, beside) {
            // The change is one of every holder, and these have come as they were.
            let mut others = self.ledger.tx.holders(self.ns(), new)?;
            others.retain(|other| other.from == Some(old));
            if !others.is_empty() {
                self.edit_in_place(new, self.parts_of_row(new)?, edit, others)?;
            }
        }
        Ok((new, Decision::Revised { old }, RuleId::REVISE))
    }

    /// Writes a change that cannot apply to all of several holders. The changed holder gets a row of its own,
    /// the others keep theirs.
    fn copy_on_write(
        &mut self,
        old: MemoryId,
        number: u32,
        mut edit: Edit,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        let holder = self.holder(old, number)?;
        let changes = edit.patch != Patch::default() || edit.vector.is_some();
        if edit.patch.text.is_none() && holder.follows && !edit.says_text {
            // The text of the row is that of another write, and goes with that write. A row for this holder would keep it.
            return Err(Error::Conflict {
                what: format!("change {}", holder.key.as_deref().unwrap_or_default()),
                why: format!(
                    "the key leads to memory {old}, but another write said its text; name that memory by its id, \
                     or give a text as well"
                ),
            });
        }
        // Read before the holder leaves: its text, and the vector with it, can go with it.
        let mut parts = self.parts_of_row(old)?;
        let written = self.keep_own(&mut parts, &holder)?;
        if holder.follows && edit.patch.text.is_some() {
            self.begin_anew(&mut parts, &holder);
        }
        if edit.patch.text.is_none() && edit.vector.is_none() {
            edit.vector = match written {
                // The vector of the row is that of another text.
                None if holder.text.is_some() => None,
                None => self.vector_of(old, &parts.vitals)?,
                own => own,
            };
        }
        let run = self.context.run.filter(|run| changes && holder.run != Some(*run));
        if let Some(run) = run.filter(|_| edit.patch.text.is_none()) {
            self.ledger.note_part(&self.context, run, RunSort::Import, [(RunRow::CHANGED_APART, 1)])?;
        }
        // Where the text stays, the write stays one of the run that brought it.
        if edit.patch.text.is_none() && !holder.follows {
            edit.run = holder.run;
        }
        // Of its text the writer says what it says now in the memories of before as well; another text is another memory.
        let said = if edit.patch.text.is_none() { edit.beside_the_text() } else { None };
        let before_united = match said {
            Some(_) if !holder.follows => self.before_united([&holder])?,
            _ => BTreeMap::new(),
        };
        self.apply(RuleId::DETACH, Change::Part { id: old, number })?;
        self.unbegin(&mut parts, old, &holder)?;
        let leaver = edit.patch.text.is_none().then(|| holder.clone());
        let copied = self.copy(old, parts, holder, edit)?;
        if let Some(leaver) = leaver {
            self.lead_versions(old, &leaver, copied.0)?;
            // So do the messages with which it said that.
            if let Some(key) = &leaver.key {
                self.ledger.move_messages(self.ns(), key, old, copied.0)?;
            }
        }
        if let Some(said) = said {
            let (vitals, _) = self.ledger.load(self.ns(), copied.0)?;
            self.change_before_united(before_united, &said, &vitals.times)?;
        }
        Ok(copied)
    }

    /// Takes out of the parts of a row when it took the place of what other keys had said: a holder that has left the row did not say
    /// so.
    fn unbegin(&mut self, parts: &mut Parts, old: MemoryId, leaver: &Holder) -> Result<()> {
        let times = &mut parts.vitals.times;
        let began = times.valid_from_recorded_at.is_some();
        if began && self.replaced_by_leavers(old, std::slice::from_ref(leaver))?.is_empty() {
            times.valid_from = None;
        }
        Ok(())
    }

    /// Gives a change through a holder a row of its own, with the parts of what that holder has brought to this one.
    fn copy(
        &mut self,
        old: MemoryId,
        mut parts: Parts,
        mut holder: Holder,
        mut edit: Edit,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        let now = self.now();
        // What has ended does not begin anew with a change of what is told of it.
        let ended = Some(parts.vitals.life()).filter(|life| life.end.is_some_and(|end| end <= now));
        let patch = &edit.patch;
        let lives = patch.text.is_some() || patch.expiry.is_some() || patch.fields.tier.is_some();
        let ended = ended.filter(|_| !lives);
        if edit.patch.text.is_some() {
            // New content makes a new memory, which begins now.
            parts.vitals.created_at = now;
            holder.leave_imports();
        }
        let known_since = edit.known_since;
        let text = edit.patch.text.take().or_else(|| holder.text.clone());
        edit.patch.text = Some(text.unwrap_or_else(|| parts.content.text.clone()));
        let mut row = self.row_like(parts, edit, holder)?;
        ended.into_iter().for_each(|life| row.vitals.set_life(life));
        known_since.into_iter().for_each(|at| row.vitals.times.recorded_at = at);
        row.content.tags.clone_from(&row.holder.tags);
        row.sources = self.sources_of(old)?;
        let new = row.id;
        // Nothing else tells whose text the key has left.
        let evidence = Evidence { members: vec![old], ..Evidence::default() };
        self.apply_entry(Entry { change: Change::Insert(Box::new(row)), rule: RuleId::DETACH, evidence })?;
        Ok((new, Decision::Stored, RuleId::DETACH))
    }

    /// Stores what takes the place of what a key says, beside it. The new row has of the row that is true by then what a
    /// revision has of the row that it revises.
    pub(super) fn take_place(
        &mut self,
        prepared: &Prepared,
        (mut old, mut number): (MemoryId, u32),
        replaces: Replaces,
    ) -> Result<Outcome> {
        let draft = prepared.checked.draft();
        let at = match replaces {
            Replaces::Now => self.now(),
            Replaces::At(at) => at,
        };
        if let Some(ahead) = self.ahead_of(old)? {
            let then = ahead.by(at).0;
            let holders = self.ledger.tx.holders(self.ns(), then)?;
            if let Some(holder) = holders.iter().find(|holder| holder.key == draft.key) {
                (old, number) = (then, holder.number);
            }
        }
        let mut holder = self.holder(old, number)?;
        let mut parts = self.parts_of_row(old)?;
        if holder.follows || self.has_others(old, number)? {
            self.keep_own(&mut parts, &holder)?;
        }
        if parts.vitals.times.expires_at.is_some_and(|end| end <= at) {
            // An end that comes first is that of the old text alone.
            holder.fields.retain(|(code, _)| *code != EXPIRY_CODE);
        }
        holder.leave_imports();
        let mut edit = self.edit_of(prepared, &holder);
        edit.says(draft, self.ledger.secret);
        if replaced_as(draft) == SupersedeMode::Replaced {
            edit.begins_anew(draft, at, self.ledger.secret);
        }
        let ends = &mut edit.patch.fields.valid_to;
        if !ends.is_given() {
            // The end of what is true until then.
            *ends = Field::Null;
        }
        self.check_sources(draft.sources.as_deref().unwrap_or_default())?;
        let sources = draft.sources.clone().map_or_else(|| self.sources_of(old), Ok)?;
        parts.vitals.created_at = self.now();
        let mut row = NewRow { sources, ..self.row_like(parts, edit, holder)? };
        row.content.tags.clone_from(&row.holder.tags);
        if let Replaces::At(at) = replaces {
            note_replacement(&mut row.holder, at, self.ledger.secret);
        }
        let id = row.id;
        self.apply(RuleId::STORE, Change::Insert(Box::new(row)))?;
        Ok(self.outcome(prepared, id, Decision::Stored, RuleId::STORE, Evidence::default(), Vec::new()))
    }

    /// Gives one of several writers of a text a row of its own, before a change that takes a whole row along. The row is
    /// returned as it is where the writer is alone, and where the row has ended. A key that only leads to the text
    /// of others names their memory.
    pub(super) fn set_apart(&mut self, id: MemoryId, number: u32) -> Result<MemoryId> {
        let (vitals, _) = self.ledger.load(self.ns(), id)?;
        let holder = self.holder(id, number)?;
        if self.is_over(&vitals) || holder.follows || !self.has_others(id, number)? {
            return Ok(id);
        }
        let known = match self.says_alone(id, &holder)? {
            true => Known::SinceSaid { says_alone: true },
            false => Known::SinceNow,
        };
        self.copy_apart(id, &vitals, &holder, known)
    }

    /// Gives one of several holders a row of its own.
    fn copy_apart(
        &mut self,
        id: MemoryId,
        vitals: &Vitals,
        holder: &Holder,
        known: Known,
    ) -> Result<MemoryId> {
        let known_since = match known {
            Known::SinceNow => None,
            // A text that nothing else tells is seen in the past as before: that of the row as long as the row, and a near text
            // that the row had absorbed since it came.
            Known::SinceSaid { says_alone: true } if holder.wrote_row_text() => {
                Some(vitals.times.recorded_at)
            }
            Known::SinceSaid { .. } => Some(holder.since),
        };
        let edit = Edit { known_since, ..Edit::of(Patch::default()) };
        let (alone, ..) = self.copy_on_write(id, holder.number, edit)?;
        Ok(alone)
    }

    /// Whether a row is current no more.
    fn is_over(&self, vitals: &Vitals) -> bool {
        let times = &vitals.times;
        let has_expired = times.expires_at.is_some_and(|end| end <= self.now());
        times.removed_at.is_some() || times.superseded.is_some() || has_expired
    }

    fn sources_of(&self, id: MemoryId) -> Result<Vec<MemoryId>> {
        let rows = self.ledger.tx.junctions(self.ns(), id)?;
        let sources = rows.into_iter().filter(|row| row.sort == crate::store::Junction::Source);
        Ok(sources
            .filter_map(|row| row.target.as_slice().try_into().ok().map(MemoryId::from_bytes))
            .collect())
    }

    /// A new row with the fields of an old one, an edit on top, and one holder carried over.
    fn row_like(&mut self, mut parts: Parts, edit: Edit, mut holder: Holder) -> Result<NewRow> {
        let now = self.now();
        // The counts belong to the old row, not to this one.
        parts.access = Access::default();
        let is_tiers = !holder.gave_expiry() || parts.vitals.expires_by == ExpiresBy::Tier;
        // The end of the text before is none of a text that begins only later.
        let begins = edit.patch.fields.valid_from.value().filter(|from| **from > now);
        let ends_before = parts.vitals.times.expires_at.zip(begins).is_some_and(|(end, from)| end <= *from)
            && edit.patch.text.is_some();
        let lives_by_tier = edit.patch.expiry.is_none() && (is_tiers || ends_before);
        self.patch_parts(&mut parts, &edit);
        if lives_by_tier {
            // The row lives as long as its tier says, whatever other writes gave the old row.
            let ttl = tier_ttl(parts.vitals.tier, &self.policy.ttl);
            parts.vitals.set_life(Life::of_tier(self.lives_from(&parts.vitals), ttl));
        }
        self.check_ends(&parts, &edit)?;
        patch_holder(&mut holder, &edit);
        (holder.from, holder.text, holder.follows, holder.run) = (None, None, false, edit.run);
        let text = edit.patch.text.unwrap_or_default();
        let vitals = &mut parts.vitals;
        vitals.version = 1;
        vitals.times.recorded_at = now;
        vitals.times.superseded = None;
        (vitals.times.valid_to_before, vitals.times.announced) = (None, None);
        // Its begin is its own from now on, and goes with no restoration of what another row had replaced.
        vitals.times.valid_from_recorded_at = None;
        vitals.reinforcement_count = holder.share.max(1);
        vitals.content_bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        vitals.place.fingerprint = normal_form(&text).prefix();
        vitals.place.slot = None;
        vitals.place.space = match &edit.vector {
            Some(vector) => self.open_space_of(vector.dim(), space_of(edit.embedder.as_ref()))?.0,
            None => SpaceId::NONE.0,
        };
        parts.content.text = text;
        Ok(NewRow {
            id: self.next_id()?,
            vitals: parts.vitals,
            content: parts.content,
            access: parts.access,
            holder,
            vector: edit.vector,
            sources: Vec::new(),
            payload: edit.patch.payload.flatten(),
        })
    }
}

/// What is said of a key whose holder is gone: its row is damaged.
pub(super) fn no_holder(id: MemoryId) -> Error {
    Error::corrupted("holder", id.as_bytes(), "a key names a holder that is not there")
}

/// The refusal of a new text for what has ended: it would take the place of nothing.
fn ended(key: Option<&str>, id: MemoryId, end: Time) -> Error {
    let name = key.map_or_else(|| id.to_string(), str::to_owned);
    let anew = key.map_or_else(|| "`add`".to_owned(), |key| format!("`add --key {key}`"));
    let why = format!(
        "its life ended at {end}: {anew} stores the text anew, `touch {name} --ttl` gives it another life"
    );
    Error::Conflict { what: format!("change {name}"), why }
}

/// Whether a patch brings tags or links other than those of the holder.
fn changes_links(patch: &Patch, holder: &Holder) -> bool {
    patch.tags.as_ref().is_some_and(|tags| *tags != holder.tags)
        || patch.categories.as_ref().is_some_and(|names| *names != holder.categories)
        || patch.entities.as_ref().is_some_and(|entities| *entities != holder.entities)
        || patch.links.as_ref().is_some_and(|links| *links != holder.links)
}
