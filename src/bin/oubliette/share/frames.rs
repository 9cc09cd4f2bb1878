//! What two processes say to each other: frames of a sort and a bounded number of bytes.
//!
//! ```text
//! sort (1 byte) | length (4 bytes, little-endian) | bytes
//! ```
//!
//! Both begin with a greeting. The guest sends its order; then the owner speaks, and the guest sends input where it is asked for it.

use std::io::{Error, ErrorKind, Read, Result, Write};

use serde::{Deserialize, Serialize};

/// Version of what follows.
const PROTOCOL: u32 = 4;
/// Most bytes of a frame: an order has the words and the variables of a process.
pub(super) const FRAME_BYTES_MAX: usize = 4 << 20;
/// Bytes of lines that belong together, or of one line, up to which another process can begin with the first of them: the guest keeps
/// these until something comes of them.
pub(super) const GROUP_BYTES_MAX: usize = 16 << 20;
/// Bytes of sort and length.
const HEAD: usize = 5;

/// What a process says of itself.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Greeting {
    protocol: u32,
    program: String,
}

impl Greeting {
    pub(super) fn ours() -> Self {
        Greeting { protocol: PROTOCOL, program: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Reads that of another process.
    ///
    /// # Errors
    /// In words, where it is of another version: an answer could have another meaning there.
    pub(super) fn check(bytes: &[u8]) -> std::result::Result<(), String> {
        let theirs: Greeting =
            serde_json::from_slice(bytes).map_err(|why| format!("its greeting is none: {why}"))?;
        let ours = Greeting::ours();
        if theirs == ours {
            return Ok(());
        }
        let shown = |it: &Greeting| format!("oubliette {} (protocol {})", it.program, it.protocol);
        Err(format!("it is {}, and this is {}", shown(&theirs), shown(&ours)))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::json!(self).to_string().into_bytes()
    }
}

/// Sorts of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Sort {
    /// Of both: who speaks.
    Greeting = 1,
    /// Of the guest: a command.
    Order = 2,
    /// Of the guest: bytes of its standard input; none at the end.
    Input = 3,
    /// Of the guest, where a line is asked for: there may be one, and nobody reads an answer to it.
    Unread = 4,
    /// Of the owner: why it takes no order, in words; nothing where it has too many guests.
    Refused = 16,
    /// Of the owner: bytes for standard output.
    Output = 17,
    /// Of the owner: bytes for standard error.
    Error = 18,
    /// Of the owner: it wants some input.
    More = 19,
    /// Of the owner: it wants at most a line more of lines that belong together, or more of a long one. Up to `GROUP_BYTES_MAX` the
    /// command can go on elsewhere without that, from the last `Line` on.
    MoreOfLine = 20,
    /// Of the owner: the command has ended, with an exit code.
    Exit = 21,
    /// Of the owner: it ends, and all that was sent to it is answered. The command can go on elsewhere.
    HandOver = 22,
    /// Of the owner: all that was sent to it is answered, and it wants at most a line. Without that the command can go on elsewhere.
    Line = 23,
}

const SORTS: [Sort; 12] = [
    Sort::Greeting,
    Sort::Order,
    Sort::Input,
    Sort::Unread,
    Sort::Refused,
    Sort::Output,
    Sort::Error,
    Sort::More,
    Sort::MoreOfLine,
    Sort::Exit,
    Sort::HandOver,
    Sort::Line,
];

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) sort: Sort,
    pub(super) bytes: Vec<u8>,
}

/// Whether a read or a write only waited as long as it may.
pub(super) fn is_late(why: &Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The bytes of a frame.
///
/// # Errors
/// `InvalidInput` for one that is too long.
pub(super) fn encoded(sort: Sort, bytes: &[u8]) -> Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length as usize <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "more than 4 MiB at once"))?;
    let mut frame = Vec::with_capacity(HEAD + bytes.len());
    frame.push(sort as u8);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Sends a frame.
///
/// # Errors
/// Those of the writer, and as [`encoded`].
pub(super) fn send(to: &mut impl Write, sort: Sort, bytes: &[u8]) -> Result<()> {
    to.write_all(&encoded(sort, bytes)?)
}

/// Frames that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Arriving(Vec<u8>);

impl Arriving {
    /// Whether nothing of a further frame has come.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next frame that is whole.
    ///
    /// # Errors
    /// `InvalidData` for what is no frame, before its bytes are waited for.
    fn whole(&mut self) -> Result<Option<Frame>> {
        let Some((&[sort, a, b, c, d], rest)) = self.0.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let sort = SORTS.into_iter().find(|known| *known as u8 == sort);
        let sort = sort.filter(|_| length <= FRAME_BYTES_MAX);
        let sort = sort.ok_or_else(|| Error::new(ErrorKind::InvalidData, "what was sent is no frame"))?;
        if rest.len() < length {
            return Ok(None);
        }
        let bytes = self.0.drain(..HEAD + length).skip(HEAD).collect();
        Ok(Some(Frame { sort, bytes }))
    }

    /// Waits for the next frame. What has come of one stays here when `from` gives up for a while.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end, `InvalidData`, and those of `from`: `WouldBlock` where nothing has come in its time.
    pub(super) fn next(&mut self, from: &mut impl Read) -> Result<Frame> {
        let mut some = [0; 16 << 10];
        loop {
            if let Some(frame) = self.whole()? {
                return Ok(frame);
            }
            match from.read(&mut some) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.0.extend_from_slice(some.get(..read).unwrap_or_default()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arriving, FRAME_BYTES_MAX, Frame, Greeting, HEAD, SORTS, Sort, encoded};
    use std::io::ErrorKind;

    #[test]
    fn a_frame_is_read_as_it_was_sent_in_pieces_too() {
        for sort in SORTS {
            let sent = encoded(sort, b"tea").unwrap();
            let mut arriving = Arriving::default();
            for byte in &sent[..sent.len() - 1] {
                let why = arriving.next(&mut &[*byte][..]).unwrap_err();
                assert_eq!(why.kind(), ErrorKind::UnexpectedEof);
            }
            let frame = arriving.next(&mut &sent[sent.len() - 1..]).unwrap();
            assert_eq!(frame, Frame { sort, bytes: b"tea".to_vec() });
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_by_its_head() {
        let long = (FRAME_BYTES_MAX as u32 + 1).to_le_bytes();
        let mut head = vec![Sort::Input as u8];
        head.extend(long);
        for bytes in [&head[..], b"GET / HTTP/1.1\r\n", &[0; HEAD]] {
            let why = Arriving::default().next(&mut &bytes[..]).unwrap_err();
            assert_eq!(why.kind(), ErrorKind::InvalidData, "{bytes:?}");
        }
        assert!(encoded(Sort::Input, &vec![0; FRAME_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn another_version_is_told() {
        assert_eq!(Greeting::check(&Greeting::ours().bytes()), Ok(()));
        let why = Greeting::check(br#"{"protocol":2,"program":"9.9.9"}"#).unwrap_err();
        assert!(why.contains("oubliette 9.9.9 (protocol 2)"), "{why}");
        assert!(Greeting::check(b"tea").is_err());
    }
}
