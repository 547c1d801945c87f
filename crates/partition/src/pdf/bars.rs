//! Bar charts made of nothing but filled rectangles: bars of one thickness that begin on a common line and
//! differ in length.
//!
//! Shaded rows and cells are as long as each other, boxes of text have text inside, and the fields of forms,
//! struck out lines and meters have neither an axis nor figures beside them, or lie on a track of their own.

use super::drawings::with_neighbours;
use super::engine::PageContent;

type Box4 = [f32; 4];

/// Rectangles on a page beyond which they are a texture.
const MAX_FILLS: usize = 4000;
/// Bars of one chart that are looked at.
const MAX_BARS: usize = 400;
/// Texts of a page that are looked at.
const MAX_TEXTS: usize = 4000;
/// Charts of one page.
const MAX_CHARTS: usize = 40;
/// Bars a chart has at least, and from how many on their lengths alone tell.
const MIN_BARS: usize = 3;
const MANY_BARS: usize = 6;
/// Largest share of the page that one bar covers.
const MAX_SHARE: f32 = 0.12;
/// Thinnest bar, in points.
const MIN_THICKNESS: f32 = 2.5;
/// How far edges on one line may differ, in points.
const EDGE: f32 = 1.2;
/// How far lengths may differ that are the same, in points.
const SAME_LENGTH: f32 = 1.5;
/// Widest gap between bars, in thicknesses.
const MAX_GAP: f32 = 5.0;
/// How far from a bar its figure and its label stand, in points.
const NEAR: f32 = 18.0;

/// A bar as if it stood upright on the line it shares with others: `from` and `to` across, `length` up, or
/// down when negative.
#[derive(Clone, Copy, Debug)]
struct Bar {
    from: f32,
    to: f32,
    length: f32,
    bbox: Box4,
}

/// The boxes of the bar charts of a page. `texts` are what is written there.
pub(super) fn bar_charts(content: &PageContent, texts: &[(Box4, &str)]) -> Vec<Box4> {
    if content.fills.len() < MIN_BARS || content.fills.len() > MAX_FILLS {
        return Vec::new();
    }
    let page = (content.width * content.height).max(1.0);
    let small = |bbox: &&Box4| {
        let (width, height) = (bbox[2] - bbox[0], bbox[3] - bbox[1]);
        width.min(height) >= MIN_THICKNESS && width * height < MAX_SHARE * page
    };
    let fills: Vec<Box4> = content.fills.iter().filter(small).copied().collect();
    let texts = texts.get(..texts.len().min(MAX_TEXTS)).unwrap_or_default();
    let rules: Vec<Box4> = content
        .rules
        .iter()
        .map(|rule| [rule.x0, rule.y0, rule.x1, rule.y1])
        .collect();
    let mut found = Vec::new();
    for upright in [true, false] {
        let turn = |bbox: &Box4| if upright { *bbox } else { turned(*bbox) };
        let fills: Vec<Box4> = fills.iter().map(turn).collect();
        let rules: Vec<Box4> = rules.iter().map(turn).collect();
        let texts: Vec<(Box4, &str)> = texts.iter().map(|(bbox, text)| (turn(bbox), *text)).collect();
        for bars in groups(&fills) {
            let chart = Chart {
                bars: &bars,
                rules: &rules,
                texts: &texts,
                upright,
            };
            if let Some(bbox) = chart.bbox() {
                let bbox = if upright { bbox } else { turned_back(bbox) };
                found.push(with_neighbours(bbox, content, page));
            }
        }
    }
    found.truncate(MAX_CHARTS);
    found
}

/// The page turned so that bars from the left stand upright: the left becomes the bottom.
fn turned([x0, y0, x1, y1]: Box4) -> Box4 {
    [y0, -x1, y1, -x0]
}

fn turned_back([x0, y0, x1, y1]: Box4) -> Box4 {
    [-y1, x0, -y0, x1]
}

/// Bars on common lines, from left to right. Pieces of one colour above each other are one bar.
fn groups(fills: &[Box4]) -> Vec<Vec<Bar>> {
    let stacks = stacks(fills);
    let mut out: Vec<Vec<Bar>> = Vec::new();
    let mut bars: Vec<(f32, Bar)> = Vec::new();
    for bbox in stacks {
        let [from, top, to, bottom] = bbox;
        let bar = |length: f32| Bar { from, to, length, bbox };
        bars.push((bottom, bar(bottom - top)));
        bars.push((top, bar(top - bottom)));
    }
    bars.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.from.total_cmp(&b.1.from)));
    let mut line: Vec<Bar> = Vec::new();
    let mut at = f32::NEG_INFINITY;
    for (base, bar) in bars {
        if base - at > EDGE {
            out.extend(runs(std::mem::take(&mut line)));
            at = base;
        }
        line.push(bar);
    }
    out.extend(runs(line));
    out
}

