//! Lists whose entries begin with bare numbers, as references of papers often do:
//!
//! ```text
//!  9 Miller A. The first of them. Journal
//!    of Things 1990;1:1-3.
//! 10 Smith B. Another one.
//! ```
//!
//! A number alone could begin any line; but numbers that count up, with everything between them set in, are those
//! of a list.

use super::line::Line;

/// Entries of a list.
const MIN_ENTRIES: usize = 3;
/// Lines of one entry.
const MAX_LINES: usize = 12;
/// How far the lines of an entry are set in at least, in font sizes.
const INDENT: f32 = 0.4;
/// How far the numbers of the entries may begin from each other, in font sizes: they have one to three digits.
const DRIFT: f32 = 1.4;

/// Marks the first lines of entries among the lines of a column.
pub(super) fn count_entries(lines: &mut [Line]) {
    let mut run: Vec<usize> = Vec::new();
    // Entries of the run whose text goes on in a line that is set in.
    let mut hanging = 0;
    let mut last = 0;
    for index in 0..=lines.len() {
        let number = lines.get(index).and_then(number_of);
        let open = run.last().and_then(|&first| lines.get(first));
        let (Some(line), Some(first)) = (lines.get(index), open) else {
            if index == lines.len() {
                mark(lines, &run, hanging);
            } else if let Some(number) = number {
                (run, hanging, last) = (vec![index], 0, number);
            }
            continue;
        };
        let begun = run.last().copied().unwrap_or(index);
        let beside = (line.x0() - first.x0()).abs() < DRIFT * line.size && line.size < 1.1 * first.size;
        if number == Some(last + 1) && beside {
            hanging += usize::from(index > begun + 1);
            run.push(index);
            last += 1;
        } else if line.x0() < first.x0() + INDENT * line.size || index - begun >= MAX_LINES || line.table.is_some() {
            // The last entry's own lines count no less.
            hanging += usize::from(index > begun + 1);
            mark(lines, &run, hanging);
            run.clear();
            hanging = 0;
            if let Some(number) = number {
                (run, last) = (vec![index], number);
            }
        }
    }
}

/// Marks the entries of a run if it is a list.
fn mark(lines: &mut [Line], run: &[usize], hanging: usize) {
    if run.len() < MIN_ENTRIES || hanging * 3 < run.len() {
        return;
    }
    for &index in run {
        if let Some(line) = lines.get_mut(index) {
            line.counted = true;
            // A number set apart from its text makes no table row.
            if line.cells == 2 && line.parts.first().is_some_and(|part| !part.text.contains(' ')) {
                line.cells = 1;
            }
        }
    }
}

/// The number that a line begins with, before words.
fn number_of(line: &Line) -> Option<u32> {
    let (number, rest) = line.text.split_once(' ')?;
    let digits = (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let begins = rest
        .trim_start_matches(['"', '“', '‘', '«', '\''])
        .starts_with(char::is_alphabetic);
    let letters = rest.chars().filter(|ch| ch.is_alphabetic()).count();
    if !digits || !begins || letters < 8 || line.table.is_some() || line.monospace || line.bold {
        return None;
    }
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, outline, partition, show};

    /// Kinds and beginnings of the elements of a page of lines at given indents.
    fn read(lines: &[(f32, &str)]) -> Vec<(String, String)> {
        let mut content = String::new();
        for (index, (x, text)) in lines.iter().enumerate() {
            content += &show('F', 8.0, *x, 560.0 - 9.5 * index as f32, text);
        }
        let bytes = PdfBuilder::new().page(&content, "").build();
        let document = partition(&bytes, &PartitionOptions::default()).unwrap();
        let beginning = |text: &str| text.split(' ').take(2).collect::<Vec<_>>().join(" ");
        outline(&document)
            .into_iter()
            .map(|(kind, text)| (kind.to_owned(), beginning(text)))
            .collect()
    }

    #[test]
    fn counted_references_are_items() {
        let found = read(&[
            (44.0, "8 Miller A. The first of the works that are listed. Journal of"),
            (52.0, "Things 1990;1:1-3."),
            (44.0, "9 Smith B. Another one. Press 1991."),
            (40.0, "10 Jones C. On the third of the things that were to be said"),
            (52.0, "here and in other places. London 1992."),
        ]);
        let items = ["8 Miller", "9 Smith", "10 Jones"].map(|text| ("ListItem".to_owned(), text.to_owned()));
        assert_eq!(found, items);
    }

    #[test]
    fn numbers_in_text_begin_no_items() {
        // They do not count up.
        let found = read(&[
            (40.0, "The committee met and agreed on the plan for the years of"),
            (40.0, "20 Members who were there said that nothing of it holds and"),
            (40.0, "30 Others were of the opinion that all of it would hold for"),
            (40.0, "21 Months at least, so that nothing more was to be said."),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        // Nothing is set in: figures of a table, or headings.
        let found = read(&[
            (40.0, "1 Introduction to it all"),
            (40.0, "2 Methods of the study"),
            (40.0, "3 Results of the study"),
        ]);
        assert!(found.iter().all(|(kind, _)| kind != "ListItem"), "{found:?}");
    }
}
