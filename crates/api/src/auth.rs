//! Who sends a request: API keys and access tokens.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use docmill_engine::{access, now};
use docmill_model::Code;
use docmill_model::ids::KeyId;
use docmill_model::time::{Micros, SECOND};
use docmill_store::Principal;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::error::ApiError;

const ISSUER: &str = "docmill";

/// Signs and checks access tokens (JWT, HS256).
pub struct TokenSigner {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenSigner")
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    /// The key's id: revoking the key ends its tokens.
    sub: String,
    /// The workspace's id.
    workspace_id: String,
    iat: i64,
    exp: i64,
}

impl TokenSigner {
    /// A signer with a secret of at least 32 random bytes.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
        }
    }

    pub(crate) fn sign(&self, principal: &Principal, lifetime: Duration, at: Micros) -> Option<String> {
        let iat = at / SECOND;
        let claims = Claims {
            iss: ISSUER.into(),
            sub: principal.key.to_string(),
            workspace_id: principal.workspace.to_string(),
            iat,
            exp: iat.saturating_add_unsigned(lifetime.as_secs()),
        };
        encode(&Header::new(Algorithm::HS256), &claims, &self.encoding).ok()
    }

    fn key_of(&self, token: &str) -> Option<KeyId> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.leeway = 0;
        decode::<Claims>(token, &self.decoding, &validation)
            .ok()?
            .claims
            .sub
            .parse()
            .ok()
    }
}

/// When keys were last noted as used, so that not every request costs a write.
#[derive(Debug, Default)]
pub(crate) struct SeenKeys(Mutex<HashMap<KeyId, Micros>>);

impl SeenKeys {
    /// Whether this use is the first in its minute.
    fn is_news(&self, key: KeyId, at: Micros) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = seen.entry(key).or_insert(0);
        let news = at - *last >= 60 * SECOND;
        if news {
            *last = at;
        }
        news
    }
}

/// The sender of an authenticated request.
pub(crate) struct Caller(pub(crate) Principal);

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let from_header = app.config.key_headers.iter().find_map(|name| header(parts, name));
        let credential = from_header.map(Credential::Key).or_else(|| bearer(parts));
        let missing = "API key is missing, please provide an API key in the header.";
        let credential = credential.ok_or_else(|| ApiError::new(Code::ApiKeyMissing, missing))?;
        Self::of(app, credential).await
    }
}

impl Caller {
    async fn of(app: &App, credential: Credential) -> Result<Self, ApiError> {
        let store = app.engine.store();
        let principal = match credential {
            Credential::Key(key) => store.principal_by_hash(&access::hash_key(&key)).await?,
            Credential::Token(token) => match app.tokens.key_of(&token) {
                Some(key) => store.principal_by_key(key).await?,
                None => None,
            },
        };
        let Some(principal) = principal else {
            return Err(ApiError::new(
                Code::ApiKeyInvalid,
                "API key is malformed, please type the API key correctly in the header.",
            ));
        };
        note_use(app, principal.key);
        Ok(Self(principal))
    }
}

/// The sender of a request that has to come with `Authorization: Bearer` when the setting
/// `auth.require_bearer_for_workflows` says so: then that is who sends it, whatever key comes with it.
pub(crate) struct BearerCaller(pub(crate) Principal);

impl FromRequestParts<App> for BearerCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Caller(principal) = if app.config.require_bearer_for_workflows {
            let missing = "Bearer token is missing, please provide it in the header `Authorization: Bearer <token>`.";
            let credential = bearer(parts).ok_or_else(|| ApiError::new(Code::ApiKeyMissing, missing))?;
            Caller::of(app, credential).await?
        } else {
            Caller::from_request_parts(parts, app).await?
        };
        Ok(Self(principal))
    }
}

enum Credential {
    Key(String),
    Token(String),
}

/// The header's text. Bytes that are no text become characters no key has: such a key is wrong, not
/// missing.
fn header(parts: &Parts, name: &str) -> Option<String> {
    let value = String::from_utf8_lossy(parts.headers.get(name)?.as_bytes());
    Some(value.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What stands behind `Authorization: Bearer`: an access token or a key.
fn bearer(parts: &Parts) -> Option<Credential> {
    let value = header(parts, AUTHORIZATION.as_str())?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim().to_owned();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return None;
    }
    Some(if token.starts_with("eyJ") {
        Credential::Token(token)
    } else {
        Credential::Key(token)
    })
}

fn note_use(app: &App, key: KeyId) {
    let at = now();
    if app.seen.is_news(key, at) {
        let engine = app.engine.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.store().touch_key(key, at).await {
                tracing::debug!(%error, "cannot note a key's use");
            }
        });
    }
}
