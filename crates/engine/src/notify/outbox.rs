//! What can be asked about deliveries: a test, or that some are sent again.

use docmill_model::channel::DeliveryKind;
use docmill_model::ids::DeliveryId;
use docmill_model::time::{Micros, SECOND};
use docmill_store::{ChannelRef, DeliveryFilter, Replay, Result};

use crate::clock::now;
use crate::engine::Engine;

/// Time between two tests of a channel: copies of its mails go to addresses that nobody verified.
const TEST_GAP: Micros = 10 * SECOND;

/// Deliveries among which the last test is looked for.
const LOOKED_THROUGH: u32 = 50;

/// What became of a request to send a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSend {
    /// It is on the way.
    Sent(DeliveryId),
    /// There is no such channel.
    NotFound,
    /// The channel is disabled or not verified.
    Disabled,
    /// The last one was a moment ago.
    TooSoon {
        /// Until the next may be sent; at least 1.
        wait: Micros,
    },
}

impl Engine {
    /// Sends a test to a channel.
    pub async fn send_test(&self, channel: ChannelRef) -> Result<TestSend> {
        let filter = DeliveryFilter {
            limit: LOOKED_THROUGH,
            ..DeliveryFilter::default()
        };
        let Some(latest) = self.store().deliveries(channel, filter).await? else {
            return Ok(TestSend::NotFound);
        };
        let at = now();
        let last = latest.iter().find(|delivery| delivery.kind == DeliveryKind::Test);
        let wait = last.map_or(0, |last| last.created_at.min(at) + TEST_GAP - at);
        if wait > 0 {
            return Ok(TestSend::TooSoon { wait });
        }
        let sent = self.store().create_test(channel, at).await?;
        self.shared.notifications.wake();
        Ok(sent.map_or(TestSend::Disabled, TestSend::Sent))
    }

    /// Sends a delivery again.
    pub async fn replay_delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Replay> {
        let replay = self.store().replay_delivery(channel, delivery).await?;
        self.shared.notifications.wake();
        Ok(replay)
    }

    /// Sends again what failed or was cancelled and was created at `since` or later; how much. `None` when
    /// there is no such channel, or it is disabled or not verified.
    pub async fn replay_failed(&self, channel: ChannelRef, since: Micros) -> Result<Option<u64>> {
        let replayed = self.store().replay_failed(channel, since).await?;
        self.shared.notifications.wake();
        Ok(replayed)
    }

    /// Whether mails are written as files because no server is set.
    pub fn mails_are_files(&self) -> bool {
        self.shared.notifications.config.mails_are_files
    }
}
