//! Merging tables that run over a page's end.
//!
//! [`candidates`] finds pairs of tables that could be one, a model judges each pair ([`request`], [`read`]),
//! and [`merge`] makes one table of each run of pairs that the verdicts bind together.

use std::collections::{HashMap, HashSet};

use docmill_model::provider::ModelRef;
use docmill_model::schema::{strict, violations};
use docmill_model::settings::{Confidence, TableMergeOptions};
use docmill_model::{Element, ElementType, PageSpan};
use serde_json::{Value, json};

use crate::AnswerError;
use crate::answer::json;
use crate::chat::{AnswerSchema, ChatRequest, GROUND_RULES, clip, material};
use crate::markup::grid::{Grid, Row};
use crate::markup::table::{sanitize_table, table_text, write_table};

/// Code points of text, other than running headers and footers, that may stand between two parts.
const MAX_CHARS_BETWEEN: usize = 200;

/// Code points of each table sent along.
const MAX_TABLE_CHARS: usize = 20_000;

const TASK: &str = "The first table ends a page and the second begins the next one. Decide whether the second continues the first: \
whether they are one table that the page's end divided. Signs for it: the same columns with the same kind of values, a \
repeated or missing header in the second, rows that go on in order. Signs against it: a header with other columns, another \
subject, a total that closes the first. `merge`: true if they are one table. `confidence`: low, medium or high.";

/// Two tables that could be one: positions in the elements, in order.
pub type Pair = (usize, usize);

/// What a model says about a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the tables are one.
    pub merge: bool,
    /// How sure the model is.
    pub confidence: Confidence,
}

/// Pairs of neighbouring tables with structure on adjacent pages, with next to nothing between them.
pub fn candidates(elements: &[Element]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut last: Option<usize> = None;
    let mut between = 0;
    for (index, element) in elements.iter().enumerate() {
        match element.kind {
            ElementType::Table => {
                if let Some(first) = last.filter(|_| between <= MAX_CHARS_BETWEEN)
                    && are_adjacent(&elements[first], element)
                {
                    pairs.push((first, index));
                }
                last = Some(index).filter(|_| element.metadata.text_as_html.is_some());
                between = 0;
            }
            ElementType::Header | ElementType::Footer | ElementType::PageNumber | ElementType::PageBreak => {}
            _ => between += element.text.chars().count(),
        }
    }
    pairs
}

fn are_adjacent(first: &Element, second: &Element) -> bool {
    let pages = (first.metadata.page_number, second.metadata.page_number);
    let next_page = matches!(pages, (Some(one), Some(two)) if one.checked_add(1) == Some(two));
    next_page && second.metadata.text_as_html.is_some()
}

/// The question whether two tables are one.
pub fn request(first: &Element, second: &Element) -> ChatRequest {
    let html = |table: &Element| {
        let html = table.metadata.text_as_html.as_deref().and_then(sanitize_table);
        html.unwrap_or_else(|| table.text.clone())
    };
    let first = html(first);
    // The end of the first table says most about whether it goes on.
    let skipped = first.chars().count().saturating_sub(MAX_TABLE_CHARS);
    let end: String = first.chars().skip(skipped).collect();
    let second = html(second);
    ChatRequest {
        system: GROUND_RULES.into(),
        user: format!(
            "{TASK}\n\n{}\n{}",
            material("First table", &end),
            material("Second table", clip(&second, MAX_TABLE_CHARS))
        ),
        pictures: Vec::new(),
        schema: Some(AnswerSchema {
            name: "table_merging".into(),
            schema: strict(&schema()),
        }),
        max_tokens: 256,
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"merge": {"type": "boolean"}, "confidence": {"type": "string", "enum": ["low", "medium", "high"]}},
        "required": ["merge", "confidence"],
    })
}

