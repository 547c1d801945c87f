//! A whole document: pages are read one after the other, then judged together.

use docmill_model::metadata::{Coordinates, Link};
use docmill_model::settings::Strategy;
use docmill_model::{Element, ElementType, PageInfo, RouteReason, Warning, WarningCode};
use serde_json::{Value, json};

use super::banded::banded_tables;
use super::bars::bar_charts;
use super::block::{Block, blocks};
use super::continued::{Leaf, join_blocks, join_tables};
use super::drawings::drawn_figures;
use super::engine::{Direction, PageContent, PageSource, Rule, Tag};
use super::figures::{Figure, drop_repeated, figures, insert};
use super::frame::Frame;
use super::furniture::{Furniture, FurnitureLine, Sheet, take_furniture};
use super::grid::ruled_tables;
use super::joined::join_paragraphs;
use super::links::{LinkedText, linked_texts, links_in};
use super::lists::set_depths;
use super::logical::reading_order;
use super::report::{report_route, warn_about};
use super::roles::{Body, BodyCount, Role, roles};
use super::segment::{Segment, parts};
use super::sizes::even_sizes;
use super::table::{Cell, Table};
use super::tagged::tagged_tables;
use super::turned;
use super::words::{self, PageWords};
use crate::context::Context;
use crate::error::PartitionError;

/// A page between reading and output.
struct Page {
    number: u32,
    width: f32,
    height: f32,
    /// Text by direction, the direction of most of the text first.
    parts: Vec<(Frame, Vec<Segment>)>,
    links: Vec<LinkedText>,
    tables: Vec<Table>,
    figures: Vec<Figure>,
    /// See [`PageContent::angle`].
    angle: f32,
    /// What was recognised on it.
    words: PageWords,
}

pub(super) fn partition(source: &mut dyn PageSource, cx: &mut Context) -> Result<(), PartitionError> {
    cx.expect_pages(source.page_count())?;
    let mut pages = Vec::new();
    let mut count = BodyCount::default();
    for index in 0..source.page_count() {
        let page = read(source, index, cx);
        for segment in page
            .parts
            .iter()
            .flat_map(|(_, segments)| segments)
            .filter(|s| s.table.is_none())
        {
            count.add(
                segment.size,
                segment.font,
                segment.bold,
                segment.monospace,
                segment.text.len(),
            );
        }
        pages.push(page);
    }
    let mut placed: Vec<(f32, &mut Vec<Figure>)> =
        pages.iter_mut().map(|page| (page.height, &mut page.figures)).collect();
    drop_repeated(&mut placed);
    let size = count.body().size;
    let mut sheets: Vec<Sheet<'_>> = pages
        .iter_mut()
        .filter_map(|page| {
            let (frame, segments) = page.parts.first_mut()?;
            Some(Sheet {
                height: frame.size().1,
                segments,
            })
        })
        .collect();
    let furniture = take_furniture(&mut sheets, size);
    let mut leaves: Vec<Leaf<'_>> = pages
        .iter_mut()
        .filter_map(|page| {
            let (_, segments) = page.parts.first_mut()?;
            Some(Leaf {
                segments,
                tables: &mut page.tables,
            })
        })
        .collect();
    join_tables(&mut leaves);
    let mut laid_out: Vec<Vec<(Frame, Block)>> = pages.iter_mut().map(lay_out).collect();
    join_blocks(&mut laid_out);
    join_paragraphs(&mut laid_out);
    let all: Vec<&Block> = laid_out.iter().flatten().map(|(_, block)| block).collect();
    let on: Vec<usize> = laid_out
        .iter()
        .enumerate()
        .flat_map(|(index, blocks)| std::iter::repeat_n(index, blocks.len()))
        .collect();
    let mut roles = roles(&all, &on, body(&all, count), &source.outline());
    set_depths(&all, &on, &mut roles);

    let mut roles = roles.into_iter();
    let last = pages.len().saturating_sub(1);
    for (index, (blocks, furniture)) in laid_out.iter().zip(furniture).enumerate() {
        emit(&pages, index, blocks, &mut roles, &furniture, cx)?;
        if let Some(page) = pages.get(index).filter(|_| index < last) {
            cx.push(Element::new(ElementType::PageBreak, "").on_page(page.number))?;
        }
    }
    Ok(())
}

