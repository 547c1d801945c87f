//! One metadata for a chunk from those of its members.

use std::collections::{BTreeMap, HashSet};

use docmill_model::metadata::CoordinateSystem;
use docmill_model::{Coordinates, Element, ElementType, Metadata, PageSpan};
use serde_json::{Map, Value};

/// Cells of a table in structured form; a known field that [`Metadata`] keeps among the extra ones.
const TABLE_AS_CELLS: &str = "table_as_cells";

/// What a node of named entities found; likewise.
const ENTITIES: &str = "entities";

/// Consolidates field by field: the first value of facts about the document, all values of lists, and
/// nothing of what describes a single element. Adds where the chunk comes from. Fields docmill does not
/// know are dropped, as nobody can tell how they would combine; named entities are those of all members.
pub(super) fn consolidate(members: &[Element]) -> Metadata {
    let mut chunk = Metadata::default();
    let mut languages = HashSet::new();
    let mut origins = Origins::default();
    let mut entities = Entities::default();
    for member in members {
        let metadata = &member.metadata;
        take_firsts(&mut chunk, metadata);
        concatenate(&mut chunk, metadata);
        for language in &metadata.languages {
            // Nearly always the language of all.
            if chunk.languages.first() != Some(language) && languages.insert(language) {
                chunk.languages.push(language.clone());
            }
        }
        origins.add(&metadata.enrichment_origins);
        entities.add(metadata.extra.get(ENTITIES));
        chunk.source_element_ids.push(member.element_id.clone());
    }
    chunk.enrichment_origins = origins.merged;
    if let Some(entities) = entities.together() {
        chunk.extra.insert(ENTITIES.to_owned(), entities);
    }
    chunk.page_spans = page_spans(members);
    chunk
}

/// Named entities of several elements, each once.
#[derive(Default)]
struct Entities {
    items: Vec<Value>,
    relationships: Vec<Value>,
    seen: HashSet<String>,
}

impl Entities {
    fn add(&mut self, entities: Option<&Value>) {
        let Some(entities) = entities else { return };
        for (name, all) in [("items", &mut self.items), ("relationships", &mut self.relationships)] {
            let given = entities.get(name).and_then(Value::as_array);
            for value in given.into_iter().flatten() {
                if self.seen.insert(value.to_string()) {
                    all.push(value.clone());
                }
            }
        }
    }

    /// All of them in the form of one element's; `None` if there is none.
    fn together(self) -> Option<Value> {
        let some = !self.items.is_empty() || !self.relationships.is_empty();
        some.then(|| serde_json::json!({"items": self.items, "relationships": self.relationships}))
    }
}

/// Removes what grows with the members and is of little use on a repetition: see [`super::chunk`].
pub(super) fn strip_bulk(chunk: &mut Metadata) {
    chunk.orig_elements = None;
    chunk.link_texts.clear();
    chunk.link_urls.clear();
    chunk.emphasized_text_contents.clear();
    chunk.emphasized_text_tags.clear();
    chunk.enrichment_origins.clear();
    chunk.extra.clear();
}

macro_rules! first {
    ($chunk:ident, $member:ident, $is_empty:ident: $($field:ident)+) => {
        $(if $chunk.$field.$is_empty() {
            $chunk.$field.clone_from(&$member.$field);
        })+
    };
}

fn take_firsts(chunk: &mut Metadata, member: &Metadata) {
    first!(chunk, member, is_none:
        attached_to_filename data_source file_directory filename filetype last_modified email_message_id
        page_name page_number routing signature subject table_extraction_method url);
    first!(chunk, member, is_empty: cc_recipient bcc_recipient sent_from sent_to);
    if let Some(cells) = member.extra.get(TABLE_AS_CELLS).filter(|cells| !cells.is_null())
        && !chunk.extra.contains_key(TABLE_AS_CELLS)
    {
        chunk.extra.insert(TABLE_AS_CELLS.to_owned(), cells.clone());
    }
}

fn concatenate(chunk: &mut Metadata, member: &Metadata) {
    let lists = [
        (&mut chunk.emphasized_text_contents, &member.emphasized_text_contents),
        (&mut chunk.emphasized_text_tags, &member.emphasized_text_tags),
        (&mut chunk.link_texts, &member.link_texts),
        (&mut chunk.link_urls, &member.link_urls),
    ];
    for (all, more) in lists {
        all.extend_from_slice(more);
    }
    let html = member.text_as_html.as_deref().unwrap_or_default().trim();
    if !html.is_empty() {
        let all = chunk.text_as_html.get_or_insert_default();
        super::text::push_joined(all, html, " ");
    }
}

/// Who wrote which field: lists per field, each origin once.
#[derive(Default)]
struct Origins {
    merged: Map<String, Value>,
    /// JSON of what `merged` holds, as values can't be hashed.
    seen: HashSet<(String, String)>,
}

impl Origins {
    fn add(&mut self, origins: &Map<String, Value>) {
        for (field, value) in origins {
            let items = match value {
                Value::Array(items) => items.as_slice(),
                other => std::slice::from_ref(other),
            };
            for item in items {
                if self.seen.insert((field.clone(), item.to_string()))
                    && let Value::Array(all) = self.merged.entry(field).or_insert_with(|| Value::Array(Vec::new()))
                {
                    all.push(item.clone());
                }
            }
        }
    }
}

/// The pages the members stand on, in page order, each with the box around those whose place is known.
fn page_spans(members: &[Element]) -> Vec<PageSpan> {
    let mut boxes = BTreeMap::<u32, Option<[f64; 4]>>::new();
    for member in members {
        // A page break stands between pages and says nothing about where the text is.
        let Some(page) = member
            .metadata
            .page_number
            .filter(|_| member.kind != ElementType::PageBreak)
        else {
            continue;
        };
        let union = boxes.entry(page).or_default();
        let place = member.metadata.coordinates.as_ref().or(member.metadata.place.as_ref());
        if let Some(bbox) = place.map(bbox_from_top_left) {
            *union = Some(union.map_or(bbox, |[x1, y1, x2, y2]| {
                [x1.min(bbox[0]), y1.min(bbox[1]), x2.max(bbox[2]), y2.max(bbox[3])]
            }));
        }
    }
    let span = |(page_number, bbox)| PageSpan { page_number, bbox };
    boxes.into_iter().map(span).collect()
}

/// The box `[x1, y1, x2, y2]` with y down, whatever the coordinate system.
fn bbox_from_top_left(coordinates: &Coordinates) -> [f64; 4] {
    let [x1, y1, x2, y2] = coordinates.bbox();
    let (width, height) = (coordinates.layout_width, coordinates.layout_height);
    match coordinates.system {
        CoordinateSystem::PixelSpace => [x1, y1, x2, y2],
        CoordinateSystem::PointSpace => [x1, height - y2, x2, height - y1],
        CoordinateSystem::RelativeCoordinateSystem => {
            [x1 * width, (1.0 - y2) * height, x2 * width, (1.0 - y1) * height]
        }
    }
}
