//! Access tokens of Google: of a service account (RFC 7523), or of a person's consent (RFC 6749).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::Utc;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::{Ending, IdentityError, IdentityErrorKind, IdentityResult, token_answer};
use crate::Egress;
use crate::HttpClient;

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// What is exchanged for an access token.
pub struct GoogleAccount {
    who: Who,
    /// The project a key file names.
    project: Option<String>,
}

enum Who {
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

impl fmt::Debug for GoogleAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GoogleAccount")
    }
}

impl GoogleAccount {
    /// Reads the text of a key file, which messages call `setting`; tokens will be for `scope`.
    ///
    /// # Errors
    /// What is wrong with the file, or that the address of its token service is refused.
    pub fn read(egress: &Egress, text: &str, setting: &str, scope: &'static str) -> IdentityResult<Self> {
        let file: Value = serde_json::from_str(text)
            .map_err(|_| invalid(format!("{setting} is no JSON: give the whole text of the key file")))?;
        let take = |name: &str| {
            let value = file.get(name).and_then(Value::as_str).map(str::to_owned);
            value.ok_or_else(|| invalid(format!("{setting} has no `{name}`")))
        };
        let token_uri = take("token_uri").unwrap_or_else(|_| TOKEN_URI.into());
        let token_uri = egress.check_url(&token_uri).map_err(|error| {
            let message = format!("token_uri of {setting}: {error}");
            IdentityError::new(IdentityErrorKind::Forbidden, message)
        })?;
        let token_uri = token_uri.to_string();
        let who = match take("type")?.as_str() {
            "service_account" => Who::Service {
                email: take("client_email")?,
                key_id: take("private_key_id").ok(),
                key: Box::new(private_key(&take("private_key")?, setting)?),
                token_uri,
                scope,
            },
            "authorized_user" => Who::Person {
                id: take("client_id")?,
                secret: take("client_secret")?,
                refresh_token: take("refresh_token")?,
                token_uri,
            },
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(invalid(format!(
                    "{setting} is of type `{other}`; supported are service_account and authorized_user"
                )));
            }
        };
        let project = take("project_id").or_else(|_| take("quota_project_id")).ok();
        Ok(Self { who, project })
    }

    /// A person who consented to an OAuth client.
    pub fn person(client_id: String, client_secret: String, refresh_token: String) -> Self {
        let who = Who::Person {
            id: client_id,
            secret: client_secret,
            refresh_token,
            token_uri: TOKEN_URI.into(),
        };
        Self { who, project: None }
    }

    /// The project the key file names.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// A new token.
    ///
    /// # Errors
    /// Why the token service gives none.
    pub async fn token(&self, client: &HttpClient) -> IdentityResult<Ending<String>> {
        let answer = match &self.who {
            Who::Service { token_uri, .. } => {
                let assertion = self.assertion(Utc::now().timestamp())?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                let form = [("grant_type", grant), ("assertion", assertion.as_str())];
                token_answer(client, token_uri, &form).await
            }
            Who::Person {
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
                token_answer(client, token_uri, &form).await
            }
        };
        answer.map_err(|error| IdentityError::new(error.kind, format!("no access token: {error}")))
    }

    /// What a service account says and signs about itself.
    fn assertion(&self, now: i64) -> IdentityResult<String> {
        let Who::Service {
            email,
            key_id,
            key,
            token_uri,
            scope,
        } = &self.who
        else {
            return Err(invalid("no service account".into()));
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
            .map_err(|_| invalid("the private key of the service account can't sign".into()))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn private_key(pem: &str, setting: &str) -> IdentityResult<RsaKeyPair> {
    let wrong = || invalid(format!("the private_key of {setting} is no RSA key in PKCS#8 form"));
    let lines: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let der = STANDARD.decode(lines).map_err(|_| wrong())?;
    RsaKeyPair::from_pkcs8(&der).map_err(|_| wrong())
}

fn invalid(message: String) -> IdentityError {
    IdentityError::new(IdentityErrorKind::Invalid, message)
}
