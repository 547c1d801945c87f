//! Access tokens: given, of a service account (RFC 7523), or of a person's consent (RFC 6749).

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::Utc;
use docmill_egress::{Egress, HttpClient};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Map, Value, json};

use super::super::http::{Refusal, exact_url, send, whole};
use super::super::kept::{Ending, Kept};
use super::super::text::query;
use crate::settings::given;
use crate::{ConnectorError, ErrorKind, Result};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// Where access tokens come from.
pub(super) enum Login {
    /// None: public buckets.
    Anonymous,
    /// The settings.
    Fixed(String),
    /// A service that exchanges something for one.
    Exchange { with: Box<Exchange>, kept: Kept<String> },
}

/// What is exchanged for an access token.
pub(super) enum Exchange {
    Service {
        email: String,
        key_id: Option<String>,
        key: Box<RsaKeyPair>,
        token_uri: String,
        scope: &'static str,
    },
    Person {
        id: String,
        secret: String,
        refresh_token: String,
        token_uri: String,
    },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    /// Reads the settings.
    pub(super) fn read(egress: &Egress, config: &Map<String, Value>, scope: &'static str) -> Result<Self> {
        let exchange = |with| {
            Ok(Self::Exchange {
                with: Box::new(with),
                kept: Kept::default(),
            })
        };
        if let Some(key) = given(config, "service_account_key") {
            return exchange(file(egress, &key, scope)?);
        }
        let consent = ["refresh_token", "oauth_client_id", "oauth_client_secret"].map(|name| given(config, name));
        match (given(config, "oauth_token"), consent) {
            // The token may have ended; with the means to get one that is no matter.
            (_, [Some(refresh_token), Some(id), Some(secret)]) => exchange(Exchange::Person {
                id,
                secret,
                refresh_token,
                token_uri: TOKEN_URI.into(),
            }),
            (Some(token), _) => Ok(Self::Fixed(token.trim().to_owned())),
            (None, [None, None, None]) => Ok(Self::Anonymous),
            (None, _) => Err(invalid(
                "refresh_token, oauth_client_id and oauth_client_secret go together: one is missing",
            )),
        }
    }

    /// The token to send; `None`: the request goes without.
    pub(super) async fn token(&self, client: &HttpClient) -> Result<Option<String>> {
        match self {
            Self::Anonymous => Ok(None),
            Self::Fixed(token) => Ok(Some(token.clone())),
            Self::Exchange { with, kept } => kept.get(with.exchange(client)).await.map(Some),
        }
    }
}

/// Reads a key file.
fn file(egress: &Egress, text: &str, scope: &'static str) -> Result<Exchange> {
    let file: Value = serde_json::from_str(text)
        .map_err(|_| invalid("service_account_key is no JSON: give the whole text of the key file"))?;
    let take = |name: &str| {
        let value = file.get(name).and_then(Value::as_str).map(str::to_owned);
        value.ok_or_else(|| invalid(&format!("service_account_key has no `{name}`")))
    };
    let token_uri = take("token_uri").unwrap_or_else(|_| TOKEN_URI.into());
    let token_uri = egress.check_url(&token_uri).map_err(|error| {
        let message = format!("token_uri of service_account_key: {error}");
        ConnectorError::new(ErrorKind::Forbidden, message)
    })?;
    let token_uri = token_uri.to_string();
    match take("type")?.as_str() {
        "service_account" => Ok(Exchange::Service {
            email: take("client_email")?,
            key_id: take("private_key_id").ok(),
            key: Box::new(private_key(&take("private_key")?)?),
            token_uri,
            scope,
        }),
        "authorized_user" => Ok(Exchange::Person {
            id: take("client_id")?,
            secret: take("client_secret")?,
            refresh_token: take("refresh_token")?,
            token_uri,
        }),
        other => {
            let other: String = other.chars().take(40).collect();
            Err(invalid(&format!(
                "service_account_key is of type `{other}`; supported are service_account and authorized_user"
            )))
        }
    }
}

fn private_key(pem: &str) -> Result<RsaKeyPair> {
    let wrong = || invalid("the private_key of service_account_key is no RSA key in PKCS#8 form");
    let lines: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let der = STANDARD.decode(lines).map_err(|_| wrong())?;
    RsaKeyPair::from_pkcs8(&der).map_err(|_| wrong())
}

impl Exchange {
    async fn exchange(&self, client: &HttpClient) -> Result<Ending<String>> {
        let now = Utc::now().timestamp();
        let (form, uri) = match self {
            Self::Service { token_uri, .. } => {
                let assertion = self.assertion(now)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                (query(&[("grant_type", grant), ("assertion", &assertion)]), token_uri)
            }
            Self::Person {
                id,
                secret,
                refresh_token,
                token_uri,
            } => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", id),
                    ("client_secret", secret),
                    ("refresh_token", refresh_token),
                ];
                (query(&form), token_uri)
            }
        };
        ask(client, uri, form, now).await.map_err(|error| {
            let message = format!("no access token: {error}");
            ConnectorError::new(error.kind, message)
        })
    }

    /// What a service account says and signs about itself.
    fn assertion(&self, now: i64) -> Result<String> {
        let Self::Service {
            email,
            key_id,
            key,
            token_uri,
            scope,
        } = self
        else {
            return Err(invalid("no service account"));
        };
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(id) = key_id {
            header["kid"] = id.as_str().into();
        }
        let claims = json!({"iss": email, "scope": scope, "aud": token_uri, "iat": now, "exp": now + 3_600});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| invalid("the private_key of service_account_key can't sign"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

async fn ask(client: &HttpClient, uri: &str, form: String, now: i64) -> Result<Ending<String>> {
    let mut request = Request::new(Method::POST, exact_url(uri)?);
    *request.timeout_mut() = Some(Duration::from_secs(30));
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    *request.body_mut() = Some(form.into());
    let answer = whole(send(client, request, refusal).await?).await?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let Some(token) = answer.get("access_token").and_then(Value::as_str) else {
        return Err(ConnectorError::new(
            ErrorKind::Unexpected,
            "the token service's answer holds no token",
        ));
    };
    let seconds = answer.get("expires_in").and_then(Value::as_i64).unwrap_or(3_600);
    Ok(Ending {
        secret: token.to_owned(),
        expires: Some(now.saturating_add(seconds)),
    })
}

/// `{"error": ..., "error_description": ...}`
fn refusal(body: &[u8]) -> Refusal {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let take = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Refusal {
        code: take("error"),
        message: take("error_description"),
    }
}

fn invalid(message: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, message)
}
