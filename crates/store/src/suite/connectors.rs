//! Connectors and checks of their connections.

use docmill_model::connector::CheckStatus;
use docmill_model::connector::ConnectorRole::{Destination, Source};
use docmill_model::ids::{CheckId, ConnectorId};
use docmill_model::time::SECOND;
use docmill_model::workflow::is_slug;

use super::World;
use super::flows::{definition, new_connector, other_config};
use super::world::{NOW, at_once};
use crate::{ConnectorDeletion, NewConnector, StoreError, WorkflowDefinition};

pub(crate) async fn a_connector_reads_back_by_id_and_slug(w: World) {
    let new = NewConnector {
        key: Some("my-bucket".into()),
        ..new_connector(w.workspace, Source, "My Bucket")
    };
    assert_eq!(w.store.create_connector(new.clone(), NOW).await.unwrap(), "my-bucket");
    let id = new.id.to_string();
    for which in ["my-bucket", &id, &id.to_uppercase()] {
        let found = w.store.connector(w.workspace, Source, which).await.unwrap().unwrap();
        assert_eq!(
            (found.id, found.role, found.key.as_str()),
            (new.id, Source, "my-bucket")
        );
        assert_eq!(
            (&found.name, &found.kind, &found.config),
            (&new.name, &new.kind, &new.config)
        );
        assert_eq!((found.created_at, found.updated_at), (NOW, None));
    }
    for which in ["other", "", "My Bucket"] {
        assert!(w.store.connector(w.workspace, Source, which).await.unwrap().is_none());
    }
    let other_role = w.store.connector(w.workspace, Destination, "my-bucket").await.unwrap();
    assert!(other_role.is_none());
}

pub(crate) async fn a_slug_asked_for_is_taken_once_in_a_role(w: World) {
    let asked = |workspace, role| NewConnector {
        key: Some("data".into()),
        ..new_connector(workspace, role, "name")
    };
    let sibling = w.another_workspace("sibling").await;
    for (workspace, role) in [(w.workspace, Source), (w.workspace, Destination), (sibling, Source)] {
        w.store.create_connector(asked(workspace, role), NOW).await.unwrap();
    }
    let again = w.store.create_connector(asked(w.workspace, Source), NOW).await;
    assert!(matches!(again, Err(StoreError::KeyTaken(key)) if key == "data"));
    assert_eq!(w.store.connectors(w.workspace, Source, None).await.unwrap().len(), 1);
}

pub(crate) async fn free_slugs_are_found_by_number(w: World) {
    let mut keys = Vec::new();
    for _ in 0..12 {
        let new = new_connector(w.workspace, Source, "My Data");
        keys.push(w.store.create_connector(new, NOW).await.unwrap());
    }
    let mut expected = vec!["my-data".to_owned()];
    expected.extend((2..=12).map(|n| format!("my-data-{n}")));
    assert_eq!(keys, expected);
    let nameless = new_connector(w.workspace, Source, "日本");
    assert_eq!(w.store.create_connector(nameless, NOW).await.unwrap(), "source");
    for _ in 0..3 {
        let long = new_connector(w.workspace, Source, &"long ".repeat(40));
        let key = w.store.create_connector(long, NOW).await.unwrap();
        assert!(is_slug(&key), "{key}");
    }
}

pub(crate) async fn slugs_made_at_once_differ(w: World) {
    let keys = at_once(20, |_| {
        let (store, new) = (w.store.clone(), new_connector(w.workspace, Source, "same"));
        async move { store.create_connector(new, NOW).await }
    });
    let mut keys: Vec<_> = keys.await.into_iter().map(Result::unwrap).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 20);
}

pub(crate) async fn connectors_are_listed_oldest_first(w: World) {
    let mut expected = Vec::new();
    for n in 0..4i64 {
        let new = NewConnector {
            kind: if n % 2 == 0 { "s3" } else { "local" }.into(),
            ..new_connector(w.workspace, Source, "x")
        };
        expected.push(new.id);
        w.store.create_connector(new, NOW + n * SECOND).await.unwrap();
    }
    w.destination().await;
    let list = async |kind| {
        let found = w.store.connectors(w.workspace, Source, kind).await.unwrap();
        found.into_iter().map(|connector| connector.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None).await, expected);
    assert_eq!(list(Some("local")).await, [expected[1], expected[3]]);
    assert!(list(Some("azure")).await.is_empty());
}

