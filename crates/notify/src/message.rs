//! A mail with everything around it: headers, parts, recipients.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use docmill_model::time::Micros;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox as Named, MultiPart, MultiPartKind, SinglePart};
use sha2::{Digest, Sha256};

use crate::{Mail, Mailbox, Sender};

/// Most recipients in copy.
const MOST_COPIES: usize = 50;

/// Bytes of text in one encoded word: 39 are 52 of Base64, so that the first line with its `Subject: ` stays
/// below the 76 of RFC 2047.
const ENCODED_WORD: usize = 39;

/// Whom a mail goes to, and as what.
#[derive(Clone, Debug)]
pub struct Addressing<'a> {
    /// Id of the delivery, the same for every attempt: it becomes the Message-ID's first part, by which
    /// receivers know a mail that came twice. Letters, digits, `-`, `_` and `.`; at most 64.
    pub delivery_id: &'a str,
    /// The mail's date, the same for every attempt: the event's instant.
    pub date: Micros,
    /// Whom it is from.
    pub from: &'a Sender,
    /// Whom it is to.
    pub to: &'a Mailbox,
    /// Who gets a copy that the others see; at most 50.
    pub cc: &'a [Mailbox],
    /// Where answers go, if not to the sender.
    pub reply_to: Option<&'a Mailbox>,
}

/// Why a mail can't be addressed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(&'static str);

/// A mail ready to be sent: its bytes, and its sender and recipients for the server.
#[derive(Clone, Debug)]
pub struct Message {
    file_stem: String,
    from: Mailbox,
    to: Mailbox,
    cc: Vec<Mailbox>,
    bytes: Vec<u8>,
}

impl Mail {
    /// Makes the message for one channel's people: `multipart/alternative` of text and HTML, ASCII
    /// throughout, with lines of at most 998 bytes ended by CR LF. The same arguments give the same bytes.
    ///
    /// # Errors
    /// [`MessageError`] for a delivery id with other characters, or too many copies.
    pub fn address(&self, addressing: &Addressing<'_>) -> Result<Message, MessageError> {
        let id = addressing.delivery_id;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if !(1..=64).contains(&id.len())
            || !id.bytes().all(plain)
            || id.starts_with('.')
            || id.ends_with('.')
            || id.contains("..")
        {
            return Err(MessageError("a delivery id has 1 to 64 letters, digits, - and _"));
        }
        if addressing.cc.len() > MOST_COPIES {
            return Err(MessageError("at most 50 addresses get a copy"));
        }
        let from = addressing.from;
        let mut builder = lettre::Message::builder()
            .date(instant(addressing.date))
            .message_id(Some(format!("<{id}@{}>", from.mailbox().domain())))
            .from(Named::new(from.name().map(str::to_owned), from.mailbox().to_address()))
            .to(Named::new(None, addressing.to.to_address()))
            .raw_header(subject(&self.subject));
        for copy in addressing.cc {
            builder = builder.cc(Named::new(None, copy.to_address()));
        }
        if let Some(reply_to) = addressing.reply_to {
            builder = builder.reply_to(Named::new(None, reply_to.to_address()));
        }
        builder = builder
            .raw_header(fixed("Auto-Submitted", "auto-generated"))
            .raw_header(fixed("X-Docmill-Event", self.event()));
        if let Some(link) = self.unsubscribe() {
            builder = builder
                .raw_header(fixed("List-Unsubscribe", &format!("<{link}>")))
                .raw_header(fixed("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"));
        }
        let built = builder
            .multipart(self.parts(id))
            .map_err(|_| MessageError("the mail has no usable sender or recipient"))?;
        Ok(Message {
            file_stem: format!("{}-{id}", compact(addressing.date)),
            from: from.mailbox().clone(),
            to: addressing.to.clone(),
            cc: addressing.cc.to_vec(),
            bytes: built.formatted(),
        })
    }

    fn parts(&self, id: &str) -> MultiPart {
        let part = |kind: ContentType, text: &str| {
            SinglePart::builder()
                .header(kind)
                .header(ContentTransferEncoding::QuotedPrintable)
                .body(text.to_owned())
        };
        // Depends on all of the mail, so that no text can be written that holds it.
        let hash = [id, &self.subject, &self.text, &self.html]
            .iter()
            .fold(Sha256::new(), |hash, text| hash.chain_update(text))
            .finalize();
        let hash: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        MultiPart::builder()
            .kind(MultiPartKind::Alternative)
            .boundary(format!("docmill-{hash}"))
            .singlepart(part(ContentType::TEXT_PLAIN, &self.text))
            .singlepart(part(ContentType::TEXT_HTML, &self.html))
    }
}

impl Message {
    /// The mail as it is sent (RFC 5322).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Name of the file it is written to, without its ending: instant and delivery id.
    pub(crate) fn file_stem(&self) -> &str {
        &self.file_stem
    }

    pub(crate) fn sender(&self) -> &Mailbox {
        &self.from
    }

    /// Whom it is to, and who gets copies.
    pub(crate) fn recipients(&self) -> (&Mailbox, &[Mailbox]) {
        (&self.to, &self.cc)
    }
}

/// A header that needs no encoding: its text is this crate's own or was checked to be printable ASCII.
fn fixed(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.to_owned(), value.to_owned())
}

/// The subject: folded between words as it is, or, with anything but ASCII or with what could be read as an
/// encoded word, as encoded words throughout (RFC 2047).
fn subject(text: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str("Subject");
    if text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) && !text.contains("=?") {
        return HeaderValue::new(name, text.to_owned());
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.len() + c.len_utf8() <= ENCODED_WORD => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("=?utf-8?b?{}?=", STANDARD.encode(word)))
        .collect();
    HeaderValue::dangerous_new_pre_encoded(name, text.to_owned(), words.join("\r\n "))
}

fn instant(at: Micros) -> SystemTime {
    // Headers hold years of four digits.
    let seconds = (at / 1_000_000).clamp(0, 253_402_300_799);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
}

/// `20260622T113721.648Z`.
fn compact(at: Micros) -> String {
    let at = DateTime::from_timestamp_micros(at.clamp(0, 253_402_300_799_000_000)).unwrap_or_default();
    at.format("%Y%m%dT%H%M%S%.3fZ").to_string()
}
