//! Running text of one block: white space, links, emphasis, and inline elements that stand for text.

use docmill_model::Metadata;

use super::node::{Dom, Id};

/// A link within the text.
struct Link {
    text: String,
    url: String,
}

/// Text being collected, with what marks parts of it.
#[derive(Default)]
pub(super) struct Inline {
    text: String,
    /// White space was seen that is written only when more text follows.
    space: bool,
    links: Vec<Link>,
    /// Start in `text` and target of the links that are open.
    open_links: Vec<(usize, String)>,
    emphasis: Vec<(String, &'static str)>,
    bold: u32,
    italic: u32,
    /// Where the current run of emphasis started.
    run_start: usize,
    /// Something other than a formula was written.
    not_only_math: bool,
    has_math: bool,
}

/// A block's text and the metadata that goes with it.
pub(super) struct Run {
    pub(super) text: String,
    pub(super) is_formula: bool,
    links: Vec<Link>,
    emphasis: Vec<(String, &'static str)>,
}

impl Run {
    /// Writes links and emphasis to an element's metadata.
    pub(super) fn annotate(self, metadata: &mut Metadata) {
        for link in self.links {
            metadata.link_texts.push(link.text);
            metadata.link_urls.push(link.url);
        }
        for (text, tag) in self.emphasis {
            metadata.emphasized_text_contents.push(text);
            metadata.emphasized_text_tags.push(tag.to_owned());
        }
    }
}

impl Inline {
    /// Adds text, with every run of white space as one space.
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.space = true;
            } else if !is_invisible(c) {
                self.before_text();
                self.text.push(c);
                self.not_only_math = true;
            }
        }
    }

    fn before_text(&mut self) {
        if self.space && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
        }
        self.space = false;
    }

    /// A word boundary that the source does not show as white space.
    pub(super) fn push_space(&mut self) {
        self.space = true;
    }

    /// A line break.
    pub(super) fn push_break(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.space = false;
    }

    pub(super) fn push_math(&mut self, formula: &str) {
        let formula = formula.trim();
        if !formula.is_empty() {
            let other = self.not_only_math;
            self.push(formula);
            self.not_only_math = other;
            self.has_math = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Handles an inline element's start; tells whether its content is to be visited.
    pub(super) fn enter(&mut self, dom: &Dom, id: Id) -> bool {
        match dom.name(id) {
            "a" => {
                if let Some(url) = dom.attribute(id, "href").and_then(usable_url) {
                    self.open_links.push((self.text.len(), url));
                }
            }
            "b" | "strong" => self.emphasise(|inline| inline.bold += 1),
            "i" | "em" => self.emphasise(|inline| inline.italic += 1),
            "input" => {
                self.push_field(dom, id);
                return false;
            }
            "select" => {
                self.push_selected(dom, id);
                return false;
            }
            "math" => {
                self.push_math(&math_text(dom, id));
                return false;
            }
            "img" => {
                self.push_image_text(dom, id);
                return false;
            }
            "label" | "textarea" | "output" | "meter" | "progress" => self.push_space(),
            _ => {}
        }
        true
    }

    /// Handles the end of an element that [`Inline::enter`] let be visited.
    pub(super) fn leave(&mut self, dom: &Dom, id: Id) {
        match dom.name(id) {
            "a" if dom.attribute(id, "href").and_then(usable_url).is_some() => {
                if let Some((start, url)) = self.open_links.pop() {
                    self.add_link(start, url);
                }
            }
            "b" | "strong" => self.emphasise(|inline| inline.bold = inline.bold.saturating_sub(1)),
            "i" | "em" => self.emphasise(|inline| inline.italic = inline.italic.saturating_sub(1)),
            "label" | "textarea" | "output" => self.push_space(),
            _ => {}
        }
    }

    fn add_link(&mut self, start: usize, url: String) {
        let text = self.text.get(start..).unwrap_or_default().trim();
        if !text.is_empty() {
            let text = text.to_owned();
            self.links.push(Link { text, url });
        }
    }

    fn tag(&self) -> Option<&'static str> {
        match (self.bold > 0, self.italic > 0) {
            (true, true) => Some("bi"),
            (true, false) => Some("b"),
            (false, true) => Some("i"),
            (false, false) => None,
        }
    }

    fn emphasise(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.tag();
        let start = self.run_start;
        change(self);
        if self.tag() != before {
            self.end_run(start, before);
        }
    }

    fn end_run(&mut self, start: usize, tag: Option<&'static str>) {
        if let Some(tag) = tag {
            let text = self.text.get(start..).unwrap_or_default().trim();
            if !text.is_empty() {
                let text = text.to_owned();
                self.emphasis.push((text, tag));
            }
        }
        self.run_start = self.text.len();
    }

    /// A form field shows its value, a box whether it is ticked.
    fn push_field(&mut self, dom: &Dom, id: Id) {
        let kind = dom.attribute(id, "type").unwrap_or("text").to_ascii_lowercase();
        match kind.as_str() {
            "checkbox" | "radio" => {
                self.push_space();
                self.push(if dom.attribute(id, "checked").is_some() {
                    "[x]"
                } else {
                    "[ ]"
                });
                self.push_space();
            }
            "hidden" | "password" | "submit" | "button" | "reset" | "image" | "file" | "color" | "range" => {}
            _ => {
                self.push_space();
                self.push(dom.attribute(id, "value").unwrap_or_default());
                self.push_space();
            }
        }
    }

    /// A select box shows the options chosen, by default the first.
    fn push_selected(&mut self, dom: &Dom, id: Id) {
        let options = || dom.descendants(id).filter(|option| dom.name(*option) == "option");
        let mut chosen: Vec<Id> = options().filter(|o| dom.attribute(*o, "selected").is_some()).collect();
        if chosen.is_empty() {
            chosen.extend(options().next());
        }
        self.push_space();
        for option in chosen {
            self.push(&dom.raw_text(option));
            self.push_space();
        }
    }

    fn push_image_text(&mut self, dom: &Dom, id: Id) {
        let text = image_text(dom, id);
        if is_math_image(dom, id) {
            self.push_math(text);
        } else {
            self.push(text);
        }
    }

    /// The text so far as one block; links and emphasis that are open go on in the next.
    pub(super) fn take(&mut self) -> Run {
        for (start, url) in self.open_links.clone() {
            self.add_link(start, url);
        }
        self.end_run(self.run_start, self.tag());
        self.open_links.iter_mut().for_each(|(start, _)| *start = 0);
        self.run_start = 0;
        self.space = false;
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end().len());
        Run {
            text,
            is_formula: std::mem::take(&mut self.has_math) && !std::mem::take(&mut self.not_only_math),
            links: std::mem::take(&mut self.links),
            emphasis: std::mem::take(&mut self.emphasis),
        }
    }
}

