//! The strings and distances that one operator shows. There are many in text that is kerned or justified, and
//! most are plain: these are read here without making an object of each.

/// Digits a plain number has at most.
const MAX_DIGITS: u32 = 18;

/// A string, as a range of bytes, or a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// As it stands in the array.
    Literal(usize, usize),
    /// Decoded.
    Hex(usize, usize),
    Distance(f32),
}

/// The plain parts of an array.
#[derive(Default)]
pub(super) struct SpacedText {
    parts: Vec<Part>,
    decoded: Vec<u8>,
}

/// What is shown next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item<'d> {
    Codes(&'d [u8]),
    Distance(f32),
}

impl SpacedText {
    /// Reads what stands between the brackets of an array; false when some of it is not plain: escapes within
    /// strings, numbers in unusual notation, anything that has no place there.
    pub(super) fn read(&mut self, data: &[u8]) -> bool {
        self.parts.clear();
        self.decoded.clear();
        let mut at = 0;
        while let Some(&byte) = data.get(at) {
            let end = match byte {
                _ if is_white_space(byte) => Some(at + 1),
                b'(' => self.literal(data, at + 1),
                b'<' => self.hex(data, at + 1),
                _ => self.distance(data, at),
            };
            match end {
                Some(end) => at = end,
                None => return false,
            }
        }
        true
    }

    /// What was read from `data`.
    pub(super) fn items<'d>(&'d self, data: &'d [u8]) -> impl Iterator<Item = Item<'d>> {
        self.parts.iter().map(move |part| match *part {
            Part::Literal(from, to) => Item::Codes(data.get(from..to).unwrap_or_default()),
            Part::Hex(from, to) => Item::Codes(self.decoded.get(from..to).unwrap_or_default()),
            Part::Distance(distance) => Item::Distance(distance),
        })
    }

    /// Reads a string from behind its parenthesis; where it ends.
    fn literal(&mut self, data: &[u8], from: usize) -> Option<usize> {
        let mut open = 1;
        for (at, byte) in data.iter().enumerate().skip(from) {
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                b'\\' | b'\n' | b'\r' => return None,
                _ => {}
            }
            if open == 0 {
                self.parts.push(Part::Literal(from, at));
                return Some(at + 1);
            }
        }
        None
    }

    /// Reads a string of digits from behind its bracket; where it ends.
    fn hex(&mut self, data: &[u8], from: usize) -> Option<usize> {
        let start = self.decoded.len();
        let mut half: Option<u8> = None;
        for (at, &byte) in data.iter().enumerate().skip(from) {
            if byte == b'>' {
                // A digit that is missing at the end is 0.
                self.decoded.extend(half.map(|half| half << 4));
                self.parts.push(Part::Hex(start, self.decoded.len()));
                return Some(at + 1);
            }
            let digit = char::from(byte).to_digit(16)? as u8;
            half = match half {
                Some(half) => {
                    self.decoded.push(half << 4 | digit);
                    None
                }
                None => Some(digit),
            };
        }
        None
    }

    /// Reads a number; where it ends.
    fn distance(&mut self, data: &[u8], from: usize) -> Option<usize> {
        let sign = data.get(from).copied();
        let mut at = from + usize::from(matches!(sign, Some(b'-' | b'+')));
        let (mut digits, mut behind, mut point) = (0u32, 0i32, false);
        let mut number = 0u64;
        while let Some(&byte) = data.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    behind += i32::from(point);
                    number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                }
                b'.' if !point => point = true,
                _ if is_white_space(byte) || matches!(byte, b'(' | b'<') => break,
                _ => return None,
            }
            at += 1;
        }
        if digits == 0 || digits > MAX_DIGITS {
            return None;
        }
        // In double precision, as numbers are read elsewhere.
        let size = match point {
            true => (number as f64 / 10f64.powi(behind)) as f32,
            false => number as f32,
        };
        self.parts
            .push(Part::Distance(if sign == Some(b'-') { -size } else { size }));
        Some(at)
    }
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_distances_are_read() {
        let mut text = SpacedText::default();
        let data = b"(ab)-120.5(c (d))\n3 <616> +7.(e).25";
        assert!(text.read(data));
        let items: Vec<Item<'_>> = text.items(data).collect();
        let expected = [
            Item::Codes(b"ab"),
            Item::Distance(-120.5),
            Item::Codes(b"c (d)"),
            Item::Distance(3.0),
            Item::Codes(b"a`"),
            Item::Distance(7.0),
            Item::Codes(b"e"),
            Item::Distance(0.25),
        ];
        assert_eq!(items, expected);
        assert!(text.read(b"") && text.items(b"").next().is_none());
    }

    #[test]
    fn what_is_not_plain_is_left_to_others() {
        let mut text = SpacedText::default();
        let unusual: [&[u8]; 12] = [
            b"(a\\)b)",
            b"(a",
            b"(a\nb)",
            b"--5",
            b"1.2.3",
            b"-",
            b"[(a)]",
            b"/Name",
            b"1e5",
            b"<6g>",
            b"<61",
            b"1234567890123456789",
        ];
        for data in unusual {
            assert!(!text.read(data), "{}", String::from_utf8_lossy(data));
        }
    }
}
