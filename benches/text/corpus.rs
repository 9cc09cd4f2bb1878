//! Texts and questions: sentences of real texts, put together anew until there are enough rows.

use std::collections::HashSet;
use std::path::Path;

/// The texts of the demo, for where no others are at hand.
const SHIPPED: &str = include_str!("../../src/bin/oubliette/demo/data/memories.jsonl");
/// Files of the folder of real data whose sentences are taken.
const FILES: [&str; 2] = ["debian_dev_desc.jsonl", "churn_gastown_add_texts.jsonl"];
/// How questions begin.
const OPENINGS: [&str; 8] = [
    "what is the",
    "how does",
    "when did we",
    "why was the",
    "which of the",
    "who is",
    "where are the",
    "is it",
];

/// A small generator with a seed (SplitMix64: Steele, Lea, Flood 2014), so that every run sees the same rows.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// Sentences, and where they are from.
pub struct Corpus {
    sentences: Vec<String>,
    pub name: &'static str,
}

impl Corpus {
    /// The files of a folder of real data; the demo's texts where they are not there.
    pub fn read(folder: &Path) -> Self {
        let files: Vec<String> =
            FILES.iter().filter_map(|file| std::fs::read_to_string(folder.join(file)).ok()).collect();
        let (lines, name) = match files.len() {
            0 => (SHIPPED.to_owned(), "the demo's texts"),
            _ => (files.concat(), "package descriptions and notes of a team"),
        };
        let mut seen = HashSet::new();
        let sentences = lines
            .lines()
            .flat_map(|line| {
                sentences(serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap())
            })
            .filter(|sentence| seen.insert(sentence.clone()))
            .collect();
        Corpus { sentences, name }
    }

    /// Different texts of two to four sentences.
    pub fn rows(&self, count: usize, seed: u64) -> Vec<String> {
        let (mut rng, mut seen, mut rows) = (Rng(seed), HashSet::new(), Vec::with_capacity(count));
        while rows.len() < count {
            let parts: Vec<&str> = (0..2 + rng.below(3))
                .map(|_| self.sentences[rng.below(self.sentences.len())].as_str())
                .collect();
            let row = parts.join(" ");
            if seen.insert(row.clone()) {
                rows.push(row);
            }
        }
        rows
    }
}

fn sentences(text: &str) -> Vec<String> {
    let pieces = text.split_inclusive(['.', '!', '?', '\n']);
    let (mut all, mut open) = (Vec::new(), String::new());
    for piece in pieces {
        open.push_str(piece);
        let words = open.split_whitespace().count();
        if words >= 5 {
            all.push(open.split_whitespace().collect::<Vec<_>>().join(" "));
            open.clear();
        }
    }
    all
}

/// Questions of 6 to 12 words: an opening, and words that follow each other in a row, as they stand there.
pub fn questions(rows: &[String], count: usize, seed: u64) -> Vec<String> {
    let (mut rng, mut all) = (Rng(seed), Vec::with_capacity(count));
    while all.len() < count {
        let row = &rows[rng.below(rows.len())];
        let words: Vec<&str> = row
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
            .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .collect();
        let span = 4 + rng.below(6);
        if words.len() > span {
            let from = rng.below(words.len() - span);
            let opening = OPENINGS[rng.below(OPENINGS.len())];
            all.push(format!("{opening} {}?", words[from..from + span].join(" ")));
        }
    }
    all
}
