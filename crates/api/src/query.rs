//! Query parameters, read one by one with every problem told.

use std::collections::HashMap;
use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use docmill_model::Code;
use docmill_model::chain::Problem;
use docmill_model::time::{Micros, parse_iso8601};
use docmill_model::workflow::is_slug;
use serde_json::json;
use uuid::Uuid;

use crate::body::listed;
use crate::error::{ApiError, ApiResult};

/// The parameters of a request. Empty ones count as absent; of those given twice the last counts, as
/// elsewhere on the web; unknown ones are ignored.
pub(crate) struct Query {
    given: HashMap<String, String>,
    problems: Vec<Problem>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let given = form_urlencoded::parse(query.as_bytes())
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.into_owned(), value.into_owned()));
        Ok(Self {
            given: given.collect(),
            problems: Vec::new(),
        })
    }
}

/// What names a connector in a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdOrKey<T> {
    Id(T),
    Key(String),
}

impl Query {
    /// The parameter's text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.given.remove(name)
    }

    /// The parameter as `read` understands it, or the problem `msg`.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        kind: &'static str,
        msg: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = read(&text);
        if value.is_none() {
            self.problems
                .push(Problem::new(&[json!("query"), json!(name)], kind, msg));
        }
        value
    }

    /// One of these words, which must be there.
    pub(crate) fn required_word<T: Copy + Display>(&mut self, name: &str, all: &[T]) -> Option<T> {
        if !self.given.contains_key(name) {
            self.problems.push(Problem::new(
                &[json!("query"), json!(name)],
                "missing",
                "field required",
            ));
        }
        self.word(name, all)
    }

    /// One of these words.
    pub(crate) fn word<T: Copy + Display>(&mut self, name: &str, all: &[T]) -> Option<T> {
        let msg = format!("input should be one of {}", listed(all));
        self.read(name, "literal_error", &msg, |text| {
            all.iter().copied().find(|word| word.to_string() == text)
        })
    }

    /// A whole number from `least` to `greatest`.
    pub(crate) fn integer(&mut self, name: &str, least: u64, greatest: u64) -> Option<u64> {
        let msg = format!("input should be a whole number from {least} to {greatest}");
        self.read(name, "int_parsing", &msg, |text| {
            text.parse().ok().filter(|number| (least..=greatest).contains(number))
        })
    }

    /// `true` or `false`, or what else stands for them in forms.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        self.read(
            name,
            "bool_parsing",
            "input should be true or false",
            |text| match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
                "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
                _ => None,
            },
        )
    }

    /// An instant in ISO 8601; without a zone it is in UTC.
    pub(crate) fn instant(&mut self, name: &str) -> Option<Micros> {
        let msg = "input should be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z";
        self.read(name, "datetime_from_date_parsing", msg, parse_iso8601)
    }

    /// A UUID or a slug.
    pub(crate) fn id_or_key<T: From<Uuid>>(&mut self, name: &str) -> Option<IdOrKey<T>> {
        self.read(
            name,
            "uuid_parsing",
            "input should be a UUID or a key",
            |text| match Uuid::try_parse(text) {
                Ok(id) => Some(IdOrKey::Id(id.into())),
                Err(_) => is_slug(text).then(|| IdOrKey::Key(text.to_owned())),
            },
        )
    }

    /// Every problem found, if there is one.
    pub(crate) fn finish(self) -> ApiResult<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(ApiError::problems(Code::ValidationFailed, &self.problems))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query {
            given: form_urlencoded::parse(text.as_bytes())
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
            problems: Vec::new(),
        }
    }

    #[test]
    fn good_values_are_read() {
        let mut query = query("n=7&b=True&t=2026-01-01T00%3A00%3A00Z&e=&i=my-key&w=a&w=b");
        assert_eq!(query.integer("n", 1, 10), Some(7));
        assert_eq!(query.boolean("b"), Some(true));
        assert_eq!(query.instant("t"), Some(1_767_225_600_000_000));
        assert_eq!(query.text("e"), None);
        assert_eq!(query.id_or_key::<Uuid>("i"), Some(IdOrKey::Key("my-key".into())));
        assert_eq!(query.text("w").as_deref(), Some("b"));
        assert!(query.finish().is_ok());
    }

    #[test]
    fn every_bad_value_is_told_at_its_place() {
        let mut query = query("a=0&b=1e3&c=-1&d=99999999999999999999999&e=maybe&f=yesterday&g=Not%20a%20key&h=x");
        for name in ["a", "b", "c", "d"] {
            assert_eq!(query.integer(name, 1, 10), None);
        }
        assert_eq!(query.boolean("e"), None);
        assert_eq!(query.instant("f"), None);
        assert_eq!(query.id_or_key::<Uuid>("g"), None);
        assert_eq!(query.word("h", &["y"]), None);
        let places: Vec<_> = query.problems.iter().map(|p| p.loc[1].as_str().unwrap()).collect();
        assert_eq!(places, ["a", "b", "c", "d", "e", "f", "g", "h"]);
        assert!(query.finish().is_err());
    }
}
