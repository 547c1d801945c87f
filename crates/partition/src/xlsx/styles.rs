//! Which cells hold dates: number formats by cell style.

use std::collections::HashMap;

use super::value::{self, Kind};
use crate::ooxml::xml::Node;

/// The kind of number format of each cell style.
#[derive(Debug, Default)]
pub(super) struct Formats {
    kinds: Vec<Kind>,
}

impl Formats {
    pub(super) fn read(root: &Node) -> Self {
        let section = |name: &'static str| {
            let found = root.elements().filter(move |n| &*n.name == name);
            found.flat_map(Node::elements)
        };
        let codes: HashMap<u32, Kind> = section("numFmts")
            .filter_map(|n| {
                Some((
                    n.attr("numFmtId")?.parse().ok()?,
                    value::kind_of_code(n.attr("formatCode")?),
                ))
            })
            .collect();
        let kind = |node: &Node| {
            let id: u32 = node.attr("numFmtId").and_then(|v| v.parse().ok()).unwrap_or(0);
            codes.get(&id).copied().unwrap_or_else(|| value::kind_of_id(id))
        };
        Self {
            kinds: section("cellXfs").map(kind).collect(),
        }
    }

    /// The kind of the cell style at `index`.
    pub(super) fn kind(&self, index: usize) -> Kind {
        self.kinds.get(index).copied().unwrap_or_default()
    }
}
