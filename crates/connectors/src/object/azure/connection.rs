//! Which account, container and credentials the settings mean.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docmill_egress::Egress;
use serde_json::{Map, Value};

use super::super::{Place, endpoint, plain_name, remote_url};
use crate::settings::{given, text};
use crate::{ConnectorError, ErrorKind, Result};

/// The account of Microsoft's emulator, its public key and where it listens by itself.
const EMULATOR: [(&str, &str); 3] = [
    ("AccountName", "devstoreaccount1"),
    (
        "AccountKey",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    ),
    ("BlobEndpoint", "http://127.0.0.1:10000/devstoreaccount1"),
];

/// A container and how to get at it.
pub(super) struct Connection {
    pub(super) account: String,
    pub(super) container: String,
    /// URL of the container, without a slash at its end.
    pub(super) base: String,
    pub(super) access: Access,
}

/// What requests prove themselves with.
pub(super) enum Access {
    /// Nothing: public containers.
    Anonymous,
    /// An account's key.
    Key(Vec<u8>),
    /// A query string that is added to every request.
    Signature(String),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Key(_) => "Key",
            Self::Signature(_) => "Signature",
        })
    }
}

/// Reads the settings.
pub(super) fn read(egress: &Egress, config: &Map<String, Value>) -> Result<(Connection, Place)> {
    let url = text(config, "remote_url");
    let (authority, place) = remote_url(&url, &["az", "azure", "abfs", "abfss", "wasb", "wasbs"])?;
    let (container, host) = match authority.split_once('@') {
        Some((container, host)) => (container, Some(host)),
        None => (authority, None),
    };
    plain_name("container", container)?;
    let parts = parts(config)?;
    let part = |name: &str| {
        parts
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let account = given(config, "account_name")
        .or_else(|| part("AccountName"))
        .or_else(|| host.and_then(|host| host.split('.').next()).map(str::to_owned))
        .map(|name| name.trim().to_owned());
    if let Some(account) = &account {
        plain_name("storage account", account)?;
    }
    let service = match (
        given(config, "endpoint_url").or_else(|| part("BlobEndpoint")),
        host,
        &account,
    ) {
        (Some(url), ..) => url,
        (None, Some(host), _) => {
            plain_name("host", host)?;
            format!("https://{}", host.replacen(".dfs.", ".blob.", 1))
        }
        (None, None, Some(account)) => {
            let suffix = part("EndpointSuffix").unwrap_or_else(|| "core.windows.net".into());
            let scheme = part("DefaultEndpointsProtocol").unwrap_or_else(|| "https".into());
            format!("{scheme}://{account}.blob.{suffix}")
        }
        (None, None, None) => return Err(invalid("no account: give account_name or connection_string")),
    };
    let service = endpoint(egress, "the blob service's URL", &service)?;
    let connection = Connection {
        access: access(config, &part)?,
        account: account.unwrap_or_default(),
        base: format!("{service}/{container}"),
        container: container.to_owned(),
    };
    if matches!(connection.access, Access::Key(_)) && connection.account.is_empty() {
        return Err(invalid("account_key needs account_name"));
    }
    Ok((connection, place))
}

/// The parts of the connection string.
fn parts(config: &Map<String, Value>) -> Result<Vec<(String, String)>> {
    let string = text(config, "connection_string");
    let mut parts = Vec::new();
    for part in string.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_once('=') else {
            return Err(invalid(
                "connection_string is no list of Name=value parts separated by `;`",
            ));
        };
        parts.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let emulator = |(name, value): &(String, String)| name == "UseDevelopmentStorage" && value == "true";
    if parts.iter().any(emulator) {
        parts.extend(EMULATOR.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    Ok(parts)
}

fn access(config: &Map<String, Value>, part: &dyn Fn(&str) -> Option<String>) -> Result<Access> {
    let own = (given(config, "account_key"), given(config, "sas_token"));
    let (key, signature) = match own {
        (None, None) => (part("AccountKey"), part("SharedAccessSignature")),
        own => own,
    };
    match (key, signature) {
        (Some(key), _) => match STANDARD.decode(key.trim()) {
            Ok(key) if !key.is_empty() => Ok(Access::Key(key)),
            _ => Err(invalid(
                "the account key is not in base64: it was copied in part, perhaps",
            )),
        },
        (None, Some(signature)) => {
            let signature = signature.trim().trim_start_matches('?');
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%&=+:/,;!*()@$".contains(&byte);
            if signature.bytes().all(plain) && signature.contains("sig=") {
                Ok(Access::Signature(signature.to_owned()))
            } else {
                Err(invalid("the shared access signature is no query string with a `sig`"))
            }
        }
        (None, None) => Ok(Access::Anonymous),
    }
}

fn invalid(message: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use docmill_egress::Policy;
    use serde_json::json;

    use super::*;

    fn open(config: Value) -> Result<(Connection, Place)> {
        read(&Egress::new(Policy::unguarded()), config.as_object().unwrap())
    }

    #[test]
    fn every_way_to_name_an_account_is_understood() {
        for (config, base, path) in [
            (
                json!({"remote_url": "az://box/a/b", "account_name": "acc"}),
                "https://acc.blob.core.windows.net/box",
                "a/b",
            ),
            (
                json!({"remote_url": "abfss://box@acc.dfs.core.windows.net/a"}),
                "https://acc.blob.core.windows.net/box",
                "a",
            ),
            (
                json!({"remote_url": "abfs://$root", "connection_string":
                    "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=YQ==;EndpointSuffix=core.chinacloudapi.cn"}),
                "https://acc.blob.core.chinacloudapi.cn/$root",
                "",
            ),
            (
                json!({"remote_url": "az://box", "connection_string": "UseDevelopmentStorage=true"}),
                "http://127.0.0.1:10000/devstoreaccount1/box",
                "",
            ),
            (
                json!({"remote_url": "az://box", "account_name": "acc", "endpoint_url": "http://localhost:8080/acc/"}),
                "http://localhost:8080/acc/box",
                "",
            ),
        ] {
            let (connection, place) = open(config.clone()).unwrap();
            assert_eq!(
                (connection.base.as_str(), place.path.as_str()),
                (base, path),
                "{config}"
            );
        }
    }

    #[test]
    fn settings_that_cannot_work_are_told() {
        for (config, words) in [
            (json!({"remote_url": "az://box"}), "no account"),
            (
                json!({"remote_url": "az://bo x", "account_name": "a"}),
                "no name of a container",
            ),
            (
                json!({"remote_url": "az://box", "account_name": "a/b"}),
                "no name of a storage account",
            ),
            (
                json!({"remote_url": "az://box@evil/x/y", "account_name": "a?"}),
                "no name of a storage account",
            ),
            (
                json!({"remote_url": "az://box", "account_name": "a", "account_key": "not base64!"}),
                "not in base64",
            ),
            (
                json!({"remote_url": "az://box", "account_name": "a", "sas_token": "sv=1&se=2"}),
                "no query string",
            ),
            (
                json!({"remote_url": "az://box", "connection_string": "nonsense"}),
                "Name=value",
            ),
        ] {
            let Err(error) = open(config.clone()) else {
                panic!("{config} must be refused")
            };
            assert!(error.message.contains(words), "{config}: {error}");
        }
    }
}
