//! Values of form fields that no appearance draws.
//!
//! A viewer draws such a field itself. Here its value becomes characters within the field's rectangle,
//! so that it is read where it stands on the page.

use hayro_interpret::hayro_syntax::object::dict::keys::{ANNOTS, AP, DA, F, FF, FT, N, PARENT, RECT, SUBTYPE, V};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, Rect, Stream, String as PdfString};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{self, Affine, Vec2};

use super::engine::{Direction, Glyph, PageContent};
use super::frame::Frame;
use super::text::text_string;

/// Annotations looked at per page.
const MAX_WIDGETS: usize = 10_000;
/// Nesting of fields.
const MAX_DEPTH: usize = 16;
/// Characters of one value, and of one page, that are drawn.
const MAX_VALUE: usize = 20_000;
/// Flags of an annotation that is not shown: hidden, and not on the screen.
const NOT_SHOWN: u32 = 1 << 1 | 1 << 5;
/// Flags of a text field: several lines, and secret.
const MULTILINE: u32 = 1 << 12;
const PASSWORD: u32 = 1 << 13;
/// Font size where a field states none, within its height.
const AUTO_SIZE: f32 = 12.0;
/// Width of a character and height of a line, in font sizes.
const WIDTH: f32 = 0.5;
const LEADING: f32 = 1.15;

/// Adds the values of a page's text and choice fields that have no appearance.
pub(super) fn add_values(page: &Page<'_>, transform: Affine, content: &mut PageContent) {
    let Some(annotations) = page.raw().get::<Array<'_>>(ANNOTS) else {
        return;
    };
    let mut left = MAX_VALUE;
    for widget in annotations.iter::<Dict<'_>>().take(MAX_WIDGETS) {
        let Some((value, flags, style)) = value(&widget) else {
            continue;
        };
        let Some(rect) = widget.get::<Rect>(RECT) else { continue };
        let bbox = transform.transform_rect_bbox(kurbo::Rect::new(rect.x0, rect.y0, rect.x1, rect.y1));
        let bbox = [bbox.x0, bbox.y0, bbox.x1, bbox.y1].map(|v| v as f32);
        let frame = Frame::new(direction(transform), content.width, content.height);
        let value: String = value.chars().take(left).collect();
        left -= value.chars().count();
        draw(&value, flags & MULTILINE != 0, style, bbox, &frame, &mut content.glyphs);
    }
}

