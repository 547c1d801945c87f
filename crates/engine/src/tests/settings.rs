//! Connectors: created, changed, checked.

use docmill_connectors::{ErrorKind, MASK};
use docmill_model::connector::{CheckStatus, ConnectorRole};
use docmill_store::{ConnectorDeletion, Store};
use serde_json::{Value, json};

use super::world::{World, until};
use crate::{ConnectorRefused, ConnectorSettings, masked};

fn local<'a>(config: &'a Value, kind: &'a str) -> ConnectorSettings<'a> {
    ConnectorSettings {
        role: ConnectorRole::Source,
        name: "n",
        key: None,
        kind,
        config,
        loc: &[],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_before_they_are_stored() {
    let world = World::new().await;
    let path = world.home.path().join("in");
    let good = json!({"path": path});
    let connector = world
        .engine
        .create_connector(&world.principal, local(&good, "local"))
        .await
        .unwrap();
    assert_eq!(masked(&connector.config)["path"], good["path"]);
    let unknown = world
        .engine
        .create_connector(&world.principal, local(&good, "carrier-pigeon"))
        .await;
    assert!(matches!(unknown, Err(ConnectorRefused::UnknownType(message)) if message.contains("local")));
    for bad in [
        json!({}),
        json!({"path": path, "nope": 1}),
        json!([]),
        json!({"path": MASK}),
    ] {
        let refused = world
            .engine
            .create_connector(&world.principal, local(&bad, "local"))
            .await;
        assert!(
            matches!(refused, Err(ConnectorRefused::Invalid(problems)) if !problems.is_empty()),
            "{bad}"
        );
    }
    let (workspace, role) = (world.principal.workspace, ConnectorRole::Source);
    let moved = json!({"path": world.home.path().join("other")});
    let updated = world
        .engine
        .update_connector(workspace, role, &connector.key, &moved, &[])
        .await;
    assert_eq!(updated.unwrap().unwrap().config["path"], moved["path"]);
    let gone = world
        .engine
        .update_connector(workspace, role, "nobody", &moved, &[])
        .await;
    assert!(gone.unwrap().is_none());
    let id = connector.id.to_string();
    assert_eq!(
        world.engine.delete_connector(workspace, role, &id).await.unwrap(),
        ConnectorDeletion::Deleted
    );
    assert_eq!(
        world.engine.delete_connector(workspace, role, &id).await.unwrap(),
        ConnectorDeletion::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_connects_and_tells_why_not() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let path = world.home.path().join("in");
    let config = json!({"path": path});
    let connector = world
        .engine
        .create_connector(&world.principal, local(&config, "local"))
        .await
        .unwrap();
    let (workspace, role) = (world.principal.workspace, ConnectorRole::Source);
    let check = async || {
        let asked = world.engine.check_connection(workspace, role, &connector.key).await;
        let asked = asked.unwrap().unwrap();
        assert_eq!(asked.status, CheckStatus::Scheduled);
        until("the check to end", async || {
            let latest = world
                .store
                .latest_check(workspace, connector.id)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(latest.id, asked.id);
            Some(latest).filter(|check| check.status != CheckStatus::Scheduled)
        })
        .await
    };
    let missing = check().await;
    assert_eq!(missing.status, CheckStatus::Failure);
    assert!(missing.reason.is_some_and(|reason| !reason.is_empty()) && missing.reported_at.is_some());
    std::fs::create_dir(&path).unwrap();
    let there = check().await;
    assert_eq!((there.status, there.reason), (CheckStatus::Success, None));
    let nobody = world.engine.check_connection(workspace, role, "nobody").await;
    assert!(nobody.unwrap().is_none());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_dead_server_is_failed_by_the_next() {
    let world = World::new().await;
    let check = docmill_model::ids::CheckId::new();
    world.store.create_check(world.source_id, check, 5).await.unwrap();
    world.engine.start().await.unwrap();
    let latest = world
        .store
        .latest_check(world.principal.workspace, world.source_id)
        .await;
    let latest = latest.unwrap().unwrap();
    assert_eq!(latest.status, CheckStatus::Failure);
    assert!(latest.reason.unwrap().contains("start it again"));
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opened_connectors_are_kept_and_forgotten_with_their_settings() {
    let world = World::new().await;
    let connections = &world.engine.shared.connections;
    let open = async || connections.destination(world.engine.store(), world.principal.workspace, world.destination_id);
    let first = open().await.await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &open().await.await.unwrap()));
    connections.forget(world.destination_id);
    // Now it is really opened, and there is no such type.
    let error = open().await.await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Invalid);
    // A source is no destination.
    let wrong = connections.destination(world.engine.store(), world.principal.workspace, world.source_id);
    assert!(wrong.await.is_err());
}
