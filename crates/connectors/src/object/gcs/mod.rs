//! Buckets of Google Cloud Storage.

mod bucket;
mod token;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::bucket::Gcs;
use self::token::Login;
use super::{ObjectDestination, ObjectSource, Place, endpoint, http, plain_name, remote_url};
use crate::config::{Field, FieldKind};
use crate::settings::{flag, given, text};
use crate::{ConnectorType, Destination, Environment, Opener, Result, Source};

const REMOTE_URL: Field = Field::new(
    "remote_url",
    FieldKind::Text,
    "Bucket and folder, as gs://bucket/folder; the folder may be left out.",
)
.required();
const SERVICE_ACCOUNT_KEY: Field = Field::new(
    "service_account_key",
    FieldKind::Secret,
    "The JSON text of a service account's key file.",
);
const ENDPOINT: Field = Field::new(
    "endpoint_url",
    FieldKind::Text,
    "URL of the service where it is not https://storage.googleapis.com: private endpoints, emulators.",
)
.directs();

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "gcs",
    description: "A bucket of Google Cloud Storage.",
    source: Some(Opener {
        fields: &[
            REMOTE_URL,
            SERVICE_ACCOUNT_KEY,
            Field::new(
                "oauth_token",
                FieldKind::Secret,
                "Access token, instead of a service account; it works until it ends, about an hour.",
            ),
            Field::new(
                "refresh_token",
                FieldKind::Secret,
                "Refresh token of a person's consent, with oauth_client_id and oauth_client_secret.",
            ),
            Field::new(
                "oauth_client_id",
                FieldKind::Text,
                "Id of the OAuth client that the refresh token was given to.",
            ),
            Field::new("oauth_client_secret", FieldKind::Secret, "Secret of that OAuth client."),
            ENDPOINT,
            super::RECURSIVE,
        ],
        open: open_source,
    }),
    destination: Some(Opener {
        fields: &[REMOTE_URL, SERVICE_ACCOUNT_KEY.required(), ENDPOINT],
        open: open_destination,
    }),
};

fn open_source(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Source>> {
    let (bucket, place) = open(
        environment,
        config,
        "https://www.googleapis.com/auth/devstorage.read_only",
    )?;
    Ok(Arc::new(ObjectSource {
        bucket,
        place,
        recursive: flag(config, "recursive"),
        protocol: "gs",
    }))
}

fn open_destination(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let (bucket, place) = open(
        environment,
        config,
        "https://www.googleapis.com/auth/devstorage.read_write",
    )?;
    Ok(Arc::new(ObjectDestination { bucket, place }))
}

fn open(environment: &Environment, config: &Map<String, Value>, scope: &'static str) -> Result<(Gcs, Place)> {
    let url = text(config, "remote_url");
    let (name, place) = remote_url(&url, &["gs", "gcs"])?;
    plain_name("bucket", name)?;
    let base = match given(config, "endpoint_url") {
        Some(url) => endpoint(&environment.egress, "endpoint_url", &url)?,
        None => "https://storage.googleapis.com".to_owned(),
    };
    let bucket = Gcs {
        client: http::client(&environment.egress)?,
        name: name.to_owned(),
        base,
        login: Login::read(&environment.egress, config, scope)?,
    };
    Ok((bucket, place))
}
