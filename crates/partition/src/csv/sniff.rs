//! Which character separates the cells of a file.

/// Tried in this order when the file leaves a choice.
const DELIMITERS: [u8; 5] = [b',', b';', b'\t', b'|', b':'];

/// Bytes and records looked at.
const SAMPLE: usize = 64 * 1024;
const RECORDS: usize = 100;

/// The delimiter of a `sep=;` line, which spreadsheets write, and the text after that line.
pub(super) fn declared_delimiter(text: &str) -> Option<(u8, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let delimiter = line.trim_end_matches('\r').strip_prefix("sep=")?;
    let [byte] = delimiter.as_bytes() else { return None };
    (!byte.is_ascii_alphanumeric() && *byte != b'"').then_some((*byte, rest))
}

/// The delimiter that splits the first records most evenly; `preferred` when it is as good as any.
pub(super) fn delimiter(text: &str, preferred: u8) -> u8 {
    let sample = sample(text);
    let best = DELIMITERS
        .into_iter()
        .map(|delimiter| (delimiter, fit(sample, delimiter, preferred)))
        .filter(|(_, fit)| *fit > 0.0)
        .fold(None, |best: Option<(u8, f64)>, next| match best {
            Some(best) if best.1 >= next.1 => Some(best),
            _ => Some(next),
        });
    best.map_or(preferred, |(delimiter, _)| delimiter)
}

/// Up to [`SAMPLE`] bytes, whole lines when there are any.
fn sample(text: &str) -> &str {
    if text.len() <= SAMPLE {
        return text;
    }
    let mut end = SAMPLE;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = &text[..end];
    cut.rfind('\n').map_or(cut, |newline| &cut[..newline])
}

/// Lengths of the first records when split at `delimiter`.
fn lengths(sample: &str, delimiter: u8) -> Vec<usize> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(sample.as_bytes())
        .into_byte_records()
        .take(RECORDS)
        .map_while(Result::ok)
        .map(|record| record.len())
        .collect()
}

/// How well a delimiter fits, 0 (not at all) to about 1: the share of records that have the most
/// frequent length. A rare delimiter must fit better than the preferred one.
fn fit(sample: &str, delimiter: u8, preferred: u8) -> f64 {
    let lengths = lengths(sample, delimiter);
    let Some((length, count)) = mode(&lengths) else {
        return 0.0;
    };
    let share = count as f64 / lengths.len() as f64;
    let handicap = match delimiter {
        d if d == preferred => 0.0,
        // Colons are in times and web addresses.
        b':' => 0.4,
        b'\t' | b';' | b'|' => 0.02,
        _ => 0.05,
    };
    if length < 2 {
        return 0.0;
    }
    (share - handicap + (length.min(50) as f64) / 1000.0).max(0.0)
}

/// The most frequent length above 1 and how often it occurs.
fn mode(lengths: &[usize]) -> Option<(usize, usize)> {
    let mut sorted: Vec<usize> = lengths.iter().copied().filter(|n| *n > 1).collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], run.len()))
        .max_by_key(|(_, count)| *count)
}

/// Whether a text of unknown type is delimited values: at least two records, all of one length of at
/// least two cells, and not lines of prose with a comma each.
pub(crate) fn looks_delimited(text: &str, whole: bool) -> bool {
    let sample = sample(text);
    [b',', b';', b'\t', b'|'].into_iter().any(|delimiter| {
        let mut lengths = lengths(sample, delimiter);
        if !whole && sample.len() == text.len() {
            lengths.pop();
        }
        let Some(first) = lengths.first().copied() else {
            return false;
        };
        let enough = if first == 2 && delimiter != b'\t' { 4 } else { 2 };
        first >= 2
            && lengths.len() >= enough
            && lengths.iter().all(|n| *n == first)
            && cells_are_short(sample, delimiter)
    })
}

/// A comma or semicolon followed by a space in most places is prose.
fn cells_are_short(sample: &str, delimiter: u8) -> bool {
    if delimiter == b'\t' || delimiter == b'|' {
        return true;
    }
    let bytes = sample.as_bytes();
    let (mut all, mut spaced) = (0usize, 0usize);
    for pair in bytes.windows(2) {
        if pair[0] == delimiter {
            all += 1;
            spaced += usize::from(pair[1] == b' ');
        }
    }
    spaced * 2 <= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_even_delimiter_wins() {
        assert_eq!(delimiter("a;b;c\n1,2;3;4\n5;6,7;8\n", b','), b';');
        assert_eq!(delimiter("time,what\n10:00,x\n11:30,y\n", b','), b',');
        assert_eq!(delimiter("a|b\nc|d\n", b','), b'|');
        assert_eq!(delimiter("\"a;b\",c\n\"d;e\",f\n", b','), b',');
        assert_eq!(delimiter("one\ntwo\n", b','), b',');
        assert_eq!(delimiter("k:v\nx:y\n", b','), b':');
    }

    #[test]
    fn prose_is_not_delimited() {
        assert!(!looks_delimited("Well, yes\nNo, thanks\nIf so, how\nThen, go\n", true));
        assert!(looks_delimited("a,b\n1,2\n3,4\n5,6\n", true));
        assert!(!looks_delimited("one line, only", true));
    }
}