/// Pieces that stand on each other and are as wide as each other joined.
fn stacks(fills: &[Box4]) -> Vec<Box4> {
    let mut sorted = fills.to_vec();
    sorted.sort_by(|a, b| {
        let place = |v: f32| (v / EDGE).round();
        let (ax, bx) = (place(a[0]), place(b[0]));
        ax.total_cmp(&bx)
            .then(place(a[2]).total_cmp(&place(b[2])))
            .then(a[1].total_cmp(&b[1]))
    });
    let mut out: Vec<Box4> = Vec::new();
    for bbox in sorted {
        match out.last_mut() {
            Some(last)
                if (last[0] - bbox[0]).abs() < EDGE && (last[2] - bbox[2]).abs() < EDGE && bbox[1] < last[3] + EDGE =>
            {
                last[3] = last[3].max(bbox[3]);
            }
            _ => out.push(bbox),
        }
    }
    out
}

/// The stretches of bars of one thickness, without wide gaps, that stand on one side of their line mostly.
fn runs(mut line: Vec<Bar>) -> Vec<Vec<Bar>> {
    line.sort_by(|a, b| a.from.total_cmp(&b.from));
    let mut out: Vec<Vec<Bar>> = Vec::new();
    for bar in line {
        let width = bar.to - bar.from;
        let fits = out.iter_mut().rev().take(4).find(|run| {
            run.last().is_some_and(|last| {
                let other = last.to - last.from;
                (width - other).abs() < (0.12 * other).max(EDGE)
                    && bar.from > last.to - EDGE
                    && bar.from - last.to < MAX_GAP * other
            })
        });
        match fits {
            Some(run) if run.len() < MAX_BARS => run.push(bar),
            _ => out.push(vec![bar]),
        }
    }
    out.retain(|run| run.len() >= MIN_BARS);
    out
}

/// Bars with what stands around them.
struct Chart<'a> {
    bars: &'a [Bar],
    rules: &'a [Box4],
    texts: &'a [(Box4, &'a str)],
    upright: bool,
}

