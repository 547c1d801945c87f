//! Keys that nodes bring for their providers, encrypted for their place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docmill_model::chain::Node;
use docmill_model::ids::{NodeId, WorkspaceId};
use docmill_providers::Secret;

use crate::vault::{Vault, VaultError};

/// How keys are encrypted, so that a later way can be told apart.
const VERSION: &str = "v1:";

/// Encrypts and decrypts the keys of one workspace's nodes. A key is bound to its workspace, its node and its
/// provider: moved elsewhere it opens nothing.
#[derive(Clone, Debug)]
pub(crate) struct NodeKeys {
    pub(crate) vault: Vault,
    pub(crate) workspace: WorkspaceId,
}

impl NodeKeys {
    /// A node's key, encrypted.
    pub(super) fn seal(&self, node: &Node, key: &str) -> Result<String, VaultError> {
        let sealed = self.vault.seal_bytes(&self.place(node), key.as_bytes())?;
        Ok(format!("{VERSION}{}", STANDARD.encode(sealed)))
    }

    /// A node's own key, if it has one.
    pub(super) fn open(&self, node: &Node) -> Result<Option<Secret>, VaultError> {
        let Some(sealed) = &node.sealed_key else {
            return Ok(None);
        };
        let bytes = sealed.strip_prefix(VERSION).and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.and_then(|bytes| self.vault.open_bytes(&self.place(node), &bytes));
        let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        key.map(|key| Some(Secret::new(key)))
            .ok_or_else(|| VaultError::Unreadable(docmill_model::chain::NODE_KEY.into()))
    }

    fn place(&self, node: &Node) -> String {
        let provider = node.work.model().map_or("", |model| model.provider.as_str());
        place(self.workspace, node.id, provider)
    }
}

fn place(workspace: WorkspaceId, node: NodeId, provider: &str) -> String {
    format!("{workspace}\0{node}\0{provider}\0node key")
}
