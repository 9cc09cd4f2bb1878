//! Who is let in: whoever names this server, comes from no foreign page, and shows the token.
//!
//! A page in a browser can send requests to this machine, and a name of its own that leads here (DNS rebinding) lets it read the answers.
//! `Host` is such a name then, and `Origin` is that of the page. Both are checked before the token.

use std::net::SocketAddr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{StatusCode, Uri};

use crate::mcp::token::Token;

/// The port that a URL need not say.
const DEFAULT_PORT: u16 = 80;

/// The check of each request, made of its head alone.
pub(super) struct Door {
    /// What `Host` may say.
    hosts: Vec<String>,
    token: Token,
}

/// Why nobody is let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: &'static str,
}

impl Door {
    /// Of a server that listens here.
    pub(super) fn new(address: SocketAddr, token: Token) -> Self {
        let mut hosts = Vec::new();
        let own = match address {
            SocketAddr::V4(own) => own.ip().to_string(),
            SocketAddr::V6(own) => format!("[{}]", own.ip()),
        };
        for name in ["localhost", "127.0.0.1", "[::1]", &own] {
            hosts.push(format!("{name}:{}", address.port()));
            if address.port() == DEFAULT_PORT {
                hosts.push(name.to_owned());
            }
        }
        Door { hosts, token }
    }

    /// Lets a request in.
    ///
    /// # Errors
    /// `FORBIDDEN` for another host or origin, `UNAUTHORIZED` without the token.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let forbidden = |why| Refusal { status: StatusCode::FORBIDDEN, why };
        let host = only(headers, &HOST).filter(|host| self.is_own(host));
        host.ok_or(forbidden("Host must be this server, by a name of this machine and with its port"))?;
        if uri.authority().is_some_and(|named| !self.is_own(named.as_str().as_bytes())) {
            return Err(forbidden("the request is for another server"));
        }
        let is_own_page =
            |origin: &[u8]| origin.strip_prefix(b"http://").is_some_and(|host| self.is_own(host));
        if !headers.get_all(ORIGIN).iter().all(|origin| is_own_page(origin.as_bytes())) {
            return Err(forbidden("Origin must be this server"));
        }
        let shown = only(headers, &AUTHORIZATION).and_then(bearer);
        if !shown.is_some_and(|shown| self.token.is(shown)) {
            let why = "the token of this server must be given, as Authorization: Bearer TOKEN";
            return Err(Refusal { status: StatusCode::UNAUTHORIZED, why });
        }
        Ok(())
    }

    fn is_own(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }
}

/// A header that stands there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
}

/// The token of a header.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::{Door, HeaderMap};
    use crate::mcp::token::Token;

    /// Status of the refusal of a request with these headers; none where it is let in.
    fn refusal(address: &str, uri: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let door = Door::new(address.parse().unwrap(), Token::new("0123456789abcdef").unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        door.check(&uri.parse().unwrap(), &map).err().map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_names_of_this_machine_with_the_port_are_taken() {
        let token = ("authorization", "Bearer 0123456789abcdef");
        for (address, host, refused) in [
            ("127.0.0.1:7000", "127.0.0.1:7000", None),
            ("127.0.0.1:7000", "LocalHost:7000", None),
            ("[::1]:7000", "[::1]:7000", None),
            ("127.0.0.9:7000", "127.0.0.9:7000", None),
            ("127.0.0.1:80", "localhost", None),
            ("127.0.0.1:7000", "localhost", Some(403)),
            ("127.0.0.1:7000", "127.0.0.1:7001", Some(403)),
            ("127.0.0.1:7000", "127.0.0.9:7000", Some(403)),
            ("127.0.0.1:7000", "evil.example:7000", Some(403)),
            ("127.0.0.1:7000", "localhost:7000.evil.example", Some(403)),
            ("127.0.0.1:7000", "", Some(403)),
        ] {
            assert_eq!(refusal(address, "/mcp", &[("host", host), token]), refused, "{address} {host}");
        }
        let host = ("host", "localhost:7000");
        assert_eq!(refusal("127.0.0.1:7000", "/mcp", &[token]), Some(403), "no host");
        assert_eq!(refusal("127.0.0.1:7000", "/mcp", &[host, host, token]), Some(403), "two hosts");
        assert_eq!(refusal("127.0.0.1:7000", "http://evil.example/mcp", &[host, token]), Some(403));
        assert_eq!(refusal("127.0.0.1:7000", "http://localhost:7000/mcp", &[host, token]), None);
    }

    #[test]
    fn a_foreign_page_and_a_wrong_token_are_refused() {
        let (host, token) = (("host", "localhost:7000"), ("authorization", "Bearer 0123456789abcdef"));
        for (origin, refused) in [
            ("http://localhost:7000", None),
            ("http://127.0.0.1:7000", None),
            ("https://localhost:7000", Some(403)),
            ("http://localhost:3000", Some(403)),
            ("http://evil.example", Some(403)),
            ("null", Some(403)),
        ] {
            assert_eq!(
                refusal("127.0.0.1:7000", "/mcp", &[host, ("origin", origin), token]),
                refused,
                "{origin}"
            );
        }
        for (shown, refused) in [
            ("bearer 0123456789abcdef", None),
            ("Bearer 0123456789abcdeF", Some(401)),
            ("Bearer 0123456789abcde", Some(401)),
            ("Bearer", Some(401)),
            ("Basic 0123456789abcdef", Some(401)),
            ("", Some(401)),
        ] {
            assert_eq!(
                refusal("127.0.0.1:7000", "/mcp", &[host, ("authorization", shown)]),
                refused,
                "{shown}"
            );
        }
        assert_eq!(refusal("127.0.0.1:7000", "/mcp", &[host]), Some(401));
        assert_eq!(refusal("127.0.0.1:7000", "/mcp", &[host, token, token]), Some(401), "two tokens");
    }
}
