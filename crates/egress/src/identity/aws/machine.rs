//! Keys of the machine docmill runs on: environment, web identity, container, instance.
//!
//! Only where the operator allows it. The addresses asked are those the operator's environment names or
//! that the cloud fixes, never part of what a client sends.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::super::exchange::{broken, secret_header};
use super::super::{Ending, IdentityError, IdentityErrorKind, IdentityResult};
use super::sts::{ask_sts, seconds};
use super::{Key, sts_of};
use crate::{Egress, HttpClient, Policy, first_bytes};

/// Where containers and instances are told their keys.
const METADATA: [&str; 5] = [
    "169.254.169.254/32",
    "169.254.170.2/32",
    "169.254.170.23/32",
    "fd00:ec2::/32",
    "127.0.0.0/8",
];

/// The machine as a keeper of keys.
pub struct Machine<'a> {
    /// For the metadata services.
    inside: HttpClient,
    /// For the security token service.
    outside: HttpClient,
    env: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl<'a> Machine<'a> {
    /// A machine whose environment is read by `env`.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub fn new(egress: &Egress, env: &'a (dyn Fn(&str) -> Option<String> + Sync)) -> IdentityResult<Self> {
        let policy = Policy {
            allow: METADATA.iter().filter_map(|net| net.parse().ok()).collect(),
            allow_http: true,
            ca_file: None,
        };
        Ok(Self {
            inside: Egress::new(policy).http_client(Duration::from_secs(5))?,
            outside: egress.http_client(Duration::from_secs(30))?,
            env,
        })
    }

    /// The first key there is, in the order of Amazon's own tools.
    ///
    /// # Errors
    /// There is none, or it can't be fetched.
    pub async fn key(&self, region: &str) -> IdentityResult<Ending<Key>> {
        let env = self.env;
        if let (Some(id), Some(secret)) = (env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")) {
            let token = env("AWS_SESSION_TOKEN");
            return Ok(Ending {
                secret: Key { id, secret, token },
                expires: None,
            });
        }
        if let (Some(file), Some(role)) = (env("AWS_WEB_IDENTITY_TOKEN_FILE"), env("AWS_ROLE_ARN")) {
            return self.web_identity(&file, &role, region).await;
        }
        if let Some(path) = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return self.container(&format!("http://169.254.170.2{path}")).await;
        }
        if let Some(url) = env("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            return self.container(&url).await;
        }
        self.instance().await
    }

    async fn web_identity(&self, file: &str, role: &str, region: &str) -> IdentityResult<Ending<Key>> {
        let token = read(file).await?;
        let session = (self.env)("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "docmill".into());
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", role),
            ("RoleSessionName", &session),
            ("WebIdentityToken", token.trim()),
        ];
        let sts = (self.env)("AWS_ENDPOINT_URL_STS").unwrap_or_else(|| sts_of(region));
        ask_sts(&self.outside, sts.trim_end_matches('/'), &form, None, region).await
    }

    async fn container(&self, url: &str) -> IdentityResult<Ending<Key>> {
        let mut request = self.inside.get(url);
        let token = match (self.env)("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(read(&file).await?),
            None => (self.env)("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        if let Some(token) = token {
            request = request.header("authorization", secret_header(token.trim())?);
        }
        key(&told(request).await?)
    }

    /// Instance metadata, version 2.
    async fn instance(&self) -> IdentityResult<Ending<Key>> {
        let base = (self.env)("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = base
            .as_deref()
            .unwrap_or("http://169.254.169.254")
            .trim_end_matches('/');
        let token = self
            .inside
            .request(Method::PUT, format!("{base}/latest/api/token"))
            .header("x-aws-ec2-metadata-token-ttl-seconds", "21600");
        let token = secret_header(told(token).await?.trim())?;
        let roles = format!("{base}/latest/meta-data/iam/security-credentials/");
        let ask = |url: &str| self.inside.get(url).header("x-aws-ec2-metadata-token", token.clone());
        let role = told(ask(&roles)).await?;
        let role = role.lines().next().unwrap_or_default().trim().to_owned();
        key(&told(ask(&format!("{roles}{role}"))).await?)
    }
}

async fn read(file: &str) -> IdentityResult<String> {
    tokio::fs::read_to_string(file)
        .await
        .map_err(|error| none(&format!("{file}: {error}")))
}

async fn told(request: RequestBuilder) -> IdentityResult<String> {
    let response = request.send().await.map_err(|error| {
        let error = broken("the machine's metadata service", &error);
        none(&error.message)
    })?;
    let status = response.status();
    if !status.is_success() {
        return Err(none(&format!("the metadata service answers {}", status.as_u16())));
    }
    let body = first_bytes(response, 65_536)
        .await
        .map_err(|error| broken("the machine's metadata service", &error))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn none(why: &str) -> IdentityError {
    IdentityError::new(
        IdentityErrorKind::Unauthorized,
        format!("this machine has no AWS credentials: {why}"),
    )
}

fn key(json: &str) -> IdentityResult<Ending<Key>> {
    let json: Value = serde_json::from_str(json).map_err(|_| none("the metadata service's answer is no JSON"))?;
    let take = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    match (take("AccessKeyId"), take("SecretAccessKey")) {
        (Some(id), Some(secret)) => Ok(Ending {
            secret: Key {
                id,
                secret,
                token: take("Token"),
            },
            expires: take("Expiration").as_deref().and_then(seconds),
        }),
        _ => Err(none("the metadata service's answer holds no key")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const KEY: &str = r#"{"AccessKeyId":"ID","SecretAccessKey":"S","Token":"T","Expiration":"2030-01-01T00:00:00Z"}"#;

    /// Answers as the instance's metadata service does, which gives nothing without its token.
    async fn metadata() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).await.unwrap();
                let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let line = request.lines().next().unwrap_or_default();
                let allowed =
                    request.contains("x-aws-ec2-metadata-token: secret") || request.contains("authorization: secret");
                let roles = "GET /latest/meta-data/iam/security-credentials/";
                let (status, body) = match line {
                    "PUT /latest/api/token HTTP/1.1" if request.contains("ttl-seconds: 21600") => (200, "secret"),
                    _ if !allowed => (401, ""),
                    line if line.starts_with(&format!("{roles} ")) => (200, "my-role\n"),
                    line if line.starts_with(&format!("{roles}my-role ")) => (200, KEY),
                    line if line.starts_with("GET /container ") => (200, KEY),
                    _ => (404, ""),
                };
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    async fn key_with(env: &[(&str, String)]) -> IdentityResult<Ending<Key>> {
        let env = |name: &str| {
            env.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.clone())
        };
        let egress = Egress::new(Policy::default());
        Machine::new(&egress, &env)?.key("us-east-1").await
    }

    #[tokio::test]
    async fn keys_come_from_where_the_environment_says() {
        let url = metadata().await;
        let fixed = [
            ("AWS_ACCESS_KEY_ID", "ID".into()),
            ("AWS_SECRET_ACCESS_KEY", "S".into()),
        ];
        assert_eq!(key_with(&fixed).await.unwrap().expires, None);
        let instance = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.clone())];
        let container = [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/container")),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret".into()),
        ];
        for env in [&instance[..], &container[..]] {
            let key = key_with(env).await.unwrap();
            assert_eq!((key.secret.id.as_str(), key.secret.token.as_deref()), ("ID", Some("T")));
            assert_eq!(key.expires, Some(1_893_456_000));
        }
        let refused = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/container"))];
        let elsewhere = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/".to_owned())];
        for env in [&refused[..], &elsewhere[..]] {
            let Err(error) = key_with(env).await else {
                panic!("no key")
            };
            assert!(
                error.message.starts_with("this machine has no AWS credentials"),
                "{error}"
            );
        }
    }
}
