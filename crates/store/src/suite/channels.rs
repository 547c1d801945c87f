//! Channels: creation, reading, change, deletion, and that nobody else has a part in them.

use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope, DeliveryKind, DeliveryState};
use docmill_model::ids::WorkflowId;
use docmill_model::job::EventType::{JobCompleted, JobFailed};
use docmill_model::time::SECOND;

use super::World;
use super::flows::definition;
use super::told::{LIMITS, MAX, code, hash, hook_at, mail_to};
use super::world::{NOW, at_once};
use crate::{
    ChannelCreation, ChannelDefinition, ChannelRef, ChannelTarget, ChannelUpdate, CodeTry, MarkRead, NewChannel,
    Replay, StoreError,
};

impl World {
    async fn update(&self, channel: ChannelRef, definition: ChannelDefinition) -> ChannelUpdate {
        let seen = self.read_channel(channel).await.updated_at;
        let update = self
            .store
            .update_channel(channel, definition, Some(code(2)), seen, LIMITS, NOW + SECOND);
        update.await.unwrap()
    }
}

pub(crate) async fn channels_read_back(w: World) {
    let hook = w.hook("a.example", &[JobFailed, JobCompleted]).await;
    let read = w.read_channel(hook).await;
    assert_eq!(read.definition, hook_at("a.example", &[JobFailed, JobCompleted]));
    assert_eq!(
        (read.verified_at, read.enabled()),
        (Some(NOW), true),
        "no code for webhooks"
    );
    assert_eq!((read.created_at, read.updated_at), (NOW, NOW));
    let mail = w.unverified("Anna@example.org", &[JobFailed]).await;
    let read = w.read_channel(mail).await;
    assert_eq!(read.definition, mail_to("Anna@example.org", &[JobFailed]));
    assert_eq!((read.channel, read.verified_at, read.enabled()), (mail, None, false));
    assert_eq!(w.try_code(mail, 1, NOW + 1).await, CodeTry::Verified);
    let read = w.read_channel(mail).await;
    assert_eq!((read.verified_at, read.enabled()), (Some(NOW + 1), true));
}

pub(crate) async fn channels_are_listed_by_scope_kind_and_enabled(w: World) {
    let flow = w.workflow(definition("flow")).await.id;
    let first = w.hook("a.example", &[JobFailed]).await;
    let off = ChannelDefinition {
        wanted: false,
        ..hook_at("b.example", &[JobFailed])
    };
    let off = w.channel_at(w.in_workspace(), off).await;
    let mail = w.unverified("a@example.org", &[JobFailed]).await;
    let of_flow = w
        .channel_at(w.of_workflow(flow), hook_at("c.example", &[JobFailed]))
        .await;
    let list = async |scope, kind, enabled| -> Vec<ChannelRef> {
        let channels = w.store.channels(w.workspace, scope, kind, enabled).await.unwrap();
        channels.into_iter().map(|channel| channel.channel).collect()
    };
    let workspace = ChannelScope::Workspace;
    assert_eq!(list(workspace, ChannelKind::Webhook, None).await, [first, off]);
    assert_eq!(list(workspace, ChannelKind::Webhook, Some(true)).await, [first]);
    assert_eq!(list(workspace, ChannelKind::Webhook, Some(false)).await, [off]);
    assert_eq!(list(workspace, ChannelKind::Email, Some(false)).await, [mail]);
    assert!(list(workspace, ChannelKind::Email, Some(true)).await.is_empty());
    assert_eq!(
        list(ChannelScope::Workflow(flow), ChannelKind::Webhook, None).await,
        [of_flow]
    );
}

pub(crate) async fn a_scope_holds_fifty_channels(w: World) {
    let flow = w.workflow(definition("flow")).await.id;
    let created = at_once(MAX as usize + 10, |n| {
        let store = w.store.clone();
        let new = NewChannel {
            channel: w.in_workspace(),
            definition: hook_at(&format!("{n}.example"), &[JobFailed]),
            code: None,
        };
        async move { store.create_channel(new, MAX, LIMITS, NOW).await }
    });
    let full = |creation: &crate::Result<ChannelCreation>| matches!(creation, Ok(ChannelCreation::Full));
    assert_eq!(created.await.iter().filter(|creation| full(creation)).count(), 10);
    let mail = w
        .try_create(w.in_workspace(), mail_to("a@example.org", &[JobFailed]))
        .await;
    assert!(matches!(mail, ChannelCreation::Full), "of both kinds together");
    assert!(w.to_send(ChannelKind::Email).await.is_empty(), "and no code is sent");
    w.channel_at(w.of_workflow(flow), hook_at("x.example", &[JobFailed]))
        .await;
}

