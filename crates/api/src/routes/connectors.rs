//! Sources and destinations: what the operations of both have in common, and the types there are.

use axum::Json;
use docmill_connectors::{TYPES, find, known_elsewhere, unavailable};
use docmill_engine::{ConnectorRefused, ConnectorSettings};
use docmill_model::Code;
use docmill_model::connector::ConnectorRole;
use docmill_store::{Connector, ConnectorDeletion, Principal};
use serde_json::{Map, Value, json};

use crate::App;
use crate::auth::Caller;
use crate::body::Fields;
use crate::dto::{ConnectorInformation, ConnectorTypeInformation, DagNodeConnectionCheck, ErrorBody};
use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// Sources and destinations of one role at a time.
pub(super) struct Connectors<'a> {
    pub(super) app: &'a App,
    pub(super) principal: &'a Principal,
    pub(super) role: ConnectorRole,
}

impl Connectors<'_> {
    pub(super) async fn list(&self, mut query: Query) -> ApiResult<Json<Vec<ConnectorInformation>>> {
        let role = self.role;
        let kind = query.read(
            &format!("{role}_type"),
            "enum",
            "there is no such type of connector; `GET /connectors` lists them",
            |kind| {
                let known = find(role, kind).is_some() || known_elsewhere(role).contains(&kind);
                known.then(|| kind.to_owned())
            },
        );
        query.finish()?;
        let store = self.app.engine.store();
        let connectors = store
            .connectors(self.principal.workspace, role, kind.as_deref())
            .await?;
        Ok(Json(connectors.into_iter().map(ConnectorInformation::from).collect()))
    }

    pub(super) async fn create(&self, body: &Map<String, Value>) -> ApiResult<Json<ConnectorInformation>> {
        let mut fields = Fields::new(body);
        let name = fields.name(true);
        let key = fields.key();
        let kind = fields.required_text("type").unwrap_or_default();
        if !kind.is_empty() && find(self.role, kind).is_none() {
            fields.problem("type", "enum", unavailable(self.role, kind));
        }
        let config = config(&mut fields);
        fields.finish()?;
        let settings = ConnectorSettings {
            role: self.role,
            name: &name.unwrap_or_default(),
            key: key.as_deref(),
            kind,
            config,
            loc: &config_loc(),
        };
        let connector = self.app.engine.create_connector(self.principal, settings).await;
        Ok(Json(connector.map_err(|error| self.refused(error))?.into()))
    }

    pub(super) async fn get(&self, which: &str) -> ApiResult<Json<ConnectorInformation>> {
        Ok(Json(self.find(which).await?.into()))
    }

    pub(super) async fn update(&self, which: &str, body: &Map<String, Value>) -> ApiResult<Json<ConnectorInformation>> {
        // Whether there is such a connector comes before what is wrong with the change.
        self.find(which).await?;
        let mut fields = Fields::new(body);
        let config = config(&mut fields);
        fields.finish()?;
        let engine = &self.app.engine;
        let updated = engine
            .update_connector(self.principal.workspace, self.role, which, config, &config_loc())
            .await
            .map_err(|error| self.refused(error))?;
        Ok(Json(updated.ok_or_else(|| self.not_found())?.into()))
    }

    pub(super) async fn delete(&self, which: &str) -> ApiResult<Json<Value>> {
        let engine = &self.app.engine;
        match engine
            .delete_connector(self.principal.workspace, self.role, which)
            .await?
        {
            ConnectorDeletion::Deleted => Ok(Json(json!({}))),
            ConnectorDeletion::NotFound => Err(self.not_found()),
            ConnectorDeletion::InUse(workflows) => {
                let workflows: Vec<_> = workflows.iter().map(|(id, name)| format!("`{name}` ({id})")).collect();
                Err(ApiError::new(
                    Code::ConnectorInUse,
                    format!("the {} is used by the workflows {}", self.role, workflows.join(", ")),
                ))
            }
        }
    }

    pub(super) async fn start_check(&self, which: &str) -> ApiResult<Json<DagNodeConnectionCheck>> {
        let engine = &self.app.engine;
        let check = engine
            .check_connection(self.principal.workspace, self.role, which)
            .await?;
        Ok(Json(check.ok_or_else(|| self.not_found())?.into()))
    }

    pub(super) async fn check(&self, which: &str) -> ApiResult<Json<DagNodeConnectionCheck>> {
        let connector = self.find(which).await?;
        let store = self.app.engine.store();
        let check = store.latest_check(self.principal.workspace, connector.id).await?;
        Ok(Json(
            check.ok_or_else(|| ApiError::not_found("Connection check"))?.into(),
        ))
    }

    async fn find(&self, which: &str) -> ApiResult<Connector> {
        let store = self.app.engine.store();
        let connector = store.connector(self.principal.workspace, self.role, which).await?;
        connector.ok_or_else(|| self.not_found())
    }

    fn not_found(&self) -> ApiError {
        ApiError::not_found(match self.role {
            ConnectorRole::Source => "Source",
            ConnectorRole::Destination => "Destination",
        })
    }

    fn refused(&self, error: ConnectorRefused) -> ApiError {
        match error {
            ConnectorRefused::UnknownType(message) => ApiError::field(&["body", "type"], "enum", message),
            ConnectorRefused::Invalid(problems) => ApiError::problems(Code::ValidationFailed, &problems),
            ConnectorRefused::Store(error) => error.into(),
            // Only an update that sends a mask meets a stored secret that can't be read; it says what to do.
            ConnectorRefused::Vault(error) => {
                tracing::error!(%error, role = %self.role, "a connector's secret");
                ApiError::field(&["body", "config"], "value_error", error.to_string())
            }
        }
    }
}

fn config<'a>(fields: &mut Fields<'a>) -> &'a Value {
    match fields.value("config") {
        Some(config) => config,
        None => {
            fields.problem("config", "missing", "field required");
            &Value::Null
        }
    }
}

fn config_loc() -> [Value; 2] {
    [json!("body"), json!("config")]
}

/// List the types of connectors this server has, with the JSON Schema of their settings.
#[utoipa::path(get, path = "/connectors", tag = "connectors", operation_id = "list_connector_types",
    responses((status = 200, body = Vec<ConnectorTypeInformation>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn types(_caller: Caller) -> Json<Vec<ConnectorTypeInformation>> {
    Json(TYPES.iter().map(ConnectorTypeInformation::from).collect())
}
