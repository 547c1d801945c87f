//! HTTP by hand, for what a decent client refuses to send.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{PATIENCE, Server};
use crate::kit::server::KEY;

/// A connection.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
}

/// Status, head and body as received.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawAnswer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {} {}", self.head, String::from_utf8_lossy(&self.body)))
    }

    #[track_caller]
    pub(crate) fn error(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{body}");
        assert!(body["request_id"].is_string());
    }
}

impl Raw {
    pub(crate) async fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).await.expect("a connection");
        Self { stream }
    }

    /// Sends; a server that has already answered may have closed its side.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Reads one answer with a `Content-Length`; `None` when the connection ends before.
    pub(crate) async fn answer(&mut self) -> Option<RawAnswer> {
        timeout(PATIENCE, self.read()).await.expect("an answer in time")
    }

    /// The same with a bound on the wait; `None` too when nothing came.
    pub(crate) async fn answer_within(&mut self, wait: Duration) -> Option<RawAnswer> {
        timeout(wait, self.read()).await.ok().flatten()
    }

    async fn read(&mut self) -> Option<RawAnswer> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if self.more(&mut bytes).await == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or_default();
        while bytes.len() < head_end + 4 + length {
            if self.more(&mut bytes).await == 0 {
                return None;
            }
        }
        Some(RawAnswer {
            status: head.split(' ').nth(1)?.parse().ok()?,
            body: bytes[head_end + 4..].to_vec(),
            head,
        })
    }

    async fn more(&mut self, bytes: &mut Vec<u8>) -> usize {
        self.stream.read_buf(bytes).await.unwrap_or_default()
    }
}

/// The head of a multipart creation with this `Content-Length`, or chunked without one.
pub(crate) fn create_head(content_type: &str, length: Option<usize>) -> String {
    let length = match length {
        Some(length) => format!("content-length: {length}"),
        None => "transfer-encoding: chunked".to_owned(),
    };
    format!(
        "POST /api/v1/jobs/ HTTP/1.1\r\nhost: x\r\nservice-api-key: {KEY}\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n"
    )
}

/// Sends a whole creation with this body and reads the answer.
pub(crate) async fn create(server: &Server, content_type: &str, body: &[u8]) -> RawAnswer {
    let mut raw = Raw::connect(server).await;
    raw.send(create_head(content_type, Some(body.len())).as_bytes()).await;
    raw.send(body).await;
    raw.answer().await.expect("an answer")
}

/// The content type of the bodies made here.
pub(crate) const FORM: &str = "multipart/form-data; boundary=frontier";

/// A part with these header lines.
pub(crate) fn part(headers: &[u8], body: &[u8]) -> Vec<u8> {
    [b"--frontier\r\n", headers, b"\r\n\r\n", body, b"\r\n"].concat()
}

/// The `request_data` part.
pub(crate) fn request_data(value: &str) -> Vec<u8> {
    part(
        b"Content-Disposition: form-data; name=\"request_data\"",
        value.as_bytes(),
    )
}

/// A file part with this raw value of `filename=`.
pub(crate) fn file(raw_name: &[u8], body: &[u8]) -> Vec<u8> {
    let headers = [
        b"Content-Disposition: form-data; name=\"input_files\"; filename=\"",
        raw_name,
        b"\"\r\nContent-Type: text/plain",
    ]
    .concat();
    part(&headers, body)
}

/// The end of a form.
pub(crate) const END: &[u8] = b"--frontier--\r\n";