pub(crate) async fn channels_of_workflows_need_the_workflow(w: World) {
    let flow = w.workflow(definition("flow")).await.id;
    let another = w.another_workspace("another").await;
    let of_another = ChannelRef {
        workspace: another,
        ..w.of_workflow(flow)
    };
    w.store.delete_workflow(w.workspace, flow, NOW).await.unwrap();
    for channel in [w.of_workflow(flow), w.of_workflow(WorkflowId::new()), of_another] {
        let new = NewChannel {
            channel,
            definition: hook_at("a.example", &[JobFailed]),
            code: None,
        };
        let created = w.store.create_channel(new, MAX, LIMITS, NOW).await;
        assert!(matches!(created, Err(StoreError::WorkflowGone(_))));
    }
}

pub(crate) async fn a_change_replaces_the_definition_once(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    let seen = w.read_channel(hook).await.updated_at;
    let wanted = hook_at("b.example", &[JobFailed]);
    let change = |definition: ChannelDefinition| w.store.update_channel(hook, definition, None, seen, LIMITS, NOW);
    assert!(matches!(
        change(wanted.clone()).await.unwrap(),
        ChannelUpdate::Updated(_)
    ));
    let read = w.read_channel(hook).await;
    assert_eq!(
        (&read.definition, read.updated_at > seen),
        (&wanted, true),
        "though the clock stands still"
    );
    assert!(matches!(change(wanted).await, Err(StoreError::Conflict)), "read before");
    let mail = mail_to("a@example.org", &[JobFailed]);
    let other_kind = w.store.update_channel(hook, mail, None, read.updated_at, LIMITS, NOW);
    assert!(matches!(other_kind.await, Err(StoreError::Conflict)));
    w.create(1).await;
    w.run_all().await;
    assert!(
        w.to_send(ChannelKind::Webhook).await.is_empty(),
        "the events are replaced too"
    );
}

pub(crate) async fn unverified_channels_may_not_be_changed(w: World) {
    let mail = w.unverified("a@example.org", &[JobFailed]).await;
    let update = w.update(mail, mail_to("b@example.org", &[JobFailed])).await;
    assert!(matches!(update, ChannelUpdate::NotVerified));
    assert_eq!(
        w.read_channel(mail).await.definition,
        mail_to("a@example.org", &[JobFailed])
    );
}

pub(crate) async fn another_address_has_to_be_verified(w: World) {
    let mail = w.mail("a@example.org", &[JobCompleted]).await;
    w.create(1).await;
    w.run_all().await;
    let moved = mail_to("b@example.org", &[JobCompleted]);
    let seen = w.read_channel(mail).await.updated_at;
    let without_code = w.store.update_channel(mail, moved.clone(), None, seen, LIMITS, NOW);
    assert!(matches!(without_code.await, Err(StoreError::Conflict)));
    let ChannelUpdate::Updated(updated) = w.update(mail, moved.clone()).await else {
        panic!("not updated");
    };
    assert_eq!((updated.enabled(), &updated.definition), (false, &moved));
    let due = w.to_send(ChannelKind::Email).await;
    assert_eq!(due.len(), 1, "what was to go to the old address is cancelled");
    assert_eq!(
        (due[0].kind, due[0].sealed.as_ref()),
        (DeliveryKind::Code, Some(&code(2).sealed))
    );
    assert_eq!(
        w.try_code(mail, 1, NOW).await,
        CodeTry::Wrong { left: 4 },
        "the old code is void"
    );
    assert_eq!(w.try_code(mail, 2, NOW).await, CodeTry::Verified);
}

pub(crate) async fn deleting_a_channel_cancels_what_waits(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    let mail = w.unverified("a@example.org", &[JobCompleted]).await;
    w.create(1).await;
    w.run_all().await;
    for channel in [hook, mail] {
        assert!(w.store.delete_channel(channel, NOW).await.unwrap());
        assert!(!w.store.delete_channel(channel, NOW).await.unwrap());
        assert!(w.store.channel(channel).await.unwrap().is_none());
    }
    assert!(w.to_send(ChannelKind::Webhook).await.is_empty());
    assert!(w.to_send(ChannelKind::Email).await.is_empty());
}

