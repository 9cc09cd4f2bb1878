//! Two texts, divided by the first empty line, through everything that is made of texts: each part has an answer, and the
//! answer has the properties that its documentation promises.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use oubliette::embed::Embed;
use oubliette::faults::text::{
    Guard, Guards, Messages, Operational, attachment_signature, dup_key, fingerprint, hamming, normal_form,
    same_but_spacing_and_case,
};
use oubliette::memory::{Attachment, AuthorKind};
use oubliette::policy::Policy;

/// A channel whose counters are noise.
const COUNTERS: &str = "ci";

struct Tools {
    operational: Operational,
    messages: Messages,
    guards: Guards,
    stopwords: Vec<String>,
}

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let mut policy = Policy::default();
        policy.msg.counter_channels = vec![COUNTERS.to_owned()];
        Tools {
            operational: Operational::new(&policy.collapse),
            messages: Messages::new(&policy.msg, &policy.sim).unwrap(),
            guards: Guards::new(&policy.guards, &policy.collapse),
            stopwords: policy.collapse.stopwords,
        }
    })
}

/// A message in its normal form, and its tokens.
fn message(
    text: &str,
    author: Option<AuthorKind>,
    channel: Option<&str>,
    embed: &Embed,
) -> (Vec<String>, String) {
    let messages = &tools().messages;
    let normalized = messages.normalize(text, author, channel);
    assert_eq!(messages.normalize(&normalized, author, channel), normalized, "the form of a form is itself");
    let attachment = Attachment { media_type: text.to_owned(), size: text.len() as u64, blob_id: None };
    let (attachments, embeds) = (std::slice::from_ref(&attachment), std::slice::from_ref(embed));
    let tokens = messages.tokens(&normalized, author, channel, attachments, embeds);
    assert!(tokens.is_sorted_by(|a, b| a < b), "a set in order");
    let bare = messages.tokens(&normalized, author, channel, &[], &[]);
    assert_eq!(fingerprint(&bare).is_none(), bare.is_empty(), "without tokens there is none");
    if let Some(kind) = author {
        let scope = messages.scope_key(channel);
        let signatures =
            (attachment_signature(attachments), messages.embed_signature(embeds, author, channel));
        let key = |text: &str| dup_key(kind, scope, text, &signatures.0, &signatures.1);
        assert_eq!(key(&normalized), key(&messages.normalize(&normalized, author, channel)));
    }
    (tokens, normalized)
}

fn report(text: &str) {
    let operational = &tools().operational;
    let Some(signature) = operational.signature(text) else { return };
    let shown = signature.as_str();
    assert!(
        !shown.is_empty() && shown.split(' ').all(|word| !word.is_empty()),
        "words, a space between them"
    );
    assert!(!operational.is_operational(text, &signature) || operational.has_keyword(text));
    let tokens = operational.tokens(shown);
    assert!(tokens.is_sorted_by(|a, b| a < b), "a set in order");
    let key = operational.token_key(shown, 0);
    assert_eq!(key, (!tokens.is_empty()).then(|| tokens.join(" ")));
    assert_eq!(operational.token_key(shown, tokens.len() + 1), None);
}

fn alone(text: &str) {
    report(text);
    assert_eq!(normal_form(text), normal_form(text));
    assert_eq!(
        normal_form(text).fingerprint().is_none(),
        text.trim().is_empty(),
        "only white space has none"
    );
    let Tools { guards, stopwords, .. } = tools();
    assert_eq!(guards.first_failing(text, text), None, "no guard fails on two equal texts");
    let stopwords: Vec<&str> = stopwords.iter().map(String::as_str).collect();
    assert!(same_but_spacing_and_case(text, text, &stopwords));
}

fn both(a: &str, b: &str) {
    let Tools { guards, messages, stopwords, .. } = tools();
    for &guard in Guard::ALL {
        assert_eq!(guards.check(guard, a, b), guards.check(guard, b, a), "{guard:?} is symmetric");
    }
    let first = Guard::ALL.iter().copied().find(|guard| !guards.check(*guard, a, b));
    assert_eq!(guards.first_failing(a, b), first, "profiles see what texts show");
    let stopwords: Vec<&str> = stopwords.iter().map(String::as_str).collect();
    let same = |a, b| same_but_spacing_and_case(a, b, &stopwords);
    assert_eq!(same(a, b), same(b, a));
    let embed = Embed { url: b.to_owned(), title: Some(a.to_owned()) };
    for author in [Some(AuthorKind::Bot), Some(AuthorKind::Human), None] {
        for channel in [Some(COUNTERS), Some("c1"), None] {
            let (one, other) = (message(a, author, channel, &embed), message(b, author, channel, &embed));
            let (one, other) = ((&*one.0, &*one.1), (&*other.0, &*other.1));
            assert!(messages.same_family_text(one, one), "a message is of its own family");
            assert_eq!(messages.same_family_text(one, other), messages.same_family_text(other, one));
            if let (Some(x), Some(y)) = (fingerprint(one.0), fingerprint(other.0)) {
                assert!(hamming(x, x) == 0 && hamming(x, y) == hamming(y, x) && hamming(x, y) <= 64);
            }
        }
    }
}

fuzz_target!(|text: &str| {
    let (a, b) = text.split_once("\n\n").unwrap_or((text, ""));
    alone(a);
    alone(b);
    both(a, b);
});
