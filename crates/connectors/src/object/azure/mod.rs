//! Containers of Azure Blob Storage.

mod bucket;
mod connection;
mod sign;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::bucket::Azure;
use super::{ObjectDestination, ObjectSource, Place, http};
use crate::config::{Field, FieldKind};
use crate::settings::flag;
use crate::{ConnectorType, Destination, Environment, Opener, Result, Source};

const REMOTE_URL: Field = Field::new(
    "remote_url",
    FieldKind::Text,
    "Container and folder, as az://container/folder or abfss://container@account.dfs.core.windows.net/folder; the folder may be left out.",
)
.required()
.directs();
const ACCOUNT_NAME: Field = Field::new("account_name", FieldKind::Text, "Name of the storage account.").directs();
const ACCOUNT_KEY: Field = Field::new("account_key", FieldKind::Secret, "One of the account's access keys.");
const CONNECTION_STRING: Field = Field::new(
    "connection_string",
    FieldKind::Secret,
    "Connection string of the account, instead of its name, key and endpoint.",
)
.directs();
const SAS_TOKEN: Field = Field::new(
    "sas_token",
    FieldKind::Secret,
    "Shared access signature, instead of an account key.",
);
const ENDPOINT: Field = Field::new(
    "endpoint_url",
    FieldKind::Text,
    "URL of the blob service where it is not the account's own at blob.core.windows.net: other clouds, emulators.",
)
.directs();

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "azure",
    description: "A container of Azure Blob Storage.",
    source: Some(Opener {
        fields: &[
            REMOTE_URL,
            ACCOUNT_NAME,
            ACCOUNT_KEY,
            CONNECTION_STRING,
            SAS_TOKEN,
            ENDPOINT,
            super::RECURSIVE,
        ],
        open: open_source,
    }),
    destination: Some(Opener {
        fields: &[
            REMOTE_URL,
            ACCOUNT_NAME,
            ACCOUNT_KEY,
            CONNECTION_STRING,
            SAS_TOKEN,
            ENDPOINT,
        ],
        open: open_destination,
    }),
};

fn open_source(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Source>> {
    let (bucket, place) = open(environment, config)?;
    Ok(Arc::new(ObjectSource {
        bucket,
        place,
        recursive: flag(config, "recursive"),
        protocol: "az",
    }))
}

fn open_destination(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let (bucket, place) = open(environment, config)?;
    Ok(Arc::new(ObjectDestination { bucket, place }))
}

fn open(environment: &Environment, config: &Map<String, Value>) -> Result<(Azure, Place)> {
    let (connection, place) = connection::read(&environment.egress, config)?;
    let client = http::client(&environment.egress)?;
    Ok((Azure { client, connection }, place))
}
