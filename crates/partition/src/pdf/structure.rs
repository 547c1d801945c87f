//! The structure tree of tagged files: what each piece of marked content is a part of.
//!
//! A page names its content's elements in the parent tree, and from each of them the way up is short; so
//! a page costs the same in a file of one page and of a thousand. The tree is walked as a whole only
//! where a file lacks the parent tree.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::dict::keys::{
    A, ACTUAL_TEXT, ALT, K, KIDS, NUMS, P, PARENT_TREE, ROLE_MAP, S, STRUCT_PARENTS, STRUCT_TREE_ROOT,
};
use hayro_interpret::hayro_syntax::object::{Array, Dict, MaybeRef, Name, ObjRef, Object, ObjectIdentifier};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::xref::XRef;

mod order;
mod walk;

use order::TreeOrder;
use walk::walk;

use super::device::marks::{Words, words_of};
use super::engine::{Tag, TagKind, TaggedCell};

/// Entries of the parent tree that are read.
const MAX_ENTRIES: usize = 1_000_000;
/// Nodes of the parent tree that are visited.
const MAX_NODES: usize = 10_000;
/// Pieces of marked content of one page.
const MAX_PIECES: usize = 200_000;
/// Elements on the way up that are looked at.
const MAX_DEPTH: usize = 64;
/// Elements below a table of which some may be groups of rows.
const MAX_GROUPS: usize = 8;
/// Rows, columns and cells of one table, and rows or columns that one cell spans.
const MAX_ROWS: usize = 20_000;
const MAX_COLUMNS: usize = 1000;
const MAX_CELLS: usize = 200_000;
const MAX_SPAN: usize = 1000;
/// Attributes of cells.
const COL_SPAN: &[u8] = b"ColSpan";
const ROW_SPAN: &[u8] = b"RowSpan";
/// Steps through the map of roles.
const MAX_ROLES: usize = 8;

/// The structure of a document.
pub(super) struct Structure<'a> {
    xref: &'a XRef,
    roles: Dict<'a>,
    /// What the parent tree has for the key of a page.
    pages: HashMap<i32, MaybeRef<Object<'a>>>,
    /// Elements that are known already, by object number.
    known: HashMap<u32, Tag>,
    /// Where there is no parent tree: by the object number of the page.
    walked: HashMap<u32, Vec<Tag>>,
    /// Tables by object number, with their rows as soon as they are asked for.
    tables: HashMap<u32, Rows>,
    /// Text in place of what is drawn, by the number of the only element it is for.
    actual: HashMap<u32, Rc<str>>,
    /// Descriptions of figures by the numbers of the elements within them.
    described: HashMap<u32, Rc<str>>,
    /// What cells, rows and groups of rows stand in, by object number.
    parents: HashMap<u32, u32>,
    order: TreeOrder<'a>,
}

/// The rows of a table by object number.
#[derive(Default)]
struct Rows {
    list: Vec<u32>,
    places: HashMap<u32, usize>,
}

