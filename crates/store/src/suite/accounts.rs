//! Accounts, workspaces, API keys.

use docmill_model::ids::KeyId;
use docmill_model::time::SECOND;

use super::World;
use super::world::NOW;
use crate::{NewKey, Principal, StoreError};

impl World {
    fn new_key(&self, prefix: &str, hash: &str) -> NewKey {
        NewKey {
            workspace: self.workspace,
            name: "key".into(),
            prefix: prefix.into(),
            secret_hash: hash.into(),
        }
    }

    async fn key(&self, prefix: &str, hash: &str) -> KeyId {
        self.store.create_key(self.new_key(prefix, hash), NOW).await.unwrap()
    }

    async fn opens(&self, hash: &str) -> bool {
        self.store.principal_by_hash(hash).await.unwrap().is_some()
    }
}

pub(crate) async fn names_are_taken_once(w: World) {
    let taken = |result| matches!(result, Err(StoreError::NameTaken(name)) if name == "account" || name == "workspace");
    assert!(taken(w.store.create_account("account", NOW).await.map(drop)));
    assert!(taken(
        w.store.create_workspace(w.account, "workspace", NOW).await.map(drop)
    ));
    let (other, _) = w.another_account("b").await;
    assert!(taken(w.store.create_workspace(other, "workspace", NOW).await.map(drop)));
    let names: Vec<_> = w.store.accounts().await.unwrap().into_iter().map(|a| a.name).collect();
    assert_eq!(names, ["account", "b"]);
    let workspaces = w.store.workspaces().await.unwrap();
    let owners: Vec<_> = workspaces.iter().map(|v| (v.name.as_str(), v.account)).collect();
    assert_eq!(owners, [("b", other), ("workspace", w.account)]);
}

pub(crate) async fn keys_open_their_workspace(w: World) {
    let key = w.key("dm_a", "hash").await;
    let principal = Principal {
        account: w.account,
        workspace: w.workspace,
        key,
    };
    assert_eq!(w.store.principal_by_hash("hash").await.unwrap(), Some(principal));
    assert_eq!(w.store.principal_by_key(key).await.unwrap(), Some(principal));
    let again = w.store.create_key(w.new_key("dm_b", "hash"), NOW).await;
    assert!(matches!(again, Err(StoreError::NameTaken(_))), "one hash, one key");
}

pub(crate) async fn unknown_keys_open_nothing(w: World) {
    w.key("dm_a", "hash").await;
    assert!(!w.opens("Hash").await);
    assert!(!w.opens("").await);
    assert_eq!(w.store.principal_by_key(KeyId::new()).await.unwrap(), None);
}

pub(crate) async fn revoked_keys_close_at_once(w: World) {
    let (gone, stays) = (w.key("dm_a", "a").await, w.key("dm_b", "b").await);
    assert_eq!(w.store.revoke_keys(&gone.to_string(), NOW + 1).await.unwrap(), 1);
    assert!(!w.opens("a").await && w.opens("b").await);
    assert_eq!(w.store.principal_by_key(gone).await.unwrap(), None);
    assert!(w.store.principal_by_key(stays).await.unwrap().is_some());
    assert_eq!(w.store.revoke_keys(&gone.to_string(), NOW + 9).await.unwrap(), 0);
    let keys = w.store.keys(None).await.unwrap();
    let revoked: Vec<_> = keys.iter().map(|key| key.revoked_at).collect();
    assert_eq!(revoked, [Some(NOW + 1), None], "the first revocation counts");
}

pub(crate) async fn revoking_by_prefix(w: World) {
    w.key("dm_a", "a1").await;
    w.key("dm_a", "a2").await;
    w.key("dm_ab", "ab").await;
    assert_eq!(
        w.store.revoke_keys("dm_", NOW).await.unwrap(),
        0,
        "not a part of a prefix"
    );
    assert_eq!(w.store.revoke_keys("dm_a%", NOW).await.unwrap(), 0);
    assert_eq!(w.store.revoke_keys("dm_a", NOW).await.unwrap(), 2);
    assert!(!w.opens("a1").await && !w.opens("a2").await && w.opens("ab").await);
}

pub(crate) async fn keys_are_listed_oldest_first(w: World) {
    let (_, other) = w.another_account("b").await;
    for (hash, workspace, at) in [("3", w.workspace, 3), ("1", w.workspace, 1), ("2", other, 2)] {
        let key = NewKey {
            workspace,
            ..w.new_key(hash, hash)
        };
        w.store.create_key(key, NOW + at).await.unwrap();
    }
    let prefixes = async |workspace| {
        let keys = w.store.keys(workspace).await.unwrap();
        keys.into_iter().map(|key| key.prefix).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(prefixes(None).await, "1 2 3");
    assert_eq!(prefixes(Some(w.workspace)).await, "1 3");
    assert_eq!(w.store.keys(Some(other)).await.unwrap()[0].workspace_name, "b");
}

pub(crate) async fn the_last_use_never_goes_back(w: World) {
    let key = w.key("dm_a", "a").await;
    let used = async || w.store.keys(None).await.unwrap()[0].last_used_at;
    assert_eq!(used().await, None);
    w.store.touch_key(key, NOW).await.unwrap();
    w.store.touch_key(key, NOW - SECOND).await.unwrap();
    assert_eq!(used().await, Some(NOW));
    w.store.touch_key(key, NOW + SECOND).await.unwrap();
    assert_eq!(used().await, Some(NOW + SECOND));
    w.store.touch_key(KeyId::new(), NOW).await.unwrap();
}
