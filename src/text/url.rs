//! The canonical form of web addresses.
//!
//! We divide addresses ourselves, because the rule names everything that may change: the scheme, the host, an empty
//! path, the parameters of the query, and the fragment. A parser of the URL Standard would also encode characters,
//! rewrite hosts to Punycode, resolve dots in paths and drop ports.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::digit::digits_masked;
use crate::policy::Msg;

/// Signs that follow an address in a sentence and are not part of it.
const TRAILING: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '\''];

/// Query parameters for tracking only, besides those that begin with `utm_`; in lower case.
const TRACKING: [&str; 6] = ["ref", "fbclid", "gclid", "si", "mc_cid", "mc_eid"];

/// What a policy says about addresses.
#[derive(Clone, Debug)]
pub(super) struct Urls {
    query_allow: BTreeMap<String, BTreeSet<String>>,
    drop_fragment_hosts: BTreeSet<String>,
}

/// An address in parts. Each part keeps the character that begins it, and may be empty; but user, host and port are
/// not all empty.
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

    /// The canonical form of `url`, which must be one address as [`url_at`] finds it; none if it is not.
    ///
    /// For a host of `msg.query_allow`, exactly the listed parameters stay, even a listed tracking parameter. Their
    /// names are compared exactly, and names of tracking parameters in any case. An empty text between two `&` is not
    /// a parameter.
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

/// Host and path of an address, with `#` for each run of digits; without scheme, user, port, query and fragment.
pub(super) fn host_and_path(url: &str) -> Option<String> {
    split(url).map(|parts| digits_masked(&[parts.host, parts.path].concat()))
}

/// The length in bytes of the address at the beginning of `text`; none if there is no address.
///
/// An address ends at white space, at a control character, or at one of ``<>"` ``, and loses the punctuation at its
/// end. Between scheme and path there must be text.
pub(super) fn url_at(text: &str) -> Option<usize> {
    let stops = |c: char| c.is_whitespace() || c.is_control() || "<>\"`".contains(c);
    let (_, rest) = text.split_at_checked(scheme(text)?.len())?;
    // This is checked first, so that `http:///http:///…` is not read to its end at each scheme.
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

/// User, host and port of the part between the scheme and the path.
fn place(authority: &str) -> Option<(&str, &str, &str)> {
    let (user, place) = authority.split_at_checked(authority.rfind('@').map_or(0, |at| at + 1))?;
    // A colon inside brackets belongs to an IPv6 address.
    let bracket = place.rfind(']').unwrap_or(0);
    let colon = place.get(bracket..).and_then(|end| end.find(':')).map(|at| bracket + at);
    let (host, port) = cut(place, colon);
    Some((user, host, port))
}

/// The text before and after a place. Without a place, everything comes before it.
fn cut(text: &str, at: Option<usize>) -> (&str, &str) {
    at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

/// Lower case in form NFKC. The lowercase letter may compose with a mark where its capital does not.
fn lower(host: &str) -> String {
    if host.is_ascii() { host.to_ascii_lowercase() } else { host.to_lowercase().nfkc().collect() }
}

fn is_tracking(name: &str) -> bool {
    name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("utm_"))
        || TRACKING.iter().any(|tracking| name.eq_ignore_ascii_case(tracking))
}
