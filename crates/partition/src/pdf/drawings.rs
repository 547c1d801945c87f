//! Drawn figures: charts, diagrams and maps made of lines and curves, found as places where many of them
//! stand close together.
//!
//! Only shapes that no table, underline or box of text is made of begin a figure: curves and slanted lines.
//! Straight rules and filled rectangles next to them, as axes and bars are, belong to it.

use super::engine::PageContent;

/// Shapes kept per page.
pub(super) const MAX_SHAPES: usize = 50_000;
/// Shapes this close, in points, are of one figure; also the size of the cells the page is divided into.
const NEAR: f32 = 7.0;
/// Cells to a side at most.
const MAX_CELLS: f32 = 300.0;
/// Shapes a figure has at least.
const MIN_SHAPES: usize = 6;
/// Smallest side of a figure, in points, and its smallest and largest share of the page.
const MIN_SIDE: f32 = 40.0;
const SHARES: std::ops::RangeInclusive<f32> = 0.01..=0.8;
/// Groups of shapes looked at; more are a texture.
const MAX_GROUPS: usize = 400;
/// Share of the page from which a shape is a background or a frame.
const BACKGROUND: f32 = 0.5;
/// Share of a figure that text may cover; beyond it, the shapes adorn the text.
const TEXT: f32 = 0.2;
/// How much longer than the figure a rule may be that belongs to it.
const LONGER: f32 = 1.5;

type Box4 = [f32; 4];

/// The boxes of the drawn figures of a page.
pub(super) fn drawn_figures(content: &PageContent) -> Vec<Box4> {
    if content.shapes.len() < MIN_SHAPES {
        return Vec::new();
    }
    let page = (content.width * content.height).max(1.0);
    let shapes: Vec<Box4> = content
        .shapes
        .iter()
        .filter(|bbox| area(**bbox) < BACKGROUND * page)
        .copied()
        .collect();
    let mut found: Vec<Box4> = clusters(&shapes, content.width, content.height)
        .into_iter()
        .filter(|(_, count)| *count >= MIN_SHAPES)
        .take(MAX_GROUPS)
        .map(|(bbox, _)| with_neighbours(bbox, content, page))
        .collect();
    found.retain(|bbox| {
        let [x0, y0, x1, y1] = *bbox;
        x1 - x0 >= MIN_SIDE
            && y1 - y0 >= MIN_SIDE
            && SHARES.contains(&(area(*bbox) / page))
            && text_in(*bbox, content) < TEXT * area(*bbox)
    });
    found
}

/// Groups of shapes that stand close together: their boxes and numbers.
fn clusters(shapes: &[Box4], width: f32, height: f32) -> Vec<(Box4, usize)> {
    let cell = NEAR.max(width.max(height) / MAX_CELLS);
    let side = |length: f32| (length / cell).clamp(0.0, MAX_CELLS) as usize + 2;
    let (across, down) = (side(width), side(height));
    let column = |x: f32| ((x / cell).max(0.0) as usize).min(across - 1);
    let row = |y: f32| ((y / cell).max(0.0) as usize).min(down - 1);
    // Each shape adds one at its corner and takes it away behind its sides; sums then tell what is covered.
    let mut cover = vec![0i32; (across + 1) * (down + 1)];
    let mut add = |x: usize, y: usize, value: i32| {
        if let Some(slot) = cover.get_mut(y * (across + 1) + x) {
            *slot += value;
        }
    };
    for &[x0, y0, x1, y1] in shapes {
        let (left, right) = (column(x0), column(x1) + 1);
        let (top, bottom) = (row(y0), row(y1) + 1);
        add(left, top, 1);
        add(right, top, -1);
        add(left, bottom, -1);
        add(right, bottom, 1);
    }
    sum_up(&mut cover, across + 1);
    let labels = components(&cover, across + 1);
    let mut groups: Vec<(Box4, usize)> = Vec::new();
    for &[x0, y0, x1, y1] in shapes {
        let at = row(y0) * (across + 1) + column(x0);
        let Some(label) = labels.get(at).copied().flatten() else {
            continue;
        };
        if groups.len() <= label {
            let empty = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
            groups.resize(label + 1, (empty, 0));
        }
        if let Some((bbox, count)) = groups.get_mut(label) {
            *bbox = around(*bbox, [x0, y0, x1, y1]);
            *count += 1;
        }
    }
    groups
}

