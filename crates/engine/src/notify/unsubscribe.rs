//! Stopping a channel's mails by the link in each of them.

use docmill_model::channel::ChannelScope;
use docmill_notify::{unsubscribe_token, verify_unsubscribe_token};
use docmill_store::{ChannelRef, Result};

use crate::clock::now;
use crate::engine::Engine;
use crate::vault::Vault;

/// Path of the links, before the token. Both GET, for people, and POST (RFC 8058) are asked for there.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";

/// Stands for the scope of a whole workspace.
const WORKSPACE: &str = "workspace";

/// Why a channel that was unsubscribed is disabled.
const REASON: &str = "the receiver unsubscribed by the link in a mail";

fn key(vault: &Vault) -> [u8; 32] {
    vault.mac("unsubscribe links 1", &[])
}

/// The link that stops a channel's mails.
pub(super) fn link(vault: &Vault, public_url: &str, channel: ChannelRef) -> String {
    let scope = match channel.scope {
        ChannelScope::Workspace => WORKSPACE.to_owned(),
        ChannelScope::Workflow(workflow) => workflow.to_string(),
    };
    let name = format!("{}.{scope}.{}", channel.workspace, channel.id);
    format!(
        "{public_url}{UNSUBSCRIBE_PATH}{}",
        unsubscribe_token(&key(vault), &name)
    )
}

fn target(vault: &Vault, token: &str) -> Option<ChannelRef> {
    let name = verify_unsubscribe_token(&key(vault), token)?;
    let (workspace, rest) = name.split_once('.')?;
    let (scope, id) = rest.split_once('.')?;
    Some(ChannelRef {
        workspace: workspace.parse().ok()?,
        scope: match scope {
            WORKSPACE => ChannelScope::Workspace,
            workflow => ChannelScope::Workflow(workflow.parse().ok()?),
        },
        id: id.parse().ok()?,
    })
}

impl Engine {
    /// The channel whose mails the token of a link would stop.
    pub fn unsubscribe_target(&self, token: &str) -> Option<ChannelRef> {
        target(self.vault(), token)
    }

    /// Stops the mails of the channel that a link's token stands for; false when there is none any more or
    /// the token is not one of this server's.
    pub async fn unsubscribe(&self, token: &str) -> Result<bool> {
        match target(self.vault(), token) {
            Some(channel) => self.store().unsubscribe(channel, REASON, now()).await,
            None => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::channel::ChannelId;
    use docmill_model::ids::{WorkflowId, WorkspaceId};

    use super::*;

    #[test]
    fn a_link_leads_back_to_its_channel() {
        let vault = Vault::new(&[7; 32]).unwrap();
        for scope in [ChannelScope::Workspace, ChannelScope::Workflow(WorkflowId::new())] {
            let channel = ChannelRef {
                workspace: WorkspaceId::new(),
                scope,
                id: ChannelId::new(),
            };
            let link = link(&vault, "https://mill.example.com", channel);
            let token = link.strip_prefix("https://mill.example.com/unsubscribe/").unwrap();
            assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
            assert_eq!(target(&vault, token), Some(channel));
            assert_eq!(target(&Vault::new(&[8; 32]).unwrap(), token), None);
            assert_eq!(target(&vault, &token.replace("ep_", "ep-")), None);
        }
    }
}
