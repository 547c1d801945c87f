//! Figures: pictures among the text, as elements of their own.

use docmill_model::metadata::Coordinates;
use docmill_model::{Element, ElementType};

use super::engine::PageContent;
use super::script::is_unspaced;

/// Smallest side of a figure, in points; smaller ones are icons, bullets and parts of rules.
const MIN_SIDE: f32 = 24.0;
/// Smallest share of the page.
const MIN_SHARE: f32 = 0.004;
/// Share of the page from which a picture with text over it is its background, or the scan itself.
const BACKGROUND: f32 = 0.8;
/// Pieces of a picture this close, in points, are one: many programs cut pictures into strips.
const SEAM: f32 = 2.0;
/// Pieces looked at; more are a texture.
const MAX_PIECES: usize = 400;
/// Bytes of a figure's description.
const MAX_DESCRIPTION: usize = 8000;
/// Figures of one page.
const MAX_FIGURES: usize = 100;

/// A figure of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// `[x0, y0, x1, y1]`.
    pub(super) bbox: [f32; 4],
    /// What the file says it shows; mostly empty.
    pub(super) text: String,
}

/// A page's figures, from the top down.
///
/// `drawn` are those made of lines and curves.
pub(super) fn figures(content: &PageContent, drawn: Vec<[f32; 4]>) -> Vec<Figure> {
    let described = |bbox: [f32; 4]| {
        let mut text = String::new();
        let mut last = "";
        for (part, words) in &content.descriptions {
            let [x, y] = [(part[0] + part[2]) / 2.0, (part[1] + part[3]) / 2.0];
            let inside = (bbox[0]..=bbox[2]).contains(&x) && (bbox[1]..=bbox[3]).contains(&y);
            // The strips of a picture share its description.
            if inside && words != last && says_something(words) && text.len() + words.len() <= MAX_DESCRIPTION {
                text.push_str(if text.is_empty() { "" } else { " " });
                text.push_str(words);
                last = words;
            }
        }
        text
    };
    let boxes = boxes(content, drawn).into_iter();
    boxes
        .map(|bbox| Figure {
            bbox,
            text: described(bbox),
        })
        .collect()
}

/// Whether a description is more than the name of a file or `Picture 7`, which programs put there.
fn says_something(words: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|ch| ch.is_alphabetic()).count() >= 2;
    let spaced = words.split_whitespace().filter(is_word).count() >= 2;
    let unspaced = words.chars().filter(|&ch| is_unspaced(ch)).count() >= 2;
    (spaced || unspaced) && !words.contains("://")
}

fn boxes(content: &PageContent, drawn: Vec<[f32; 4]>) -> Vec<[f32; 4]> {
    let page = (content.width * content.height).max(1.0);
    let has_text = content.glyphs.iter().any(|glyph| !glyph.ch.is_whitespace());
    let mut boxes: Vec<[f32; 4]> = content.images.iter().take(MAX_PIECES).copied().collect();
    boxes.retain(|bbox| !(has_text && area(*bbox) > BACKGROUND * page));
    boxes.extend(drawn);
    let mut joined = join(boxes);
    joined.retain(|[x0, y0, x1, y1]| {
        let (width, height) = (x1 - x0, y1 - y0);
        width >= MIN_SIDE && height >= MIN_SIDE && width * height >= MIN_SHARE * page
    });
    joined.retain(|bbox| !(has_text && area(*bbox) > BACKGROUND * page));
    joined.sort_by(|a, b| a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])));
    joined.truncate(MAX_FIGURES);
    joined
}

/// Pages on which a figure at the edge stands at the same place to be a part of the running head or foot.
const REPEATED: usize = 3;
/// Share of the page's height, at its top and bottom, where such figures stand.
const EDGE: f32 = 0.2;

/// Takes out the marks that running heads and feet repeat. `pages` are the heights and figures of all pages.
pub(super) fn drop_repeated(pages: &mut [(f32, &mut Vec<Figure>)]) {
    let key = |bbox: &[f32; 4]| bbox.map(|v| v.round() as i32);
    let at_edge = |height: f32, [_, y0, _, y1]: &[f32; 4]| *y1 < EDGE * height || *y0 > (1.0 - EDGE) * height;
    let mut counts: std::collections::HashMap<[i32; 4], usize> = Default::default();
    for (height, figures) in pages.iter() {
        for figure in figures.iter().filter(|figure| at_edge(*height, &figure.bbox)) {
            *counts.entry(key(&figure.bbox)).or_default() += 1;
        }
    }
    for (height, figures) in pages {
        figures.retain(|figure| {
            let often = counts.get(&key(&figure.bbox)).is_some_and(|count| *count >= REPEATED);
            !often || !at_edge(*height, &figure.bbox)
        });
    }
}

fn area([x0, y0, x1, y1]: [f32; 4]) -> f32 {
    (x1 - x0).max(0.0) * (y1 - y0).max(0.0)
}

/// Joins boxes that touch.
fn join(mut boxes: Vec<[f32; 4]>) -> Vec<[f32; 4]> {
    let mut joined: Vec<[f32; 4]> = Vec::new();
    while let Some(mut bbox) = boxes.pop() {
        // Whatever touches the grown box may touch what it has become.
        loop {
            let before = joined.len();
            joined.retain(|other| {
                let touches = other[0] <= bbox[2] + SEAM
                    && other[2] >= bbox[0] - SEAM
                    && other[1] <= bbox[3] + SEAM
                    && other[3] >= bbox[1] - SEAM;
                if touches {
                    bbox = [
                        bbox[0].min(other[0]),
                        bbox[1].min(other[1]),
                        bbox[2].max(other[2]),
                        bbox[3].max(other[3]),
                    ];
                }
                !touches
            });
            if joined.len() == before {
                break;
            }
        }
        joined.push(bbox);
    }
    joined
}

