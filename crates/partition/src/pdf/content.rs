//! The content streams of a page, as far as they can be decoded.

use std::borrow::Cow;

use flate2::{Decompress, FlushDecompress, Status};
use hayro_interpret::hayro_syntax::object::dict::keys::{CONTENTS, DECODE_PARMS, FILTER};
use hayro_interpret::hayro_syntax::object::{Array, Name, Stream};
use hayro_interpret::hayro_syntax::page::Page;

use super::engine::Unreadable;

/// Room made for what comes out of a stream, in bytes, and a multiple of what goes in.
const MIN_ROOM: usize = 4 << 10;
const RATIO: usize = 6;

/// The content streams of a page, one after the other.
pub(super) struct Drawn<'p> {
    pub(super) operators: Cow<'p, [u8]>,
    /// Number of streams that cannot be decoded.
    pub(super) lost: usize,
    /// Number of streams that are damaged: what follows the damage may be missing or wrong.
    pub(super) damaged: usize,
}

impl<'p> Drawn<'p> {
    pub(super) fn of(page: &'p Page<'_>) -> Result<Self, Unreadable> {
        let raw = page.raw();
        let mut drawn = Self {
            operators: Cow::default(),
            lost: 0,
            damaged: 0,
        };
        let Some(parts) = raw.get::<Array<'_>>(CONTENTS) else {
            if let Some(stream) = raw.get::<Stream<'_>>(CONTENTS) {
                let decoded = decode(&stream).ok_or(Unreadable("its content stream cannot be decoded"))?;
                drawn.damaged = usize::from(decoded.damaged);
                drawn.operators = Cow::Owned(decoded.data);
            } else if raw.contains_key(CONTENTS) {
                return Err(Unreadable("its content stream cannot be decoded"));
            }
            return Ok(drawn);
        };
        let stated = parts.raw_iter().count();
        let (mut operators, mut whole) = (Vec::new(), 0);
        for part in parts.iter::<Stream<'_>>() {
            if let Some(decoded) = decode(&part) {
                // The decoder gives what comes before an error, which may be nothing.
                whole += usize::from(!decoded.data.is_empty() || part.raw_data().trim_ascii().is_empty());
                drawn.damaged += usize::from(decoded.damaged && !decoded.data.is_empty());
                operators.extend_from_slice(&decoded.data);
                // An operator does not go on in the next stream.
                operators.push(b' ');
            }
        }
        if whole == 0 && stated > 0 {
            return Err(Unreadable("its content streams cannot be decoded"));
        }
        drawn.lost = stated - whole;
        drawn.operators = Cow::Owned(operators);
        Ok(drawn)
    }
}

struct Decoded {
    data: Vec<u8>,
    damaged: bool,
}

fn decode(stream: &Stream<'_>) -> Option<Decoded> {
    let dict = stream.dict();
    let filter = dict
        .get::<Name<'_>>(FILTER)
        .or_else(|| single(&dict.get::<Array<'_>>(FILTER)?));
    let is_flate = filter.is_some_and(|name| matches!(name.as_ref(), b"FlateDecode" | b"Fl"));
    if is_flate && !dict.contains_key(DECODE_PARMS) {
        let inflated = inflate(&stream.raw_data());
        if !inflated.damaged || !inflated.data.is_empty() {
            return Some(inflated);
        }
    }
    let data = stream.decoded_data().ok()?.into_owned();
    Some(Decoded { data, damaged: false })
}

/// The one filter of a list of one.
fn single<'a>(filters: &Array<'a>) -> Option<Name<'a>> {
    let mut names = filters.iter::<Name<'a>>();
    let first = names.next()?;
    names.next().is_none().then_some(first)
}

/// Inflates a zlib stream (RFC 1950) and keeps what comes before an error. Streams that end early or whose check
/// sum is wrong are damaged too.
fn inflate(data: &[u8]) -> Decoded {
    let mut out = Vec::with_capacity(data.len().saturating_mul(RATIO).max(MIN_ROOM));
    let mut inflater = Decompress::new(true);
    loop {
        let read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        let rest = data.get(read..).unwrap_or_default();
        let before = (inflater.total_in(), out.len());
        let status = inflater.decompress_vec(rest, &mut out, FlushDecompress::None);
        let damaged = match status {
            Ok(Status::StreamEnd) => false,
            Ok(_) if out.len() == out.capacity() => {
                out.reserve(out.len());
                continue;
            }
            Ok(_) if (inflater.total_in(), out.len()) != before => continue,
            Ok(_) | Err(_) => true,
        };
        return Decoded { data: out, damaged };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;
    use crate::pdf::testing::{PdfBuilder, outline, partition, show};

    fn deflated(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Sentences none of which is like another, so that little of them is compressed by reference.
    fn sentences() -> Vec<String> {
        let words = [
            "ledger", "harbour", "meadow", "lantern", "orchard", "quarry", "saddle", "timber",
        ];
        let word = |n: usize| words[n % words.len()];
        (0..40)
            .map(|n| {
                format!(
                    "The {} by the {} was {} in {}.",
                    word(n),
                    word(n / 3 + 1),
                    1000 + n * n * 7,
                    1700 + n
                )
            })
            .collect()
    }

    #[test]
    fn a_damaged_stream_gives_what_comes_before_the_damage_and_a_warning() {
        let sentences = sentences();
        let text: String = sentences
            .iter()
            .zip(0u16..)
            .map(|(line, n)| show('F', 8.0, 40.0, 580.0 - 14.0 * f32::from(n), line))
            .collect();
        let whole = deflated(text.as_bytes());
        let read = |data: &[u8]| {
            let mut builder = PdfBuilder::new();
            let mut stream = format!("<< /Filter /FlateDecode /Length {} >>\nstream\n", data.len()).into_bytes();
            stream.extend(data);
            stream.extend(b"\nendstream");
            let part = builder.object(stream);
            let bytes = builder.page_of(&format!("{part} 0 R"), "").build();
            let document = partition(&bytes, &docmill_model::settings::PartitionOptions::default()).unwrap();
            let text: Vec<&str> = outline(&document).into_iter().map(|(_, text)| text).collect();
            (text.join(" "), document.warnings.len())
        };
        assert_eq!(read(&whole), (sentences.join(" "), 0));
        // The check sum alone.
        let mut spoilt = whole.clone();
        *spoilt.last_mut().unwrap() ^= 1;
        assert_eq!(read(&spoilt), (sentences.join(" "), 1));
        // Cut in the middle.
        let (text, warnings) = read(&whole[..whole.len() / 2]);
        assert!(text.len() > sentences.join(" ").len() / 4 && warnings == 1, "{text}");
        assert!(text.starts_with(&sentences[..8].join(" ")), "{text}");
    }

    proptest! {
        #[test]
        fn what_was_deflated_is_inflated(data in proptest::collection::vec(any::<u8>(), 0..5000), repeat in 1usize..40) {
            let data = data.repeat(repeat);
            let inflated = inflate(&deflated(&data));
            prop_assert!(!inflated.damaged);
            prop_assert_eq!(inflated.data, data);
        }

        #[test]
        fn any_bytes_come_to_an_end(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            inflate(&data);
        }
    }
}