/// Reads a verdict.
///
/// # Errors
/// The answer is none.
pub fn read(answer: &str) -> Result<Verdict, AnswerError> {
    let mut answer = json(answer)?;
    if let Some(Value::String(word)) = answer.get_mut("confidence") {
        *word = word.to_lowercase();
    }
    let wrong = violations(&schema(), &answer);
    let confidence = answer["confidence"].as_str().and_then(Confidence::parse);
    match (answer["merge"].as_bool(), confidence) {
        (Some(merge), Some(confidence)) if wrong.is_empty() => Ok(Verdict { merge, confidence }),
        _ => Err(AnswerError::WrongShape(wrong.iter().map(ToString::to_string).collect())),
    }
}

/// Whether a verdict is to be applied.
pub fn accepts(options: &TableMergeOptions, verdict: Verdict) -> bool {
    verdict.merge && verdict.confidence.is_at_least(options.confidence_threshold)
}

/// Makes one table of each run of `pairs`, in the place of its first; pairs that are no [`candidates`] are
/// ignored. A header that a continuation repeats is left out. The pages of all parts are in `page_spans`.
pub fn merge(elements: Vec<Element>, pairs: &[Pair], model: &ModelRef) -> Vec<Element> {
    let known: HashSet<Pair> = candidates(&elements).into_iter().collect();
    let mut first_of = HashMap::<usize, usize>::new();
    let mut pairs: Vec<_> = pairs.iter().filter(|pair| known.contains(pair)).collect();
    pairs.sort_unstable();
    for &(first, second) in pairs {
        let head = first_of.get(&first).copied().unwrap_or(first);
        first_of.insert(second, head);
    }
    let mut parts = HashMap::<usize, Vec<Element>>::new();
    let mut kept: Vec<(usize, Element)> = Vec::with_capacity(elements.len());
    let mut moved = HashMap::new();
    for (index, element) in elements.into_iter().enumerate() {
        match first_of.get(&index) {
            Some(&head) => {
                moved.insert(element.element_id.clone(), head);
                parts.entry(head).or_default().push(element);
            }
            None => kept.push((index, element)),
        }
    }
    let ids: HashMap<_, _> = kept
        .iter()
        .map(|(index, element)| (*index, element.element_id.clone()))
        .collect();
    let merged = kept.into_iter().map(|(index, mut element)| {
        let parent = element.metadata.parent_id.as_ref();
        if let Some(id) = parent
            .and_then(|parent| moved.get(parent))
            .and_then(|head| ids.get(head))
        {
            element.metadata.parent_id = Some(id.clone());
        }
        match parts.remove(&index) {
            Some(parts) => merge_one(element, parts, model),
            None => element,
        }
    });
    merged.collect()
}

fn merge_one(mut table: Element, parts: Vec<Element>, model: &ModelRef) -> Element {
    let html = |table: &Element| Grid::parse(table.metadata.text_as_html.as_deref().unwrap_or_default());
    let mut grid = html(&table);
    table.metadata.page_spans = std::iter::once(&table).chain(&parts).filter_map(span).collect();
    for part in &parts {
        let more = html(part);
        let repeated = repeated_header_rows(&grid, &more);
        grid.rows.extend(more.rows.into_iter().skip(repeated));
    }
    table.text = table_text(&grid);
    table.metadata.text_as_html = Some(write_table(&grid, false));
    // They show, or place, the first part alone.
    table.metadata.image_base64 = None;
    table.metadata.image_mime_type = None;
    table.metadata.coordinates = None;
    table.metadata.place = None;
    table.metadata.extra.remove("table_as_cells");
    crate::origin::note(&mut table.metadata, "text_as_html", "table_merging", Some(model));
    table
}

/// How many of the first rows of `more` are the header of `grid`, or what it begins with, again.
fn repeated_header_rows(grid: &Grid, more: &Grid) -> usize {
    let same = |one: &Row, two: &Row| {
        one.cells.len() == two.cells.len()
            && one
                .cells
                .iter()
                .zip(&two.cells)
                .all(|(one, two)| one.text.eq_ignore_ascii_case(&two.text))
    };
    let header = grid.header_rows.max(more.header_rows).max(1);
    let repeated = grid
        .rows
        .iter()
        .zip(&more.rows)
        .take(header)
        .take_while(|(one, two)| same(one, two))
        .count();
    // All of the header or nothing: a first row of values may be the same by chance.
    let whole = grid.header_rows.max(more.header_rows);
    if whole > 0 && repeated == whole { repeated } else { 0 }
}

