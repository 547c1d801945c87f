//! Where the key that signs comes from.

use docmill_egress::identity::aws::{Key, Machine, ask_sts};
use docmill_egress::identity::{Ending, Kept};
use docmill_egress::{Egress, HttpClient};

use crate::{ConnectorError, Result};

/// What signs requests.
#[derive(Debug)]
pub(super) enum Credentials {
    /// Nothing: public buckets.
    Anonymous,
    /// A key of the settings.
    Fixed(Key),
    /// Keys of the machine.
    Ambient(Kept<Key>),
    /// Keys of a role.
    Role(Box<Role>),
}

/// A role that another key may assume.
#[derive(Debug)]
pub(super) struct Role {
    /// Who assumes it.
    pub(super) base: Credentials,
    pub(super) arn: String,
    pub(super) external_id: Option<String>,
    /// Base of the service's URL.
    pub(super) sts: String,
    pub(super) kept: Kept<Key>,
}

impl Credentials {
    /// The key to sign with; `None`: the request goes unsigned.
    pub(super) async fn key(&self, client: &HttpClient, egress: &Egress, region: &str) -> Result<Option<Key>> {
        match self {
            Self::Anonymous => Ok(None),
            Self::Fixed(key) => Ok(Some(key.clone())),
            Self::Ambient(kept) => {
                let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
                let machine = Machine::new(egress, &env)?;
                Ok(Some(kept.get(machine.key(region)).await?))
            }
            Self::Role(role) => {
                let renew = async {
                    let base = Box::pin(role.base.key(client, egress, region)).await?;
                    role.assume(client, base, region).await
                };
                role.kept.get(renew).await.map(Some)
            }
        }
    }
}

impl Role {
    /// Asks the security token service for a key of the role.
    async fn assume(&self, client: &HttpClient, base: Option<Key>, region: &str) -> Result<Ending<Key>> {
        let mut form = vec![
            ("Action", "AssumeRole"),
            ("Version", "2011-06-15"),
            ("RoleArn", self.arn.as_str()),
            ("RoleSessionName", "docmill"),
            ("DurationSeconds", "3600"),
        ];
        if let Some(id) = &self.external_id {
            form.push(("ExternalId", id));
        }
        ask_sts(client, &self.sts, &form, base.as_ref(), region)
            .await
            .map_err(|error| {
                let error = ConnectorError::from(error);
                ConnectorError::new(error.kind, format!("cannot assume the role: {error}"))
            })
    }
}
