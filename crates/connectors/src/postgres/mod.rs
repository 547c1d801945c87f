//! PostgreSQL: the rows of a table as files, elements as rows of a table.
//!
//! Names of tables and columns come from settings. They are looked up in the catalog as parameters, and
//! only what was found there, quoted, becomes part of a statement. Values are always parameters.

mod destination;
mod error;
mod pool;
mod source;
mod table;
mod tls;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::pool::Pool;
use crate::config::{Field, FieldKind};
use crate::settings::{flag, number, text, texts};
use crate::{ConnectorType, Destination, Environment, Opener, Result, Source};

const HOST: Field = Field::new("host", FieldKind::Text, "Name or address of the server.")
    .required()
    .directs();
const PORT: Field = Field::new("port", FieldKind::Integer(Some(5432), 1, 65_535), "Port of the server.").directs();
const DATABASE: Field = Field::new("database", FieldKind::Text, "Name of the database.").required();
const USERNAME: Field = Field::new("username", FieldKind::Text, "Name of the user.").required();
const PASSWORD: Field = Field::new("password", FieldKind::Secret, "Password of the user.").required();
const TABLE: Field = Field::new(
    "table_name",
    FieldKind::Text,
    "Table, with its schema where it is not in the search path: `elements` or `reports.elements`.",
)
.required();
const BATCH: Field = Field::new(
    "batch_size",
    FieldKind::Integer(Some(100), 1, 10_000),
    "Rows read or written with one statement.",
);
const SSLMODE: Field = Field::new(
    "sslmode",
    FieldKind::Text,
    "Encryption of the connection: disable, prefer (if the server has it), require, or verify-full (and the \
     server's certificate is checked).",
)
.default_text("prefer")
.directs();
const ROOT_CERT: Field = Field::new(
    "ssl_root_cert",
    FieldKind::Text,
    "With verify-full, the certificates to trust instead of the machine's, as PEM text.",
);

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "postgres",
    description: "A table of a PostgreSQL database.",
    source: Some(Opener {
        fields: &[
            HOST,
            PORT,
            DATABASE,
            USERNAME,
            PASSWORD,
            TABLE,
            BATCH,
            Field::new(
                "id_column",
                FieldKind::Text,
                "Column whose values name the rows; they must be unique.",
            )
            .default_text("id"),
            Field::new(
                "fields",
                FieldKind::TextList,
                "Columns to read: one gives a text (or, of type bytea, a file), several give a CSV table of one row. \
                 Without any, all.",
            ),
            SSLMODE,
            ROOT_CERT,
        ],
        open: open_source,
    }),
    destination: Some(Opener {
        fields: &[
            HOST,
            PORT,
            DATABASE,
            USERNAME,
            PASSWORD,
            TABLE,
            BATCH,
            Field::new(
                "create_table",
                FieldKind::Bool(false),
                "Whether the table is made when it is not there.",
            ),
            SSLMODE,
            ROOT_CERT,
        ],
        open: open_destination,
    }),
};

fn open_source(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(source::PostgresSource::new(
        Pool::new(environment, config)?,
        text(config, "table_name"),
        number(config, "batch_size"),
        text(config, "id_column"),
        texts(config, "fields"),
    )))
}

fn open_destination(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    Ok(Arc::new(destination::PostgresDestination::new(
        Pool::new(environment, config)?,
        text(config, "table_name"),
        number(config, "batch_size"),
        flag(config, "create_table"),
    )))
}