impl<'a> Structure<'a> {
    /// Opens the tree; none when there is none.
    pub(super) fn open(pdf: &'a Pdf) -> Option<Self> {
        let xref = pdf.xref();
        let root = xref
            .get::<Dict<'a>>(xref.root_id())?
            .get::<Dict<'a>>(STRUCT_TREE_ROOT)?;
        let mut structure = Self {
            xref,
            roles: root.get::<Dict<'a>>(ROLE_MAP).unwrap_or_default(),
            pages: HashMap::new(),
            known: HashMap::new(),
            walked: HashMap::new(),
            tables: HashMap::new(),
            actual: HashMap::new(),
            described: HashMap::new(),
            parents: HashMap::new(),
            order: TreeOrder::new(xref),
        };
        let Some(parents) = root.get::<Dict<'a>>(PARENT_TREE) else {
            structure.walked = walk(&root, &structure.roles);
            return Some(structure);
        };
        let mut todo = vec![parents];
        let mut visited = 0;
        while let Some(node) = todo.pop() {
            visited += 1;
            if visited > MAX_NODES {
                break;
            }
            if let Some(kids) = node.get::<Array<'a>>(KIDS) {
                todo.extend(kids.iter::<Dict<'a>>().take(MAX_NODES - todo.len().min(MAX_NODES)));
            }
            if let Some(numbers) = node.get::<Array<'a>>(NUMS) {
                structure.add_numbers(&numbers);
            }
        }
        Some(structure)
    }

    /// Adds the pairs of one leaf.
    fn add_numbers(&mut self, numbers: &Array<'a>) {
        let mut key = None;
        for entry in numbers.raw_iter() {
            if self.pages.len() >= MAX_ENTRIES {
                return;
            }
            match (key.take(), entry) {
                (None, MaybeRef::NotRef(Object::Number(number))) => key = Some(number.as_f64() as i32),
                (Some(key), value) => {
                    self.pages.insert(key, value);
                }
                (None, _) => {}
            }
        }
    }

    /// What the marked content of a page is, by its identifier, and what is said in its place.
    pub(super) fn tags(&mut self, page: &Page<'a>) -> (Vec<Tag>, Words) {
        let mut words = Words::default();
        if !self.walked.is_empty() {
            let number = page.raw().obj_id().map(|id| id.obj_number);
            let tags = number.and_then(|number| self.walked.get(&number));
            return (tags.cloned().unwrap_or_default(), words);
        }
        let entry = page
            .raw()
            .get::<i32>(STRUCT_PARENTS)
            .and_then(|key| self.pages.get(&key));
        let elements = match entry {
            Some(MaybeRef::Ref(reference)) => self.xref.get::<Array<'a>>((*reference).into()),
            Some(MaybeRef::NotRef(Object::Array(array))) => Some(array.clone()),
            _ => None,
        };
        let Some(elements) = elements else {
            return (Vec::new(), words);
        };
        let mut tags = Vec::new();
        // Neighbours mostly belong to one element.
        let mut last = (None, Tag::default());
        for entry in elements.raw_iter().take(MAX_PIECES) {
            let MaybeRef::Ref(reference) = entry else {
                tags.push(Tag::default());
                continue;
            };
            if last.0 != Some(reference.obj_number) {
                let tag = match self.known.get(&reference.obj_number) {
                    Some(tag) => *tag,
                    None => self
                        .xref
                        .get::<Dict<'a>>(reference.into())
                        .map_or(Tag::default(), |element| self.climb(element, reference.obj_number)),
                };
                last = (Some(reference.obj_number), tag);
            }
            let mcid = tags.len() as u32;
            for (known, words) in [
                (&self.actual, &mut words.actual),
                (&self.described, &mut words.described),
            ] {
                if let Some(text) = known.get(&reference.obj_number) {
                    words.insert(mcid, text.clone());
                }
            }
            tags.push(last.1);
        }
        let number = page.raw().obj_id().map_or(0, |id| id.obj_number);
        let owners: Vec<Option<u32>> = elements.raw_iter().take(MAX_PIECES).map(owner).collect();
        for (tag, place) in tags.iter_mut().zip(self.order.places(&owners, number)) {
            tag.order = place;
        }
        (tags, words)
    }

    /// The cells of tables with rows among the tags of a page: all cells of those rows.
    pub(super) fn cells(&mut self, tags: &[Tag]) -> Vec<TaggedCell> {
        // First and last row by table.
        let mut spans: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        let mut last = 0;
        for tag in tags.iter().filter(|tag| tag.kind == TagKind::Cell) {
            if tag.element == last {
                continue;
            }
            last = tag.element;
            if let Some((table, row)) = self.row_of(tag.element) {
                let span = spans.entry(table).or_insert((row, row));
                *span = (span.0.min(row), span.1.max(row));
            }
        }
        let mut found = Vec::new();
        for (table, (first, last)) in spans {
            let rows = self
                .tables
                .get(&table)
                .map(|rows| rows.list.as_slice())
                .unwrap_or_default();
            let rows = rows.get(first..=last).unwrap_or_default();
            found.extend(self.placed_cells(table, rows));
        }
        found
    }

    /// The table of a cell and the place of its row.
    fn row_of(&mut self, cell: u32) -> Option<(u32, usize)> {
        let row = *self.parents.get(&cell)?;
        let above = *self.parents.get(&row)?;
        let table = match self.tables.contains_key(&above) {
            true => above,
            false => *self.parents.get(&above)?,
        };
        let empty = self.tables.get(&table)?.list.is_empty();
        if empty {
            let list = self.table_rows(table);
            let rows = self.tables.get_mut(&table)?;
            rows.places = list.iter().enumerate().map(|(place, row)| (*row, place)).collect();
            rows.list = list;
        }
        let place = *self.tables.get(&table)?.places.get(&row)?;
        Some((table, place))
    }

    /// The cells of consecutive rows of a table, placed as their spans have it.
    fn placed_cells(&self, table: u32, rows: &[u32]) -> Vec<TaggedCell> {
        let mut cells = Vec::new();
        // Per column the first row that is free.
        let mut free: Vec<usize> = Vec::new();
        for (row, line) in rows.iter().enumerate() {
            let Some(line) = self.xref.get::<Dict<'a>>(ObjectIdentifier::new(*line, 0)) else {
                continue;
            };
            let mut column = 0;
            for reference in references(&line) {
                let Some(cell) = self.xref.get::<Dict<'a>>(reference.into()) else {
                    continue;
                };
                let header = match self.role_of(&cell).as_deref() {
                    Some("TH") => true,
                    Some("TD") => false,
                    _ => continue,
                };
                while free.get(column).is_some_and(|&until| until > row) {
                    column += 1;
                }
                let [column_span, row_span] = [COL_SPAN, ROW_SPAN].map(|key| span(&cell, key));
                if column + column_span > MAX_COLUMNS || cells.len() >= MAX_CELLS {
                    return cells;
                }
                if free.len() < column + column_span {
                    free.resize(column + column_span, 0);
                }
                for until in free.iter_mut().skip(column).take(column_span) {
                    *until = row + row_span;
                }
                cells.push(TaggedCell {
                    element: reference.obj_number,
                    table,
                    row,
                    column,
                    // Rows beyond the page are cut off.
                    row_span: row_span.min(rows.len() - row),
                    column_span,
                    header,
                });
                column += column_span;
            }
        }
        cells
    }

    /// The object numbers of a table's rows, be they in groups or not.
    fn table_rows(&self, table: u32) -> Vec<u32> {
        let element = |number: u32| self.xref.get::<Dict<'a>>(ObjectIdentifier::new(number, 0));
        let kids = element(table).map(|table| references(&table)).unwrap_or_default();
        // Groups are few; looking into every row for what it is would take long.
        let few = kids.len() <= MAX_GROUPS;
        let mut rows = Vec::new();
        for kid in kids {
            let group = element(kid.obj_number)
                .filter(|_| few)
                .filter(|kid| matches!(self.role_of(kid).as_deref(), Some("THead" | "TBody" | "TFoot")));
            match group {
                Some(group) => rows.extend(references(&group).into_iter().map(|row| row.obj_number)),
                None => rows.push(kid.obj_number),
            }
        }
        rows.truncate(MAX_ROWS);
        rows
    }

    fn role_of(&self, element: &Dict<'a>) -> Option<String> {
        element.get::<Name<'a>>(S).map(|name| role(name, &self.roles))
    }

    /// The tag of an element, by those it stands in.
    fn climb(&mut self, element: Dict<'a>, number: u32) -> Tag {
        let mut path = Vec::new();
        let mut tag = Tag::default();
        let mut next = Some((element, number));
        // What stands in a figure, up to it.
        let mut within = Vec::new();
        while let Some((element, number)) = next {
            if let Some(known) = self.known.get(&number) {
                tag = *known;
                break;
            }
            let Some(name) = element.get::<Name<'a>>(S) else { break };
            let name = role(name, &self.roles);
            let above = element.get_ref(P).map_or(0, |parent| parent.obj_number);
            match name.as_str() {
                "TD" | "TH" | "TR" | "THead" | "TBody" | "TFoot" => {
                    self.parents.insert(number, above);
                }
                "Table" => {
                    self.tables.entry(number).or_default();
                }
                _ => {}
            }
            within.push(number);
            if let Some(text) = words_of(&element, ALT).filter(|_| name == "Figure") {
                self.described
                    .extend(within.iter().map(|number| (*number, text.clone())));
            }
            // Of several pieces nobody knows which has which part of the text.
            if path.is_empty()
                && let Some(text) = words_of(&element, ACTUAL_TEXT)
                && element.get::<u32>(K).is_some()
            {
                self.actual.insert(number, text);
            }
            path.push((name, number));
            if path.len() > MAX_DEPTH {
                break;
            }
            // What has many elements below it is large, and is not read for each of them.
            if let Some(known) = self.known.get(&above).filter(|_| above > 0) {
                tag = *known;
                break;
            }
            next = element.get::<Dict<'a>>(P).map(|parent| (parent, above));
        }
        for (name, number) in path.into_iter().rev() {
            tag = child_tag(&name, tag, number);
            if number > 0 {
                self.known.insert(number, tag);
            }
        }
        tag
    }
}