/// Zero-width and direction marks that only guide layout. Joiners are kept: they change letters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}') || (c.is_control() && !c.is_whitespace())
}

/// A link's target, unless it runs a script.
fn usable_url(url: &str) -> Option<String> {
    let url = url.trim();
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let usable = !url.is_empty() && !matches!(scheme.as_str(), "javascript" | "data" | "vbscript");
    usable.then(|| url.to_owned())
}

/// What a picture says in words.
pub(super) fn image_text(dom: &Dom, id: Id) -> &str {
    ["alt", "aria-label", "title"]
        .into_iter()
        .filter_map(|name| dom.attribute(id, name))
        .map(str::trim)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A formula rendered as a picture, its source in the alternative text.
fn is_math_image(dom: &Dom, id: Id) -> bool {
    dom.attribute(id, "class").is_some_and(|class| {
        class
            .split_whitespace()
            .any(|c| c.contains("math") || c.contains("latex") || c == "tex")
    })
}

/// A picture that stands for characters: a formula, an emoji.
pub(super) fn is_inline_image(dom: &Dom, id: Id) -> bool {
    let text = image_text(dom, id);
    let emoji = || {
        let class = dom.attribute(id, "class").unwrap_or_default();
        class.contains("emoji") || (!text.is_ascii() && text.chars().count() <= 2)
    };
    !text.is_empty() && (is_math_image(dom, id) || emoji())
}

/// A formula's TeX annotation, else the text of its leaves.
fn math_text(dom: &Dom, id: Id) -> String {
    let is_tex = |node: &Id| {
        dom.name(*node) == "annotation"
            && dom
                .attribute(*node, "encoding")
                .is_some_and(|e| e.to_ascii_lowercase().contains("tex"))
    };
    if let Some(annotation) = dom.descendants(id).find(is_tex) {
        return dom.raw_text(annotation);
    }
    let mut text = String::new();
    let mut at = dom.first_child(id);
    while let Some(node) = at {
        let skip = matches!(dom.name(node), "annotation" | "annotation-xml");
        if let Some(part) = dom.text(node).map(str::trim).filter(|part| !part.is_empty()) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(part);
        }
        at = dom.following(node, id, !skip);
    }
    text
}

/// Whether an element and its content are not shown.
pub(super) fn is_hidden(dom: &Dom, id: Id) -> bool {
    if dom
        .attribute(id, "hidden")
        .is_some_and(|value| !value.eq_ignore_ascii_case("until-found"))
    {
        return true;
    }
    if let Some(style) = dom.attribute(id, "style") {
        let style: String = style
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
            .to_ascii_lowercase();
        let hides = |rule: &str| rule == "display:none" || rule == "visibility:hidden" || rule == "mso-hide:all";
        if style.split(';').any(|rule| hides(rule.trim_end_matches("!important"))) {
            return true;
        }
    }
    // Formulas are often there twice: as MathML for readers, and drawn for the eye.
    dom.attribute(id, "aria-hidden") == Some("true")
        && dom.previous_sibling(id).is_some_and(|sibling| {
            dom.name(sibling) == "math" || dom.descendants(sibling).take(4).any(|n| dom.name(n) == "math")
        })
}

/// Elements that are never shown as text of the page, or are its machinery.
pub(super) fn is_dropped(dom: &Dom, id: Id) -> bool {
    match dom.name(id) {
        "head" | "script" | "style" | "template" | "nav" | "svg" | "canvas" | "audio" | "video" | "object"
        | "embed" | "iframe" | "frameset" | "button" | "noscript" | "datalist" | "title" | "meta" | "link" | "rp" => {
            true
        }
        "dialog" => dom.attribute(id, "open").is_none(),
        _ => is_hidden(dom, id),
    }
}
