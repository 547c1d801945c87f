//! `orig_elements`: the elements a chunk was made of, as base64 of a zlib stream of a JSON array.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde_json::Value;

use crate::element::Element;

/// Why a value could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not base64.
    #[error("orig_elements is not base64")]
    Base64(#[source] base64::DecodeError),
    /// Not a zlib stream.
    #[error("orig_elements is not a zlib stream")]
    Zlib(#[source] std::io::Error),
    /// Larger than allowed once expanded.
    #[error("orig_elements expands to more than {0} bytes")]
    TooLarge(u64),
    /// Not a JSON array of elements.
    #[error("orig_elements does not hold elements")]
    Json(#[source] serde_json::Error),
}

/// Encodes elements: keys sorted, `", "` and `": "` as separators, zlib (not gzip), base64.
pub fn encode(elements: &[Element]) -> String {
    let mut json = String::from("[");
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            json.push_str(", ");
        }
        let value = serde_json::to_value(element).unwrap_or(Value::Null);
        write_sorted(&value, &mut json);
    }
    json.push(']');
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing into a `Vec` can't fail.
    let _ = zlib.write_all(json.as_bytes());
    STANDARD.encode(zlib.finish().unwrap_or_default())
}

/// Decodes what [`encode`] (or another implementation) wrote, expanding to at most `max_bytes`.
pub fn decode(text: &str, max_bytes: u64) -> Result<Vec<Element>, DecodeError> {
    let compressed = STANDARD.decode(text).map_err(DecodeError::Base64)?;
    let mut json = Vec::new();
    ZlibDecoder::new(compressed.as_slice())
        .take(max_bytes + 1)
        .read_to_end(&mut json)
        .map_err(DecodeError::Zlib)?;
    if json.len() as u64 > max_bytes {
        return Err(DecodeError::TooLarge(max_bytes));
    }
    serde_json::from_slice(&json).map_err(DecodeError::Json)
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push_str(": ");
                write_sorted(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::ElementType;

    const REFERENCE: &str =
        "eJyLrlZKzUnNTc0ric9MUbJSUKpQ0lFQyk0tSUxJLEkEClTXAvklqRUlIEmPTJBsSWVBKojnl1hUlFiSWZYaApKujQUAmIkYKQ==";

    fn hi() -> Element {
        let mut element = Element::new(ElementType::NarrativeText, "Hi");
        element.element_id = "x".into();
        element
    }

    #[test]
    fn reads_the_reference_value() {
        assert_eq!(decode(REFERENCE, 1_000).unwrap(), [hi()]);
    }

    #[test]
    fn writes_the_reference_json() {
        let compressed = STANDARD.decode(encode(&[hi()])).unwrap();
        let mut json = String::new();
        ZlibDecoder::new(compressed.as_slice())
            .read_to_string(&mut json)
            .unwrap();
        assert_eq!(
            json,
            r#"[{"element_id": "x", "metadata": {}, "text": "Hi", "type": "NarrativeText"}]"#
        );
    }

    #[test]
    fn refuses_a_bomb() {
        let mut big = hi();
        big.text = "a".repeat(100_000);
        assert!(matches!(
            decode(&encode(&[big]), 1_000),
            Err(DecodeError::TooLarge(1_000))
        ));
    }
}
