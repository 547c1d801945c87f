//! Buckets of Amazon S3 and of everything that speaks its language.

mod bucket;
mod credentials;

use std::sync::{Arc, RwLock};

use docmill_egress::identity::Kept;
use docmill_egress::identity::aws::{Key, domain, is_region, sts_of};
use serde_json::{Map, Value};

use self::bucket::S3;
use self::credentials::{Credentials, Role};
use super::{ObjectDestination, ObjectSource, Place, endpoint, http, plain_name, remote_url};
use crate::config::{Field, FieldKind};
use crate::settings::{flag, given, text};
use crate::{ConnectorError, ConnectorType, Destination, Environment, ErrorKind, Opener, Result, Source};

const REMOTE_URL: Field = Field::new(
    "remote_url",
    FieldKind::Text,
    "Bucket and folder, as s3://bucket/folder; the folder may be left out.",
)
.required();
const ANONYMOUS: Field = Field::new(
    "anonymous",
    FieldKind::Bool(false),
    "Whether the bucket is public and requests go without credentials.",
);
const AMBIENT: Field = Field::new(
    "ambient_credentials",
    FieldKind::Bool(false),
    "Whether the credentials of the machine the server runs on are used, where the server's setting connectors.allow_ambient_credentials permits it.",
);
const KEY: Field = Field::new("key", FieldKind::Text, "Access key id.");
const SECRET: Field = Field::new("secret", FieldKind::Secret, "Secret access key.");
const TOKEN: Field = Field::new("token", FieldKind::Secret, "Session token of a temporary access key.");
const ENDPOINT: Field = Field::new(
    "endpoint_url",
    FieldKind::Text,
    "URL of a compatible service, which is asked with the bucket in the path; without it Amazon S3 is meant.",
)
.directs();
const ROLE: Field = Field::new(
    "role_arn",
    FieldKind::Text,
    "Role to assume with the access key (or the ambient credentials) given.",
);
const EXTERNAL_ID: Field = Field::new(
    "external_id",
    FieldKind::Secret,
    "External id that the role's trust policy asks for.",
);
const STS: Field = Field::new(
    "sts_endpoint_url",
    FieldKind::Text,
    "URL of the security token service that hands out keys of the role; by default Amazon's, or endpoint_url where that is not Amazon's.",
)
.directs();
const REGION: Field = Field::new(
    "region",
    FieldKind::Text,
    "Region of the bucket; Amazon's own are found out when this is wrong.",
)
.default_text("us-east-1");

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "s3",
    description: "A bucket of Amazon S3 or of a compatible service.",
    source: Some(Opener {
        fields: &[
            REMOTE_URL,
            ANONYMOUS,
            AMBIENT,
            KEY,
            SECRET,
            TOKEN,
            ENDPOINT,
            ROLE,
            EXTERNAL_ID,
            STS,
            REGION,
            super::RECURSIVE,
        ],
        open: open_source,
    }),
    destination: Some(Opener {
        fields: &[
            REMOTE_URL,
            ANONYMOUS,
            AMBIENT,
            KEY,
            SECRET,
            TOKEN,
            ENDPOINT,
            ROLE,
            EXTERNAL_ID,
            STS,
            REGION,
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
        protocol: "s3",
    }))
}

fn open_destination(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let (bucket, place) = open(environment, config)?;
    Ok(Arc::new(ObjectDestination { bucket, place }))
}

fn open(environment: &Environment, config: &Map<String, Value>) -> Result<(S3, Place)> {
    let url = text(config, "remote_url");
    let (name, place) = remote_url(&url, &["s3", "s3a", "s3n"])?;
    plain_name("bucket", name)?;
    let region = text(config, "region").trim().to_owned();
    if !is_region(&region) {
        return Err(invalid("region must be a name like eu-central-1"));
    }
    let url_of = |setting: &str| {
        let url = given(config, setting);
        url.map(|url| endpoint(&environment.egress, setting, &url)).transpose()
    };
    let endpoint = url_of("endpoint_url")?;
    let sts = match (url_of("sts_endpoint_url")?, &endpoint) {
        (Some(sts), _) => sts,
        (None, Some(endpoint)) if !endpoint.contains(".amazonaws.com") => endpoint.clone(),
        _ => sts_of(&region),
    };
    let bucket = S3 {
        client: http::client(&environment.egress)?,
        egress: environment.egress.clone(),
        name: name.to_owned(),
        endpoint,
        credentials: credentials(environment, config, sts)?,
        region: RwLock::new(region),
    };
    Ok((bucket, place))
}

fn credentials(environment: &Environment, config: &Map<String, Value>, sts: String) -> Result<Credentials> {
    let role = given(config, "role_arn");
    let base = match (given(config, "key"), given(config, "secret")) {
        (Some(_), Some(_)) if flag(config, "anonymous") => {
            return Err(invalid(
                "anonymous means without key and secret: leave out the one or the others",
            ));
        }
        (Some(id), Some(secret)) => Credentials::Fixed(Key {
            id: id.trim().to_owned(),
            secret: secret.trim().to_owned(),
            token: given(config, "token").map(|token| token.trim().to_owned()),
        }),
        (None, None) if flag(config, "anonymous") => Credentials::Anonymous,
        (None, None) if flag(config, "ambient_credentials") => {
            super::ambient_allowed(environment)?;
            Credentials::Ambient(Kept::default())
        }
        (None, None) => {
            return Err(invalid(
                "no credentials: give key and secret, or set anonymous or ambient_credentials",
            ));
        }
        _ => return Err(invalid("key and secret go together: one of them is missing")),
    };
    match role {
        None => Ok(base),
        Some(_) if matches!(base, Credentials::Anonymous) => Err(invalid(
            "role_arn needs credentials that may assume the role: key and secret, or ambient_credentials",
        )),
        Some(arn) => Ok(Credentials::Role(Box::new(Role {
            base,
            arn,
            external_id: given(config, "external_id"),
            sts,
            kept: Kept::default(),
        }))),
    }
}

fn invalid(message: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, message)
}
