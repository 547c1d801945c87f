//! What can be asked about channels: create, change, delete, verify.

use docmill_model::chain::Problem;
use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope};
use docmill_model::ids::WorkspaceId;
use docmill_store::{
    Channel, ChannelCreation, ChannelRef, ChannelTarget, ChannelUpdate, CodeIssue, CodeRefusal, CodeTry, NewChannel,
    NewCode, StoreError,
};
use serde_json::Value;

use super::definition::Check;
use super::{ChannelPatch, ChannelRequest, codes, secrets};
use crate::clock::now;
use crate::engine::Engine;
use crate::vault::{Vault, VaultError};

/// Times a change is tried when others change the channel at the same time.
const TRIES: u32 = 5;

/// A channel that was created.
#[derive(Clone)]
pub struct ChannelCreated {
    /// The channel.
    pub channel: Channel,
    /// The secret that was made for a webhook that came without one: it can't be read again.
    pub secret: Option<String>,
}

impl std::fmt::Debug for ChannelCreated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelCreated")
            .field("channel", &self.channel.channel)
            .finish_non_exhaustive()
    }
}

/// Why a channel is not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum ChannelRefused {
    /// What was sent can't work.
    #[error("the channel's settings are not valid")]
    Invalid(Vec<Problem>),
    /// There is no such channel.
    #[error("there is no such channel")]
    NotFound,
    /// Its mailbox is not verified yet.
    #[error("the channel is not verified")]
    NotVerified,
    /// Its scope has as many as it may.
    #[error("there are {max} channels already")]
    Full {
        /// How many.
        max: u32,
    },
    /// No code may be sent now.
    #[error("no code may be sent now")]
    Codes(CodeRefusal),
    /// Only webhooks have secrets.
    #[error("the channel is no webhook")]
    NotWebhook,
    /// A secret can't be encrypted.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store failed; [`StoreError::WorkflowGone`] when the workflow it is for is deleted.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    pub(super) fn vault(&self) -> &Vault {
        &self.shared.connections.vault
    }

    fn check<'a>(&'a self, channel: ChannelId, loc: &'a [Value]) -> Check<'a> {
        Check {
            egress: &self.shared.notifications.egress,
            vault: self.vault(),
            channel,
            loc,
        }
    }

    /// Creates a channel. A mail channel's code is on its way once this returns.
    ///
    /// # Errors
    /// [`ChannelRefused`], and then nothing was created.
    pub async fn create_channel(
        &self,
        workspace: WorkspaceId,
        scope: ChannelScope,
        request: ChannelRequest,
        loc: &[Value],
    ) -> Result<ChannelCreated, ChannelRefused> {
        let id = ChannelId::new();
        let (definition, secret) = self.check(id, loc).request(request)?;
        let code = match definition.target.kind() {
            ChannelKind::Email => Some(codes::new_code(self.vault(), id)?),
            ChannelKind::Webhook => None,
        };
        let new = NewChannel {
            channel: ChannelRef { workspace, scope, id },
            definition,
            code,
        };
        let config = &self.shared.notifications.config;
        let max = config.max_per_scope;
        match self.store().create_channel(new, max, config.codes, now()).await? {
            ChannelCreation::Created(channel) => {
                self.shared.notifications.wake();
                Ok(ChannelCreated {
                    channel: *channel,
                    secret,
                })
            }
            ChannelCreation::Full => Err(ChannelRefused::Full { max }),
            ChannelCreation::Refused(refusal) => Err(ChannelRefused::Codes(refusal)),
        }
    }

    /// Changes a verified channel. With another address it must be verified again, by a code that is on its
    /// way once this returns.
    ///
    /// # Errors
    /// [`ChannelRefused`], and then nothing changed.
    pub async fn update_channel(
        &self,
        channel: ChannelRef,
        patch: ChannelPatch,
        loc: &[Value],
    ) -> Result<Channel, ChannelRefused> {
        self.change(channel, |current| {
            let before = recipient(&current.definition.target).map(str::to_owned);
            let definition = self.check(channel.id, loc).patch(current.definition, &patch)?;
            let moved = recipient(&definition.target) != before.as_deref();
            let code = moved.then(|| codes::new_code(self.vault(), channel.id)).transpose()?;
            Ok((definition, code))
        })
        .await
    }

    /// Gives a webhook a new secret, made unless given; the one before signs beside it for a while. The new
    /// one, which can't be read again.
    ///
    /// # Errors
    /// [`ChannelRefused`], and then nothing changed.
    pub async fn rotate_secret(
        &self,
        channel: ChannelRef,
        secret: Option<String>,
        loc: &[Value],
    ) -> Result<String, ChannelRefused> {
        let secret = match secret.filter(|secret| !secret.is_empty()) {
            Some(text) => self.check(channel.id, loc).secret(&text)?,
            None => secrets::generate()?,
        };
        let overlap = self.shared.notifications.config.rotation_overlap;
        self.change(channel, |mut current| {
            let ChannelTarget::Webhook { secrets, .. } = &mut current.definition.target else {
                return Err(ChannelRefused::NotWebhook);
            };
            let sealed = secrets.as_deref();
            let rotated = secrets::rotate(self.vault(), channel.id, &secret, sealed, overlap, now())?;
            *secrets = Some(rotated);
            Ok((current.definition, None))
        })
        .await?;
        Ok(secret.reveal().to_owned())
    }

    /// Replaces a channel's definition by one that is made of what it is, however many do so at once.
    async fn change(
        &self,
        channel: ChannelRef,
        made: impl Fn(Channel) -> Result<(docmill_store::ChannelDefinition, Option<NewCode>), ChannelRefused>,
    ) -> Result<Channel, ChannelRefused> {
        let codes = self.shared.notifications.config.codes;
        let mut tries = 1;
        loop {
            let current = self.store().channel(channel).await?;
            let current = current.ok_or(ChannelRefused::NotFound)?;
            let seen = current.updated_at;
            let (definition, code) = made(current)?;
            let updated = self
                .store()
                .update_channel(channel, definition, code, seen, codes, now());
            match updated.await {
                Ok(ChannelUpdate::Updated(channel)) => {
                    self.shared.notifications.wake();
                    return Ok(*channel);
                }
                Ok(ChannelUpdate::NotFound) => return Err(ChannelRefused::NotFound),
                Ok(ChannelUpdate::NotVerified) => return Err(ChannelRefused::NotVerified),
                Ok(ChannelUpdate::Refused(refusal)) => return Err(ChannelRefused::Codes(refusal)),
                Err(StoreError::Conflict) if tries < TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Deletes a channel, and cancels what waits for it; whether there was one.
    pub async fn delete_channel(&self, channel: ChannelRef) -> docmill_store::Result<bool> {
        self.store().delete_channel(channel, now()).await
    }

    /// Tries a code; whatever is no code counts as a wrong one. `None` when there is no such channel.
    pub async fn verify_channel(&self, channel: ChannelRef, code: &str) -> docmill_store::Result<Option<CodeTry>> {
        let presented = codes::hash(self.vault(), channel.id, code);
        let limits = self.shared.notifications.config.codes;
        self.store().try_code(channel, presented, limits, now()).await
    }

    /// Sends a mail channel another code, which voids the one before. `None` when there is no such channel.
    ///
    /// # Errors
    /// [`ChannelRefused::Vault`] or [`ChannelRefused::Store`].
    pub async fn resend_code(&self, channel: ChannelRef) -> Result<Option<CodeIssue>, ChannelRefused> {
        let code = codes::new_code(self.vault(), channel.id)?;
        let limits = self.shared.notifications.config.codes;
        let issue = self.store().issue_code(channel, code, limits, now()).await?;
        self.shared.notifications.wake();
        Ok(issue)
    }
}

fn recipient(target: &ChannelTarget) -> Option<&str> {
    match target {
        ChannelTarget::Email { recipient, .. } => Some(recipient),
        ChannelTarget::Webhook { .. } => None,
    }
}
