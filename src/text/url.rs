//! The canonical form of web addresses.
//!
//! A splitter of our own, for the rule names all that may change: scheme, host, an empty path, the query's parameters
//! and the fragment. A parser of the URL Standard would besides encode characters, rewrite hosts to Punycode, resolve
//! dots in paths and drop ports.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::digit::digits_masked;
use crate::policy::Msg;

/// What follows an address in a sentence, and is not part of it.
const TRAILING: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '\''];

/// Query parameters that only track, besides those that begin with `utm_`; in lower case.
const TRACKING: [&str; 6] = ["ref", "fbclid", "gclid", "si", "mc_cid", "mc_eid"];

/// The choices of a policy about addresses.
#[derive(Clone, Debug)]
pub(super) struct Urls {
    query_allow: BTreeMap<String, BTreeSet<String>>,
    drop_fragment_hosts: BTreeSet<String>,
}

/// An address in parts; each keeps the character that begins it, and may be empty; user, host and port not all of them.
struct Parts<'u> {
    scheme: &'u str,
    /// User name and password with their `@`.
    user: &'u str,
    host: &'u str,
    port: &'u str,
    path: &'u str,
    query: &'u str,
    fragment: &'u str,
}

impl Urls {
    pub(super) fn new(msg: &Msg) -> Self {
        let allowed = msg.query_allow.iter();
        Urls {
            query_allow: allowed
                .map(|(host, names)| (host.clone(), names.iter().cloned().collect()))
                .collect(),
            drop_fragment_hosts: msg.drop_fragment_hosts.iter().cloned().collect(),
        }
    }

    /// The canonical form of `url`, which is one address as [`url_at`] finds it; none if it is not.
    ///
    /// For a host of `msg.query_allow` exactly the listed parameters stay, a tracking one too if it is listed; names
    /// are compared as they stand there, and in any case against the tracking ones. Parts without a text between two
    /// `&` are no parameters.
    pub(super) fn canonical(&self, url: &str) -> Option<String> {
        let parts = split(url)?;
        let host = lower(parts.host);
        let mut canonical = String::with_capacity(url.len() + 1);
        canonical.push_str(&parts.scheme.to_ascii_lowercase());
        canonical.push_str(parts.user);
        canonical.push_str(&host);
        canonical.push_str(parts.port);
        canonical.push_str(if parts.path.is_empty() { "/" } else { parts.path });
        let allowed = self.query_allow.get(&host);
        let mut before = '?';
        for parameter in
            parts.query.strip_prefix('?').unwrap_or_default().split('&').filter(|text| !text.is_empty())
        {
            let name = parameter.split('=').next().unwrap_or_default();
            if allowed.map_or_else(|| !is_tracking(name), |names| names.contains(name)) {
                canonical.push(before);
                canonical.push_str(parameter);
                before = '&';
            }
        }
        let hosts = &self.drop_fragment_hosts;
        if !hosts.contains("*") && !hosts.contains(&host) {
            canonical.push_str(parts.fragment);
        }
        Some(canonical)
    }
}

/// Host and path of an address with each run of digits as one `#`; without scheme, user, port, query and fragment.
pub(super) fn host_and_path(url: &str) -> Option<String> {
    split(url).map(|parts| digits_masked(&[parts.host, parts.path].concat()))
}

/// The length in bytes of the address that `text` begins with; none if it begins with none.
///
/// It goes on to white space, a control character or one of ``<>"` ``, without the punctuation at its end; something
/// stands between its scheme and its path.
pub(super) fn url_at(text: &str) -> Option<usize> {
    let stops = |c: char| c.is_whitespace() || c.is_control() || "<>\"`".contains(c);
    let (_, rest) = text.split_at_checked(scheme(text)?.len())?;
    // Looked at first, so that `http:///http:///…` is not read to its end at each scheme.
    rest.chars().next().filter(|c| !stops(*c) && !"/?#".contains(*c))?;
    let whole = text.split(stops).next()?.trim_end_matches(TRAILING);
    split(whole).map(|_| whole.len())
}

/// The addresses in `text`, in order.
pub(super) fn urls(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(from..)?;
            let at = from + rest.find(['h', 'H'])?;
            if let Some(len) = text.get(at..).and_then(url_at) {
                from = at + len;
                return Some(at..from);
            }
            from = at + 1;
        }
    })
}

/// `http://` or `https://` in any case.
fn scheme(text: &str) -> Option<&str> {
    ["https://", "http://"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(start)
    })
}

fn split(url: &str) -> Option<Parts<'_>> {
    let scheme = scheme(url)?;
    let (_, rest) = url.split_at_checked(scheme.len())?;
    let (authority, rest) = cut(rest, rest.find(['/', '?', '#']));
    let (path, rest) = cut(rest, rest.find(['?', '#']));
    let (query, fragment) = cut(rest, rest.find('#'));
    let (user, host, port) = place(authority)?;
    (!authority.is_empty()).then_some(Parts { scheme, user, host, port, path, query, fragment })
}

/// User, host and port of what stands between the scheme and the path.
fn place(authority: &str) -> Option<(&str, &str, &str)> {
    let (user, place) = authority.split_at_checked(authority.rfind('@').map_or(0, |at| at + 1))?;
    // A colon inside brackets belongs to an IPv6 address.
    let bracket = place.rfind(']').unwrap_or(0);
    let colon = place.get(bracket..).and_then(|end| end.find(':')).map(|at| bracket + at);
    let (host, port) = cut(place, colon);
    Some((user, host, port))
}

/// Both sides of a place; without one, all is on the left.
fn cut(text: &str, at: Option<usize>) -> (&str, &str) {
    at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

/// Lower case in form NFKC: a lowercase letter may compose with a mark where its uppercase one does not.
fn lower(host: &str) -> String {
    if host.is_ascii() { host.to_ascii_lowercase() } else { host.to_lowercase().nfkc().collect() }
}

fn is_tracking(name: &str) -> bool {
    name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("utm_"))
        || TRACKING.iter().any(|tracking| name.eq_ignore_ascii_case(tracking))
}
