//! A server that says what a test tells it to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// What came in: the head, its names in lower case, and the body.
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: serde_json::Value,
}

/// Answers one request after the other, each on a connection of its own, and gives back what was asked. Returns the
/// address above that of the service.
pub(crate) fn serve(answers: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        answers.iter().map(|answer| respond(&listener.accept().unwrap().0, answer)).collect()
    });
    (base_url, server)
}

fn respond(mut stream: &TcpStream, answer: &[u8]) -> Seen {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        // The value of the key is left as it is.
        let (name, value) = line.split_once(' ').unwrap();
        let name = name.to_ascii_lowercase();
        if name == "content-length:" {
            length = value.trim().parse().unwrap();
        }
        head += &format!("{name} {value}");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(answer).unwrap();
    Seen { head, body: serde_json::from_slice(&body).unwrap() }
}

/// An answer over HTTP.
pub(crate) fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}
