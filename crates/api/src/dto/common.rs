//! What belongs to no resource: tokens and errors.

use docmill_model::Code;
use docmill_model::chain::Problem;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An access token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessToken {
    /// Send it as `Authorization: Bearer <access_token>`.
    pub(crate) access_token: String,
    /// Always `bearer`.
    pub(crate) token_type: &'static str,
    /// Seconds until it expires.
    pub(crate) expires_in: u64,
}

/// An error.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "describes the answer for the OpenAPI document")]
pub(crate) struct ErrorBody {
    /// What went wrong: a text, or for status 422 a list of problems.
    #[schema(value_type = Value)]
    detail: Value,
    #[schema(value_type = ErrorCode)]
    code: String,
    /// What to do about it.
    hint: String,
    /// Names the request in the server's log.
    request_id: String,
    /// Status 5xx only: whether the same request may succeed later.
    retryable: Option<bool>,
}

/// The closed list of error codes, for the OpenAPI document.
pub(crate) struct ErrorCode;

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let lines = Code::ALL
            .iter()
            .map(|code| format!("- `{code}` ({}): {}", code.status(), code.hint()));
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Code::ALL.iter().map(|code| code.as_str())))
            .description(Some(format!("Stable code:\n{}", lines.collect::<Vec<_>>().join("\n"))))
            .into()
    }
}

impl ToSchema for ErrorCode {}

/// One problem of a request.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "describes the answer for the OpenAPI document")]
pub(crate) struct ValidationProblem {
    /// Path to the offending value.
    loc: Vec<Value>,
    msg: String,
    #[serde(rename = "type")]
    kind: String,
}

impl From<Problem> for ValidationProblem {
    fn from(problem: Problem) -> Self {
        Self {
            loc: problem.loc,
            msg: problem.msg,
            kind: problem.kind.to_owned(),
        }
    }
}
