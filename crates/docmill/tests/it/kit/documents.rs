//! Documents made for the tests.

/// An HTML page with a heading and paragraphs.
pub(crate) fn html(title: &str, paragraphs: usize) -> Vec<u8> {
    let mut page = format!("<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>\n");
    for number in 0..paragraphs {
        page.push_str(&format!(
            "<p>Paragraph {number} of the page says in plain words that {title} is about many things.</p>\n"
        ));
    }
    page.push_str("</body></html>\n");
    page.into_bytes()
}

/// A PDF with one line of Helvetica on each page.
pub(crate) fn pdf(lines: &[&str]) -> Vec<u8> {
    let pages: Vec<_> = lines.iter().map(|line| (595, line_of(line))).collect();
    pdf_of(&pages)
}

/// A PDF of one page whose text is encoded with a byte too many.
pub(crate) fn spoilt_pdf(line: &str) -> Vec<u8> {
    let mut data: Vec<u8> = line_of(line)
        .bytes()
        .flat_map(|byte| format!("{byte:02x}").into_bytes())
        .collect();
    data.insert(data.len() - 3, 0xFF);
    let mut file = format!(
        "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
         2 0 obj\n<< /Type /Pages /Count 1 /Kids [3 0 R] >>\nendobj\n\
         3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>\nendobj\n\
         4 0 obj\n<< /Filter /ASCIIHexDecode /Length {} >>\nstream\n",
        data.len()
    )
    .into_bytes();
    file.extend(data);
    file.extend(b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n");
    file
}

/// What writes a line on a page.
pub(crate) fn line_of(line: &str) -> String {
    let escaped = line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
    format!("BT /F1 12 Tf 72 720 Td ({escaped}) Tj ET")
}

/// What draws curves on a page, enough for letters, and no text.
pub(crate) fn drawing() -> String {
    let curve = |n: u32| {
        let (x, y) = (100 + 40 * (n % 8), 200 + 60 * (n / 8));
        format!(
            "{x} {y} m {} {} {} {} {} {y} c S\n",
            x + 5,
            y + 50,
            x + 25,
            y - 40,
            x + 30
        )
    };
    (0..64).map(curve).collect()
}

/// A PDF of pages 842 points high: the width of each, and what draws it. `/F1` is Helvetica, `/F2` its bold,
/// `/Chart` a picture of three bars.
pub(crate) fn pdf_of(pages: &[(u32, String)]) -> Vec<u8> {
    let kids: Vec<_> = (0..pages.len()).map(|page| format!("{} 0 R", 6 + page * 2)).collect();
    let font = |name: &str| format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>");
    let chart = chart();
    let mut objects = vec![
        String::from("<< /Type /Catalog /Pages 2 0 R >>"),
        format!("<< /Type /Pages /Count {} /Kids [{}] >>", pages.len(), kids.join(" ")),
        font("Helvetica"),
        font("Helvetica-Bold"),
        format!(
            "<< /Type /XObject /Subtype /Image /Width {BARS} /Height {BARS} /ColorSpace /DeviceGray /BitsPerComponent 8 \
             /Filter /ASCIIHexDecode /Length {} >>\nstream\n{chart}\nendstream",
            chart.len()
        ),
    ];
    for (page, (width, stream)) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} 842] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R /F2 4 0 R >> /XObject << /Chart 5 0 R >> >> >>",
            7 + page * 2
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    let mut file = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let xref = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for offset in offsets {
        file.push_str(&format!("{offset:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n",
        objects.len() + 1
    ));
    file.into_bytes()
}

/// Pixels to a side of the chart.
const BARS: usize = 60;

/// The chart's pixels in hexadecimal: three black bars on white, each taller than the one before.
fn chart() -> String {
    let is_bar = |row: usize, column: usize| column % 20 >= 6 && BARS - row < 15 * (1 + column / 20);
    let mut pixels: String = (0..BARS * BARS)
        .map(|at| if is_bar(at / BARS, at % BARS) { "00" } else { "ff" })
        .collect();
    pixels.push('>');
    pixels
}

/// A CSV table of many rows.
pub(crate) fn csv(rows: usize) -> Vec<u8> {
    let mut table = String::from("number,square,words\n");
    for row in 0..rows {
        table.push_str(&format!("{row},{},\"row {row}, with a comma\"\n", row * row));
    }
    table.into_bytes()
}

/// A page that takes the reader seconds, and stays below the limits of size and elements.
pub(crate) fn slow_html() -> Vec<u8> {
    html("slowness", 180_000)
}