impl Chart<'_> {
    /// The box around the bars, if they are a chart.
    fn bbox(&self) -> Option<Box4> {
        let first = self.bars.first()?;
        let up = self.bars.iter().filter(|bar| bar.length > 0.0).count();
        // Bars below the line show losses among others above it, or the line is the upper edge of other boxes.
        if up * 2 < self.bars.len() || self.lengths() < if self.bars.len() > MIN_BARS { 3 } else { 2 } {
            return None;
        }
        let bbox = self.bars.iter().map(|bar| bar.bbox).fold(first.bbox, around);
        let worded = self.bars.iter().filter(|bar| self.has_words(bar.bbox)).count();
        if worded * 3 > self.bars.len() || self.evidence(bbox) == 0 {
            return None;
        }
        Some(bbox)
    }

    /// How many lengths there are.
    fn lengths(&self) -> usize {
        let mut lengths: Vec<f32> = self.bars.iter().map(|bar| bar.length).collect();
        lengths.sort_by(f32::total_cmp);
        lengths.dedup_by(|a, b| (*a - *b).abs() < SAME_LENGTH);
        lengths.len()
    }

    /// Whether words stand within a bar; figures may.
    fn has_words(&self, bbox: Box4) -> bool {
        let letters = |text: &str| text.chars().filter(|ch| ch.is_alphabetic()).count();
        self.texts
            .iter()
            .any(|(place, text)| is_in(middle(*place), bbox) && letters(text) > 2)
    }

    /// Signs of a chart: an axis along the line, figures at the ends of bars or along the side, labels below
    /// upright bars, or many bars.
    fn evidence(&self, bbox: Box4) -> usize {
        let count = self.bars.len();
        let axis = self.rules.iter().any(|rule| self.is_axis(rule, bbox));
        let at_ends = self.bars.iter().filter(|bar| self.has_figure(bar)).count() * 2 >= count;
        let many = self.upright && count >= MANY_BARS && self.lengths() * 2 >= count;
        let below = self.upright && self.bars.iter().filter(|bar| self.has_label(bar)).count() >= count.min(4);
        [axis, at_ends, self.has_scale(bbox), many, below]
            .into_iter()
            .filter(|sign| *sign)
            .count()
    }

    /// The common line of the bars.
    fn base(&self) -> f32 {
        self.bars
            .first()
            .map_or(0.0, |bar| if bar.length > 0.0 { bar.bbox[3] } else { bar.bbox[1] })
    }

    /// Whether a rule is drawn along the common line.
    fn is_axis(&self, rule: &Box4, bbox: Box4) -> bool {
        let width = bbox[2] - bbox[0];
        let covers = rule[2].min(bbox[2]) - rule[0].max(bbox[0]);
        rule[2] - rule[0] > rule[3] - rule[1]
            && (rule[1] - self.base()).abs() < 3.0
            && covers > 0.8 * width
            && rule[2] - rule[0] < 2.0 * width
    }

    fn has_figure(&self, bar: &Bar) -> bool {
        let end = if bar.length > 0.0 { bar.bbox[1] } else { bar.bbox[3] };
        self.texts.iter().any(|(place, text)| {
            let x = middle(*place).0;
            let gap = if bar.length > 0.0 {
                end - place[3]
            } else {
                place[1] - end
            };
            is_figure(text) && (bar.from - 1.0..bar.to + 1.0).contains(&x) && (-2.0..NEAR).contains(&gap)
        })
    }

    fn has_label(&self, bar: &Bar) -> bool {
        let width = bar.to - bar.from;
        self.texts.iter().any(|(place, _)| {
            let off = (middle(*place).0 - (bar.from + bar.to) / 2.0).abs();
            off < 0.6 * width && place[2] - place[0] < 4.0 * width && (-2.0..NEAR).contains(&(place[1] - self.base()))
        })
    }

    /// Whether three figures or more stand in a row along the side of the bars, each larger than the one
    /// before.
    fn has_scale(&self, bbox: Box4) -> bool {
        let reach = 2.5 * NEAR;
        let beside = |place: &Box4| {
            let left = bbox[0] - place[2];
            let right = place[0] - bbox[2];
            (-2.0..reach).contains(&left) || (-2.0..reach).contains(&right)
        };
        let base = self.base();
        let mut marks: Vec<(f32, f32)> = self
            .texts
            .iter()
            .filter(|(place, text)| is_figure(text) && beside(place))
            .map(|(place, text)| (middle(*place).1, value(text)))
            .filter(|(y, _)| *y < base + NEAR && *y > bbox[1] - 2.0 * NEAR)
            .collect();
        marks.sort_by(|a, b| b.0.total_cmp(&a.0));
        marks.len() >= 3
            && marks
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.1 < b.1 && a.0 - b.0 > 1.0))
    }
}

