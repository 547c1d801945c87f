//! Reading a settings object by its table, collecting every problem.

use serde_json::{Map, Value};

use super::catalog::{NodeEntry, Setting, Takes};
use super::{NodeWork, Problem};
use crate::element::ElementType;
use crate::provider::Available;

/// A settings object, checked against the node's table on creation. What is not good is a problem, and is
/// then read as if it were not given.
pub(super) struct Fields<'a> {
    loc: Vec<Value>,
    subtype_loc: Vec<Value>,
    map: &'a Map<String, Value>,
    pub(super) entry: &'static NodeEntry,
    pub(super) available: &'a Available,
    problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        loc: Vec<Value>,
        subtype_loc: Vec<Value>,
        map: &'a Map<String, Value>,
        entry: &'static NodeEntry,
        available: &'a Available,
    ) -> Self {
        let mut fields = Self {
            loc,
            subtype_loc,
            map,
            entry,
            available,
            problems: Vec::new(),
        };
        for setting in &entry.settings {
            match fields.given(setting.name) {
                None if setting.required => fields.problem(setting.name, "missing", "field required"),
                None => {}
                Some(value) => {
                    if let Err((kind, msg)) = check(setting, value) {
                        fields.problem(setting.name, kind, msg);
                    }
                }
            }
        }
        fields.refuse_unknown();
        fields
    }

    fn refuse_unknown(&mut self) {
        let mut known: Vec<_> = self.entry.settings.iter().map(|setting| setting.name).collect();
        known.sort_unstable();
        for name in self.map.keys().filter(|name| self.entry.setting(name).is_none()) {
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            let mut loc = self.loc.clone();
            loc.push(name.as_str().into());
            let msg = format!("unknown setting `{}`; known are {known}", clip(name));
            self.problems.push(Problem::new(&loc, "extra_forbidden", msg));
        }
    }

    /// A problem with the setting `name`.
    pub(super) fn problem(&mut self, name: &str, kind: &'static str, msg: impl Into<String>) {
        self.problem_in(&[name.into()], kind, msg);
    }

    /// A problem at a path within the settings.
    pub(super) fn problem_in(&mut self, path: &[Value], kind: &'static str, msg: impl Into<String>) {
        let loc = [self.loc.as_slice(), path].concat();
        self.problems.push(Problem::new(&loc, kind, msg));
    }

    /// A problem with the node's subtype as such.
    pub(super) fn problem_of_subtype(&mut self, msg: impl Into<String>) {
        self.problems.push(Problem::new(&self.subtype_loc, "value_error", msg));
    }

    /// The value of `name` as sent; `null` counts as not given.
    fn given(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A good value of `name`, or its default.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        let setting = self.entry.setting(name)?;
        let given = self.given(name).filter(|value| check(setting, value).is_ok());
        given.or_else(|| Some(&setting.default).filter(|value| !value.is_null()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// A boolean that has a default.
    pub(super) fn boolean(&self, name: &str) -> bool {
        self.get(name).and_then(boolean_of).unwrap_or(false)
    }

    pub(super) fn count(&self, name: &str) -> Option<usize> {
        let number = self.get(name).and_then(count_of)?;
        usize::try_from(number).ok()
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// A list of strings; a single string counts as a list of one.
    pub(super) fn texts(&self, name: &str) -> Vec<&'a str> {
        match self.get(name) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// `work`, unless there are problems.
    pub(super) fn finish(self, work: NodeWork) -> Result<NodeWork, Vec<Problem>> {
        match self.problems.is_empty() {
            true => Ok(work),
            false => Err(self.problems),
        }
    }

    /// The problems of settings of which nothing can be made.
    pub(super) fn fail(mut self) -> Result<NodeWork, Vec<Problem>> {
        if self.problems.is_empty() {
            self.problem_of_subtype("the settings are incomplete");
        }
        Err(self.problems)
    }
}

type Wrong = (&'static str, String);

fn wrong(kind: &'static str, msg: impl Into<String>) -> Result<(), Wrong> {
    Err((kind, msg.into()))
}

fn check(setting: &Setting, value: &Value) -> Result<(), Wrong> {
    match setting.value {
        Takes::Boolean if boolean_of(value).is_none() => wrong("bool_type", "input should be a boolean"),
        Takes::Count(min) => match count_of(value) {
            None => wrong("int_type", "input should be a whole number"),
            Some(number) if usize::try_from(number).is_ok_and(|number| number >= min) => Ok(()),
            Some(_) => wrong(
                "greater_than_equal",
                format!("input should be a whole number of at least {min}"),
            ),
        },
        Takes::Between(low, high) => match number_of(value) {
            None => wrong("float_type", "input should be a number"),
            Some(number) if low < number && number < high => Ok(()),
            Some(_) => wrong(
                "value_error",
                format!("input should be more than {low} and less than {high}"),
            ),
        },
        Takes::Text if !value.is_string() => wrong("string_type", "input should be a string"),
        Takes::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            Some(_) => wrong("literal_error", format!("input should be one of {}", words.join(", "))),
            None => wrong("string_type", "input should be a string"),
        },
        Takes::Texts => texts_of(value).map(|_| ()),
        Takes::ElementTypes => match texts_of(value)?.into_iter().find(|name| !is_element_type(name)) {
            Some(name) => wrong("literal_error", format!("unknown element type `{}`", clip(name))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn boolean_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn count_of(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // 500.0 is a whole number too; some clients send every number as a float.
            let number = number.as_f64()?;
            (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

pub(super) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn texts_of(value: &Value) -> Result<Vec<&str>, Wrong> {
    match value {
        Value::String(text) => Ok(vec![text]),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Ok(items.iter().filter_map(Value::as_str).collect())
        }
        _ => Err(("list_type", "input should be a list of strings".into())),
    }
}

fn is_element_type(name: &str) -> bool {
    let known = |kind: &ElementType| kind.as_str().eq_ignore_ascii_case(name);
    ElementType::ALL.iter().any(known) || name.parse::<ElementType>().is_ok()
}

/// A client's text, cut to a length fit for a message.
pub(super) fn clip(text: &str) -> String {
    if text.chars().count() <= 64 {
        return text.to_owned();
    }
    text.chars().take(64).chain("…".chars()).collect()
}
