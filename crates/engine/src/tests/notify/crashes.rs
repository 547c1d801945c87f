//! Servers that end in the middle of things.

use std::time::Duration;

use docmill_model::channel::{ChannelKind, ChannelScope, DeliveryState};
use docmill_model::job::EventType;
use docmill_store::{DeliveryQuery, Store};

use super::kit::{Receiver, SILENT, webhook_request};
use crate::now;
use crate::tests::world::{World, config, until};

fn all_webhooks() -> DeliveryQuery {
    DeliveryQuery {
        lane: ChannelKind::Webhook,
        max: 10,
        max_retries: 10,
        per_receiver: 10,
        lease_until: now() + 60_000_000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_had_claimed_when_it_died_is_delivered_by_the_next_under_the_same_id() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    world.submitted(&world.engine).await;
    let claims = world.store.claim_deliveries(all_webhooks(), now()).await.unwrap();
    assert_eq!(claims.len(), 1);
    world.engine.start().await.unwrap();
    let received = until("the event", async || receiver.received().pop()).await;
    assert_eq!(received.id(), claims[0].lease.delivery().to_string());
    until("its record", async || {
        let delivery = world.deliveries(channel).await.swap_remove(0);
        (delivery.state == DeliveryState::Delivered).then_some(())
    })
    .await;
    assert_eq!(receiver.received().len(), 1);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_server_left_is_taken_up_once_its_lease_is_over() {
    let world = World::telling(config(), |config| config.lease = Duration::from_millis(300)).await;
    let receiver = Receiver::start().await;
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    world.channel(ChannelScope::Workspace, request).await;
    world.engine.start().await.unwrap();
    receiver.answer(SILENT);
    world.submitted(&world.engine).await;
    until("the first attempt", async || {
        (receiver.received().len() == 1).then_some(())
    })
    .await;
    // While its server lives, the delivery stays its own, however long it takes.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.received().len(), 1);
    // Ends without a chance to hand anything back.
    let lease = world.engine.shared.notifications.underway.forget_all();
    assert_eq!(lease, 1);
    receiver.answer(200);
    let received = until("the second", async || {
        Some(receiver.received()).filter(|all| all.len() == 2)
    })
    .await;
    assert_eq!(received[0].id(), received[1].id());
    world.engine.stop_now().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_when_a_server_stops_is_delivered_by_the_next() {
    let mut config = config();
    config.drain = Duration::from_millis(200);
    let world = World::with(config).await;
    let receiver = Receiver::start().await;
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    world.engine.start().await.unwrap();
    receiver.answer(SILENT);
    world.submitted(&world.engine).await;
    until("the first attempt", async || {
        (receiver.received().len() == 1).then_some(())
    })
    .await;
    world.engine.stop().await;
    // Handed back, not left to a lease.
    let waiting = world.store.claim_deliveries(all_webhooks(), now()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    receiver.answer(200);
    let next = world.next_server();
    next.start().await.unwrap();
    let received = until("the second", async || {
        Some(receiver.received()).filter(|all| all.len() == 2)
    })
    .await;
    assert_eq!(received[0].id(), received[1].id());
    until("its record", async || {
        let delivery = world.deliveries(channel).await.swap_remove(0);
        (delivery.state == DeliveryState::Delivered).then_some(())
    })
    .await;
    next.stop().await;
}
