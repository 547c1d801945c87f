//! Access tokens: given, of a service account (RFC 7523), or of a person's consent (RFC 6749).

use std::fmt;

use docmill_egress::identity::{GoogleAccount, Kept};
use docmill_egress::{Egress, HttpClient};
use serde_json::{Map, Value};

use crate::settings::given;
use crate::{ConnectorError, ErrorKind, Result};

/// Where access tokens come from.
pub(super) enum Login {
    /// None: public buckets.
    Anonymous,
    /// The settings.
    Fixed(String),
    /// A service that exchanges something for one.
    Exchange {
        with: Box<GoogleAccount>,
        kept: Kept<String>,
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
            return exchange(GoogleAccount::read(egress, &key, "service_account_key", scope)?);
        }
        let consent = ["refresh_token", "oauth_client_id", "oauth_client_secret"].map(|name| given(config, name));
        match (given(config, "oauth_token"), consent) {
            // The token may have ended; with the means to get one that is no matter.
            (_, [Some(refresh_token), Some(id), Some(secret)]) => {
                exchange(GoogleAccount::person(id, secret, refresh_token))
            }
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
            Self::Exchange { with, kept } => Ok(Some(kept.get(with.token(client)).await?)),
        }
    }
}

fn invalid(message: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, message)
}
