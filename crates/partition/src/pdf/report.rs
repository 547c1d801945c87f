//! What is said of a page beside its elements: how it was read and what is wrong with it.

use docmill_model::settings::Strategy;
use docmill_model::{PageRoute, Route, RouteReason, Warning, WarningCode};

use super::engine::PageContent;
use super::script::is_blank;
use super::visibility::Hidden;
use crate::context::Context;

/// Share of glyphs without Unicode above which a page's text is called incomplete.
const UNMAPPED_SHARE: f64 = 0.2;
/// Mean confidence of recognition below which its text may be wrong.
const DOUBTFUL: f32 = 60.0;

/// Says how a page was read and why; a plain one has neither tables nor figures.
pub(super) fn report_route(content: &PageContent, number: u32, is_plain: bool, cx: &mut Context) {
    let fast = cx.options.strategy == Strategy::Fast;
    let (route, reason) = match (content.route, content.reason) {
        (Route::Fast, RouteReason::PageUnreadable) => (Route::Fast, RouteReason::PageUnreadable),
        (Route::Fast, _) if fast => (Route::Fast, RouteReason::AskedFor),
        (Route::Fast, _) if content.not_recognised.is_some() => (Route::Fast, RouteReason::RecognitionMissing),
        (Route::Fast, RouteReason::SecondEngine) if !is_plain => (Route::HiRes, RouteReason::SecondEngine),
        (Route::Fast, RouteReason::TextLayer) if !is_plain => (Route::HiRes, RouteReason::TablesOrFigures),
        read => read,
    };
    let characters = content.glyphs.iter().filter(|glyph| !is_blank(glyph.ch)).count();
    cx.route(PageRoute {
        page_number: number,
        route,
        reason,
        characters: u32::try_from(characters).unwrap_or(u32::MAX),
        unmapped: u32::try_from(content.unmapped).unwrap_or(u32::MAX),
        call: None,
        ms: (content.ms * 10.0).round() / 10.0,
        confidence: content.recognised.as_ref().map(|said| said.confidence.round()),
        languages: content
            .recognised
            .as_ref()
            .map_or_else(Vec::new, |said| said.languages.clone()),
    });
}

/// Says what is wrong with a page.
pub(super) fn warn_about(content: &PageContent, number: u32, cx: &mut Context) {
    let unmapped = content.unmapped;
    if let Some(reason) = &content.not_recognised {
        let text = content.glyphs.iter().any(|glyph| !is_blank(glyph.ch));
        let what = match (text, content.has_images) {
            (false, true) => "is a picture without a text layer",
            (false, false) => "is drawn without text",
            (true, _) => "has pictures, or text, that only recognition can read",
        };
        cx.warn(Warning::on_page(
            WarningCode::OcrNotDone,
            number,
            format!("page {number} {what} and was not recognised: {reason}"),
        ));
    }
    if let Some(said) = &content.recognised
        && said.confidence < DOUBTFUL
        && !content.glyphs.is_empty()
    {
        cx.warn(Warning::on_page(
            WarningCode::OcrDoubtful,
            number,
            format!(
                "page {number} was recognised with a mean confidence of {:.0} of 100",
                said.confidence
            ),
        ));
    }
    if unmapped as f64 > UNMAPPED_SHARE * content.glyphs.len() as f64 {
        cx.warn(Warning::on_page(
            WarningCode::PartUnreadable,
            number,
            format!("page {number}: {unmapped} characters have no Unicode value in their fonts and were left out"),
        ));
    }
    if content.lost_parts > 0 {
        cx.warn(Warning::on_page(
            WarningCode::PartUnreadable,
            number,
            format!(
                "page {number}: {} of its content streams cannot be decoded; what they draw is missing",
                content.lost_parts
            ),
        ));
    }
    if content.damaged_parts > 0 {
        cx.warn(Warning::on_page(
            WarningCode::PartUnreadable,
            number,
            format!("page {number}: its content is damaged; what follows the damage may be missing or wrong"),
        ));
    }
    if let Some(message) = unseen(&content.unseen) {
        cx.warn(Warning::on_page(
            WarningCode::TextHidden,
            number,
            format!("page {number}: {message}"),
        ));
    }
}

/// What is said about text that nobody sees; none when there is none.
fn unseen(hidden: &Hidden) -> Option<String> {
    if hidden.total() == 0 {
        return None;
    }
    let reasons = [
        (hidden.outside, "outside the page"),
        (hidden.clipped, "outside the area that is shown"),
        (hidden.white, "white on white"),
        (hidden.invisible, "invisible with no picture behind"),
    ];
    let reasons: Vec<String> = reasons
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, place)| format!("{count} {place}"))
        .collect();
    let what = if hidden.kept && hidden.outside < hidden.total() {
        "the rest was kept because the page has no other text"
    } else {
        "they were left out"
    };
    let what = if hidden.kept && hidden.outside == 0 {
        "they were kept because the page has no other text"
    } else {
        what
    };
    Some(format!(
        "{} characters cannot be seen ({}); {what}",
        hidden.total(),
        reasons.join(", ")
    ))
}
