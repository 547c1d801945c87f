//! The structure tree of tagged files: what each piece of marked content is a part of.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::dict::keys::{K, MCID, PG, ROLE_MAP, S, STRUCT_TREE_ROOT};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object};

use super::engine::{Tag, TagKind};

/// Nodes of a tree that are visited; more belong to no readable file.
const MAX_NODES: usize = 1_000_000;
/// Nesting that is followed.
const MAX_DEPTH: usize = 64;
/// Steps through the map of roles.
const MAX_ROLES: usize = 8;

/// What marked content belongs to, by the object number of its page and its identifier.
#[derive(Default)]
pub(super) struct Structure(HashMap<(u32, u32), Tag>);

/// An element on the way down the tree.
#[derive(Clone, Copy)]
struct Context {
    page: Option<u32>,
    tag: Tag,
    depth: usize,
}

impl Structure {
    /// Reads the tree; empty when there is none.
    pub(super) fn read(pdf: &Pdf) -> Self {
        let mut found = Self::default();
        let xref = pdf.xref();
        let root = xref
            .get::<Dict<'_>>(xref.root_id())
            .and_then(|catalog| catalog.get::<Dict<'_>>(STRUCT_TREE_ROOT));
        let Some(root) = root else { return found };
        let roles = root.get::<Dict<'_>>(ROLE_MAP).unwrap_or_default();
        let start = Context {
            page: None,
            tag: Tag::default(),
            depth: 0,
        };
        let mut elements = 0;
        let mut todo: Vec<(Object<'_>, Context)> = kids(&root).into_iter().map(|kid| (kid, start)).collect();
        let mut visited = 0;
        while let Some((object, context)) = todo.pop() {
            visited += 1;
            if visited > MAX_NODES || context.depth > MAX_DEPTH {
                continue;
            }
            match object {
                Object::Number(number) => found.add(context, number.as_f64()),
                Object::Dict(dict) => {
                    let page = dict.get_ref(PG).map(|page| page.obj_number).or(context.page);
                    if let Some(mcid) = dict.get::<f32>(MCID) {
                        found.add(Context { page, ..context }, f64::from(mcid));
                        continue;
                    }
                    let Some(name) = dict.get::<Name<'_>>(S) else { continue };
                    elements += 1;
                    let tag = child_tag(&role(name, &roles), context.tag, elements);
                    let below = Context {
                        page,
                        tag,
                        depth: context.depth + 1,
                    };
                    todo.extend(kids(&dict).into_iter().map(|kid| (kid, below)));
                }
                _ => {}
            }
        }
        found
    }

    fn add(&mut self, context: Context, mcid: f64) {
        if let (Some(page), true) = (context.page, (0.0..1e9).contains(&mcid)) {
            self.0.insert((page, mcid as u32), context.tag);
        }
    }

    pub(super) fn get(&self, page: u32, mcid: u32) -> Tag {
        self.0.get(&(page, mcid)).copied().unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn kids<'a>(dict: &Dict<'a>) -> Vec<Object<'a>> {
    match dict.get::<Object<'a>>(K) {
        Some(Object::Array(array)) => array_kids(&array),
        Some(object) => vec![object],
        None => Vec::new(),
    }
}

fn array_kids<'a>(array: &Array<'a>) -> Vec<Object<'a>> {
    array.iter::<Object<'a>>().take(MAX_NODES).collect()
}

/// The standard name a name stands for.
fn role(name: Name<'_>, roles: &Dict<'_>) -> String {
    let mut name = String::from_utf8_lossy(name.as_ref()).into_owned();
    for _ in 0..MAX_ROLES {
        if kind(&name).is_some() {
            break;
        }
        match roles.get::<Name<'_>>(name.as_bytes()) {
            Some(next) => name = String::from_utf8_lossy(next.as_ref()).into_owned(),
            None => break,
        }
    }
    name
}

/// What a standard element makes of its content; none when it says nothing.
fn kind(name: &str) -> Option<TagKind> {
    Some(match name {
        "H" | "Title" => TagKind::Heading(None),
        "H1" | "H2" | "H3" | "H4" | "H5" | "H6" => {
            let level = name.bytes().nth(1).map_or(1, |digit| digit.saturating_sub(b'0'));
            TagKind::Heading(Some(level.max(1)))
        }
        "P" | "BlockQuote" | "Index" => TagKind::Paragraph,
        "LI" | "LBody" | "Lbl" => TagKind::ListItem,
        "Caption" => TagKind::Caption,
        "Note" | "FENote" => TagKind::Note,
        "Artifact" => TagKind::Artifact,
        "TH" | "TD" => TagKind::Cell,
        _ => return None,
    })
}

/// The tag of an element within one of tag `parent`: a paragraph in a list item is the item's, one in
/// a cell the cell's.
fn child_tag(name: &str, parent: Tag, element: u32) -> Tag {
    let nested = matches!(
        parent.kind,
        TagKind::ListItem | TagKind::Cell | TagKind::Caption | TagKind::Note
    );
    match kind(name) {
        Some(TagKind::Paragraph) if nested => parent,
        // Label and body of an item are one.
        Some(TagKind::ListItem) if name != "LI" && parent.kind == TagKind::ListItem => parent,
        Some(kind) => Tag { kind, element },
        None => parent,
    }
}
