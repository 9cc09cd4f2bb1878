//! The secret that a client of the server over HTTP shows.

use std::fmt;
use std::hint::black_box;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::model::random;

/// Fewest and most characters of a token.
const CHARS_MIN: usize = 16;
const CHARS_MAX: usize = 512;
/// Random bytes of a token that is made here.
const RANDOM_BYTES: usize = 32;

/// The secret by which a server over HTTP knows its clients. It is never shown by `Debug`.
///
/// ```
/// use oubliette::mcp::Token;
/// let token = Token::new("3f0c9a7be1d24c58")?;
/// assert_eq!(token.secret(), "3f0c9a7be1d24c58");
/// assert!(!format!("{token:?}").contains("3f0c"));
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Token").finish_non_exhaustive()
    }
}

impl Token {
    /// A token of 16 to 512 characters, each a letter, a digit or one of `-._~+/=` (RFC 6750).
    ///
    /// ```
    /// use oubliette::mcp::Token;
    /// assert!(Token::new("correct-horse-battery").is_ok());
    /// assert!(Token::new("short").is_err());
    /// assert!(Token::new("two words are no token").is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid` for another text; it does not show the text.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if (CHARS_MIN..=CHARS_MAX).contains(&text.len()) && text.bytes().all(is_known) {
            return Ok(Token(text));
        }
        let why = format!("must have {CHARS_MIN} to {CHARS_MAX} letters, digits and characters of -._~+/=");
        Err(Error::invalid("token", why, "a text that is not shown"))
    }

    /// A token that nobody can guess: 256 random bits as 64 hexadecimal digits.
    ///
    /// ```
    /// use oubliette::mcp::Token;
    /// assert_eq!(Token::random()?.secret().len(), 64);
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unavailable` where the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        let bytes: [u8; RANDOM_BYTES] = random()?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token as a client sends it.
    ///
    /// ```
    /// # use oubliette::mcp::Token;
    /// assert_eq!(Token::new("0123456789abcdef")?.secret(), "0123456789abcdef");
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether this is what a client has sent. The time that the answer takes says nothing of the token: digests of both are compared, all
    /// bytes of them.
    pub(super) fn is(&self, sent: &[u8]) -> bool {
        let (ours, theirs) = (Sha256::digest(self.0.as_bytes()), Sha256::digest(sent));
        let differs = ours.iter().zip(&theirs).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn only_the_same_token_is_taken() {
        let token = Token::random().unwrap();
        let own = token.secret().as_bytes();
        assert!(token.is(own));
        for wrong in [&own[1..], &own[..63], b"", &[own, b"0"].concat()] {
            assert!(!token.is(wrong));
        }
        assert_ne!(Token::random().unwrap().secret(), token.secret());
    }

    #[test]
    fn a_token_has_its_bounds() {
        for (text, is_one) in [
            ("a".repeat(15), false),
            ("a".repeat(16), true),
            ("a".repeat(512), true),
            ("a".repeat(513), false),
        ] {
            assert_eq!(Token::new(text.clone()).is_ok(), is_one, "{} characters", text.len());
        }
        for wrong in ["0123456789abcde\n", "0123456789abcde ", "0123456789abcde\u{e9}"] {
            let why = Token::new(wrong).unwrap_err().to_string();
            assert!(!why.contains("0123"), "{why}");
        }
    }
}
