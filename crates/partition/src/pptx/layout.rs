//! What slides inherit from their layout and master: places and bullets of placeholders.

use super::bullet::{self, Levels};
use crate::ooxml::xml::{Node, Ns};

/// Placeholders of a layout that are looked at; real ones have about ten.
const MAX_PLACEHOLDERS: usize = 256;

/// A placeholder's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placeholder {
    /// `title`, `body`, `ftr`, ...; `obj` when the file does not say.
    pub(super) kind: String,
    index: Option<String>,
}

impl Placeholder {
    /// The placeholder a shape fills, if any.
    pub(super) fn of(shape: &Node) -> Option<Self> {
        let properties = shape.elements().find(|n| n.ns == Ns::P && n.name.starts_with("nv"))?;
        let node = properties.path(Ns::P, &["nvPr", "ph"])?;
        Some(Self {
            kind: node.attr("type").unwrap_or("obj").to_owned(),
            index: node.attr("idx").map(str::to_owned),
        })
    }

    pub(super) fn is_title(&self) -> bool {
        matches!(self.kind.as_str(), "title" | "ctrTitle")
    }

    /// The kind of placeholder a master has for this one.
    fn master_kind(&self) -> &str {
        match self.kind.as_str() {
            "title" | "ctrTitle" => "title",
            kind @ ("dt" | "ftr" | "sldNum" | "hdr") => kind,
            _ => "body",
        }
    }
}

/// What a layout or master says of one placeholder.
struct Definition {
    placeholder: Placeholder,
    offset: Option<(f64, f64)>,
    levels: Levels,
}

/// A slide master.
pub(super) struct Master {
    definitions: Vec<Definition>,
    title: Levels,
    body: Levels,
    other: Levels,
}

/// A slide layout.
pub(super) struct Layout {
    definitions: Vec<Definition>,
}

impl Layout {
    pub(super) fn read(root: &Node) -> Self {
        Self {
            definitions: definitions(root),
        }
    }

    fn get(&self, wanted: &Placeholder) -> Option<&Definition> {
        let same_index = |d: &&Definition| wanted.index.is_some() && d.placeholder.index == wanted.index;
        let same_kind =
            |d: &&Definition| d.placeholder.kind == wanted.kind || (d.placeholder.is_title() && wanted.is_title());
        let all = || self.definitions.iter();
        all()
            .find(|d| same_index(d) && same_kind(d))
            .or_else(|| all().find(same_index))
            .or_else(|| all().find(same_kind))
    }
}

impl Master {
    pub(super) fn read(root: &Node) -> Self {
        let style = |name: &str| bullet::levels(root.path(Ns::P, &["txStyles", name]));
        Self {
            definitions: definitions(root),
            title: style("titleStyle"),
            body: style("bodyStyle"),
            other: style("otherStyle"),
        }
    }

    fn get(&self, wanted: &Placeholder) -> Option<&Definition> {
        let kind = wanted.master_kind();
        self.definitions.iter().find(|d| d.placeholder.master_kind() == kind)
    }
}

/// What a slide's shape inherits.
#[derive(Default)]
pub(super) struct Inherited<'l> {
    pub(super) offset: Option<(f64, f64)>,
    /// List styles, the nearest first.
    pub(super) levels: Vec<&'l Levels>,
}

/// What the shape filling `placeholder` inherits; text boxes fill none.
pub(super) fn inherited<'l>(
    placeholder: Option<&Placeholder>,
    layout: Option<&'l Layout>,
    master: Option<&'l Master>,
) -> Inherited<'l> {
    let mut result = Inherited::default();
    if let Some(wanted) = placeholder {
        let in_layout = layout.and_then(|l| l.get(wanted));
        let in_master = master.and_then(|m| m.get(wanted));
        for definition in [in_layout, in_master].into_iter().flatten() {
            result.offset = result.offset.or(definition.offset);
            result.levels.push(&definition.levels);
        }
    }
    if let Some(master) = master {
        result.levels.push(match placeholder.map(Placeholder::master_kind) {
            Some("title") => &master.title,
            Some("body") => &master.body,
            _ => &master.other,
        });
    }
    result
}

/// The placeholders of a layout or master; those in groups are rare and not followed.
fn definitions(root: &Node) -> Vec<Definition> {
    let shapes = root
        .path(Ns::P, &["cSld", "spTree"])
        .into_iter()
        .flat_map(Node::elements);
    shapes
        .filter_map(|shape| {
            let placeholder = Placeholder::of(shape)?;
            Some(Definition {
                placeholder,
                offset: offset(shape),
                levels: bullet::levels(shape.child(Ns::P, "txBody").and_then(|t| t.child(Ns::A, "lstStyle"))),
            })
        })
        .take(MAX_PLACEHOLDERS)
        .collect()
}

/// The place of a shape's top left corner in the coordinates of its parent, in EMU (1/914,400 inch).
pub(super) fn offset(shape: &Node) -> Option<(f64, f64)> {
    let transform = shape
        .path(Ns::P, &["xfrm"])
        .or_else(|| shape.child(Ns::P, "spPr")?.child(Ns::A, "xfrm"))
        .or_else(|| shape.child(Ns::P, "grpSpPr")?.child(Ns::A, "xfrm"))?;
    pair(transform, "off", "x", "y")
}

/// Two numbers of an element of a transform.
pub(super) fn pair(transform: &Node, name: &str, first: &str, second: &str) -> Option<(f64, f64)> {
    let node = transform.child(Ns::A, name)?;
    let number = |attr: &str| node.attr(attr)?.parse::<f64>().ok().filter(|n| n.is_finite());
    Some((number(first)?, number(second)?))
}