fn around(a: Box4, b: Box4) -> Box4 {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

fn middle([x0, y0, x1, y1]: Box4) -> (f32, f32) {
    ((x0 + x1) / 2.0, (y0 + y1) / 2.0)
}

fn is_in((x, y): (f32, f32), [x0, y0, x1, y1]: Box4) -> bool {
    (x0..x1).contains(&x) && (y0..y1).contains(&y)
}

/// A number with perhaps a sign of its unit.
fn is_figure(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let others = text.chars().filter(|ch| ch.is_alphabetic()).count();
    digits > 0 && others <= 2 && text.chars().count() <= 12
}

/// What the digits of a figure say; its sign counts.
fn value(text: &str) -> f32 {
    let digits: String = text.chars().filter(|ch| ch.is_ascii_digit() || *ch == '.').collect();
    let value: f32 = digits.parse().unwrap_or(0.0);
    if text.trim_start().starts_with(['-', '−', '–']) {
        -value
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType;
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, partition, show};

    fn bar(x: f32, y: f32, width: f32, height: f32) -> String {
        format!("0.2 0.4 0.7 rg {x} {y} {width} {height} re f 0 g\n")
    }

    fn line(x0: f32, y0: f32, x1: f32, y1: f32) -> String {
        format!("0.5 w {x0} {y0} m {x1} {y1} l S\n")
    }

    fn text(x: f32, y: f32, text: &str) -> String {
        show('F', 8.0, x, y, text)
    }

    /// The boxes of the images on a page; y points down on a page of 600 points.
    fn images(content: &str) -> Vec<[f64; 4]> {
        let content = text(
            40.0,
            560.0,
            "What the members of the club spent in each of the last years.",
        ) + content;
        let options = PartitionOptions {
            coordinates: true,
            ..PartitionOptions::default()
        };
        let document = partition(&PdfBuilder::new().page(&content, "").build(), &options).unwrap();
        let images = document
            .elements
            .iter()
            .filter(|element| element.kind == ElementType::Image);
        images
            .map(|element| element.metadata.coordinates.as_ref().unwrap().bbox())
            .collect()
    }

    #[test]
    fn upright_bars_over_labels_are_a_figure() {
        let mut content = String::new();
        for (index, height) in [40.0, 95.0, 70.0, 120.0].into_iter().enumerate() {
            let x = 60.0 + 50.0 * index as f32;
            content += &bar(x, 300.0, 30.0, height);
            content += &text(x + 6.0, 288.0, &format!("{}", 2021 + index));
        }
        assert_eq!(images(&content), [[60.0, 180.0, 240.0, 300.0]]);
    }

    #[test]
    fn an_axis_belongs_to_its_bars() {
        let mut content = line(55.0, 300.0, 260.0, 300.0) + &line(55.0, 300.0, 55.0, 430.0);
        for (index, height) in [40.0, 95.0, 70.0].into_iter().enumerate() {
            content += &bar(60.0 + 60.0 * index as f32, 300.0, 40.0, height);
        }
        assert_eq!(images(&content), [[55.0, 170.0, 260.0, 300.0]]);
    }

    #[test]
    fn bars_from_the_left_with_their_figures_are_a_figure() {
        let mut content = String::new();
        for (index, (label, width)) in [("Rail", 140.0), ("Road", 210.0), ("Water", 60.0), ("Air", 95.0)]
            .iter()
            .enumerate()
        {
            let y = 400.0 - 24.0 * index as f32;
            content += &text(60.0, y + 4.0, label);
            content += &bar(100.0, y, *width, 14.0);
            content += &text(104.0 + width, y + 4.0, &format!("{width}"));
        }
        assert_eq!(images(&content), [[100.0, 186.0, 310.0, 272.0]]);
    }

    #[test]
    fn pieces_on_each_other_are_one_bar() {
        let mut content = String::new();
        for (index, (low, high)) in [(50.0, 30.0), (50.0, 45.0), (50.0, 10.0), (50.0, 62.0)]
            .into_iter()
            .enumerate()
        {
            let x = 60.0 + 50.0 * index as f32;
            content += &bar(x, 300.0, 30.0, low);
            content += &bar(x, 300.0 + low, 30.0, high);
        }
        for (index, mark) in ["0", "50", "100"].iter().enumerate() {
            content += &text(40.0, 298.0 + 50.0 * index as f32, mark);
        }
        assert_eq!(images(&content), [[60.0, 188.0, 240.0, 300.0]]);
    }

    #[test]
    fn shades_boxes_fields_and_meters_are_no_figures() {
        // Rows shaded in turn, and cells of a heading, with figures.
        let mut rows = String::new();
        for row in 0..6 {
            let y = 480.0 - 16.0 * row as f32;
            if row % 2 == 0 {
                rows += &bar(40.0, y - 4.0, 300.0, 16.0);
            }
            rows += &(text(44.0, y, "Trees") + &text(200.0, y, "12") + &text(320.0, y, "31"));
        }
        let mut cells = String::new();
        for (x, width) in [(40.0, 90.0), (132.0, 60.0), (194.0, 40.0), (236.0, 40.0)] {
            cells += &(bar(x, 480.0, width, 16.0) + &text(x + 4.0, 484.0, "2024") + &text(x + 4.0, 464.0, "17"));
        }
        // Boxes of text of unlike heights on one line.
        let mut boxes = line(40.0, 300.0, 380.0, 300.0);
        for (index, height) in [60.0, 90.0, 75.0].into_iter().enumerate() {
            let x = 40.0 + 115.0 * index as f32;
            boxes += &bar(x, 300.0, 105.0, height);
            for up in [10.0, 22.0, 34.0] {
                boxes += &text(x + 5.0, 300.0 + up, "Members pay their dues");
            }
        }
        // Fields to fill in.
        let mut fields = String::new();
        for (index, width) in [200.0, 120.0, 260.0, 80.0].into_iter().enumerate() {
            let y = 480.0 - 24.0 * index as f32;
            fields += &(text(40.0, y + 4.0, "Name of member") + &bar(120.0, y, width, 14.0));
        }
        // Meters: a bar upon a track.
        let mut meters = String::new();
        for (index, width) in [150.0, 90.0, 170.0].into_iter().enumerate() {
            let y = 480.0 - 24.0 * index as f32;
            meters += &(bar(120.0, y, 200.0, 10.0) + &bar(120.0, y, width, 10.0) + &text(325.0, y, "75"));
        }
        for content in [rows, cells, boxes, fields, meters] {
            assert_eq!(images(&content), [[0.0; 4]; 0], "{content}");
        }
    }
}
