//! Where the key that signs comes from.

use std::collections::HashMap;
use std::time::Duration;

use chrono::Utc;
use docmill_egress::{Egress, HttpClient};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Request};

use super::super::http::{exact_url, send, whole, xml_refusal};
use super::super::kept::{Ending, Kept};
use super::super::text::{query, walk};
use super::ambient;
use super::sign::{Key, Scope, sign};
use crate::{ConnectorError, ErrorKind, Result};

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
                let machine = ambient::Machine::new(egress, &env)?;
                kept.get(machine.key(region)).await.map(Some)
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
            .map_err(|error| ConnectorError::new(error.kind, format!("cannot assume the role: {error}")))
    }
}

/// Asks the security token service; the answer is the same for every way to ask for a key.
pub(super) async fn ask_sts(
    client: &HttpClient,
    base: &str,
    form: &[(&str, &str)],
    key: Option<&Key>,
    region: &str,
) -> Result<Ending<Key>> {
    let url = exact_url(&format!("{base}/"))?;
    let path = url.path().to_owned();
    let mut request = Request::new(Method::POST, url);
    *request.timeout_mut() = Some(Duration::from_secs(30));
    request.headers_mut().insert(
        CONTENT_TYPE,
        reqwest::header::HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"),
    );
    *request.body_mut() = Some(query(form).into());
    if let Some(key) = key {
        let scope = Scope { service: "sts", region };
        sign(&mut request, &path, key, scope, Utc::now())?;
    }
    let answer = whole(send(client, request, xml_refusal).await?).await?;
    let mut found = HashMap::new();
    walk(&answer, |ended| {
        if let [.., around, name] = ended.path
            && around == "Credentials"
        {
            found.insert(name.clone(), ended.text.trim().to_owned());
        }
        Ok(())
    })?;
    let mut take = |name: &str| {
        found.remove(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            ConnectorError::new(
                ErrorKind::Unexpected,
                format!("the security token service's answer has no {name}"),
            )
        })
    };
    Ok(Ending {
        secret: Key {
            id: take("AccessKeyId")?,
            secret: take("SecretAccessKey")?,
            token: Some(take("SessionToken")?),
        },
        expires: super::super::seconds(&take("Expiration")?),
    })
}
