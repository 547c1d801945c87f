//! Extractors whose failures are docmill's errors.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use docmill_model::Code;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// An id in the path. What is no id names nothing, so it is not found.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T: FromStr + Send, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::not_found("Job"))?;
        text.parse().map(Self).map_err(|_| ApiError::not_found("Job"))
    }
}

/// A name in the path. What is no text names nothing, so it is not found.
pub(crate) struct PathText(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(_) => Err(ApiError::new(Code::NotFound, "Not Found")),
        }
    }
}

/// Query parameters; an unreadable one is a validation error.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(ApiError::new(Code::RequestMalformed, rejection.body_text())),
        }
    }
}