fn span(table: &Element) -> Option<PageSpan> {
    let place = table.metadata.coordinates.as_ref().or(table.metadata.place.as_ref());
    Some(PageSpan {
        page_number: table.metadata.page_number?,
        bbox: place.map(docmill_model::Coordinates::bbox),
    })
}

#[cfg(test)]
mod tests {
    use docmill_model::provider::Provider;

    use super::*;

    fn model() -> ModelRef {
        ModelRef {
            provider: Provider::OpenAi,
            model: "gpt-4o".into(),
        }
    }

    fn table(page: u32, html: &str) -> Element {
        let mut table = Element::new(ElementType::Table, html.replace(['<', '>'], " ")).on_page(page);
        table.element_id = format!("t{page}");
        table.metadata.text_as_html = Some(html.into());
        table
    }

    fn part(page: u32, value: &str) -> Element {
        table(
            page,
            &format!("<table><thead><tr><th>Name</th></tr></thead><tr><td>{value}</td></tr></table>"),
        )
    }

    fn text(text: &str) -> Element {
        Element::new(ElementType::NarrativeText, text)
    }

    #[test]
    fn candidates_are_neighbours_on_adjacent_pages() {
        let footer = Element::new(ElementType::Footer, "x".repeat(500));
        assert_eq!(
            candidates(&[
                part(1, "a"),
                footer,
                text("Table 1, continued"),
                part(2, "b"),
                part(3, "c")
            ]),
            [(0, 3), (3, 4)]
        );
        assert_eq!(candidates(&[part(1, "a"), text(&"long ".repeat(50)), part(2, "b")]), []);
        assert_eq!(candidates(&[part(1, "a"), part(1, "b")]), []);
        assert_eq!(candidates(&[part(1, "a"), part(3, "b")]), []);
        let mut bare = part(2, "b");
        bare.metadata.text_as_html = None;
        assert_eq!(candidates(&[part(1, "a"), bare, part(3, "b")]), []);
    }

    #[test]
    fn a_run_becomes_one_table_with_one_header() {
        let mut child = text("note");
        child.metadata.parent_id = Some("t2".into());
        let no_header = table(3, "<table><tr><td>c</td></tr></table>");
        let elements = vec![
            text("before"),
            part(1, "a"),
            part(2, "b"),
            child,
            no_header,
            text("after"),
        ];
        let merged = merge(elements, &[(2, 4), (1, 2), (0, 5)], &model());
        let texts: Vec<_> = merged.iter().map(|element| element.text.as_str()).collect();
        assert_eq!(texts, ["before", "Name a b c", "note", "after"]);
        assert_eq!(
            merged[1].metadata.text_as_html.as_deref(),
            Some(
                "<table><thead><tr><th>Name</th></tr></thead><tbody><tr><td>a</td></tr><tr><td>b</td></tr><tr><td>c</td></tr></tbody></table>"
            )
        );
        let pages: Vec<_> = merged[1]
            .metadata
            .page_spans
            .iter()
            .map(|span| span.page_number)
            .collect();
        assert_eq!(pages, [1, 2, 3]);
        assert_eq!(merged[2].metadata.parent_id.as_deref(), Some("t1"));
    }

    #[test]
    fn verdicts_are_applied_from_the_threshold_on() {
        let options = TableMergeOptions {
            model: model(),
            confidence_threshold: Confidence::Medium,
            max_concurrency: 1,
        };
        let accepted = |answer: &str| read(answer).map(|verdict| accepts(&options, verdict));
        assert_eq!(accepted(r#"{"merge": true, "confidence": "Medium"}"#), Ok(true));
        assert_eq!(accepted(r#"{"merge": true, "confidence": "low"}"#), Ok(false));
        assert_eq!(accepted(r#"{"merge": false, "confidence": "high"}"#), Ok(false));
        assert!(accepted(r#"{"merge": "yes", "confidence": "high"}"#).is_err());
        assert!(accepted("[]").is_err() && accepted("true").is_err());
    }
}
