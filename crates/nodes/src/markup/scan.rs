//! A tolerant scanner for HTML: texts and tags, whatever the bytes.
//!
//! No tree is built and nothing nests, so time is linear and the stack flat however hostile the markup
//! is. It follows the tokenization rules of the HTML standard as far as they bear on tables.

use std::borrow::Cow;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// Longest name of a character reference, with the semicolon.
const MAX_REFERENCE_NAME: usize = 33;

/// One piece of markup.
#[derive(Debug, PartialEq)]
pub(crate) enum Token<'h> {
    /// Text between tags, with character references resolved.
    Text(Cow<'h, str>),
    /// A start tag.
    Start(StartTag),
    /// An end tag; its name in lower case.
    End(String),
}

/// A start tag with what matters of its attributes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StartTag {
    /// In lower case.
    pub(crate) name: String,
    pub(crate) colspan: Option<u32>,
    pub(crate) rowspan: Option<u32>,
    /// What a picture shows.
    pub(crate) alt: Option<String>,
}

/// All tokens of `html`. Comments, declarations, scripts and style sheets are left out.
pub(crate) fn tokens(html: &str) -> impl Iterator<Item = Token<'_>> {
    Scanner { html, at: 0 }
}

struct Scanner<'h> {
    html: &'h str,
    /// Byte offset of what comes next; always at a character boundary.
    at: usize,
}

impl<'h> Iterator for Scanner<'h> {
    type Item = Token<'h>;

    fn next(&mut self) -> Option<Token<'h>> {
        loop {
            let rest = self.rest();
            let mut chars = rest.chars();
            match (chars.next()?, chars.next()) {
                ('<', Some('!' | '?')) => self.skip_declaration(),
                ('<', Some('/')) => match chars.next() {
                    Some(c) if c.is_ascii_alphabetic() => return Some(self.end_tag()),
                    _ => self.skip_past(">"),
                },
                ('<', Some(c)) if c.is_ascii_alphabetic() => return Some(self.start_tag()),
                _ => return Some(self.text()),
            }
        }
    }
}

impl<'h> Scanner<'h> {
    fn rest(&self) -> &'h str {
        &self.html[self.at..]
    }

    /// Moves behind the next `mark`, or to the end.
    fn skip_past(&mut self, mark: &str) {
        self.at = self
            .rest()
            .find(mark)
            .map_or(self.html.len(), |found| self.at + found + mark.len());
    }

    fn skip_declaration(&mut self) {
        let comment = self.rest().strip_prefix("<!--");
        match comment {
            // Two comments that end at once: `<!-->` and `<!--->`.
            Some(body) if body.starts_with('>') || body.starts_with("->") => self.skip_past(">"),
            Some(_) => self.skip_past("-->"),
            None => self.skip_past(">"),
        }
    }

    /// Text up to the next `<`. A `<` that opens no tag is text and stands first here.
    fn text(&mut self) -> Token<'h> {
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('<').map_or(rest.len(), |found| first + found);
        self.at += end;
        Token::Text(resolve_references(&rest[..end]))
    }

    fn end_tag(&mut self) -> Token<'h> {
        self.at += "</".len();
        let name = self.tag_name();
        while self.attribute().is_some() {}
        Token::End(name)
    }

    fn start_tag(&mut self) -> Token<'h> {
        self.at += "<".len();
        let mut tag = StartTag {
            name: self.tag_name(),
            ..StartTag::default()
        };
        while let Some((name, value)) = self.attribute() {
            let span = match name {
                name if name.eq_ignore_ascii_case("colspan") => &mut tag.colspan,
                name if name.eq_ignore_ascii_case("rowspan") => &mut tag.rowspan,
                name if name.eq_ignore_ascii_case("alt") => {
                    tag.alt.get_or_insert_with(|| resolve_references(value).into_owned());
                    continue;
                }
                _ => continue,
            };
            *span = span.or_else(|| leading_number(&resolve_references(value)));
        }
        if matches!(tag.name.as_str(), "script" | "style" | "template") {
            self.skip_raw_text(&tag.name);
        }
        Token::Start(tag)
    }

    fn tag_name(&mut self) -> String {
        let rest = self.rest();
        let end = rest
            .find(|c: char| is_space(c) || matches!(c, '/' | '>'))
            .unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_ascii_lowercase()
    }

    /// The next attribute of a tag, name and raw value; `None` at the tag's end, which is skipped.
    fn attribute(&mut self) -> Option<(&'h str, &'h str)> {
        let skipped = self.rest().trim_start_matches(|c| is_space(c) || c == '/');
        self.at = self.html.len() - skipped.len();
        if skipped.is_empty() {
            return None;
        }
        if skipped.starts_with('>') {
            self.at += 1;
            return None;
        }
        // An equals sign in front belongs to the name.
        let first = skipped.chars().next().map_or(0, char::len_utf8);
        let end = skipped[first..]
            .find(|c: char| is_space(c) || matches!(c, '/' | '>' | '='))
            .map_or(skipped.len(), |found| first + found);
        self.at += end;
        let name = &skipped[..end];
        let behind = self.rest().trim_start_matches(is_space);
        let Some(value) = behind.strip_prefix('=') else {
            return Some((name, ""));
        };
        let value = value.trim_start_matches(is_space);
        self.at = self.html.len() - value.len();
        Some((name, self.attribute_value(value)))
    }

    fn attribute_value(&mut self, rest: &'h str) -> &'h str {
        for quote in ['"', '\''] {
            if let Some(quoted) = rest.strip_prefix(quote) {
                let end = quoted.find(quote).unwrap_or(quoted.len());
                self.at = (self.at + 1 + end + 1).min(self.html.len());
                return &quoted[..end];
            }
        }
        let end = rest.find(|c: char| is_space(c) || c == '>').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Skips the content of an element whose content is no markup, up to its end tag.
    fn skip_raw_text(&mut self, name: &str) {
        let rest = self.rest().as_bytes();
        let closes = |at: &usize| {
            rest[*at..].starts_with(b"</")
                && rest
                    .get(at + 2..at + 2 + name.len())
                    .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        };
        self.at += (0..rest.len()).find(closes).unwrap_or(rest.len());
    }
}

/// White space between the parts of a tag.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// The number a text starts with; `None` without digits. What is too large becomes the largest number.
fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_start_matches(is_space);
    let digits = &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())];
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX))
}

