//! Which pages the local engine can't do justice.

use docmill_model::{PageRoute, Route, RouteReason};

/// Mean confidence of recognition below which a model is asked.
const LEAST_CONFIDENCE: f32 = 70.0;

/// Share of characters without Unicode, in percent, above which the text layer is not to be trusted.
const MOST_UNMAPPED: u64 = 20;

/// Why a page that the local engine read needs a model; none if it does not.
pub(super) fn reason(page: &PageRoute) -> Option<RouteReason> {
    use RouteReason::{
        LowConfidence, NoTextFound, NoTextLayer, PageUnreadable, PicturesWithText, RecognitionMissing,
        TextLayerUnreadable,
    };
    match page.reason {
        RecognitionMissing | PageUnreadable => return Some(page.reason),
        NoTextLayer | TextLayerUnreadable if page.characters == 0 => return Some(NoTextFound),
        // What recognition could not make out may stand in the text layer.
        PicturesWithText if page.characters == 0 => return Some(NoTextFound),
        _ => {}
    }
    if page.confidence.is_some_and(|confidence| confidence < LEAST_CONFIDENCE) {
        return Some(LowConfidence);
    }
    // Characters of a page that was recognised as a whole are not those of its text layer.
    let all = u64::from(page.characters) + u64::from(page.unmapped);
    let unmapped = page.route != Route::OcrOnly && 100 * u64::from(page.unmapped) > MOST_UNMAPPED * all;
    unmapped.then_some(TextLayerUnreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(route: Route, reason: RouteReason, characters: u32) -> PageRoute {
        PageRoute {
            page_number: 1,
            route,
            reason,
            ms: 1.0,
            characters,
            unmapped: 0,
            confidence: None,
            languages: Vec::new(),
            call: None,
        }
    }

    fn recognised(confidence: f32, characters: u32) -> PageRoute {
        PageRoute {
            confidence: Some(confidence),
            ..page(Route::OcrOnly, RouteReason::NoTextLayer, characters)
        }
    }

    #[test]
    fn pages_with_text_stay() {
        for (route, because) in [
            (Route::Fast, RouteReason::TextLayer),
            (Route::HiRes, RouteReason::TablesOrFigures),
            (Route::Fast, RouteReason::BlankPage),
            (Route::Fast, RouteReason::AskedFor),
        ] {
            for characters in [0, 1, 5_000] {
                assert_eq!(reason(&page(route, because, characters)), None, "{because}");
            }
        }
        assert_eq!(reason(&recognised(92.0, 2_000)), None);
        assert_eq!(reason(&recognised(LEAST_CONFIDENCE, 2_000)), None);
    }

    #[test]
    fn pages_that_recognition_is_unsure_of_are_hard() {
        assert_eq!(reason(&recognised(69.0, 2_000)), Some(RouteReason::LowConfidence));
        let merged = PageRoute {
            confidence: Some(40.0),
            ..page(Route::HiRes, RouteReason::PicturesWithText, 300)
        };
        assert_eq!(reason(&merged), Some(RouteReason::LowConfidence));
    }

    #[test]
    fn pages_that_nobody_could_read_are_hard() {
        for because in [RouteReason::RecognitionMissing, RouteReason::PageUnreadable] {
            assert_eq!(reason(&page(Route::Fast, because, 40)), Some(because));
        }
    }

    #[test]
    fn pages_drawn_without_text_are_hard() {
        assert_eq!(reason(&recognised(0.0, 0)), Some(RouteReason::NoTextFound));
        let outlines = page(Route::OcrOnly, RouteReason::TextLayerUnreadable, 0);
        assert_eq!(reason(&outlines), Some(RouteReason::NoTextFound));
    }

    #[test]
    fn text_layers_with_many_characters_without_meaning_are_hard() {
        let layer = |unmapped| PageRoute {
            unmapped,
            ..page(Route::Fast, RouteReason::TextLayer, 800)
        };
        assert_eq!(reason(&layer(200)), None);
        assert_eq!(reason(&layer(201)), Some(RouteReason::TextLayerUnreadable));
        assert_eq!(reason(&layer(u32::MAX)), Some(RouteReason::TextLayerUnreadable));
        let read_anew = PageRoute {
            unmapped: 900,
            ..recognised(95.0, 800)
        };
        assert_eq!(reason(&read_anew), None, "the text is not that of the layer");
    }
}