/// Text, flags and font size of a field that is shown, has a value and no appearance.
fn value(widget: &Dict<'_>) -> Option<(String, u32, Option<f32>)> {
    if widget.get::<Name<'_>>(SUBTYPE)?.as_ref() != b"Widget"
        || widget.get::<u32>(F).unwrap_or(0) & NOT_SHOWN != 0
        || widget
            .get::<Dict<'_>>(AP)
            .is_some_and(|ap| ap.get::<Stream<'_>>(N).is_some())
    {
        return None;
    }
    let kind = inherited(widget, |field| field.get::<Name<'_>>(FT))?;
    let flags = inherited(widget, |field| field.get::<u32>(FF)).unwrap_or(0);
    if !matches!(kind.as_ref(), b"Tx" | b"Ch") || (kind.as_ref() == b"Tx" && flags & PASSWORD != 0) {
        return None;
    }
    let text = match inherited(widget, |field| field.get::<Object<'_>>(V))? {
        Object::String(text) => text_string(text.as_bytes()),
        Object::Stream(stream) => text_string(&stream.decoded_data().ok()?),
        Object::Array(choices) => {
            let texts = choices.iter::<PdfString<'_>>().take(MAX_DEPTH);
            texts
                .map(|text| text_string(text.as_bytes()))
                .collect::<Vec<_>>()
                .join("\n")
        }
        _ => return None,
    };
    let style = inherited(widget, |field| field.get::<PdfString<'_>>(DA));
    let size = style.and_then(|style| font_size(&String::from_utf8_lossy(style.as_bytes())));
    (!text.trim().is_empty()).then_some((text, flags, size))
}

/// An entry of a field or of those it belongs to.
fn inherited<'a, T>(widget: &Dict<'a>, get: impl Fn(&Dict<'a>) -> Option<T>) -> Option<T> {
    let mut field = widget.clone();
    for _ in 0..MAX_DEPTH {
        if let Some(found) = get(&field) {
            return Some(found);
        }
        field = field.get::<Dict<'a>>(PARENT)?;
    }
    None
}

/// The size in a default appearance such as `/Helv 12 Tf 0 g`; none when it is to fit.
fn font_size(style: &str) -> Option<f32> {
    let words: Vec<&str> = style.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Tf")?;
    let size: f32 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    (size.is_finite() && size >= 1.0).then_some(size)
}

/// Where text along the x axis of the page's content runs on the displayed page.
fn direction(transform: Affine) -> Direction {
    let [a, b, ..] = transform.as_coeffs();
    let Vec2 { x, y } = Vec2::new(a, b);
    match (x.abs() >= y.abs(), x > 0.0, y > 0.0) {
        (true, true, _) => Direction::East,
        (true, false, _) => Direction::West,
        (false, _, true) => Direction::South,
        (false, _, false) => Direction::North,
    }
}

/// Writes a value as characters into the box of its field.
pub(super) fn draw(
    value: &str,
    multiline: bool,
    size: Option<f32>,
    bbox: [f32; 4],
    frame: &Frame,
    out: &mut Vec<Glyph>,
) {
    let [x0, y0, x1, y1] = frame.map_box(bbox);
    let (width, height) = (x1 - x0, y1 - y0);
    if !(width > 1.0 && height > 1.0 && width.is_finite() && height.is_finite()) {
        return;
    }
    let lines: Vec<&str> = value
        .split(['\r', '\n'])
        .filter(|line| !line.trim().is_empty())
        .collect();
    let fitting = height / (LEADING * lines.len().max(1) as f32);
    let size = size.unwrap_or(AUTO_SIZE).min(fitting);
    let mut base = if multiline || lines.len() > 1 {
        y0 + 0.9 * size
    } else {
        (y0 + y1) / 2.0 + 0.35 * size
    };
    for line in lines {
        let advance = (WIDTH * size).min(width / line.chars().count().max(1) as f32);
        for (index, ch) in line.chars().enumerate() {
            let x = x0 + index as f32 * advance;
            let [x, y, ..] = frame.unmap([x, base, x, base]);
            out.push(Glyph {
                ch,
                x,
                y,
                advance,
                size,
                font: 0,
                direction: frame.direction,
                tag: 0,
            });
        }
        base += LEADING * size;
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, outline, partition, show};

    fn texts(annotations: &str, more: &str) -> Vec<String> {
        let content = show('F', 10.0, 40.0, 300.0, "Name:") + &show('F', 10.0, 40.0, 200.0, "Below");
        let bytes = PdfBuilder::new()
            .page(&content, &format!("/Annots [{annotations}] {more}"))
            .build();
        let document = partition(&bytes, &PartitionOptions::default()).unwrap();
        outline(&document).iter().map(|(_, text)| (*text).to_owned()).collect()
    }

    fn field(entries: &str) -> String {
        format!("<< /Type /Annot /Subtype /Widget /Rect [72 296 200 312] /FT /Tx {entries} >>")
    }

    #[test]
    fn values_without_an_appearance_are_read_in_place() {
        assert_eq!(
            texts(&field("/V (Ada Lovelace) /DA (/Helv 10 Tf 0 g)"), ""),
            ["Name: Ada Lovelace", "Below"]
        );
        assert_eq!(texts(&field("/V <FEFF0041006400E1>"), ""), ["Name: Adá", "Below"]);
    }

    #[test]
    fn secrets_and_hidden_fields_are_not_read() {
        assert_eq!(texts(&field("/V (hunter2) /Ff 8192"), ""), ["Name:", "Below"]);
        assert_eq!(texts(&field("/V (Ghost) /F 2"), ""), ["Name:", "Below"]);
        assert_eq!(texts(&field("/V (   )"), ""), ["Name:", "Below"]);
    }

    #[test]
    fn an_appearance_counts_rather_than_the_value() {
        let mut builder = PdfBuilder::new();
        let text = "BT /F 10 Tf 2 4 Td (Drawn) Tj ET";
        let drawn = builder.object(format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 128 16] /Resources << /Font << /F 3 0 R >> >> \
             /Length {} >>\nstream\n{text}\nendstream",
            text.len()
        ));
        let annotation = field(&format!("/V (Stored) /AP << /N {drawn} 0 R >>"));
        let content = show('F', 10.0, 40.0, 300.0, "Name:");
        let bytes = builder.page(&content, &format!("/Annots [{annotation}]")).build();
        let document = partition(&bytes, &PartitionOptions::default()).unwrap();
        assert_eq!(outline(&document)[0].1, "Name: Drawn");
    }

    #[test]
    fn fields_of_turned_pages_run_with_the_text() {
        let found = texts(&field("/V (Ada)"), "/Rotate 90");
        assert_eq!(found[0], "Name: Ada", "{found:?}");
    }
}
