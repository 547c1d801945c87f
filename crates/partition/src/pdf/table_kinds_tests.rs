//! Tables of many sorts as people set them, each on a small page drawn here, and what must not become one.

use docmill_model::ElementType;
use docmill_model::settings::PartitionOptions;

use super::testing::{PdfBuilder, partition, show};

pub(super) type Texts<'a> = &'a [(f32, f32, &'a str)];

/// What is found on a page: tables as rows of cells `a | b`, where `<2>` tells that a cell spans two columns and `^2` that it
/// spans two rows, other elements as their type and text.
pub(super) fn found(texts: Texts<'_>, drawn: &str) -> Vec<String> {
    let mut content = drawn.to_owned();
    for (x, y, text) in texts {
        let font = if text.starts_with('*') { 'B' } else { 'F' };
        let text = text.trim_start_matches('*').replace('(', "\\(").replace(')', "\\)");
        content += &show(font, 9.0, *x, *y, &text);
    }
    read(&content)
}

fn read(content: &str) -> Vec<String> {
    let options = PartitionOptions {
        infer_table_structure: true,
        ..PartitionOptions::default()
    };
    let document = partition(&PdfBuilder::new().page(content, "").build(), &options).unwrap();
    let element = |element: &docmill_model::Element| match &element.metadata.text_as_html {
        Some(html) => rows(html),
        None => format!("{}: {}", element.kind.as_str(), element.text),
    };
    document.elements.iter().map(element).collect()
}

fn rows(html: &str) -> String {
    let cell = |cell: &str| {
        let (head, text) = cell.split_once('>').unwrap_or(("", cell));
        let span = |name: &str| {
            head.split_once(name)
                .and_then(|(_, rest)| rest.split('"').nth(1).map(str::to_owned))
        };
        let column = span("colspan").map(|n| format!("<{n}>")).unwrap_or_default();
        let row = span("rowspan").map(|n| format!("^{n}")).unwrap_or_default();
        format!("{}{column}{row}", text.split('<').next().unwrap_or_default())
    };
    let row = |row: &str| {
        let cells: Vec<String> = row.replace("<th", "<td").split("<td").skip(1).map(cell).collect();
        cells.join(" | ")
    };
    let rows: Vec<String> = html.split("<tr>").skip(1).map(row).collect();
    rows.join("\n")
}

pub(super) fn line(x0: f32, y0: f32, x1: f32, y1: f32) -> String {
    format!("0.5 w {x0} {y0} m {x1} {y1} l S\n")
}

fn shade(x0: f32, y0: f32, x1: f32, y1: f32) -> String {
    format!("0.9 g {x0} {y0} {} {} re f 0 g\n", x1 - x0, y1 - y0)
}

#[test]
fn figures_behind_leaders_are_a_column() {
    let rows = found(
        &[
            (40.0, 500.0, "Accounts held by members"),
            (250.0, 500.0, "2023"),
            (320.0, 500.0, "2024"),
            (40.0, 485.0, "Cash at bank ......................"),
            (245.0, 485.0, "1,204"),
            (315.0, 485.0, "1,377"),
            (40.0, 470.0, "Debtors ..........................."),
            (250.0, 470.0, "310"),
            (320.0, 470.0, "298"),
            (40.0, 455.0, "Stock in hand ....................."),
            (250.0, 455.0, "995"),
            (320.0, 455.0, "870"),
            (40.0, 440.0, "Total ............................."),
            (245.0, 440.0, "2,509"),
            (315.0, 440.0, "2,545"),
        ],
        "",
    );
    assert_eq!(
        rows,
        [
            "Accounts held by members | 2023 | 2024\nCash at bank | 1,204 | 1,377\nDebtors | 310 | 298\n\
          Stock in hand | 995 | 870\nTotal | 2,509 | 2,545"
        ]
    );
}

#[test]
fn a_timetable_keeps_its_gaps() {
    let times = [
        ("Harbour", ["06:10", "07:10", "08:10", "09:10"]),
        ("Mill Lane", ["06:18", "", "08:18", ""]),
        ("Old Bridge", ["06:25", "07:22", "08:25", "09:22"]),
        ("Station", ["06:33", "07:30", "08:33", "09:30"]),
    ];
    let mut texts = Vec::new();
    for (row, (stop, times)) in times.iter().enumerate() {
        let y = 500.0 - 14.0 * row as f32;
        texts.push((40.0, y, *stop));
        for (column, time) in times.iter().enumerate().filter(|(_, time)| !time.is_empty()) {
            texts.push((130.0 + 50.0 * column as f32, y, *time));
        }
    }
    assert_eq!(
        found(&texts, ""),
        [
            "Harbour | 06:10 | 07:10 | 08:10 | 09:10\nMill Lane | 06:18 |  | 08:18 | \n\
          Old Bridge | 06:25 | 07:22 | 08:25 | 09:22\nStation | 06:33 | 07:30 | 08:33 | 09:30"
        ]
    );
}

#[test]
fn names_and_values_in_two_halves_are_four_columns() {
    let texts = [
        (40.0, 500.0, "Length"),
        (110.0, 500.0, "1,240 mm"),
        (220.0, 500.0, "Voltage"),
        (300.0, 500.0, "230 V"),
        (40.0, 486.0, "Width"),
        (110.0, 486.0, "610 mm"),
        (220.0, 486.0, "Current"),
        (300.0, 486.0, "16 A"),
        (40.0, 472.0, "Weight"),
        (110.0, 472.0, "38 kg"),
        (220.0, 472.0, "Noise"),
        (300.0, 472.0, "44 dB"),
    ];
    let rules = [510.0, 496.0, 482.0, 468.0].map(|y| line(36.0, y, 360.0, y)).concat();
    assert_eq!(
        found(&texts, &rules),
        ["Length | 1,240 mm | Voltage | 230 V\nWidth | 610 mm | Current | 16 A\nWeight | 38 kg | Noise | 44 dB"]
    );
}

#[test]
fn turned_headings_stand_over_their_columns() {
    let mut content = String::new();
    for y in [540.0, 470.0, 455.0, 440.0, 425.0] {
        content += &line(40.0, y, 220.0, y);
    }
    for x in [40.0, 130.0, 160.0, 190.0, 220.0] {
        content += &line(x, 540.0, x, 425.0);
    }
    for (x, text) in [(148.0, "Reader"), (178.0, "Editor"), (208.0, "Administrator")] {
        content += &format!("BT /F 9 Tf 0 1 -1 0 {x} 475 Tm ({text}) Tj ET\n");
    }
    content += &show('F', 9.0, 44.0, 475.0, "Action");
    for (row, (action, marks)) in [
        ("Open a file", "xxx"),
        ("Change a file", " xx"),
        ("Remove a file", "  x"),
    ]
    .iter()
    .enumerate()
    {
        let y = 459.0 - 15.0 * row as f32;
        content += &show('F', 9.0, 44.0, y, action);
        for (column, mark) in marks.chars().enumerate().filter(|(_, mark)| *mark == 'x') {
            content += &show('F', 9.0, 143.0 + 30.0 * column as f32, y, &mark.to_string());
        }
    }
    assert_eq!(
        read(&content),
        [
            "Action | Reader | Editor | Administrator\nOpen a file | x | x | x\nChange a file |  | x | x\nRemove a file |  |  | x"
        ]
    );
}

#[test]
fn group_heads_span_and_the_empty_corner_stays() {
    let mut texts = vec![
        (163.0, 500.0, "North"),
        (283.0, 500.0, "South"),
        (140.0, 484.0, "Men"),
        (190.0, 484.0, "Women"),
        (260.0, 484.0, "Men"),
        (310.0, 484.0, "Women"),
    ];
    for (row, label) in ["Apples", "Pears", "Plums"].iter().enumerate() {
        let y = 468.0 - 14.0 * row as f32;
        texts.push((40.0, y, *label));
        texts.extend([140.0, 195.0, 260.0, 315.0].map(|x| (x, y, "12")));
    }
    assert_eq!(
        found(&texts, ""),
        [
            "^2 | North<2> | South<2>\nMen | Women | Men | Women\nApples | 12 | 12 | 12 | 12\n\
          Pears | 12 | 12 | 12 | 12\nPlums | 12 | 12 | 12 | 12"
        ]
    );
}

#[test]
fn rows_shaded_in_turn_are_one_table() {
    let mut texts = vec![
        (44.0, 500.0, "*Tree"),
        (150.0, 500.0, "*Height"),
        (240.0, 500.0, "*Age"),
    ];
    let mut drawn = String::new();
    for (row, (tree, height, age)) in [
        ("Ash", "31 m", "120"),
        ("Beech", "38 m", "200"),
        ("Cedar", "35 m", "300"),
        ("Elm", "30 m", "150"),
        ("Fir", "52 m", "180"),
    ]
    .iter()
    .enumerate()
    {
        let y = 484.0 - 16.0 * row as f32;
        texts.extend([(44.0, y, *tree), (150.0, y, *height), (240.0, y, *age)]);
        if row % 2 == 0 {
            drawn += &shade(40.0, y - 4.0, 300.0, y + 12.0);
        }
    }
    assert_eq!(
        found(&texts, &drawn),
        [
            "Tree | Height | Age\nAsh | 31 m | 120\nBeech | 38 m | 200\nCedar | 35 m | 300\nElm | 30 m | 150\nFir | 52 m | 180"
        ]
    );
}

#[test]
fn an_invoice_has_its_items_and_totals() {
    let texts = [
        (40.0, 500.0, "*Description"),
        (200.0, 500.0, "*Qty"),
        (250.0, 500.0, "*Price"),
        (320.0, 500.0, "*Amount"),
        (40.0, 482.0, "Desk lamp with a"),
        (206.0, 482.0, "2"),
        (252.0, 482.0, "24.00"),
        (326.0, 482.0, "48.00"),
        (40.0, 471.0, "swivelling arm"),
        (40.0, 453.0, "Office chair"),
        (206.0, 453.0, "1"),
        (248.0, 453.0, "189.00"),
        (322.0, 453.0, "189.00"),
        (40.0, 435.0, "Delivery"),
        (206.0, 435.0, "1"),
        (252.0, 435.0, "12.50"),
        (326.0, 435.0, "12.50"),
        (250.0, 413.0, "Subtotal"),
        (322.0, 413.0, "249.50"),
        (250.0, 397.0, "VAT 20%"),
        (326.0, 397.0, "49.90"),
        (250.0, 381.0, "*Total"),
        (322.0, 381.0, "*299.40"),
    ];
    let drawn = line(40.0, 494.0, 360.0, 494.0) + &line(40.0, 427.0, 360.0, 427.0);
    assert_eq!(
        found(&texts, &drawn),
        [
            "Description | Qty | Price | Amount\nDesk lamp with a swivelling arm | 2 | 24.00 | 48.00\n\
          Office chair | 1 | 189.00 | 189.00\nDelivery | 1 | 12.50 | 12.50\n \
          |  | Subtotal | 249.50\n |  | VAT 20% | 49.90\n |  | Total | 299.40"
        ]
    );
}

#[test]
fn percents_go_with_their_figures() {
    let mut texts = vec![(150.0, 500.0, "Share"), (250.0, 500.0, "Change")];
    for (row, (label, share, change)) in [("Rail", "42", "3.1"), ("Road", "51", "2.4"), ("Water", "7", "0.2")]
        .iter()
        .enumerate()
    {
        let y = 486.0 - 14.0 * row as f32;
        texts.extend([(40.0, y, *label), (150.0, y, *share), (250.0, y, *change)]);
        texts.extend([(180.0, y, "%"), (285.0, y, "%")]);
    }
    assert_eq!(
        found(&texts, ""),
        [" | Share | Change\nRail | 42% | 3.1%\nRoad | 51% | 2.4%\nWater | 7% | 0.2%"]
    );
}

#[test]
fn headings_of_several_lines_are_one_row() {
    let mut texts = vec![
        (140.0, 511.0, "Number of"),
        (220.0, 511.0, "Mean"),
        (40.0, 500.0, "Site"),
        (140.0, 500.0, "samples"),
        (220.0, 500.0, "depth"),
        (290.0, 500.0, "Owner"),
    ];
    for (row, (site, owner)) in [("Lake", "Town"), ("Moor", "State"), ("River", "Town")]
        .iter()
        .enumerate()
    {
        let y = 480.0 - 18.0 * row as f32;
        texts.extend([
            (40.0, y, *site),
            (140.0, y, "14"),
            (220.0, y, "2.5"),
            (290.0, y, *owner),
        ]);
    }
    assert_eq!(
        found(&texts, ""),
        [
            "Site | Number of samples | Mean depth | Owner\nLake | 14 | 2.5 | Town\nMoor | 14 | 2.5 | State\n\
          River | 14 | 2.5 | Town"
        ]
    );
}

#[test]
fn code_prose_beside_notes_and_blanks_to_fill_in_are_no_tables() {
    let code = [
        (40.0, 500.0, "int sum"),
        (120.0, 500.0, "= 0;"),
        (40.0, 488.0, "int last"),
        (120.0, 488.0, "= 9;"),
        (40.0, 476.0, "sum +="),
        (120.0, 476.0, "last;"),
    ];
    let blanks = [
        (40.0, 400.0, "Signed"),
        (120.0, 400.0, "______________"),
        (40.0, 380.0, "Place"),
        (120.0, 380.0, "______________"),
        (40.0, 360.0, "Date"),
        (120.0, 360.0, "______________"),
    ];
    let notes = [
        (20.0, 300.0, "Scope"),
        (
            100.0,
            300.0,
            "The rules of this part hold for all members who have paid their",
        ),
        (20.0, 288.0, "of these rules"),
        (
            100.0,
            288.0,
            "dues of the year, for guests of such members and for the persons",
        ),
        (20.0, 276.0, "for members"),
        (
            100.0,
            276.0,
            "that work in the house, as far as no other rule that was agreed on",
        ),
        (20.0, 264.0, "(2019)"),
        (
            100.0,
            264.0,
            "before them says that they are free of it or bound by others only.",
        ),
    ];
    for texts in [code.as_slice(), &blanks, &notes] {
        let found = found(texts, "");
        let table = ElementType::Table.as_str();
        assert!(
            found
                .iter()
                .all(|element| !element.starts_with(table) && !element.contains(" | ")),
            "{found:?}"
        );
    }
}