/// The usual text: that of all blocks but tables, unless there is hardly anything else.
fn body(blocks: &[&Block], everything: BodyCount) -> Body {
    let mut count = BodyCount::default();
    for block in blocks.iter().filter(|block| block.table.is_none()) {
        count.add(block.size, block.font, block.bold, block.monospace, block.text.len());
    }
    if count.total() * 20 < everything.total() {
        everything.body()
    } else {
        count.body()
    }
}

/// Reads one page, reports it as done and says what is wrong with it.
fn read(source: &mut dyn PageSource, index: usize, cx: &mut Context) -> Page {
    let number = cx.options.starting_page_number.saturating_add(index as u32);
    let mut content = source.read_page(index).unwrap_or_else(|reason| {
        cx.warn(Warning::on_page(
            WarningCode::PartUnreadable,
            number,
            format!("page {number} was skipped: {}", reason.0),
        ));
        let (width, height) = source.page_size(index);
        PageContent {
            width,
            height,
            has_images: false,
            reason: RouteReason::PageUnreadable,
            ..PageContent::default()
        }
    });
    warn_about(&content, number, cx);
    let prepared = content.parts.take();
    let mut parts = prepared.unwrap_or_else(|| parts(&content, source.fonts()));
    for (_, segments) in &mut parts {
        even_sizes(segments, &content);
    }
    let mut page = Page {
        number,
        width: content.width,
        height: content.height,
        parts,
        links: linked_texts(&content, source.fonts()),
        tables: Vec::new(),
        figures: Vec::new(),
        angle: content.angle,
        words: PageWords::new(
            content
                .recognised
                .as_mut()
                .map(|said| std::mem::take(&mut said.words))
                .unwrap_or_default(),
        ),
    };
    let mut turned = turned::take(&mut page.parts);
    if let Some((frame, segments)) = page.parts.first_mut()
        && frame.direction != Direction::Oblique
    {
        let (rules, fills) = framed(&content, frame);
        let orders: Vec<(f32, f32, u32)> = segments.iter().map(order_at).collect();
        page.tables = tagged_tables(&content.cells, segments);
        page.tables.extend(ruled_tables(&rules, segments, &mut turned));
        page.tables
            .extend(banded_tables(&rules, &fills, frame.size().1, segments));
        segments.extend(
            page.tables
                .iter()
                .enumerate()
                .map(|(index, table)| placeholder(index, table, &orders)),
        );
    }
    turned::put_back(&mut page.parts, turned);
    if cx.options.strategy != Strategy::Fast {
        page.figures = figures(&content, drawn_beside_tables(&content, &page));
    }
    let is_plain = page.tables.is_empty() && page.figures.is_empty();
    report_route(&content, number, is_plain, cx);
    cx.page_done(PageInfo {
        number,
        width: Some(f64::from(page.width)),
        height: Some(f64::from(page.height)),
    });
    page
}

/// The drawn figures of a page but those that are parts of tables.
fn drawn_beside_tables(content: &PageContent, page: &Page) -> Vec<[f32; 4]> {
    let mut drawn = drawn_figures(content);
    let texts: Vec<([f32; 4], &str)> = page
        .parts
        .iter()
        .flat_map(|(frame, segments)| segments.iter().map(move |s| (frame.unmap([s.x0, s.y0, s.x1, s.y1]), s)))
        .filter(|(_, segment)| segment.table.is_none())
        .map(|(bbox, segment)| (bbox, segment.text.as_str()))
        .collect();
    drawn.extend(bar_charts(content, &texts));
    let Some((frame, _)) = page.parts.first() else {
        return drawn;
    };
    for table in &page.tables {
        let [x0, y0, x1, y1] = frame.unmap(table.bbox);
        drawn.retain(|figure| figure[2] <= x0 || figure[0] >= x1 || figure[3] <= y0 || figure[1] >= y1);
    }
    drawn
}

