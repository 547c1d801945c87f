//! Reading a settings object field by field, collecting every problem.

use serde_json::{Map, Value};

use super::Problem;

/// A settings object being read. Whatever nobody asked for is a problem at the end.
pub(super) struct Fields<'a> {
    loc: Vec<Value>,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(loc: Vec<Value>, map: &'a Map<String, Value>) -> Self {
        Self {
            loc,
            map,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn problem(&mut self, name: &str, kind: &'static str, msg: impl Into<String>) {
        let mut loc = self.loc.clone();
        loc.push(name.into());
        self.problems.push(Problem {
            loc,
            msg: msg.into(),
            kind,
        });
    }

    /// The value of `name`; `null` counts as absent.
    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Accepts `name` with any value: it concerns another implementation and changes nothing here.
    pub(super) fn ignore(&mut self, names: &[&'static str]) {
        self.known.extend_from_slice(names);
    }

    pub(super) fn has(&mut self, name: &'static str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(value) => Some(*value),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => {
                self.problem(name, "bool_type", "input should be a boolean");
                None
            }
        }
    }

    /// A whole number of at least `min`.
    pub(super) fn count(&mut self, name: &'static str, min: usize) -> Option<usize> {
        let value = self.get(name)?;
        let number = match value {
            Value::Number(number) => number.as_i64().or_else(|| {
                // 500.0 is a whole number too; some clients send every number as a float.
                number
                    .as_f64()
                    .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)
                    .map(|f| f as i64)
            }),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.map(usize::try_from) {
            Some(Ok(number)) if number >= min => Some(number),
            Some(_) => {
                self.problem(
                    name,
                    "greater_than_equal",
                    format!("input should be a whole number of at least {min}"),
                );
                None
            }
            None => {
                self.problem(name, "int_type", "input should be a whole number");
                None
            }
        }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        match self.get(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.problem(name, "string_type", "input should be a string");
                None
            }
        }
    }

    /// A list of strings; a single string counts as a list of one.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<&'a str>> {
        match self.get(name)? {
            Value::String(text) => Some(vec![text]),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                Some(items.iter().filter_map(Value::as_str).collect())
            }
            _ => {
                self.problem(name, "list_type", "input should be a list of strings");
                None
            }
        }
    }

    /// Every problem found, with one for each setting that is not known.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        let mut known = self.known.clone();
        known.sort_unstable();
        for name in self.map.keys() {
            if !known.contains(&name.as_str()) {
                self.problem(
                    name,
                    "extra_forbidden",
                    format!("unknown setting `{}`; known are {}", clip(name), known.join(", ")),
                );
            }
        }
        self.problems
    }
}

/// A client's text, cut to a length fit for a message.
pub(super) fn clip(text: &str) -> String {
    if text.chars().count() <= 64 {
        return text.to_owned();
    }
    text.chars().take(64).chain("…".chars()).collect()
}
