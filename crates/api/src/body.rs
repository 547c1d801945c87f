//! JSON bodies: read within bounds, and their fields one by one with every problem told.

use std::fmt::Display;

use axum::extract::{FromRequest, Request};
use axum::http::header;
use docmill_model::Code;
use docmill_model::chain::Problem;
use futures_util::StreamExt;
use hyper::body::Body as _;
use serde_json::{Map, Value, json};

use crate::App;
use crate::error::{ApiError, ApiResult};

/// Bytes of a JSON body.
const MAX_BYTES: usize = 1024 * 1024;

/// A body that is a JSON object.
pub(crate) struct JsonObject(pub(crate) Map<String, Value>);

impl FromRequest<App> for JsonObject {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_content_type(&request)?;
        let read = read(request, app);
        let bytes = match tokio::time::timeout(app.config.request_timeout, read).await {
            Ok(bytes) => bytes?,
            Err(_) => return Err(too_slow()),
        };
        parse(&bytes).map(Self)
    }
}

/// A body that is a JSON object, or nothing, which stands for an empty one.
pub(crate) struct OptionalObject(pub(crate) Map<String, Value>);

impl FromRequest<App> for OptionalObject {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return Ok(Self(Map::new()));
        }
        JsonObject::from_request(request, app)
            .await
            .map(|JsonObject(map)| Self(map))
    }
}

/// JSON may come without a content type, as some clients leave it out.
fn check_content_type(request: &Request) -> ApiResult<()> {
    let Some(value) = request.headers().get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        format!(
            "the content type is `{}`; it must be application/json",
            essence.chars().take(64).collect::<String>()
        ),
    ))
}

async fn read(request: Request, app: &App) -> ApiResult<Vec<u8>> {
    let mut stream = request.into_body().into_data_stream();
    let mut bytes = Vec::new();
    loop {
        let Ok(piece) = tokio::time::timeout(app.config.idle_timeout, stream.next()).await else {
            return Err(too_slow());
        };
        let Some(piece) = piece else { return Ok(bytes) };
        let piece =
            piece.map_err(|error| ApiError::new(Code::RequestMalformed, format!("the body can't be read: {error}")))?;
        if bytes.len() + piece.len() > MAX_BYTES {
            return Err(ApiError::new(
                Code::RequestTooLarge,
                format!("the body is larger than {MAX_BYTES} bytes"),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
}

fn too_slow() -> ApiError {
    ApiError::new(
        Code::RequestTimeout,
        "the body came too slowly (settings `limits.idle_timeout_secs` and `limits.request_timeout_secs`)",
    )
}

/// The reader bounds the depth of what it takes.
fn parse(bytes: &[u8]) -> ApiResult<Map<String, Value>> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::field(&["body"], "missing", "field required"));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ApiError::field(&["body"], "dict_type", "input should be a JSON object")),
        Err(error) => Err(ApiError::field(
            &["body"],
            "json_invalid",
            format!("not valid JSON: {error}"),
        )),
    }
}

/// A field that may be changed, emptied or left alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Change<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

