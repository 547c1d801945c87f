//! The shapes of one slide, in reading order, to elements.

use docmill_model::metadata::Link;
use docmill_model::{Element, ElementType};

use super::bullet::{self, Bullet, Counters, Levels};
use super::layout::{self, Layout, Master, Placeholder};
use crate::ooxml::table::{self, Cell, Row};
use crate::ooxml::xml::{Node, Ns};
use crate::ooxml::{Relationships, classify_body, drawing_paragraphs, drawing_text};

/// Tops within this distance (EMU; a tenth of an inch) count as one line, read from left to right.
const LINE: f64 = 91_440.0;

/// A slide part with what it refers to.
pub(super) struct Slide<'s> {
    pub(super) relationships: &'s Relationships,
    pub(super) layout: Option<&'s Layout>,
    pub(super) master: Option<&'s Master>,
}

/// What a shape gives: elements, or a part that has to be read for them.
pub(super) enum Content {
    Element(Box<Element>),
    /// A chart part, by name.
    Chart(String),
    /// The data part of a diagram, by name.
    Diagram(String),
}

/// A place in the coordinates of a group turned into that of the slide: scale and shift by axis.
#[derive(Clone, Copy)]
struct Frame {
    scale: (f64, f64),
    shift: (f64, f64),
}

/// A shape with its place.
struct Placed<'n> {
    node: &'n Node,
    placeholder: Option<Placeholder>,
    key: (bool, f64, f64),
}

impl Slide<'_> {
    /// The contents of a slide's shapes: the title first, then from top to bottom, left to right.
    pub(super) fn contents(&self, root: &Node) -> Vec<Content> {
        let mut shapes = Vec::new();
        if let Some(tree) = root.path(Ns::P, &["cSld", "spTree"]) {
            let whole = Frame {
                scale: (1.0, 1.0),
                shift: (0.0, 0.0),
            };
            self.place(tree, whole, &mut shapes);
        }
        shapes.sort_by(|a, b| {
            let (title_a, top_a, left_a) = a.key;
            let (title_b, top_b, left_b) = b.key;
            title_b
                .cmp(&title_a)
                .then(top_a.total_cmp(&top_b))
                .then(left_a.total_cmp(&left_b))
        });
        let mut contents = Vec::new();
        for shape in &shapes {
            self.shape(shape, &mut contents);
        }
        contents
    }

    /// Collects shapes with their places, those of groups too.
    fn place<'n>(&self, parent: &'n Node, frame: Frame, shapes: &mut Vec<Placed<'n>>) {
        for node in parent.elements() {
            match (node.ns, &*node.name) {
                (Ns::P, "grpSp") => self.place(node, frame.of_group(node), shapes),
                (Ns::P, "sp" | "graphicFrame" | "cxnSp" | "pic") => {
                    let placeholder = Placeholder::of(node);
                    let inherited = layout::inherited(placeholder.as_ref(), self.layout, self.master);
                    let (left, top) = layout::offset(node).or(inherited.offset).unwrap_or_default();
                    let top = ((frame.shift.1 + frame.scale.1 * top) / LINE).round();
                    let left = frame.shift.0 + frame.scale.0 * left;
                    let title = placeholder.as_ref().is_some_and(Placeholder::is_title);
                    shapes.push(Placed {
                        node,
                        placeholder,
                        key: (title, top, left),
                    });
                }
                (Ns::Mc, _) => self.place(node, frame, shapes),
                _ => {}
            }
        }
    }

    fn shape(&self, shape: &Placed, out: &mut Vec<Content>) {
        if shape.node.is(Ns::P, "graphicFrame") {
            return self.graphic(shape.node, out);
        }
        let Some(body) = shape.node.child(Ns::P, "txBody") else {
            return;
        };
        let whole = |kind| {
            let text = drawing_paragraphs(body).join("\n");
            (!text.is_empty()).then(|| Content::Element(Box::new(Element::new(kind, text))))
        };
        match shape.placeholder.as_ref().map(|p| p.kind.as_str()) {
            Some("title" | "ctrTitle") => out.extend(self.title(body)),
            Some("ftr" | "dt") => out.extend(whole(ElementType::Footer)),
            Some("hdr") => out.extend(whole(ElementType::Header)),
            Some("sldNum") => out.extend(whole(ElementType::PageNumber)),
            _ => self.body(body, shape.placeholder.as_ref(), out),
        }
    }

    /// All paragraphs of a title are one heading.
    fn title(&self, body: &Node) -> Option<Content> {
        let mut element = Element::new(ElementType::Title, "").with_depth(0);
        let mut text = String::new();
        for paragraph in body.elements().filter(|n| n.is(Ns::A, "p")) {
            if drawing_text(paragraph).trim().is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            self.append(paragraph, &mut text, &mut element);
        }
        element.text = text;
        (!element.text.is_empty()).then(|| Content::Element(Box::new(element)))
    }

    fn body(&self, body: &Node, placeholder: Option<&Placeholder>, out: &mut Vec<Content>) {
        let inherited = layout::inherited(placeholder, self.layout, self.master);
        let own = bullet::levels(body.child(Ns::A, "lstStyle"));
        let mut counters = Counters::default();
        for paragraph in body.elements().filter(|n| n.is(Ns::A, "p")) {
            if drawing_text(paragraph).trim().is_empty() {
                continue;
            }
            let properties = paragraph.child(Ns::A, "pPr");
            let level = properties
                .and_then(|p| p.attr("lvl"))
                .and_then(|v| v.parse().ok())
                .unwrap_or(0);
            let level = bullet::LEVELS.saturating_sub(1).min(level);
            let of_style = |levels: &Levels| levels.get(level).cloned().flatten();
            let bullet = properties
                .and_then(bullet::of_properties)
                .or_else(|| of_style(&own))
                .or_else(|| inherited.levels.iter().find_map(|levels| of_style(levels)))
                .unwrap_or(Bullet::None);
            let label = counters.next(level, &bullet);
            let mut element = Element::new(ElementType::ListItem, "");
            let mut text = label.map(|label| format!("{label} ")).unwrap_or_default();
            self.append(paragraph, &mut text, &mut element);
            if bullet == Bullet::None {
                let (kind, kept) = classify_body(&text);
                element.kind = kind;
                text = kept;
            }
            if element.kind == ElementType::ListItem {
                element.metadata.category_depth = u32::try_from(level).ok();
            }
            element.text = text;
            out.push(Content::Element(Box::new(element)));
        }
    }

    /// Appends a paragraph to `text`, its links and emphasis to the metadata.
    fn append(&self, paragraph: &Node, text: &mut String, element: &mut Element) {
        let start = text.len();
        let mut chars = text.chars().count();
        for run in paragraph.elements() {
            let mut piece = drawing_text(run);
            if run.is(Ns::A, "br") {
                piece = "\n".to_owned();
            }
            if text.len() == start {
                piece.drain(..piece.len() - piece.trim_start().len());
            }
            let shown = piece.trim();
            let properties = run.child(Ns::A, "rPr");
            if let Some(properties) = properties.filter(|_| !shown.is_empty()) {
                let target = properties
                    .child(Ns::A, "hlinkClick")
                    .and_then(|link| link.reference("id"))
                    .and_then(|id| self.relationships.get(id))
                    .filter(|r| r.external);
                let metadata = &mut element.metadata;
                if let Some(target) = target {
                    let lead = piece[..piece.len() - piece.trim_start().len()].chars().count();
                    metadata.link_texts.push(shown.to_owned());
                    metadata.link_urls.push(target.target.clone());
                    metadata.links.push(Link {
                        text: shown.to_owned(),
                        url: target.target.clone(),
                        start_index: i64::try_from(chars + lead).unwrap_or(-1),
                    });
                }
                let on = |name: &str| matches!(properties.attr(name), Some("1" | "true"));
                let tag = match (on("b"), on("i")) {
                    (true, true) => "bi",
                    (true, false) => "b",
                    (false, true) => "i",
                    (false, false) => "",
                };
                if !tag.is_empty() {
                    metadata.emphasized_text_contents.push(shown.to_owned());
                    metadata.emphasized_text_tags.push(tag.to_owned());
                }
            }
            chars += piece.chars().count();
            text.push_str(&piece);
        }
        text.truncate(text.trim_end().len());
    }

    fn graphic(&self, frame: &Node, out: &mut Vec<Content>) {
        let Some(data) = frame.path(Ns::A, &["graphic", "graphicData"]) else {
            return;
        };
        for node in data.elements() {
            let part = |name: &str| {
                let id = node.reference(name)?;
                self.relationships.part(id).map(str::to_owned)
            };
            match (node.ns, &*node.name) {
                (Ns::A, "tbl") => {
                    let element = table::element(&rows(node));
                    out.extend(element.map(|e| Content::Element(Box::new(e))));
                }
                (Ns::C, "chart") => out.extend(part("id").map(Content::Chart)),
                (Ns::Dgm, "relIds") => out.extend(part("dm").map(Content::Diagram)),
                _ => {}
            }
        }
    }
}

