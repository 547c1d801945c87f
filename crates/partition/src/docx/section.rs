//! Sections: which headers and footers each has. Their descriptions stand at the end of a section while
//! headers come at its start, so they are read ahead.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Headers or footers of a section, as relationship ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Furniture {
    /// (type in the file: `default`, `first`, `even`; relationship id).
    pub(super) parts: Vec<(String, String)>,
}

/// A section as far as its pages' margins go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) headers: Furniture,
    pub(super) footers: Furniture,
    /// Whether the first page has a header and footer of its own.
    pub(super) first_page: bool,
}

/// The sections of the main part in order. Ends early at an XML error, which the reading of the body
/// reports.
pub(super) fn scan(document: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    if !document.contains("headerReference") && !document.contains("footerReference") {
        return sections;
    }
    let mut reader = Reader::from_str(document);
    reader.config_mut().check_end_names = false;
    // An earlier state of a section, kept by change tracking, stands inside the present one.
    let mut depth = 0u32;
    let mut section = Section::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => match start.local_name().into_inner() {
                "sectPr" => {
                    depth += 1;
                    if depth == 1 {
                        section = Section::default();
                    }
                }
                _ if depth == 1 => section.take(&start),
                _ => {}
            },
            Ok(Event::Empty(empty)) => match empty.local_name().into_inner() {
                "sectPr" if depth == 0 => sections.push(Section::default()),
                _ if depth == 1 => section.take(&empty),
                _ => {}
            },
            Ok(Event::End(end)) if end.local_name().into_inner() == "sectPr" => {
                if depth == 1 {
                    sections.push(std::mem::take(&mut section));
                }
                depth = depth.saturating_sub(1);
            }
            Ok(Event::Eof) | Err(_) => return sections,
            Ok(_) => {}
        }
    }
}

impl Section {
    fn take(&mut self, tag: &BytesStart) {
        let value = |name: &str| {
            let mut attrs = tag.attributes();
            let mut attrs = attrs.with_checks(false).flatten();
            attrs
                .find(|a| a.key.local_name().into_inner() == name)
                .map(|a| a.value.into_owned())
        };
        let furniture = match tag.local_name().into_inner() {
            "headerReference" => &mut self.headers,
            "footerReference" => &mut self.footers,
            "titlePg" => {
                self.first_page = !matches!(value("val").as_deref(), Some("0" | "false" | "off"));
                return;
            }
            _ => return,
        };
        if let (Some(kind), Some(id)) = (value("type"), value("id"))
            && matches!(kind.as_str(), "default" | "first" | "even")
            && furniture.parts.iter().all(|(known, _)| *known != kind)
        {
            furniture.parts.push((kind, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_sections_are_found_and_earlier_states_are_not() {
        let sections = scan(
            r#"<w:body><w:p><w:pPr><w:sectPr><w:headerReference w:type="default" r:id="rId1"/><w:titlePg/>
            <w:sectPrChange><w:sectPr><w:footerReference w:type="first" r:id="rId9"/></w:sectPr></w:sectPrChange>
            </w:sectPr></w:pPr></w:p><w:sectPr/></w:body>"#,
        );
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].headers.parts, [("default".to_owned(), "rId1".to_owned())]);
        assert!(sections[0].first_page && sections[0].footers.parts.is_empty());
        assert_eq!(sections[1], Section::default());
    }
}