fn owner(entry: MaybeRef<Object<'_>>) -> Option<u32> {
    match entry {
        MaybeRef::Ref(reference) => Some(reference.obj_number),
        MaybeRef::NotRef(_) => None,
    }
}

/// What stands right below an element, as far as it has object numbers.
fn references(parent: &Dict<'_>) -> Vec<ObjRef> {
    match parent.get::<Array<'_>>(K) {
        Some(kids) => kids
            .raw_iter()
            .take(MAX_ROWS)
            .filter_map(|kid| match kid {
                MaybeRef::Ref(reference) => Some(reference),
                MaybeRef::NotRef(_) => None,
            })
            .collect(),
        None => parent.get_ref(K).into_iter().collect(),
    }
}

/// How many rows or columns a cell spans.
fn span(cell: &Dict<'_>, key: &[u8]) -> usize {
    let in_dict = |attributes: &Dict<'_>| attributes.get::<u32>(key);
    let stated = match cell.get::<Object<'_>>(A) {
        Some(Object::Dict(attributes)) => in_dict(&attributes),
        Some(Object::Array(list)) => list.iter::<Dict<'_>>().take(MAX_ROLES).find_map(|a| in_dict(&a)),
        _ => None,
    };
    stated.map_or(1, |span| (span as usize).clamp(1, MAX_SPAN))
}

/// The standard name a name stands for.
fn role(name: Name<'_>, roles: &Dict<'_>) -> String {
    let mut name = String::from_utf8_lossy(name.as_ref()).into_owned();
    for _ in 0..MAX_ROLES {
        if kind(&name).is_some() || matches!(name.as_str(), "Figure" | "Table" | "TR" | "THead" | "TBody" | "TFoot") {
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
            let level = name.as_bytes().get(1).map_or(1, |digit| digit.saturating_sub(b'0'));
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
        // Lists and the like in a cell are its text.
        Some(TagKind::ListItem | TagKind::Note) if parent.kind == TagKind::Cell => parent,
        // Label and body of an item are one.
        Some(TagKind::ListItem) if name != "LI" && parent.kind == TagKind::ListItem => parent,
        Some(kind) => Tag {
            kind,
            element,
            order: 0,
        },
        None if parent.kind == TagKind::None => Tag {
            kind: TagKind::Other,
            ..parent
        },
        None => parent,
    }
}
