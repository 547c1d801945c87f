//! Templates: one pair of text and HTML for each kind of mail.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::words::link;

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $name)))),+]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "base.html",
    "base.txt",
    "code.html",
    "code.txt",
    "digest.html",
    "digest.txt",
    "disabled.html",
    "disabled.txt",
    "job.html",
    "job.txt",
    "test.html",
    "test.txt",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build();
    debug_assert!(syntax.is_ok());
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_auto_escape_callback(|name| match name.ends_with(".html") {
        true => AutoEscape::Html,
        false => AutoEscape::None,
    });
    environment.add_filter("href", |link: String| Value::from_safe_string(href(&link)));
    for (name, source) in TEMPLATES {
        // All are part of the program and parsed by the tests below.
        let added = environment.add_template(name, source);
        debug_assert!(added.is_ok(), "{name}: {added:?}");
    }
    environment
});

/// A link as the value of an attribute. The escaping of text would turn its slashes into references, over
/// which the link scanners of some mail servers stumble.
fn href(text: &str) -> String {
    link(text).map(|link| link.replace('&', "&amp;")).unwrap_or_default()
}

/// The text and the HTML of a mail.
pub(super) fn render(template: &str, view: &impl Serialize) -> (String, String) {
    let view = Value::from(Serde(view));
    let rendered = |ending: &str| {
        let name = format!("{template}.{ending}");
        let rendered = ENVIRONMENT
            .get_template(&name)
            .and_then(|template| template.render(view.clone()));
        debug_assert!(rendered.is_ok(), "{name}: {rendered:?}");
        rendered.unwrap_or_default()
    };
    (rendered("txt"), rendered("html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_sound_and_fetches_nothing() {
        for (name, source) in TEMPLATES {
            assert!(ENVIRONMENT.get_template(name).is_ok(), "{name}");
            for part in ["src=", "@import", "url(", "<img", "<script", "<link", "|safe", "http"] {
                assert!(!source.contains(part), "{name} has {part}");
            }
        }
    }
}
