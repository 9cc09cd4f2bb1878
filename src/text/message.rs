//! The normal form `msg-1` of messages, and the exact key made from it.

mod noise;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use sha2::Digest;
use sha2::Sha256;
use unicode_normalization::IsNormalized;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::is_nfkc_quick;

use super::digit::is_digit;
use super::url::Urls;
use super::url::url_at;
use crate::error::Result;
use crate::model::Attachment;
use crate::model::AuthorKind;
use crate::model::Embed;
use crate::policy::KeyScope;
use crate::policy::Msg;
use crate::policy::Sim;
use noise::Edit;
use noise::Noise;

/// The id of the normalizer of messages.
pub const MSG_ID: &str = "msg-1";

/// Hex digits of a title's hash in a signature.
const TITLE_DIGITS: usize = 16;

/// How a policy reads messages. It is made once and used for every message.
#[derive(Clone, Debug)]
pub struct Messages {
    urls: Urls,
    noise: Vec<Noise>,
    volatile_for: Vec<AuthorKind>,
    counter_channels: BTreeSet<String>,
    key_scope: KeyScope,
    pub(super) max_tokens: usize,
    pub(super) verify_jaccard: f64,
}

impl Messages {
    /// Compiles the patterns of `msg` and takes the bounds of `sim`.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`](crate::Error::Policy) for a pattern that is not a regular expression, or is too large. A
    /// loaded policy has no such pattern.
    pub fn new(msg: &Msg, sim: &Sim) -> Result<Self> {
        Ok(Messages {
            urls: Urls::new(msg),
            noise: msg.patterns.iter().map(Noise::new).collect::<Result<_>>()?,
            volatile_for: msg.volatile_for.clone(),
            counter_channels: msg.counter_channels.iter().cloned().collect(),
            key_scope: msg.key_scope,
            max_tokens: sim.max_tokens.try_into().unwrap_or(usize::MAX),
            verify_jaccard: sim.verify_jaccard,
        })
    }

    /// The text in form `msg-1`: NFKC with plain spacing, volatile noise replaced, addresses canonical, mentions
    /// replaced. Case is kept.
    ///
    /// Noise is replaced only for the author kinds of `msg.volatile_for`. Counters are replaced only in the
    /// channels of `msg.counter_channels`, in addition. A text without an author keeps its noise, as the text
    /// of a person does.
    ///
    /// The time and the length are linear in the text, because no part of the text is replaced twice. Only a custom
    /// pattern may take longer, if each search for it reads to the end. With the built-in patterns, the form of a form
    /// is the form itself. With custom patterns this may not hold: the replacement of a match may match again.
    pub fn normalize(&self, text: &str, author: Option<AuthorKind>, channel: Option<&str>) -> String {
        let base = plain(text);
        let mut edits = self.shielded(&base);
        if author.is_some_and(|kind| self.volatile_for.contains(&kind)) {
            for noise in &self.noise {
                edits = noise.replaced(&base, edits);
            }
            if channel.is_some_and(|channel| self.counter_channels.contains(channel)) {
                edits = Noise::Counter.replaced(&base, edits);
            }
        }
        edited(&base, &edits)
    }

    /// The signature of the embeds of a message: their count, the canonical address of the first, and the hash of its
    /// title. The last field, the hash of a description, is always empty, because descriptions are not stored.
    ///
    /// The title is normalized in the same way as the text of the message, so author and channel are needed.
    pub fn embed_signature(
        &self,
        embeds: &[Embed],
        author: Option<AuthorKind>,
        channel: Option<&str>,
    ) -> String {
        let primary = embeds.first();
        let url = primary.map(|embed| self.address(embed)).unwrap_or_default();
        let title = primary.and_then(|embed| self.title_hash(embed, author, channel)).unwrap_or_default();
        format!("e1|{}|{url}|{title}|", embeds.len())
    }

