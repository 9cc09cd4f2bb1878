//! What the tags of imports say of who has said a text, for the reference (LIFE-26).

use std::collections::BTreeSet;

use crate::model::reference::{Edit, Hold, Model};
use oubliette::{MemoryId, Time};

fn is_of_import(tag: &str) -> bool {
    tag.starts_with("import:")
}

impl Hold {
    /// The tags that name imports.
    pub(super) fn imports(&self) -> BTreeSet<String> {
        self.tags.iter().filter(|tag| is_of_import(tag)).cloned().collect()
    }

    /// The tags of a write that says the same: those that name an import come to those that are there.
    pub(super) fn beside(&self, tags: &BTreeSet<String>) -> BTreeSet<String> {
        let comes = !self.follows && tags.iter().any(|tag| is_of_import(tag));
        let replaces = tags.iter().any(|tag| !is_of_import(tag) && tag != "pinned");
        let stays = self.tags.iter().filter(|tag| comes && (!replaces || is_of_import(tag)));
        tags.iter().chain(stays).cloned().collect()
    }

    /// The tags that an announced text gets of those that the text before it is given. Those that name imports are those of one text.
    pub(super) fn lasting(&self, had: &Hold, given: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let lasting = |tags: &BTreeSet<String>| -> BTreeSet<String> {
            tags.iter().filter(|tag| !is_of_import(tag)).cloned().collect()
        };
        let all = lasting(given).into_iter().chain(self.imports()).collect();
        (lasting(&self.tags) == lasting(&had.tags)).then_some(all)
    }

    /// Nobody has imported the text that it says now.
    pub(super) fn leave_imports(&mut self) {
        self.tags.retain(|tag| !is_of_import(tag));
        self.said_before = false;
    }

    pub(super) fn note_before(&mut self, before: &BTreeSet<String>, says_again: bool) {
        let now = self.imports();
        let stays = self.said_before && (says_again || now.is_subset(before));
        let other = says_again && (before.is_empty() || !before.is_subset(&now));
        self.said_before = !now.is_empty() && (stays || other);
    }

    fn is_said_beside(&self, tag: &str) -> bool {
        let others = self.said_before || self.imports().len() > 1;
        self.key.is_some() && is_of_import(tag) && others
    }
}

impl Model {
    /// Forgets a tag: where a key says its text beside the import that the tag names, the tag goes alone.
    pub(crate) fn forget_tag(&mut self, tag: &str, now: Time) -> BTreeSet<MemoryId> {
        let tag = tag.to_owned();
        let has_tag = |hold: &Hold| hold.tags.contains(&tag);
        for (id, number) in self.holders_where(|hold| has_tag(hold) && hold.is_said_beside(&tag)) {
            let row = self.rows.get_mut(&id).unwrap();
            let hold = row.holders.iter_mut().find(|hold| hold.number == number).unwrap();
            if !has_tag(hold) {
                continue; // It went with the tag of the memory that was united with this one.
            }
            let tags = hold.tags.iter().filter(|its| **its != tag).cloned().collect();
            let (edit, writer) = (Edit { tags: Some(tags), ..Edit::default() }, hold.clone());
            hold.patch(&edit);
            self.patch_former(&writer, &edit);
        }
        self.take(has_tag, now)
    }
}
