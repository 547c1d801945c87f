//! Charts: the title, and the data as a table from the values cached in the chart part.

use std::collections::BTreeMap;

use docmill_model::{Element, ElementType};

use super::drawing_paragraphs;
use super::table::{self, Cell, Row};
use super::xml::{Node, Ns};

/// Points a chart's table may have.
const MAX_POINTS: usize = 100_000;

struct Series {
    name: String,
    categories: BTreeMap<u32, String>,
    values: BTreeMap<u32, String>,
}

/// The elements of a chart part: the title as a caption, then the data, one column per series.
pub(crate) fn elements(root: &Node) -> Vec<Element> {
    let mut elements = Vec::new();
    if let Some(title) = root.path(Ns::C, &["chart", "title"]) {
        let mut text = drawing_paragraphs(title).join("\n");
        if text.is_empty() {
            text = points(Some(title), &["v"]).into_values().collect::<Vec<_>>().join(" ");
        }
        if !text.is_empty() {
            elements.push(Element::new(ElementType::FigureCaption, text));
        }
    }
    let mut series = Vec::new();
    let mut budget = MAX_POINTS;
    root.walk(&mut |node| {
        if !node.is(Ns::C, "ser") {
            return true;
        }
        let item = read_series(node);
        let size = item.values.len() + item.categories.len();
        if size <= budget {
            budget -= size;
            series.push(item);
        }
        false
    });
    elements.extend(data_table(&series));
    elements
}

fn read_series(node: &Node) -> Series {
    let categories = node.child(Ns::C, "cat").or_else(|| node.child(Ns::C, "xVal"));
    let values = node.child(Ns::C, "val").or_else(|| node.child(Ns::C, "yVal"));
    let name = points(node.child(Ns::C, "tx"), &["v"]);
    Series {
        name: name.into_values().collect::<Vec<_>>().join(" "),
        categories: points(categories, &["v"]),
        values: points(values, &["v"]),
    }
}

/// The cached points below a reference by index. Of multi-level categories the levels of one index are
/// joined, the outermost first.
fn points(node: Option<&Node>, value: &[&str]) -> BTreeMap<u32, String> {
    let mut points = BTreeMap::<u32, String>::new();
    let Some(node) = node else {
        return points;
    };
    let mut plain = String::new();
    node.walk(&mut |n| {
        if n.is(Ns::C, "pt") {
            let index = n.attr("idx").and_then(|i| i.parse().ok()).unwrap_or(0);
            let text = n.path(Ns::C, value).map(Node::text).unwrap_or_default();
            let entry = points.entry(index).or_default();
            if entry.is_empty() {
                *entry = text;
            } else {
                *entry = format!("{text} {entry}");
            }
            return false;
        }
        if n.is(Ns::C, "v") {
            n.push_text(&mut plain);
        }
        true
    });
    if points.is_empty() && !plain.is_empty() {
        points.insert(0, plain);
    }
    points
}

fn data_table(series: &[Series]) -> Option<Element> {
    let mut labels = BTreeMap::<u32, &str>::new();
    for item in series {
        for index in item.values.keys() {
            labels.entry(*index).or_default();
        }
        for (index, label) in &item.categories {
            let known = labels.entry(*index).or_default();
            if known.is_empty() {
                *known = label;
            }
        }
    }
    if labels.len().saturating_mul(series.len() + 1) > MAX_POINTS {
        return None;
    }
    let mut head = Row {
        cells: vec![Cell::new("")],
        header: true,
    };
    head.cells.extend(series.iter().map(|s| Cell::new(s.name.trim())));
    let mut rows = vec![head];
    for (index, label) in labels {
        let mut cells = vec![Cell::new(label)];
        let value = |s: &Series| Cell::new(s.values.get(&index).cloned().unwrap_or_default());
        cells.extend(series.iter().map(value));
        rows.push(Row { cells, header: false });
    }
    table::element(&rows)
}
