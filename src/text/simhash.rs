//! The fingerprint `sh-1` of near repeats.
//!
//! Texts with almost the same set of tokens have fingerprints that differ in few bits (SimHash: M. Charikar,
//! "Similarity estimation techniques from rounding algorithms", STOC 2002). On short texts a distance of at most 6
//! means almost the same set: one changed word of four changes about ten bits.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::collections::HashMap;

use super::bigram::bigrams;
use super::bigram::is_cjk;
use super::bigram::runs;
use super::digit::digits_masked;
use super::digit::is_digit;
use super::message::Messages;
use super::message::major_type;
use super::url::host_and_path;
use super::url::urls;
use super::words::is_word;
use crate::model::Attachment;
use crate::model::AuthorKind;
use crate::model::Embed;

/// The id of the normalizer of near repeats.
pub const SIM_ID: &str = "sh-1";

/// Words that say nothing about a message.
const STOPWORDS: [&str; 7] = ["the", "and", "or", "to", "of", "in", "a"];

impl Messages {
    /// The tokens of a message, sorted, each once. They are the words without the addresses, at most `sim.max_tokens`
    /// of them, the most frequent ones, and a small signature. The signature is the host and the path of each address
    /// and of the first embed, the hash of that embed's title, and the types of the attachments.
    ///
    /// `normalized` comes from [`Messages::normalize`]. Author and channel decide how the title is
    /// normalized.
    pub fn tokens(
        &self,
        normalized: &str,
        author: Option<AuthorKind>,
        channel: Option<&str>,
        attachments: &[Attachment],
        embeds: &[Embed],
    ) -> Vec<String> {
        let mut signature = BTreeSet::new();
        let mut text = String::with_capacity(normalized.len());
        let mut from = 0;
        for range in urls(normalized) {
            text.push_str(normalized.get(from..range.start).unwrap_or_default());
            text.push(' ');
            from = range.end;
            signature.extend(normalized.get(range).and_then(host_and_path).map(|place| format!("u:{place}")));
        }
        text.push_str(normalized.get(from..).unwrap_or_default());
        if let Some(primary) = embeds.first() {
            let address = self.address(primary);
            let place = host_and_path(&address).unwrap_or_else(|| digits_masked(&address));
            signature.insert(format!("u:{place}"));
            signature.extend(self.title_hash(primary, author, channel).map(|hash| format!("t:{hash}")));
        }
        signature.extend(attachments.iter().map(|attachment| format!("k:{}", major_type(attachment))));
        signature.extend(most_frequent(&text.to_lowercase(), self.max_tokens));
        signature.into_iter().collect()
    }

    /// Whether two messages with near fingerprints belong together: their sets of tokens have a Jaccard
    /// similarity of at least `sim.verify_jaccard`, or their normalized texts differ only in digits.
    ///
    /// Each message is given as its tokens, from [`Messages::tokens`], and its normalized text.
    pub fn same_family_text(&self, a: (&[String], &str), b: (&[String], &str)) -> bool {
        jaccard(a.0, b.0) >= self.verify_jaccard || digits_masked(a.1) == digits_masked(b.1)
    }
}

/// FNV-1a of 64 bits over the UTF-8 of a token, then the finalizer of MurmurHash3. So every bit of a token affects
/// every bit of its hash.
pub fn token_hash(token: &str) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let mut x = token.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    x ^= x >> 33;
    x = x.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x ^= x >> 33;
    x = x.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ (x >> 33)
}

/// The SimHash of a set of tokens: each bit is 1 if more hashes have it than not. Without tokens there is no
/// SimHash, which never matches.
pub fn fingerprint(tokens: &[String]) -> Option<u64> {
    let mut votes = [0_i64; 64];
    for hash in tokens.iter().map(|token| token_hash(token)) {
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    let bits = votes.iter().enumerate().filter(|(_, vote)| **vote > 0);
    (!tokens.is_empty()).then(|| bits.fold(0, |print, (bit, _)| print | 1 << bit))
}

/// The number of bits in which two fingerprints differ, 0 to 64.
pub fn hamming(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

/// The `most` most frequent tokens of a lowercased text. Of equally frequent tokens, the first by bytes.
fn most_frequent(text: &str, most: usize) -> Vec<String> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut count = |token: &str| match counts.get_mut(token) {
        Some(seen) => *seen += 1,
        None => drop(counts.insert(token.to_owned(), 1)),
    };
    for run in text.split(|c: char| !is_word(c)).filter(|run| !run.is_empty()) {
        parts(run, &mut count);
    }
    let mut tokens: Vec<_> = counts.into_iter().collect();
    if tokens.len() > most {
        tokens.select_nth_unstable_by(most, |(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
        tokens.truncate(most);
    }
    tokens.into_iter().map(|(token, _)| token).collect()
}

/// The tokens of a run of word characters: bigrams of its parts in Han, kana and Hangul, and its other parts
/// unchanged.
fn parts(run: &str, token: &mut impl FnMut(&str)) {
    for (cjk, part) in runs(run, is_cjk) {
        if cjk {
            bigrams(part, token);
        } else if part.chars().all(is_digit) {
            token("#");
        } else if part.chars().nth(1).is_some() && !STOPWORDS.contains(&part) {
            token(part);
        }
    }
}

/// The share of tokens that two sorted sets have in common, 0 to 1; 0 if there are none.
fn jaccard(a: &[String], b: &[String]) -> f64 {
    let (mut shared, mut all) = (0_u32, 0_u32);
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => break,
        };
        all += 1;
        shared += u32::from(order.is_eq());
        if order.is_le() {
            a.next();
        }
        if order.is_ge() {
            b.next();
        }
    }
    f64::from(shared) / f64::from(all.max(1))
}
