//! The OpenAPI document, made from the routes.

use utoipa::OpenApi as _;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, OpenApi, RefOr, Required, SecurityRequirement, Server};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::routes::{
    channels, connectors, deliveries, destinations, events, jobs, nodes, notifications, output, service, sources,
    templates, workflows,
};

#[derive(utoipa::OpenApi)]
#[openapi(info(title = "docmill", description = "Turns documents into structured JSON."))]
struct Base;

/// The routes that are part of the interface, with their documentation.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Base::openapi())
        .routes(routes!(jobs::create, jobs::list))
        .routes(routes!(jobs::get, jobs::delete))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::retry))
        .routes(routes!(jobs::details))
        .routes(routes!(jobs::failed_files))
        .routes(routes!(events::follow))
        .routes(routes!(output::download))
        .routes(routes!(workflows::create, workflows::list))
        .routes(routes!(workflows::get, workflows::update, workflows::delete))
        .routes(routes!(workflows::run))
        .routes(routes!(sources::create, sources::list))
        .routes(routes!(sources::get, sources::update, sources::delete))
        .routes(routes!(sources::start_check, sources::check))
        .routes(routes!(destinations::create, destinations::list))
        .routes(routes!(destinations::get, destinations::update, destinations::delete))
        .routes(routes!(destinations::start_check, destinations::check))
        .routes(routes!(connectors::types))
        .routes(routes!(nodes::list))
        .routes(routes!(templates::list))
        .routes(routes!(templates::get))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::unread_count))
        .routes(routes!(notifications::mark_read))
        .routes(routes!(notifications::get))
        .merge(channel_routes())
        .nest("/workflows/{workflow_id}", of_a_workflow(channel_routes()))
        .routes(routes!(service::limits))
        .routes(routes!(service::token))
        .routes(routes!(service::livez))
        .routes(routes!(service::readyz))
        .routes(routes!(service::metrics))
}

/// Channels: of the workspace here, and the same below each workflow.
fn channel_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(channels::list, channels::create))
        .routes(routes!(channels::get, channels::update, channels::delete))
        .routes(routes!(channels::verify))
        .routes(routes!(channels::resend))
        .routes(routes!(channels::rotate))
        .routes(routes!(deliveries::test))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::replay_failed))
        .routes(routes!(deliveries::get))
        .routes(routes!(deliveries::attempts))
        .routes(routes!(deliveries::replay))
}

/// Documents routes as those of one workflow.
fn of_a_workflow(mut router: OpenApiRouter<App>) -> OpenApiRouter<App> {
    let workflow = || {
        ParameterBuilder::new()
            .name("workflow_id")
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some("Id or key."))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build()
    };
    for item in router.get_openapi_mut().paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            if let Some(id) = &mut operation.operation_id {
                id.push_str("_of_workflow");
            }
            operation.tags = Some(vec!["workflow channels".to_owned()]);
            operation
                .parameters
                .get_or_insert_default()
                .insert(0, RefOr::T(workflow()));
        }
    }
    router
}

/// The OpenAPI document of this version.
pub fn document() -> OpenApi {
    let mut document = routes().split_for_parts().1;
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document.info.description = Some(
        "Turns documents into structured JSON: create a job from files and a chain of nodes, poll it, download \
         one JSON document per file and node. Or store the chain as a workflow with a source, a destination and a \
         schedule, and have it run.\n\nEvery path also answers without the prefix `/api/v1`, and with a \
         slash at the end."
            .to_owned(),
    );
    document.servers = Some(vec![Server::new("/api/v1"), Server::new("/")]);
    let components = document.components.get_or_insert_with(Components::new);
    for name in ["service-api-key", "unstructured-api-key"] {
        components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name))));
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document.security = Some(
        ["service-api-key", "unstructured-api-key", "bearer"]
            .map(|name| SecurityRequirement::new(name, Vec::<String>::new()))
            .to_vec(),
    );
    document
}
