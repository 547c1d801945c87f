//! Pages as the second engine reads them.
//!
//! It has no structure tree, no descriptions of pictures, and of hidden text it knows what is invisible or off
//! the page, not what is white on white.

use docmill_model::RouteReason;
use docmill_pdfium::{Glyph as Drawn, Page};

use super::device::direction;
use super::engine::{Direction, Font, FontId, Glyph, LinkArea, PageContent, Rule, Tag, UNKNOWN};
use super::fonts::styled;
use super::forms::draw;
use super::frame::Frame;
use super::rulings::{MAX_RULE_THICKNESS, MAX_RULES, rule};
use super::script::{is_blank, is_private};
use super::visibility::{Painted, middle};

/// Characters further than this outside the page, in points, are not seen.
const PAGE_MARGIN: f32 = 2.0;
/// Share of the page from which an image's resolution is that of the page.
const COVERING: f32 = 0.3;

/// What layout needs of a page; `add_font` gives the id of a font.
pub(super) fn content(page: &Page, add_font: &mut dyn FnMut(Font) -> FontId) -> PageContent {
    let mut content = PageContent {
        width: page.width,
        height: page.height,
        tags: vec![Tag::default()],
        reason: RouteReason::SecondEngine,
        drawings: page.path_points,
        ..PageContent::default()
    };
    add_graphics(page, &mut content);
    add_text(page, add_font, &mut content);
    for (value, bbox) in &page.fields {
        // What an appearance draws is read as text; only what is not is added.
        let drawn = content
            .glyphs
            .iter()
            .any(|glyph| !is_blank(glyph.ch) && holds(bbox, glyph));
        if !drawn {
            let frame = Frame::new(Direction::East, content.width, content.height);
            draw(value, false, None, *bbox, &frame, &mut content.glyphs);
        }
    }
    let links = page.links.iter().map(|link| LinkArea {
        boxes: vec![link.bbox],
        url: link.url.clone(),
    });
    content.links = links.collect();
    content
}

fn holds([x0, y0, x1, y1]: &[f32; 4], glyph: &Glyph) -> bool {
    (*x0..=*x1).contains(&glyph.x) && (*y0..=*y1).contains(&glyph.y)
}

fn add_graphics(page: &Page, content: &mut PageContent) {
    let wide = |(x, y): (f32, f32)| (f64::from(x), f64::from(y));
    let mut rules: Vec<Rule> = page
        .lines
        .iter()
        .filter_map(|line| rule(wide(line.from), wide(line.to)))
        .collect();
    for &[x0, y0, x1, y1] in &page.fills {
        if f64::from((x1 - x0).min(y1 - y0)) > MAX_RULE_THICKNESS {
            content.fills.push([x0, y0, x1, y1]);
        } else {
            rules.extend(rule(wide((x0, y0)), wide((x1, y1))));
        }
    }
    rules.truncate(MAX_RULES);
    content.fills.truncate(MAX_RULES);
    content.rules = rules;
    let shown = |[x0, y0, x1, y1]: [f32; 4]| {
        let bbox = [x0.max(0.0), y0.max(0.0), x1.min(page.width), y1.min(page.height)];
        (bbox[0] <= bbox[2] && bbox[1] <= bbox[3]).then_some(bbox)
    };
    content.shapes = page
        .shapes
        .iter()
        .filter_map(|bbox| shown(*bbox))
        .take(MAX_RULES)
        .collect();
    content.has_images = !page.images.is_empty();
    for image in &page.images {
        let Some(bbox @ [x0, y0, x1, y1]) = shown(image.bbox) else {
            continue;
        };
        if (x1 - x0) * (y1 - y0) > COVERING * page.width * page.height {
            let dpi = image.pixels as f32 * 72.0 / (x1 - x0).max(1.0);
            content.image_dpi = content.image_dpi.max(dpi);
        }
        if content.images.len() < MAX_RULES {
            content.images.push(bbox);
        }
    }
}

fn add_text(page: &Page, add_font: &mut dyn FnMut(Font) -> FontId, content: &mut PageContent) {
    let fonts: Vec<FontId> = page
        .fonts
        .iter()
        .map(|font| {
            let mut known = styled(font.name.clone());
            known.bold |= font.bold;
            known.italic |= font.italic;
            known.monospace |= font.monospace;
            add_font(known)
        })
        .collect();
    let mut painted = Painted::new(page.width, page.height);
    for bbox in content.images.iter().chain(&content.fills) {
        painted.add(*bbox);
    }
    let mut unseen = Vec::new();
    for drawn in &page.glyphs {
        let glyph = placed(drawn, fonts.get(drawn.font).copied().unwrap_or(0));
        if is_outside(&glyph, page) {
            content.unseen.outside += usize::from(!is_blank(glyph.ch));
            continue;
        }
        let (x, y) = middle(glyph.x, glyph.y, glyph.advance, glyph.size, glyph.direction);
        content.hidden += usize::from(drawn.invisible);
        if drawn.invisible && !painted.covers(x, y) {
            unseen.push(glyph);
            continue;
        }
        content.unmapped += usize::from(glyph.ch == UNKNOWN);
        content.glyphs.push(glyph);
    }
    content.unseen.invisible = unseen.iter().filter(|glyph| !is_blank(glyph.ch)).count();
    if content.glyphs.iter().all(|glyph| is_blank(glyph.ch)) && content.unseen.invisible > 0 {
        // Better than nothing at all.
        content.unseen.kept = true;
        content.glyphs.append(&mut unseen);
    }
}

fn placed(drawn: &Drawn, font: FontId) -> Glyph {
    let (x, y) = drawn.direction;
    Glyph {
        ch: drawn.ch.filter(|ch| !is_private(*ch)).unwrap_or(UNKNOWN),
        x: drawn.x,
        y: drawn.y,
        advance: drawn.advance,
        size: drawn.size,
        font,
        direction: direction(f64::from(x), f64::from(y)),
        tag: 0,
    }
}

fn is_outside(glyph: &Glyph, page: &Page) -> bool {
    glyph.x < -PAGE_MARGIN - glyph.size
        || glyph.y < -PAGE_MARGIN
        || glyph.x > page.width + PAGE_MARGIN
        || glyph.y > page.height + PAGE_MARGIN + glyph.size
}