/// Adds up a grid from its top left corner, so that each cell tells how many shapes cover it.
fn sum_up(cells: &mut [i32], stride: usize) {
    for row in cells.chunks_mut(stride) {
        let mut sum = 0;
        for cell in row {
            sum += *cell;
            *cell = sum;
        }
    }
    for at in stride..cells.len() {
        let above = cells.get(at - stride).copied().unwrap_or(0);
        if let Some(cell) = cells.get_mut(at) {
            *cell += above;
        }
    }
}

/// Numbers the groups of covered cells that touch, also by their corners.
fn components(cover: &[i32], stride: usize) -> Vec<Option<usize>> {
    let mut labels: Vec<Option<usize>> = vec![None; cover.len()];
    let mut next = 0;
    let mut waiting = Vec::new();
    for start in 0..cover.len() {
        let is_free = |labels: &[Option<usize>], at: usize| {
            cover.get(at).is_some_and(|count| *count > 0) && labels.get(at) == Some(&None)
        };
        if !is_free(&labels, start) {
            continue;
        }
        waiting.push(start);
        while let Some(at) = waiting.pop() {
            if !is_free(&labels, at) {
                continue;
            }
            if let Some(label) = labels.get_mut(at) {
                *label = Some(next);
            }
            for row in [at.wrapping_sub(stride), at, at.saturating_add(stride)] {
                waiting.extend(
                    [row.wrapping_sub(1), row, row.wrapping_add(1)]
                        .into_iter()
                        .filter(|at| is_free(&labels, *at)),
                );
            }
        }
        next += 1;
    }
    labels
}

/// A figure with the rules and fills that touch it: axes, bars, frames around it.
pub(super) fn with_neighbours(figure: Box4, content: &PageContent, page: f32) -> Box4 {
    let (width, height) = (figure[2] - figure[0], figure[3] - figure[1]);
    let fits = |figure: Box4, [a, b, c, d]: Box4| {
        let [x0, y0, x1, y1] = figure;
        let touches = a <= x1 + NEAR && c >= x0 - NEAR && b <= y1 + NEAR && d >= y0 - NEAR;
        touches && c - a <= LONGER * width.max(MIN_SIDE) && d - b <= LONGER * height.max(MIN_SIDE)
    };
    // A second time for what meets the axes, as the other axis does.
    (0..2).fold(figure, |figure, _| {
        let rules = content.rules.iter().map(|rule| [rule.x0, rule.y0, rule.x1, rule.y1]);
        let fills = content
            .fills
            .iter()
            .copied()
            .filter(|fill| area(*fill) < BACKGROUND * page);
        let near = rules.chain(fills).filter(|bbox| fits(figure, *bbox));
        near.fold(figure, around)
    })
}

/// The area that characters cover within a box.
fn text_in([x0, y0, x1, y1]: Box4, content: &PageContent) -> f32 {
    content
        .glyphs
        .iter()
        .filter(|glyph| !glyph.ch.is_whitespace() && (x0..x1).contains(&glyph.x) && (y0..y1).contains(&glyph.y))
        .map(|glyph| glyph.advance.abs() * glyph.size)
        .sum()
}

