//! The security token service.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::super::exchange::{form_request, told};
use super::super::{Ending, IdentityError, IdentityErrorKind, IdentityResult};
use super::{Key, Scope, sign};
use crate::HttpClient;

/// Asks the security token service at `base` (a URL without path); the answer is the same for every way to
/// ask for a key. Signed with `key` where there is one.
///
/// # Errors
/// Why there is no key.
pub async fn ask_sts(
    client: &HttpClient,
    base: &str,
    form: &[(&str, &str)],
    key: Option<&Key>,
    region: &str,
) -> IdentityResult<Ending<Key>> {
    let mut request = form_request(&format!("{base}/"), form)?;
    let path = request.url().path().to_owned();
    if let Some(key) = key {
        let scope = Scope { service: "sts", region };
        sign(&mut request, &path, key, scope, Utc::now())?;
    }
    let mut found = texts(&told(client, request, refusal).await?);
    let mut take = |name: &str| {
        found.remove(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            IdentityError::new(
                IdentityErrorKind::Unexpected,
                format!("the security token service's answer has no {name}"),
            )
        })
    };
    Ok(Ending {
        secret: Key {
            id: take("AccessKeyId")?,
            secret: take("SecretAccessKey")?,
            token: Some(take("SessionToken")?),
        },
        expires: seconds(&take("Expiration")?),
    })
}

fn refusal(body: &[u8]) -> (String, String) {
    let mut found = texts(body);
    let mut take = |name| found.remove(name).unwrap_or_default();
    (take("Code"), take("Message"))
}

/// The text of every element without children, by its name; what can't be read as XML ends the list.
fn texts(xml: &[u8]) -> HashMap<String, String> {
    let mut reader = Reader::from_reader(xml);
    let mut found = HashMap::new();
    let mut inside = None;
    let mut text = String::new();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => {
                inside = Some(start.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece.xml10_content()),
            Event::CData(piece) => text.push_str(&piece.xml10_content()),
            Event::GeneralRef(reference) => match (reference.resolve_char_ref(), &*reference) {
                (Ok(Some(character)), _) => text.push(character),
                (_, "amp") => text.push('&'),
                (_, "lt") => text.push('<'),
                (_, "gt") => text.push('>'),
                (_, "quot") => text.push('"'),
                (_, "apos") => text.push('\''),
                _ => break,
            },
            Event::End(_) => {
                if let Some(name) = inside.take() {
                    found.insert(name, text.trim().to_owned());
                }
                text.clear();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    found
}

/// An instant as Amazon writes it, in seconds since 1970.
pub(super) fn seconds(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_the_names_of_their_leaves() {
        let xml = b"<r xmlns=\"https://x/\"><Credentials><AccessKeyId>A</AccessKeyId>\
            <SessionToken>a&amp;b&#x2F;c</SessionToken></Credentials><x/></r>";
        let found = texts(xml);
        assert_eq!(found.get("AccessKeyId").map(String::as_str), Some("A"));
        assert_eq!(found.get("SessionToken").map(String::as_str), Some("a&b/c"));
        assert!(!found.contains_key("Credentials"));
        assert_eq!(
            refusal(b"<E><Error><Code>AccessDenied</Code><Message>no</Message></Error></E>"),
            ("AccessDenied".to_owned(), "no".to_owned())
        );
        assert_eq!(refusal(b"<html"), Default::default());
        assert_eq!(seconds("2030-01-01T00:00:00Z"), Some(1_893_456_000));
    }
}
