//! Diagrams (SmartArt): the texts of the data model as a nested list.

use std::collections::{HashMap, HashSet};

use docmill_model::{Element, ElementType};

use super::drawing_paragraphs;
use super::xml::{Node, Ns};

/// The points of a diagram's data part that hold text, as list items in drawing order; depth is the
/// level in the tree.
pub(crate) fn elements(root: &Node) -> Vec<Element> {
    let mut texts = HashMap::<&str, String>::new();
    let mut order = Vec::new();
    let mut roots = Vec::new();
    for point in root.path(Ns::Dgm, &["ptLst"]).into_iter().flat_map(Node::elements) {
        let Some(id) = point.attr("modelId") else { continue };
        match point.attr("type") {
            Some("doc") => roots.push(id),
            None | Some("node" | "asst") => {
                texts.insert(id, drawing_paragraphs(point).join("\n"));
                order.push(id);
            }
            Some(_) => {}
        }
    }
    let mut children = HashMap::<&str, Vec<(u32, &str)>>::new();
    for link in root.path(Ns::Dgm, &["cxnLst"]).into_iter().flat_map(Node::elements) {
        if !matches!(link.attr("type"), None | Some("parOf")) {
            continue;
        }
        if let (Some(from), Some(to)) = (link.attr("srcId"), link.attr("destId")) {
            let at = link.attr("srcOrd").and_then(|o| o.parse().ok()).unwrap_or(u32::MAX);
            children.entry(from).or_default().push((at, to));
        }
    }
    for list in children.values_mut() {
        list.sort_by_key(|(at, _)| *at);
    }
    let mut elements = Vec::new();
    let mut seen = HashSet::new();
    // Points that hang on no root come last, in file order.
    order.reverse();
    let mut open: Vec<(&str, u32)> = order.into_iter().map(|id| (id, 0)).collect();
    for id in roots {
        let below = children.get(id).into_iter().flatten().rev();
        open.extend(below.map(|(_, to)| (*to, 0)));
    }
    while let Some((id, depth)) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let text = texts.get(id).map(String::as_str).unwrap_or_default();
        if !text.is_empty() {
            elements.push(Element::new(ElementType::ListItem, text).with_depth(depth));
        }
        let below = children.get(id).into_iter().flatten().rev();
        open.extend(below.map(|(_, to)| (*to, depth.saturating_add(1))));
    }
    elements
}