/// Reads fields of a body. A field that is `null` counts as absent unless said otherwise.
pub(crate) struct Fields<'a> {
    body: &'a Map<String, Value>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(body: &'a Map<String, Value>) -> Self {
        Self {
            body,
            problems: Vec::new(),
        }
    }

    /// The field's value.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.body.get(name).filter(|value| !value.is_null())
    }

    /// Whether the field is there, be it `null`.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.body.contains_key(name)
    }

    pub(crate) fn problem(&mut self, name: &str, kind: &'static str, msg: impl Into<String>) {
        self.problems
            .push(Problem::new(&[json!("body"), json!(name)], kind, msg));
    }

    /// Every field must be one of these.
    pub(crate) fn only(&mut self, known: &[&str]) {
        /// More unknown ones than this are not told one by one.
        const TOLD: usize = 20;
        let unknown: Vec<&String> = self
            .body
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        for name in unknown.into_iter().take(TOLD) {
            let short: String = name.chars().take(64).collect();
            self.problem(&short, "extra_forbidden", "there is no such field");
        }
    }

    /// A list; its problems are at their positions. Longer ones than `most` are refused unread.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        most: usize,
        kind: &'static str,
        msg: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Array(items) = self.value(name)? else {
            self.problem(name, "list_type", "input should be a list");
            return None;
        };
        if items.len() > most {
            self.problem(name, "too_long", format!("must have at most {most} items"));
            return None;
        }
        let mut found = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match read(item) {
                Some(value) => found.push(value),
                None => self
                    .problems
                    .push(Problem::new(&[json!("body"), json!(name), json!(at)], kind, msg)),
            }
        }
        Some(found)
    }

    /// A string.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'a str> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => {
                self.problem(name, "string_type", "input should be a string");
                None
            }
        }
    }

    /// A string that must be there.
    pub(crate) fn required_text(&mut self, name: &str) -> Option<&'a str> {
        if self.value(name).is_none() {
            self.problem(name, "missing", "field required");
            return None;
        }
        self.text(name)
    }

    /// A name for people: 1 to 255 characters, none of them a control character.
    pub(crate) fn name(&mut self, required: bool) -> Option<String> {
        const LONGEST: usize = 255;
        let text = if required {
            self.required_text("name")?
        } else {
            self.text("name")?
        };
        let fault = match text.chars().count() {
            0 => ("string_too_short", "must have at least one character"),
            length if length > LONGEST => ("string_too_long", "must have at most 255 characters"),
            _ if text.trim().is_empty() => ("value_error", "must not be blank"),
            _ if text.chars().any(char::is_control) => ("value_error", "must not hold control characters"),
            _ => return Some(text.to_owned()),
        };
        self.problem("name", fault.0, fault.1);
        None
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(value) => Some(*value),
            _ => {
                self.problem(name, "bool_type", "input should be true or false");
                None
            }
        }
    }

    /// One of these words.
    pub(crate) fn word<T: Copy + Display>(&mut self, name: &str, all: &[T]) -> Option<T> {
        let text = self.text(name)?;
        let value = all.iter().copied().find(|word| word.to_string() == text);
        if value.is_none() {
            self.problem(name, "enum", format!("input should be one of {}", listed(all)));
        }
        value
    }

    /// A slug asked for.
    pub(crate) fn key(&mut self) -> Option<String> {
        let text = self.text("key")?;
        if docmill_model::workflow::is_slug(text) {
            return Some(text.to_owned());
        }
        self.problem(
            "key",
            "string_pattern_mismatch",
            "must be 1 to 63 of a-z, 0-9 and single hyphens between them, and no UUID",
        );
        None
    }

    /// The error that tells every problem, if there is one.
    pub(crate) fn finish(self) -> ApiResult<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(ApiError::problems(Code::ValidationFailed, &self.problems))
    }
}

/// Words in a sentence.
pub(crate) fn listed<T: Display>(words: &[T]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_of_json_is_refused() {
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        for body in [
            "",
            " \n",
            "[]",
            "1",
            "{",
            "{\"a\": NaN}",
            "\u{feff}{}",
            "{} {}",
            deep.as_str(),
        ] {
            assert!(parse(body.as_bytes()).is_err());
        }
        assert!(parse(b"{\"a\": \xff}").is_err());
        assert_eq!(parse(b" {\"a\": null}").map(|map| map.len()).unwrap(), 1);
    }

    #[test]
    fn names_are_for_people() {
        let check = |name: Value| {
            let body = json!({"name": name});
            let mut fields = Fields::new(body.as_object().unwrap());
            let name = fields.name(true);
            assert_eq!(name.is_none(), !fields.problems.is_empty());
            name.is_some()
        };
        for good in ["a", "Größe 日本語 🙂", &"ä".repeat(255), "'; DROP TABLE workflows; --"] {
            assert!(check(good.into()), "{good}");
        }
        for bad in [
            json!(""),
            json!("  "),
            json!("ä".repeat(256)),
            json!("a\nb"),
            json!("a\u{0}"),
            json!(1),
            json!(null),
        ] {
            assert!(!check(bad.clone()), "{bad}");
        }
    }

    #[test]
    fn problems_tell_their_fields() {
        let body = json!({"name": 1, "flag": "yes", "key": "Not A Key", "state": "asleep"});
        let mut fields = Fields::new(body.as_object().unwrap());
        fields.name(true);
        fields.boolean("flag");
        fields.key();
        fields.word("state", &["awake"]);
        fields.required_text("missing");
        let places: Vec<_> = fields.problems.iter().map(|p| p.loc[1].as_str().unwrap()).collect();
        assert_eq!(places, ["name", "flag", "key", "state", "missing"]);
    }
}