    /// The scope in which equal messages are matched, by `msg.key_scope`: the channel, or the empty text for
    /// the whole namespace.
    pub fn scope_key<'c>(&self, channel: Option<&'c str>) -> &'c str {
        match self.key_scope {
            KeyScope::Channel => channel.unwrap_or_default(),
            KeyScope::Namespace => "",
        }
    }

    /// The address of an embed in canonical form. An address that is not a web address is only brought to plain
    /// Unicode and spacing.
    pub(super) fn address(&self, embed: &Embed) -> String {
        let plain = plain(&embed.url);
        self.urls.canonical(&plain).unwrap_or(plain)
    }

    /// The first hex digits of SHA-256 of the normalized title; none without a title.
    pub(super) fn title_hash(
        &self,
        embed: &Embed,
        author: Option<AuthorKind>,
        channel: Option<&str>,
    ) -> Option<String> {
        let title = self.normalize(embed.title.as_deref()?, author, channel);
        let hash = Sha256::digest(&title);
        let digits = hash.iter().take(TITLE_DIGITS / 2).map(|byte| format!("{byte:02x}"));
        (!title.is_empty()).then(|| digits.collect())
    }

    /// The addresses and mentions of a text, each with its canonical form.
    fn shielded(&self, base: &str) -> Vec<Edit<'static>> {
        let mut edits = Vec::new();
        let mut from = 0;
        while let Some(rest) = base.get(from..)
            && let Some(at) = rest.find(['<', 'h', 'H'])
        {
            let at = from + at;
            from = at + 1;
            let Some(rest) = base.get(at..) else { break };
            let found = match url_at(rest) {
                Some(len) => {
                    rest.get(..len).and_then(|url| self.urls.canonical(url)).map(|url| (len, Cow::Owned(url)))
                }
                None => mention_at(rest).map(|(len, put)| (len, Cow::Borrowed(put))),
            };
            if let Some((len, put)) = found {
                from = at + len;
                edits.push(Edit { range: at..from, put });
            }
        }
        edits
    }
}

/// The signature of the attachments of a message: their count, their major types and the buckets of their sizes, each
/// once and in byte order.
pub fn attachment_signature(attachments: &[Attachment]) -> String {
    let types: BTreeSet<_> = attachments.iter().map(major_type).collect();
    let buckets: BTreeSet<_> = attachments.iter().map(|attachment| size_bucket(attachment.size)).collect();
    let types = types.into_iter().collect::<Vec<_>>().join(",");
    let buckets = buckets.into_iter().collect::<Vec<_>>().join(",");
    format!("a1|{}|{types}|{buckets}", attachments.len())
}

/// The key under which exact repeats of a message are matched: SHA-256 of its parts, each after its length in bytes as
/// a little-endian u32. `normalized` comes from [`Messages::normalize`], the scope from [`Messages::scope_key`], and
/// the signatures from [`attachment_signature`] and [`Messages::embed_signature`].
pub fn dup_key(
    author: AuthorKind,
    scope_key: &str,
    normalized: &str,
    attachment_sig: &str,
    embed_sig: &str,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    for field in [MSG_ID, author.as_str(), scope_key, normalized, attachment_sig, embed_sig] {
        // No field comes near 4 GiB, because the text of a memory has at most 1 MiB.
        hash.update(u32::try_from(field.len()).unwrap_or(u32::MAX).to_le_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

/// The part of a media type before the slash, in lower case.
pub(super) fn major_type(attachment: &Attachment) -> String {
    attachment.media_type.split('/').next().unwrap_or_default().trim().to_lowercase()
}

fn size_bucket(bytes: u64) -> &'static str {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        _ if bytes < KIB => "tiny",
        _ if bytes < MIB => "small",
        _ if bytes < 10 * MIB => "medium",
        _ => "large",
    }
}

/// NFKC. Each line is trimmed, its runs of spaces and tabs become one space, and the whole is trimmed.
fn plain(text: &str) -> String {
    let text = match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect::<String>()),
    };
    let mut plain = String::with_capacity(text.len());
    // The carriage return at the end of a line is trimmed with the other white space there.
    for line in text.trim().split('\n').map(str::trim) {
        let mut blank = false;
        for c in line.chars() {
            let is_blank = c == ' ' || c == '\t';
            if !(is_blank && blank) {
                plain.push(if is_blank { ' ' } else { c });
            }
            blank = is_blank;
        }
        plain.push('\n');
    }
    plain.pop();
    plain
}

/// The length of the mention at the beginning of `text`, and its replacement.
fn mention_at(text: &str) -> Option<(usize, &'static str)> {
    const MENTIONS: [(&str, &str); 4] =
        [("<@!", "<@user>"), ("<@&", "<@role>"), ("<@", "<@user>"), ("<#", "<#channel>")];
    MENTIONS.iter().find_map(|(start, put)| {
        let rest = text.strip_prefix(start)?;
        let after = rest.trim_start_matches(is_digit);
        let end = after.strip_prefix('>').filter(|_| after.len() < rest.len())?;
        Some((text.len() - end.len(), *put))
    })
}

/// `base` with every edit made. The edits are in order and do not overlap.
fn edited(base: &str, edits: &[Edit<'_>]) -> String {
    let mut text = String::with_capacity(base.len());
    let mut from = 0;
    for edit in edits {
        text.push_str(base.get(from..edit.range.start).unwrap_or_default());
        text.push_str(&edit.put);
        from = edit.range.end;
    }
    text.push_str(base.get(from..).unwrap_or_default());
    text
}