impl Frame {
    /// The frame of the shapes in a group.
    fn of_group(self, group: &Node) -> Self {
        let transform = group.child(Ns::P, "grpSpPr").and_then(|p| p.child(Ns::A, "xfrm"));
        let Some(transform) = transform else { return self };
        let get = |name, a, b| layout::pair(transform, name, a, b);
        let (Some(off), Some(ext), Some(child_off), Some(child_ext)) = (
            get("off", "x", "y"),
            get("ext", "cx", "cy"),
            get("chOff", "x", "y"),
            get("chExt", "cx", "cy"),
        ) else {
            return self;
        };
        let ratio = |outer: f64, inner: f64| if inner == 0.0 { 1.0 } else { outer / inner };
        let inner = (ratio(ext.0, child_ext.0), ratio(ext.1, child_ext.1));
        Self {
            scale: (self.scale.0 * inner.0, self.scale.1 * inner.1),
            shift: (
                self.shift.0 + self.scale.0 * (off.0 - inner.0 * child_off.0),
                self.shift.1 + self.scale.1 * (off.1 - inner.1 * child_off.1),
            ),
        }
    }
}

/// The rows of a DrawingML table; cells that a span covers are left out.
fn rows(table: &Node) -> Vec<Row> {
    let on = |node: &Node, name: &str| matches!(node.attr(name), Some("1" | "true"));
    let header = table.child(Ns::A, "tblPr").is_some_and(|p| on(p, "firstRow"));
    let mut rows = Vec::new();
    for row in table.elements().filter(|n| n.is(Ns::A, "tr")) {
        let mut cells = Vec::new();
        for cell in row.elements().filter(|n| n.is(Ns::A, "tc")) {
            if on(cell, "hMerge") || on(cell, "vMerge") {
                continue;
            }
            let span = |name: &str| {
                cell.attr(name)
                    .and_then(|v| v.parse().ok())
                    .unwrap_or(1u32)
                    .clamp(1, 1000)
            };
            cells.push(Cell {
                text: drawing_paragraphs(cell).join(" "),
                colspan: span("gridSpan"),
                rowspan: span("rowSpan"),
            });
        }
        rows.push(Row {
            cells,
            header: header && rows.is_empty(),
        });
    }
    // A head alone is a table of one row.
    if let [only] = rows.as_mut_slice() {
        only.header = false;
    }
    rows
}