pub(crate) async fn settings_are_replaced(w: World) {
    let id = w.source().await;
    let update = async |role, id| {
        let change = w.store.update_connector(w.workspace, role, id, other_config(), NOW + 1);
        change.await.unwrap()
    };
    let changed = update(Source, id).await.unwrap();
    assert_eq!((changed.config, changed.updated_at), (other_config(), Some(NOW + 1)));
    let read = w.store.connector(w.workspace, Source, "source").await.unwrap().unwrap();
    assert_eq!((read.config, read.created_at), (other_config(), NOW));
    assert!(update(Destination, id).await.is_none());
    assert!(update(Source, ConnectorId::new()).await.is_none());
}

pub(crate) async fn a_connector_in_use_stays(w: World) {
    let source = w.source().await;
    let users = [w.user("a", source).await, w.user("b", source).await];
    let delete = async || w.store.delete_connector(w.workspace, Source, source).await.unwrap();
    let expected = vec![(users[0], "a".to_owned()), (users[1], "b".to_owned())];
    assert_eq!(delete().await, ConnectorDeletion::InUse(expected));
    let wrong_role = w.store.delete_connector(w.workspace, Destination, source).await;
    assert_eq!(wrong_role.unwrap(), ConnectorDeletion::NotFound);
    // One is changed to use it no more, one is deleted.
    let change = w
        .store
        .update_workflow(w.workspace, users[0], definition("a"), None, NOW);
    change.await.unwrap().unwrap();
    w.store
        .delete_workflow(w.workspace, users[1], NOW)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(delete().await, ConnectorDeletion::Deleted);
    assert_eq!(delete().await, ConnectorDeletion::NotFound);
    assert!(
        w.store
            .connector(w.workspace, Source, "source")
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(w.source().await.to_string().len(), 36, "the slug is free again");
}

impl World {
    async fn user(&self, name: &str, source: ConnectorId) -> docmill_model::ids::WorkflowId {
        let definition = WorkflowDefinition {
            sources: vec![source],
            ..definition(name)
        };
        self.workflow(definition).await.id
    }

    async fn check(&self, connector: ConnectorId) -> Option<crate::ConnectionCheck> {
        self.store.latest_check(self.workspace, connector).await.unwrap()
    }
}

pub(crate) async fn the_latest_check_counts(w: World) {
    let source = w.source().await;
    assert!(w.check(source).await.is_none());
    let (first, second) = (CheckId::new(), CheckId::new());
    w.store.create_check(source, first, NOW).await.unwrap();
    let check = w.check(source).await.unwrap();
    assert_eq!(
        (check.id, check.status, check.created_at),
        (first, CheckStatus::Scheduled, NOW)
    );
    w.store
        .finish_check(first, Err("no such bucket".into()), NOW + 1)
        .await
        .unwrap();
    let check = w.check(source).await.unwrap();
    assert_eq!((check.status, check.reported_at), (CheckStatus::Failure, Some(NOW + 1)));
    assert_eq!(check.reason.as_deref(), Some("no such bucket"));
    w.store.create_check(source, second, NOW + 2).await.unwrap();
    w.store.finish_check(first, Ok(()), NOW + 3).await.unwrap();
    let check = w.check(source).await.unwrap();
    assert_eq!(
        (check.id, check.status, check.reason),
        (second, CheckStatus::Scheduled, None)
    );
    w.store.finish_check(second, Ok(()), NOW + 4).await.unwrap();
    w.store.finish_check(second, Err("late".into()), NOW + 5).await.unwrap();
    let check = w.check(source).await.unwrap();
    assert_eq!(
        (check.status, check.reason, check.reported_at),
        (CheckStatus::Success, None, Some(NOW + 4))
    );
    let gone = w.store.create_check(ConnectorId::new(), CheckId::new(), NOW).await;
    assert!(matches!(gone, Err(StoreError::ConnectorGone(_))));
    w.store.delete_connector(w.workspace, Source, source).await.unwrap();
    assert!(w.check(source).await.is_none());
}

pub(crate) async fn open_checks_are_abandoned(w: World) {
    let (open, ended) = (w.source().await, w.source().await);
    let check = CheckId::new();
    w.store.create_check(open, CheckId::new(), NOW).await.unwrap();
    w.store.create_check(ended, check, NOW).await.unwrap();
    w.store.finish_check(check, Ok(()), NOW).await.unwrap();
    assert_eq!(w.store.abandon_checks("the server stopped", NOW + 1).await.unwrap(), 1);
    assert_eq!(w.store.abandon_checks("again", NOW + 2).await.unwrap(), 0);
    let check = w.check(open).await.unwrap();
    assert_eq!((check.status, check.reported_at), (CheckStatus::Failure, Some(NOW + 1)));
    assert_eq!(check.reason.as_deref(), Some("the server stopped"));
    assert_eq!(w.check(ended).await.unwrap().status, CheckStatus::Success);
}
