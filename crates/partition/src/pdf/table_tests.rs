//! Tables without borders, on made-up pages.

use docmill_model::settings::PartitionOptions;

use super::aligned::aligned_table;
use super::banded::banded_tables;
use super::continued::{Leaf, join_tables};
use super::engine::{Direction, Font, Rule};
use super::line::lines;
use super::segment::{Segment, segments};
use super::table::Table;
use super::testing::{PdfBuilder, partition, show, typeset};

const HEIGHT: f32 = 800.0;

type Rows<'a> = &'a [(f32, f32, f32, &'a str)];

fn segments_of(rows: Rows<'_>) -> Vec<Segment> {
    segments(&typeset(rows), &[], Direction::East)
}

fn rule(x0: f32, x1: f32, y: f32) -> Rule {
    Rule { x0, y0: y, x1, y1: y }
}

fn html(table: &Table) -> String {
    table.html().replace("<tbody>", "").replace("</tbody>", "")
}

fn aligned(rows: Rows<'_>) -> Option<String> {
    aligned_table(&lines(segments_of(rows))).as_ref().map(html)
}

/// A heading between two rules, rows below it and a rule at the end.
fn ruled_rows() -> Vec<(f32, f32, f32, &'static str)> {
    vec![
        (50.0, 100.0, 10.0, "Region"),
        (200.0, 100.0, 10.0, "First"),
        (300.0, 100.0, 10.0, "Last"),
        (50.0, 120.0, 10.0, "North of the river"),
        (205.0, 120.0, 10.0, "120"),
        (305.0, 120.0, 10.0, "130"),
        (50.0, 132.0, 10.0, "and south of it"),
        (50.0, 150.0, 10.0, "West"),
        (205.0, 150.0, 10.0, "140"),
        (305.0, 150.0, 10.0, "150"),
    ]
}

const RULED: &str = "<table><tr><td>Region</td><td>First</td><td>Last</td></tr>\
    <tr><td>North of the river and south of it</td><td>120</td><td>130</td></tr>\
    <tr><td>West</td><td>140</td><td>150</td></tr></table>";

#[test]
fn rules_of_one_width_frame_a_table() {
    let rules = [90.0, 105.0, 160.0].map(|y| rule(45.0, 350.0, y));
    let mut segments = segments_of(&ruled_rows());
    let tables = banded_tables(&rules, &[], HEIGHT, &mut segments);
    assert_eq!(tables.iter().map(html).collect::<Vec<_>>(), [RULED]);
    assert!(segments.is_empty());
}

#[test]
fn rows_below_a_ruled_heading_belong_to_it() {
    let mut rows = ruled_rows();
    rows.push((
        50.0,
        200.0,
        10.0,
        "A paragraph that begins well below the table and is much longer",
    ));
    let mut segments = segments_of(&rows);
    let tables = banded_tables(&[90.0, 105.0].map(|y| rule(45.0, 350.0, y)), &[], HEIGHT, &mut segments);
    assert_eq!(tables.iter().map(html).collect::<Vec<_>>(), [RULED]);
    assert_eq!(segments.len(), 1);
}

#[test]
fn shaded_rows_frame_a_table_with_its_heading_and_last_row() {
    let mut rows = vec![(50.0, 100.0, 10.0, "Item"), (200.0, 100.0, 10.0, "Count")];
    let labels = [
        "Ash", "Beech", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine",
    ];
    let counts = ["11", "12", "13", "14", "15", "16", "17", "18", "19", "20"];
    let mut fills = Vec::new();
    for (index, (label, count)) in labels.iter().zip(counts).enumerate() {
        let y = 115.0 + 15.0 * index as f32;
        rows.push((50.0, y, 10.0, label));
        rows.push((205.0, y, 10.0, count));
        if index % 2 == 0 && index < 9 {
            fills.push([45.0, y - 11.0, 300.0, y + 4.0]);
        }
    }
    let mut segments = segments_of(&rows);
    let tables = banded_tables(&[], &fills, HEIGHT, &mut segments);
    assert_eq!(tables.len(), 1);
    assert_eq!((tables[0].rows, tables[0].columns), (11, 2));
    assert_eq!(tables[0].cells[0].text, "Item");
    assert_eq!(tables[0].cells.last().unwrap().text, "20");
}

#[test]
fn labels_beside_ruled_figures_are_a_column() {
    let mut rows = Vec::new();
    for (index, label) in ["Sales", "Costs", "Profit", "Taxes"].into_iter().enumerate() {
        let y = 115.0 + 15.0 * index as f32;
        rows.extend([
            (140.0, y, 10.0, label),
            (200.0, y, 10.0, "1,234"),
            (300.0, y, 10.0, "5,678"),
        ]);
    }
    let rules = [100.0, 165.0].map(|y| rule(190.0, 340.0, y));
    let mut segments = segments_of(&rows);
    let tables = banded_tables(&rules, &[], HEIGHT, &mut segments);
    assert_eq!((tables[0].rows, tables[0].columns), (4, 3));
    assert_eq!(tables[0].cells[0].text, "Sales");
    assert!(segments.is_empty());
}

#[test]
fn prose_in_columns_between_the_rules_of_a_page_is_no_table() {
    let mut rows = Vec::new();
    for index in 0..40 {
        let y = 80.0 + 16.0 * index as f32;
        rows.push((50.0, y, 10.0, "and the committee met again on the next day to see"));
        rows.push((320.0, y, 10.0, "what was left of the plan that had been agreed on"));
    }
    let mut segments = segments_of(&rows);
    let rules = [60.0, 730.0].map(|y| rule(45.0, 580.0, y));
    assert!(banded_tables(&rules, &[], HEIGHT, &mut segments).is_empty());
    assert_eq!(segments.len(), 80);
}

#[test]
fn code_in_a_box_is_no_table() {
    let rows = [
        (50.0, 100.0, 10.0, "let a"),
        (120.0, 100.0, 10.0, "= one;"),
        (50.0, 112.0, 10.0, "let b"),
        (120.0, 112.0, 10.0, "= two;"),
        (50.0, 124.0, 10.0, "call"),
        (120.0, 124.0, 10.0, "(b, a);"),
    ];
    let fonts = [Font {
        monospace: true,
        ..Font::default()
    }];
    let mut segments = segments(&typeset(&rows), &fonts, Direction::East);
    let rules = [90.0, 130.0].map(|y| rule(45.0, 300.0, y));
    assert!(banded_tables(&rules, &[], HEIGHT, &mut segments).is_empty());
    assert!(aligned_table(&lines(segments)).is_none());
}

#[test]
fn currency_signs_go_with_their_figures() {
    let mut rows = Vec::new();
    for (index, label) in ["Sales", "Costs", "Profit"].into_iter().enumerate() {
        let y = 100.0 + 15.0 * index as f32;
        rows.extend([(50.0, y, 10.0, label), (150.0, y, 10.0, "$"), (170.0, y, 10.0, "1,234")]);
    }
    assert_eq!(
        aligned(&rows).unwrap(),
        "<table><tr><td>Sales</td><td>$ 1,234</td></tr><tr><td>Costs</td><td>$ 1,234</td></tr>\
         <tr><td>Profit</td><td>$ 1,234</td></tr></table>"
    );
}

#[test]
fn the_first_row_spans_the_columns_it_heads() {
    let mut rows = vec![
        (50.0, 100.0, 10.0, "Part"),
        (150.0, 100.0, 10.0, "2024"),
        (250.0, 100.0, 10.0, "2025"),
        (150.0, 115.0, 10.0, "H1"),
        (200.0, 115.0, 10.0, "H2"),
        (250.0, 115.0, 10.0, "H1"),
        (300.0, 115.0, 10.0, "H2"),
    ];
    for (y, label) in [(130.0, "Ash"), (145.0, "Elm")] {
        rows.push((50.0, y, 10.0, label));
        rows.extend([150.0, 200.0, 250.0, 300.0].map(|x| (x, y, 10.0, "12")));
    }
    let found = aligned(&rows).unwrap();
    assert!(
        found.starts_with(
            "<table><tr><td rowspan=\"2\">Part</td><td colspan=\"2\">2024</td><td colspan=\"2\">2025</td></tr>\
             <tr><td>H1</td><td>H2</td><td>H1</td><td>H2</td></tr><tr><td>Ash</td>"
        ),
        "{found}"
    );
}

#[test]
fn gaps_that_fall_anywhere_make_no_table() {
    let rows = [
        (50.0, 100.0, 10.0, "These subexpressions"),
        (168.0, 100.0, 10.0, "can be high, that is"),
        (50.0, 112.0, 10.0, "Source level"),
        (130.0, 112.0, 10.0, "or low, close to"),
        (50.0, 124.0, 10.0, "Each step of it is"),
        (150.0, 124.0, 10.0, "Listed in the book"),
        (50.0, 136.0, 10.0, "It is described in"),
        (155.0, 136.0, 10.0, "Brief (but is not)"),
    ];
    assert_eq!(aligned(&rows), None);
}

#[test]
fn forms_and_tables_of_contents_are_no_tables() {
    let form = [
        (50.0, 100.0, 10.0, "Name: Ann"),
        (200.0, 100.0, 10.0, "Born: 1990"),
        (50.0, 115.0, 10.0, "Town: Ulm"),
        (200.0, 115.0, 10.0, "Street: Main"),
        (50.0, 130.0, 10.0, "Phone: 12"),
        (200.0, 130.0, 10.0, "Mail: none"),
    ];
    assert_eq!(aligned(&form), None);
    let contents = [
        (50.0, 100.0, 10.0, "1 Scope of it"),
        (300.0, 100.0, 10.0, "1"),
        (50.0, 115.0, 10.0, "2 Terms used"),
        (300.0, 115.0, 10.0, "4"),
        (50.0, 130.0, 10.0, "3 The method"),
        (300.0, 130.0, 10.0, "9"),
    ];
    assert_eq!(aligned(&contents), None);
}

fn placed(index: usize, table: &Table) -> Segment {
    let [x0, y0, x1, y1] = table.bbox;
    Segment {
        table: Some(index),
        ..Segment {
            x0,
            y0,
            x1,
            y1,
            base: (y0 + y1) / 2.0,
            ..segments_of(&[(50.0, 50.0, 10.0, "x")]).remove(0)
        }
    }
}

#[test]
fn rows_at_the_top_of_the_next_page_join_the_table() {
    let rules = [90.0, 105.0, 160.0].map(|y| rule(45.0, 350.0, y));
    let mut first = segments_of(&ruled_rows());
    let mut tables = banded_tables(&rules, &[], HEIGHT, &mut first);
    first.push(placed(0, &tables[0]));
    let mut second = segments_of(&[
        (50.0, 60.0, 10.0, "East"),
        (205.0, 60.0, 10.0, "160"),
        (305.0, 60.0, 10.0, "170"),
        (50.0, 100.0, 10.0, "The text goes on here and it is no row of any table"),
    ]);
    let mut none = Vec::new();
    join_tables(&mut [
        Leaf {
            segments: &mut first,
            tables: &mut tables,
        },
        Leaf {
            segments: &mut second,
            tables: &mut none,
        },
    ]);
    assert_eq!(
        html(&tables[0]),
        RULED.replace("</table>", "<tr><td>East</td><td>160</td><td>170</td></tr></table>")
    );
    assert_eq!(second.len(), 1);
}

#[test]
fn a_table_in_the_next_column_goes_on_without_its_heading() {
    let at = |dx: f32, rows: Vec<(f32, f32, f32, &'static str)>| -> Vec<(f32, f32, f32, &'static str)> {
        rows.into_iter()
            .map(|(x, y, size, text)| (x / 2.0 + dx, y, size, text))
            .collect()
    };
    let mut rows = at(
        0.0,
        ruled_rows()
            .into_iter()
            .filter(|row| row.1 != 132.0)
            .map(|r| (r.0, r.1 + 500.0, r.2, r.3))
            .collect(),
    );
    rows.extend(at(
        300.0,
        ruled_rows().into_iter().filter(|row| row.1 != 132.0).collect(),
    ));
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(x, y, size, text)| (x, y, size, text.strip_suffix(" of the river").unwrap_or(text)))
        .map(|(x, y, size, text)| (x, y, size, if y < 500.0 && text == "North" { "South" } else { text }))
        .collect();
    let mut rules: Vec<Rule> = [590.0, 605.0, 660.0].map(|y| rule(22.0, 175.0, y)).to_vec();
    rules.extend([90.0, 105.0, 160.0].map(|y| rule(322.0, 475.0, y)));
    let mut segments = segments_of(&rows);
    let mut tables = banded_tables(&rules, &[], HEIGHT, &mut segments);
    assert_eq!(tables.len(), 2);
    let placeholders: Vec<Segment> = tables
        .iter()
        .enumerate()
        .map(|(index, table)| placed(index, table))
        .collect();
    segments.extend(placeholders);
    join_tables(&mut [Leaf {
        segments: &mut segments,
        tables: &mut tables,
    }]);
    assert_eq!(segments.len(), 1);
    let whole = segments[0].table.and_then(|index| tables.get(index)).unwrap();
    let texts: Vec<&str> = whole
        .cells
        .iter()
        .filter(|cell| cell.column == 0)
        .map(|cell| cell.text.as_str())
        .collect();
    assert_eq!(texts, ["Region", "North", "West", "South", "West"]);
}

proptest::proptest! {
    /// Whatever is drawn, the cells fit their table and no text is there twice.
    #[test]
    fn any_rules_and_texts_make_sound_tables(
        ys in proptest::collection::vec((0u16..120, 0u16..40, 20u16..60), 0..24),
        shades in proptest::collection::vec((0u16..120, 0u16..40, 20u16..60, 1u16..8), 0..12),
        words in proptest::collection::vec((0u16..120, 0u16..60, "[a-z0-9$(): ,•-]{1,12}"), 0..60),
    ) {
        let at = |v: u16| f32::from(v) * 6.0;
        let rules: Vec<Rule> = ys.iter().map(|&(y, x, w)| rule(at(x), at(x) + at(w), at(y))).collect();
        let fills: Vec<[f32; 4]> = shades
            .iter()
            .map(|&(y, x, w, h)| [at(x), at(y), at(x) + at(w), at(y) + at(h)])
            .collect();
        let rows: Vec<(f32, f32, f32, &str)> = words
            .iter()
            .map(|(y, x, text)| (at(*x), at(*y), 10.0, text.as_str()))
            .collect();
        let mut segments = segments_of(&rows);
        let mut tables = banded_tables(&rules, &fills, HEIGHT, &mut segments);
        for table in &tables {
            for cell in &table.cells {
                proptest::prop_assert!(cell.row + cell.row_span <= table.rows);
                proptest::prop_assert!(cell.column + cell.column_span <= table.columns);
            }
        }
        let mut second = segments.clone();
        let mut more = tables.clone();
        let found: Vec<Segment> = tables.iter().enumerate().map(|(index, table)| placed(index, table)).collect();
        segments.extend(found.iter().cloned());
        second.extend(found);
        join_tables(&mut [
            Leaf { segments: &mut segments, tables: &mut tables },
            Leaf { segments: &mut second, tables: &mut more },
        ]);
        for table in &tables {
            proptest::prop_assert!(table.cells.iter().all(|cell| cell.row + cell.row_span <= table.rows));
        }
    }
}

#[test]
fn cells_know_their_places_and_boxes() {
    let mut content = String::new();
    for y in [500, 480, 460, 440] {
        content += &format!("40 {y} m 240 {y} l S\n");
    }
    content += "40 500 m 40 440 l S 140 480 m 140 440 l S 240 500 m 240 440 l S\n";
    for (x, y, text) in [
        (50, 486, "Both"),
        (50, 466, "a"),
        (150, 466, "b"),
        (50, 446, "c"),
        (150, 446, "d"),
    ] {
        content += &show('F', 10.0, x as f32, y as f32, text);
    }
    let options = PartitionOptions {
        infer_table_structure: true,
        coordinates: true,
        ..Default::default()
    };
    let document = partition(&PdfBuilder::new().page(&content, "").build(), &options).unwrap();
    let cells = &document.elements[0].metadata.extra["table_as_cells"];
    assert_eq!(cells.as_array().unwrap().len(), 5);
    assert_eq!(
        cells[0],
        serde_json::json!({
            "x": 0, "y": 0, "w": 2, "h": 1, "content": "Both",
            "page_number": 1, "bbox": [40.0, 100.0, 240.0, 120.0],
        })
    );
    assert_eq!((&cells[4]["x"], &cells[4]["y"]), (&1.into(), &2.into()));

    let plain = partition(
        &PdfBuilder::new().page(&content, "").build(),
        &PartitionOptions::default(),
    )
    .unwrap();
    assert!(plain.elements[0].metadata.extra.is_empty());
}
