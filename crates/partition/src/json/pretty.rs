//! JSON text to indented JSON text, token by token: no tree is built, so numbers keep their digits,
//! keys their order, and depth costs nothing.

/// Columns a nested value is moved to the right.
const INDENT: usize = 2;

/// Levels beyond which indentation stops growing, so that deep nesting can't blow up the text.
const MAX_INDENTED: usize = 32;

/// The deepest nesting of arrays and objects.
pub(super) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    for token in tokens(text) {
        match token {
            "{" | "[" => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The items of a valid array as text; `None` for any other value.
pub(super) fn array_items(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0usize;
    let mut items = Vec::new();
    let mut start: Option<usize> = None;
    for token in tokens(text) {
        let at = token.as_ptr() as usize - text.as_ptr() as usize;
        if depth == 0 && token != "[" {
            return None;
        }
        if depth == 1 && matches!(token, "," | "]") {
            if let Some(start) = start.take() {
                items.push(text.get(start..at)?.trim_end());
            }
        } else if depth == 1 {
            start.get_or_insert(at);
        }
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(items);
        }
    }
    None
}

/// A valid value with two columns for each level, `\u` escapes of printable characters resolved.
pub(super) fn indent(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0usize;
    let mut opened = false;
    for token in tokens(text) {
        let closes = matches!(token, "}" | "]");
        if closes {
            depth = depth.saturating_sub(1);
        }
        if opened != closes && (opened || closes) {
            new_line(&mut out, depth);
        }
        opened = matches!(token, "{" | "[");
        match token {
            "," => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            string if string.starts_with('"') => push_string(&mut out, string),
            other => out.push_str(other),
        }
        if opened {
            depth += 1;
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', depth.min(MAX_INDENTED) * INDENT));
}

fn push_string(out: &mut String, token: &str) {
    let resolved = || {
        let text: String = serde_json::from_str(token).ok()?;
        serde_json::to_string(&text).ok()
    };
    match token.contains("\\u").then(resolved).flatten() {
        Some(text) => out.push_str(&text),
        None => out.push_str(token),
    }
}

/// Brackets, commas, colons, strings (with quotes) and other scalars, as slices of the text.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
        let first = *rest.as_bytes().first()?;
        let length = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(rest.as_bytes()),
            _ => scalar_length(rest),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// Bytes of the number, literal or stray character at the start; at least one character.
fn scalar_length(text: &str) -> usize {
    text.char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, '{' | '}' | '[' | ']' | ',' | ':' | '"' | ' ' | '\t' | '\r' | '\n'))
        .map_or(text.len(), |(at, _)| at)
}

/// Bytes of the string at the start, both quotes counted; all that is left when it is not closed.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