/// Replaces character references such as `&amp;` and `&#228;`.
fn resolve_references(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        let reference = &rest[start + 1..];
        let used = match reference.strip_prefix('#') {
            Some(number) => push_numeric(number, &mut out).map(|used| used + 1),
            None => push_named(reference, &mut out),
        };
        if used.is_none() {
            out.push('&');
        }
        rest = &reference[used.unwrap_or(0)..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Resolves what stands behind `&`: the longest name that there is, some also without a semicolon.
/// Returns the bytes used.
fn push_named(text: &str, out: &mut String) -> Option<usize> {
    let mut longest = None;
    for end in 1..=text.len().min(MAX_REFERENCE_NAME) {
        // The table holds every prefix of a name too, with zeros.
        let Some((first, second)) = text.get(..end).and_then(|name| NAMED_ENTITIES.get(name)) else {
            break;
        };
        if *first != 0 {
            longest = Some((end, *first, *second));
        }
    }
    let (end, first, second) = longest?;
    out.extend(
        [first, second]
            .into_iter()
            .filter(|&c| c != 0)
            .filter_map(char::from_u32),
    );
    Some(end)
}

/// Resolves what stands behind `&#`. Returns the bytes used.
fn push_numeric(text: &str, out: &mut String) -> Option<usize> {
    let (digits_at, radix) = if text.starts_with(['x', 'X']) { (1, 16) } else { (0, 10) };
    let digits = &text[digits_at..];
    let digits = &digits[..digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len())];
    if digits.is_empty() {
        return None;
    }
    let number = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    let windows = number
        .checked_sub(0x80)
        .and_then(|at| C1_REPLACEMENTS.get(at as usize).copied().flatten());
    let resolved = windows.or_else(|| char::from_u32(number)).filter(|&c| c != '\0');
    out.push(resolved.unwrap_or(char::REPLACEMENT_CHARACTER));
    let used = digits_at + digits.len();
    Some(used + usize::from(text[used..].starts_with(';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        let texts = tokens(html).filter_map(|token| match token {
            Token::Text(text) => Some(text.into_owned()),
            _ => None,
        });
        texts.collect()
    }

    fn start(html: &str) -> StartTag {
        match tokens(html).next() {
            Some(Token::Start(tag)) => tag,
            other => panic!("no start tag: {other:?}"),
        }
    }

    #[test]
    fn resolves_character_references() {
        assert_eq!(
            text("a &amp; b &lt;c&gt; &quot;&#39;&#xE4;&#228;&auml;"),
            "a & b <c> \"'äää"
        );
        assert_eq!(
            text("R&D &unknown; &ampere &copy2 &#x; &#0; &#128; &"),
            "R&D &unknown; &ere ©2 &#x; \u{fffd} € &"
        );
        assert_eq!(
            text("&NotEqualTilde;&nbsp;&notit;&notin;"),
            "\u{2242}\u{338}\u{a0}¬it;∉"
        );
        assert_eq!(text("&#99999999999999;"), "\u{fffd}");
    }

    #[test]
    fn reads_spans_in_every_notation() {
        let tag = start("<TD class=x ColSpan = '2' rowspan=3 rowspan=9 hidden/>");
        assert_eq!((tag.name.as_str(), tag.colspan, tag.rowspan), ("td", Some(2), Some(3)));
        let tag = start("<td colspan=\"2x\" rowspan=>");
        assert_eq!((tag.colspan, tag.rowspan), (Some(2), None));
        assert_eq!(start("<td colspan=99999999999>").colspan, Some(u32::MAX));
        assert_eq!(start("<td title='a > b' colspan=2>").colspan, Some(2));
    }

    #[test]
    fn leaves_out_what_is_no_content() {
        assert_eq!(
            text("a<!-- <td> -->b<!-->c<!doctype x>d<?php ?>e<script>if (a<b) '</td>'</SCRIPT>f</ x>g"),
            "abcdefg"
        );
    }

    #[test]
    fn keeps_angle_brackets_that_open_no_tag() {
        assert_eq!(text("1 < 2 <3 << <"), "1 < 2 <3 << <");
    }

    #[test]
    fn ends_on_cut_off_markup() {
        for html in [
            "<", "</", "</t", "<td", "<td a", "<td a=", "<td a='", "<!", "<!--", "<script>", "&", "&#", "&#x",
        ] {
            assert!(tokens(html).count() <= 1, "{html}");
        }
    }
}