/// Puts figures among the elements of their page: behind the last one that ends above in the same
/// column, else before the first one below.
pub(super) fn insert(elements: &mut Vec<Element>, first: usize, figures: Vec<Element>) {
    for figure in figures {
        let Some(place) = figure.metadata.coordinates.as_ref().map(Coordinates::bbox) else {
            continue;
        };
        let page = elements.get(first..).unwrap_or_default();
        let beside = |bbox: [f64; 4]| bbox[0] < place[2] && bbox[2] > place[0];
        let boxed = page.iter().enumerate().filter_map(|(index, element)| {
            if element.kind == ElementType::PageBreak {
                return None;
            }
            Some((index, element.metadata.coordinates.as_ref()?.bbox()))
        });
        let above = boxed
            .clone()
            .filter(|(_, bbox)| beside(*bbox) && bbox[3] <= place[1] + 0.25 * (place[3] - place[1]))
            .max_by(|a, b| a.1[3].total_cmp(&b.1[3]).then(a.0.cmp(&b.0)));
        let below = boxed.clone().find(|(_, bbox)| bbox[1] >= place[1] && beside(*bbox));
        let at = match (above, below) {
            (Some((index, _)), _) => index + 1,
            (None, Some((index, _))) => index,
            (None, None) => page.len(),
        };
        elements.insert((first + at).min(elements.len()), figure);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::typeset;
    use super::*;

    fn element(kind: ElementType, text: &str, bbox: [f64; 4]) -> Element {
        let mut element = Element::new(kind, text);
        element.metadata.coordinates = Some(Coordinates::from_bbox(bbox, 600.0, 800.0));
        element
    }

    #[test]
    fn strips_are_one_figure_and_icons_and_backgrounds_none() {
        let mut page = typeset(&[(50.0, 100.0, 10.0, "Text")]);
        page.images = vec![
            [0.0, 0.0, 600.0, 800.0],
            [100.0, 200.0, 300.0, 230.0],
            [100.0, 230.5, 300.0, 260.0],
            [100.0, 260.0, 300.0, 290.0],
            [400.0, 400.0, 410.0, 410.0],
        ];
        page.descriptions = vec![
            ([100.0, 200.0, 300.0, 230.0], "Sales by year".into()),
            ([100.0, 230.5, 300.0, 260.0], "Sales by year".into()),
            ([100.0, 260.0, 300.0, 290.0], "Picture 7".into()),
            ([0.0, 0.0, 600.0, 30.0], "A banner.".into()),
        ];
        let figure = Figure {
            bbox: [100.0, 200.0, 300.0, 290.0],
            text: "Sales by year".into(),
        };
        assert_eq!(figures(&page, Vec::new()), [figure]);
    }

    #[test]
    fn names_of_files_describe_nothing() {
        assert!(says_something("Sales by year"));
        assert!(says_something("年度销售额"));
        for words in [
            "Figure",
            "Picture 7",
            "C:\\pictures\\logo.gif",
            "http://example.org/the logo.gif",
            "",
        ] {
            assert!(!says_something(words), "{words}");
        }
    }

    #[test]
    fn marks_of_running_heads_are_no_figures() {
        let (mark, chart) = ([50.0, 20.0, 150.0, 90.0], [50.0, 300.0, 350.0, 500.0]);
        let figure = |bbox| Figure {
            bbox,
            text: String::new(),
        };
        let mut pages = vec![vec![figure(mark), figure(chart)]; 3];
        let mut views: Vec<(f32, &mut Vec<Figure>)> = pages.iter_mut().map(|figures| (800.0, figures)).collect();
        drop_repeated(&mut views);
        assert_eq!(pages, vec![vec![figure(chart)]; 3]);
        let mut pages = vec![vec![figure(mark)]; 2];
        let mut views: Vec<(f32, &mut Vec<Figure>)> = pages.iter_mut().map(|figures| (800.0, figures)).collect();
        drop_repeated(&mut views);
        assert_eq!(pages, vec![vec![figure(mark)]; 2]);
    }

    #[test]
    fn a_page_that_is_one_picture_is_one_figure() {
        let mut page = typeset(&[]);
        page.images = vec![[0.0, 0.0, 600.0, 800.0]];
        assert_eq!(figures(&page, Vec::new()).len(), 1);
    }

    #[test]
    fn a_figure_stands_behind_what_is_above_it_in_its_column() {
        let text = |name, bbox| element(ElementType::NarrativeText, name, bbox);
        let mut elements = vec![
            text("left, top", [50.0, 100.0, 280.0, 200.0]),
            text("left, bottom", [50.0, 400.0, 280.0, 500.0]),
            text("right", [320.0, 100.0, 550.0, 500.0]),
        ];
        insert(
            &mut elements,
            0,
            vec![element(ElementType::Image, "", [60.0, 220.0, 270.0, 380.0])],
        );
        let kinds: Vec<&str> = elements.iter().map(|element| element.text.as_str()).collect();
        assert_eq!(kinds, ["left, top", "", "left, bottom", "right"]);
    }
}
