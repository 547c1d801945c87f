//! What says who asks.

use chrono::Utc;
use docmill_egress::identity::aws::{Key, Machine, Scope, sign};
use docmill_egress::identity::{GoogleAccount, IdentityResult, Kept, secret_header, token_answer};
use docmill_egress::{Egress, HttpClient};
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use crate::Secret;
use crate::wire::encode;

/// What says who asks.
pub(crate) enum Login {
    /// Nothing: a server of one's own.
    Nobody,
    /// A header that holds the key.
    Header(&'static str, HeaderValue),
    /// Access tokens of Google.
    Google {
        account: Box<GoogleAccount>,
        kept: Kept<String>,
    },
    /// Access tokens of IBM Cloud, for a key.
    Ibm {
        key: Secret,
        uri: String,
        kept: Kept<String>,
    },
    /// Amazon's signature.
    Aws { keys: AwsKeys, region: String },
}

/// Where the key that signs comes from.
pub(crate) enum AwsKeys {
    /// The settings.
    Fixed(Key),
    /// The machine.
    Machine(Kept<Key>),
}

impl Login {
    /// A header `Authorization: Bearer`.
    pub(crate) fn bearer(key: &Secret) -> IdentityResult<Self> {
        let value = secret_header(&format!("Bearer {}", key.expose()))?;
        Ok(Self::Header("authorization", value))
    }

    /// Another header.
    pub(crate) fn header(name: &'static str, key: &Secret) -> IdentityResult<Self> {
        Ok(Self::Header(name, secret_header(key.expose())?))
    }

    /// Adds to a request, which is complete otherwise.
    pub(super) async fn apply(
        &self,
        request: &mut Request,
        client: &HttpClient,
        egress: &Egress,
    ) -> IdentityResult<()> {
        let token = match self {
            Self::Nobody => return Ok(()),
            Self::Header(name, value) => {
                request.headers_mut().insert(*name, value.clone());
                return Ok(());
            }
            Self::Aws { keys, region } => {
                let key = keys.get(egress, region).await?;
                // As sent, and encoded once more, which all services but S3 want.
                let path = encode(request.url().path(), "/");
                let scope = Scope {
                    service: "bedrock",
                    region,
                };
                return sign(request, &path, &key, scope, Utc::now());
            }
            Self::Google { account, kept } => kept.get(account.token(client)).await?,
            Self::Ibm { key, uri, kept } => {
                let grant = "urn:ibm:params:oauth:grant-type:apikey";
                let form = [("grant_type", grant), ("apikey", key.expose())];
                kept.get(token_answer(client, uri, &form)).await?
            }
        };
        let value = secret_header(&format!("Bearer {token}"))?;
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(())
    }
}

impl AwsKeys {
    async fn get(&self, egress: &Egress, region: &str) -> IdentityResult<Key> {
        match self {
            Self::Fixed(key) => Ok(key.clone()),
            Self::Machine(kept) => {
                let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
                let machine = Machine::new(egress, &env)?;
                kept.get(machine.key(region)).await
            }
        }
    }
}