fn around(a: Box4, b: Box4) -> Box4 {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

fn area([x0, y0, x1, y1]: Box4) -> f32 {
    (x1 - x0).max(0.0) * (y1 - y0).max(0.0)
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType;
    use docmill_model::settings::{PartitionOptions, Strategy};

    use super::super::testing::{PdfBuilder, partition, show, typeset};
    use super::*;

    /// A curve of ten pieces, from the left to the right of a box.
    fn curve([x0, y0, x1, y1]: [f32; 4]) -> String {
        let step = (x1 - x0) / 10.0;
        (0..10)
            .map(|piece| {
                let (x, up) = (x0 + piece as f32 * step, piece % 2 == 0);
                let (from, to) = if up { (y0, y1) } else { (y1, y0) };
                format!("{x} {from} m {x} {to} {} {from} {} {to} c S ", x + step, x + step)
            })
            .collect()
    }

    fn kinds(content: &str, strategy: Strategy) -> Vec<(ElementType, String)> {
        let options = PartitionOptions {
            strategy,
            coordinates: true,
            ..PartitionOptions::default()
        };
        let document = partition(&PdfBuilder::new().page(content, "").build(), &options).unwrap();
        document
            .elements
            .into_iter()
            .map(|element| (element.kind, element.text))
            .collect()
    }

    #[test]
    fn a_chart_is_an_image_between_its_text_and_its_caption() {
        let content = show('F', 10.0, 40.0, 560.0, "The level of the river rose all year long.")
            + "60 300 m 60 500 l S 60 300 m 320 300 l S "
            + &curve([62.0, 310.0, 318.0, 480.0])
            + &show('F', 10.0, 40.0, 270.0, "Figure 1: Level of the river");
        let found = kinds(&content, Strategy::HiRes);
        let order: Vec<ElementType> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            order,
            [
                ElementType::NarrativeText,
                ElementType::Image,
                ElementType::FigureCaption
            ],
            "{found:?}"
        );
        let fast = kinds(&content, Strategy::Fast);
        assert!(fast.iter().all(|(kind, _)| *kind != ElementType::Image), "{fast:?}");
    }

    #[test]
    fn axes_belong_to_the_figure() {
        let content = "60 300 m 60 500 l S 60 300 m 320 300 l S ".to_owned()
            + &curve([62.0, 310.0, 318.0, 480.0])
            + &show('F', 10.0, 40.0, 560.0, "Level");
        let options = PartitionOptions {
            coordinates: true,
            ..PartitionOptions::default()
        };
        let document = partition(&PdfBuilder::new().page(&content, "").build(), &options).unwrap();
        let image = document
            .elements
            .iter()
            .find(|element| element.kind == ElementType::Image);
        let bbox = image.unwrap().metadata.coordinates.as_ref().unwrap().bbox();
        assert_eq!(bbox, [60.0, 100.0, 320.0, 300.0]);
    }

    #[test]
    fn rules_boxes_and_adorned_text_are_no_figures() {
        // A ruled table, and a box with round corners around lines of text.
        let mut content = String::new();
        for y in [500, 520, 540, 560] {
            content += &format!("40 {y} m 340 {y} l S ");
        }
        for x in [40, 190, 340] {
            content += &format!("{x} 500 m {x} 560 l S ");
        }
        for (x, y) in [(45, 545), (195, 545), (45, 525), (195, 525), (45, 505), (195, 505)] {
            content += &show('F', 10.0, x as f32, y as f32, "cell");
        }
        for y in [300, 312, 324, 336, 348, 360] {
            content += &show(
                'F',
                10.0,
                50.0,
                y as f32,
                "Some text that stands in a box with round corners.",
            );
            content += &format!("45 {y} m 40 {y} 40 {} 45 {} c S ", y + 10, y + 10);
            content += &format!("300 {y} m 305 {y} 305 {} 300 {} c 45 {} l S ", y + 10, y + 10, y + 10);
        }
        let found = kinds(&content, Strategy::HiRes);
        assert!(found.iter().all(|(kind, _)| *kind != ElementType::Image), "{found:?}");
        assert!(found.iter().any(|(kind, _)| *kind == ElementType::Table), "{found:?}");
    }

    #[test]
    fn figures_apart_are_two_and_few_shapes_none() {
        let mut page = typeset(&[]);
        (page.width, page.height) = (600.0, 800.0);
        let square = |x: f32, y: f32| [x, y, x + 20.0, y + 20.0];
        for step in 0..8 {
            let along = 22.0 * step as f32;
            page.shapes
                .extend([square(50.0 + along, 100.0), square(50.0 + along, 122.0)]);
            page.shapes
                .extend([square(50.0 + along, 500.0), square(50.0 + along, 522.0)]);
        }
        page.shapes.extend([square(400.0, 300.0), square(430.0, 330.0)]);
        assert_eq!(
            drawn_figures(&page),
            [[50.0, 100.0, 224.0, 142.0], [50.0, 500.0, 224.0, 542.0]]
        );
    }
}
