//! Elasticsearch and OpenSearch: one interface, two ways to say who one is.

mod destination;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::AUTHORIZATION;
use serde_json::{Map, Value};

use self::destination::SearchDestination;
use crate::config::{Field, FieldKind};
use crate::http::Http;
use crate::settings::{flag, given, text, texts};
use crate::{ConnectorError, ConnectorType, Destination, Environment, ErrorKind, Opener, Result};

const HOSTS: Field = Field::new(
    "hosts",
    FieldKind::TextList,
    "Addresses of the cluster's nodes, such as https://search.example.com:9200; the first that answers is used.",
)
.required()
.directs();
const INDEX: Field = Field::new("index_name", FieldKind::Text, "Index, which must exist.").required();

/// The type for Elasticsearch.
pub(crate) const ELASTICSEARCH: ConnectorType = ConnectorType {
    name: "elasticsearch",
    description: "An index of an Elasticsearch cluster.",
    source: None,
    destination: Some(Opener {
        fields: &[
            HOSTS,
            INDEX,
            Field::new(
                "es_api_key",
                FieldKind::Secret,
                "API key, encoded as the cluster gives it out, or as `id:key`.",
            )
            .required(),
        ],
        open: open_elasticsearch,
    }),
};

/// The type for OpenSearch.
pub(crate) const OPENSEARCH: ConnectorType = ConnectorType {
    name: "opensearch",
    description: "An index of an OpenSearch cluster.",
    source: None,
    destination: Some(Opener {
        fields: &[
            HOSTS,
            INDEX,
            Field::new("username", FieldKind::Text, "Name of the user."),
            Field::new("password", FieldKind::Secret, "Password of the user."),
            Field::new(
                "use_ssl",
                FieldKind::Bool(true),
                "Whether hosts given without https:// or http:// are reached by https.",
            )
            .directs(),
        ],
        open: open_opensearch,
    }),
};

fn open_elasticsearch(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let key = text(config, "es_api_key");
    let key = if key.contains(':') { STANDARD.encode(key) } else { key };
    let hosts = hosts(config, true);
    let header = (AUTHORIZATION, format!("ApiKey {key}"));
    let http = Http::new(environment, "Elasticsearch", &hosts, Some(header))?;
    Ok(Arc::new(SearchDestination::new(http, index(config)?)))
}

fn open_opensearch(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let header = given(config, "username").map(|user| {
        let password = text(config, "password");
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        (AUTHORIZATION, format!("Basic {credentials}"))
    });
    let hosts = hosts(config, flag(config, "use_ssl"));
    let http = Http::new(environment, "OpenSearch", &hosts, header)?;
    Ok(Arc::new(SearchDestination::new(http, index(config)?)))
}

/// The hosts as URLs.
fn hosts(config: &Map<String, Value>, tls: bool) -> Vec<String> {
    let scheme = if tls { "https" } else { "http" };
    let url = |host: String| {
        if host.contains("://") {
            host
        } else {
            format!("{scheme}://{host}")
        }
    };
    texts(config, "hosts").into_iter().map(url).collect()
}

/// The index: one, not a pattern or a list of several.
fn index(config: &Map<String, Value>) -> Result<String> {
    let name = text(config, "index_name");
    let odd = |c: char| c.is_control() || c.is_whitespace() || "\\/*?\"<>|,#:".contains(c);
    if name.starts_with(['_', '-', '+']) || matches!(&*name, "." | "..") || name.contains(odd) {
        let message = format!("index_name `{name}` can't be the name of one index");
        return Err(ConnectorError::new(ErrorKind::Invalid, message));
    }
    Ok(name)
}