pub(crate) async fn disabling_cancels_and_enabling_starts_anew(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.create(1).await;
    w.run_all().await;
    let on = hook_at("a.example", &[JobCompleted]);
    let off = ChannelDefinition {
        wanted: false,
        ..on.clone()
    };
    w.update(hook, off).await;
    w.create(1).await;
    w.run_all().await;
    let log = w.log(hook).await;
    assert_eq!(log.len(), 1, "nothing is recorded for a disabled channel");
    assert_eq!(log[0].state, DeliveryState::Cancelled);
    w.update(hook, on).await;
    assert!(w.to_send(ChannelKind::Webhook).await.is_empty());
    w.create(1).await;
    w.run_all().await;
    assert_eq!(w.to_send(ChannelKind::Webhook).await.len(), 1);
}

pub(crate) async fn unsubscribing_disables_with_a_reason(w: World) {
    let mail = w.mail("a@example.org", &[JobCompleted]).await;
    w.create(1).await;
    w.run_all().await;
    assert!(w.store.unsubscribe(mail, "by its link", NOW + 5).await.unwrap());
    let read = w.read_channel(mail).await;
    assert_eq!(
        (read.enabled(), read.disabled.clone()),
        (false, Some((NOW + 5, "by its link".into())))
    );
    assert!(w.to_send(ChannelKind::Email).await.is_empty());
    assert!(w.store.unsubscribe(mail, "again", NOW + 9).await.unwrap());
    assert_eq!(w.read_channel(mail).await.disabled, read.disabled);
    w.update(mail, read.definition.clone()).await;
    let wanted = ChannelDefinition {
        wanted: true,
        ..read.definition
    };
    w.update(mail, wanted).await;
    let read = w.read_channel(mail).await;
    assert_eq!((read.enabled(), read.disabled), (true, None));
}

pub(crate) async fn others_have_no_part_in_channels(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.create(1).await;
    w.run_all().await;
    let delivery = w.log(hook).await[0].id;
    let mail = w.unverified("a@example.org", &[JobCompleted]).await;
    let (_, stranger) = w.another_account("stranger").await;
    let flow = w.workflow(definition("flow")).await.id;
    let store = &w.store;
    for channel in [hook, mail] {
        let elsewhere = [
            ChannelRef {
                workspace: stranger,
                ..channel
            },
            ChannelRef {
                scope: ChannelScope::Workflow(flow),
                ..channel
            },
            ChannelRef {
                id: ChannelId::new(),
                ..channel
            },
        ];
        for other in elsewhere {
            assert!(store.channel(other).await.unwrap().is_none());
            let update = store
                .update_channel(other, hook_at("x", &[]), None, NOW, LIMITS, NOW)
                .await;
            assert!(matches!(update, Ok(ChannelUpdate::NotFound)));
            assert!(store.issue_code(other, code(9), LIMITS, NOW).await.unwrap().is_none());
            assert!(store.try_code(other, hash(1), LIMITS, NOW).await.unwrap().is_none());
            assert!(!store.unsubscribe(other, "x", NOW).await.unwrap());
            assert!(store.create_test(other, NOW).await.unwrap().is_none());
            assert!(store.deliveries(other, Default::default()).await.unwrap().is_none());
            assert!(store.delivery(other, delivery).await.unwrap().is_none());
            assert!(store.attempts(other, delivery).await.unwrap().is_none());
            assert_eq!(store.replay_delivery(other, delivery).await.unwrap(), Replay::NotFound);
            assert!(store.replay_failed(other, 0).await.unwrap().is_none());
            assert!(!store.delete_channel(other, NOW).await.unwrap());
        }
    }
    assert_eq!(
        store.replay_delivery(mail, delivery).await.unwrap(),
        Replay::NotFound,
        "another channel's"
    );
    let news = w.inbox().await;
    assert!(
        store
            .notifications(stranger, &Default::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.notification(stranger, news[0].id).await.unwrap().is_none());
    assert_eq!(store.unread_count(stranger, None).await.unwrap(), 0);
    let ids = MarkRead::Ids(news.iter().map(|n| n.id).collect());
    assert_eq!(store.mark_read(stranger, ids, NOW).await.unwrap(), 0);
    let all = MarkRead::Until {
        workflow: None,
        before: i64::MAX,
    };
    assert_eq!(store.mark_read(stranger, all, NOW).await.unwrap(), 0);
    let channels = store
        .channels(stranger, ChannelScope::Workspace, ChannelKind::Webhook, None)
        .await;
    assert!(channels.unwrap().is_empty());
    assert_eq!(w.try_code(mail, 1, NOW).await, CodeTry::Verified, "no try was charged");
    let target = &w.read_channel(hook).await.definition.target;
    assert!(matches!(target, ChannelTarget::Webhook { secrets: Some(_), .. }));
}