/// The rules and shadings of a page as its frame has them.
fn framed(content: &PageContent, frame: &Frame) -> (Vec<Rule>, Vec<[f32; 4]>) {
    let rule = |rule: &Rule| {
        let [x0, y0, x1, y1] = frame.map_box([rule.x0, rule.y0, rule.x1, rule.y1]);
        Rule { x0, y0, x1, y1 }
    };
    let fills = content.fills.iter().map(|bbox| frame.map_box(*bbox));
    (content.rules.iter().map(rule).collect(), fills.collect())
}

/// The middle of a segment and its place in the structure tree.
fn order_at(segment: &Segment) -> (f32, f32, u32) {
    (
        (segment.x0 + segment.x1) / 2.0,
        (segment.y0 + segment.y1) / 2.0,
        segment.tag.order,
    )
}

/// Keeps a table's place among the text while the page is laid out; `orders` are those of all text.
fn placeholder(index: usize, table: &Table, orders: &[(f32, f32, u32)]) -> Segment {
    let [x0, y0, x1, y1] = table.bbox;
    let within = orders
        .iter()
        .filter(|(x, y, order)| *order > 0 && (x0..=x1).contains(x) && (y0..=y1).contains(y));
    Segment {
        text: table.text(),
        x0,
        y0,
        x1,
        y1,
        base: (y0 + y1) / 2.0,
        size: 10.0,
        font: 0,
        bold: false,
        italic: false,
        monospace: false,
        table: Some(index),
        tag: Tag {
            order: within.map(|(_, _, order)| *order).min().unwrap_or(0),
            ..Tag::default()
        },
        breaks: Vec::new(),
    }
}

fn lay_out(page: &mut Page) -> Vec<(Frame, Block)> {
    let mut out = Vec::new();
    for (frame, segments) in page.parts.drain(..) {
        for region in reading_order(segments) {
            out.extend(blocks(region, &page.tables).into_iter().map(|block| (frame, block)));
        }
    }
    out
}

fn emit(
    pages: &[Page],
    index: usize,
    blocks: &[(Frame, Block)],
    roles: &mut dyn Iterator<Item = Role>,
    furniture: &[FurnitureLine],
    cx: &mut Context,
) -> Result<(), PartitionError> {
    let Some(page) = pages.get(index) else { return Ok(()) };
    let first = cx.elements().len();
    let upright = Frame::new(Direction::East, page.width, page.height);
    let frame = blocks.first().map_or(upright, |(frame, _)| *frame);
    let kind = |item: &FurnitureLine| match item.kind {
        Furniture::Header => ElementType::Header,
        Furniture::Footer => ElementType::Footer,
        Furniture::PageNumber => ElementType::PageNumber,
    };
    let coordinates = cx.options.coordinates;
    let furniture_element = |item: &FurnitureLine| {
        let mut element = element(page, &frame, kind(item), &item.line.text, item.line.bbox);
        let bbox = frame.unmap(item.line.bbox);
        element.metadata.links = links_in(&page.links, &[bbox], &element.text);
        note_words(&mut element, pages, &[(index, bbox)], coordinates);
        element
    };
    let is_top = |item: &FurnitureLine| item.line.base * 2.0 < frame.size().1;
    for item in furniture.iter().filter(|item| is_top(item)) {
        cx.push(furniture_element(item))?;
    }
    for (frame, block) in blocks {
        let Some(role) = roles.next() else { break };
        let text = role.text.as_deref().unwrap_or(&block.text);
        let mut element = element(page, frame, role.kind, text, block.bbox);
        if let Some(table) = &block.table {
            // Only the structure is optional: as text a table is always read row by row.
            if cx.options.infer_table_structure {
                element.metadata.text_as_html = Some(table.html());
            }
            element.metadata.table_extraction_method = Some("grid".to_owned());
            if cx.options.infer_table_structure && cx.options.coordinates {
                let cells = table.cells.iter().map(|cell| cell_value(cell, frame, page.number));
                element
                    .metadata
                    .extra
                    .insert("table_as_cells".to_owned(), cells.collect());
            }
        }
        element.metadata.category_depth = role.depth;
        element.metadata.links = block_links(pages, index, frame, block, &element.text);
        let places: Vec<(usize, [f32; 4])> = places(index, block)
            .iter()
            .map(|(page, bbox)| (*page, frame.unmap(*bbox)))
            .collect();
        note_words(&mut element, pages, &places, coordinates);
        cx.push(element)?;
    }
    for item in furniture.iter().rev().filter(|item| !is_top(item)) {
        cx.push(furniture_element(item))?;
    }
    let images = page
        .figures
        .iter()
        .map(|figure| element(page, &upright, ElementType::Image, &figure.text, figure.bbox));
    insert(cx.elements_mut(), first, images.collect());
    Ok(())
}

/// The box on the page as it lies that is around a box of the straightened page.
fn slanted(bbox: [f32; 4], page: &Page) -> [f32; 4] {
    if page.angle == 0.0 {
        return bbox;
    }
    let (sin, cos) = page.angle.sin_cos();
    let (cx, cy) = (page.width / 2.0, page.height / 2.0);
    let [x0, y0, x1, y1] = bbox;
    let corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)].map(|(x, y)| {
        let (dx, dy) = (x - cx, y - cy);
        (cos * dx + sin * dy + cx, cos * dy - sin * dx + cy)
    });
    let start = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let around = corners
        .into_iter()
        .fold(start, |a, (x, y)| [a[0].min(x), a[1].min(y), a[2].max(x), a[3].max(y)]);
    [
        around[0].max(0.0),
        around[1].max(0.0),
        around[2].min(page.width),
        around[3].min(page.height),
    ]
}

/// A cell as `table_as_cells` has it: place and size in the grid, text, and the page and box it has there.
fn cell_value(cell: &Cell, frame: &Frame, first_page: u32) -> Value {
    let mut value = json!({
        "x": cell.column,
        "y": cell.row,
        "w": cell.column_span,
        "h": cell.row_span,
        "content": cell.text,
    });
    if let (Some(bbox), Some(fields)) = (cell.bbox, value.as_object_mut()) {
        let page = u32::try_from(cell.page)
            .ok()
            .and_then(|pages| first_page.checked_add(pages));
        fields.insert("page_number".to_owned(), json!(page));
        fields.insert("bbox".to_owned(), json!(rounded(frame.unmap(bbox))));
    }
    value
}

/// A box in hundredths of a point.
fn rounded(bbox: [f32; 4]) -> [f64; 4] {
    bbox.map(|v| (f64::from(v) * 100.0).round() / 100.0)
}

/// Where a block stands: pages, counting from 0, and boxes.
fn places(index: usize, block: &Block) -> Vec<(usize, [f32; 4])> {
    if block.places.is_empty() {
        vec![(index, block.bbox)]
    } else {
        block.places.clone()
    }
}

/// Notes the recognised words that stand at the places of an element.
fn note_words(element: &mut Element, pages: &[Page], places: &[(usize, [f32; 4])], with_boxes: bool) {
    let mut found = Vec::new();
    for (index, bbox) in places {
        if let Some(page) = pages.get(*index) {
            let words = page.words.inside(*bbox).into_iter();
            found.extend(words.map(|word| (word, rounded(slanted(word.bbox, page)))));
        }
    }
    words::note(element, &found, with_boxes);
}

/// The links of a block, which may have parts in several columns or on several pages.
fn block_links(pages: &[Page], index: usize, frame: &Frame, block: &Block, text: &str) -> Vec<Link> {
    let places = places(index, block);
    let mut links = Vec::new();
    for parts in places.chunk_by(|a, b| a.0 == b.0) {
        let page = parts.first().and_then(|(page, _)| pages.get(*page));
        let boxes: Vec<[f32; 4]> = parts.iter().map(|(_, bbox)| frame.unmap(*bbox)).collect();
        links.extend(page.map(|page| links_in(&page.links, &boxes, text)).unwrap_or_default());
    }
    links
}

fn element(page: &Page, frame: &Frame, kind: ElementType, text: &str, bbox: [f32; 4]) -> Element {
    let mut element = Element::new(kind, text).on_page(page.number);
    let bbox = rounded(slanted(frame.unmap(bbox), page));
    let size = |v: f32| (f64::from(v) * 100.0).round() / 100.0;
    element.metadata.coordinates = Some(Coordinates::from_bbox(bbox, size(page.width), size(page.height)));
    element
}
