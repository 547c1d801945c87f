//! Verification codes: single use, bounded tries, budgets that deleting a channel does not give back.

use docmill_model::channel::{ChannelKind, DeliveryKind, DeliveryState};
use docmill_model::job::EventType::JobCompleted;
use docmill_model::time::{Micros, SECOND};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::told::{LIMITS, MAX, attempt, code, hash, mail_to};
use super::world::{NOW, at_once};
use super::{Backend, World};
use crate::{
    ChannelCreation, ChannelRef, CodeBound, CodeIssue, CodeLimits, CodeRefusal, CodeTry, DeliveryOutcome, NewChannel,
};

const MINUTE: Micros = 60 * SECOND;
const DAY: Micros = 24 * 60 * MINUTE;

fn refused(bound: CodeBound, wait: Micros) -> CodeIssue {
    CodeIssue::Refused(CodeRefusal { bound, wait })
}

impl World {
    async fn new_mail(&self) -> ChannelRef {
        self.unverified("a@example.org", &[JobCompleted]).await
    }
}

pub(crate) async fn a_code_is_used_once(w: World) {
    let mail = w.new_mail().await;
    assert_eq!(w.try_code(mail, 7, NOW).await, CodeTry::Wrong { left: 4 });
    assert_eq!(w.try_code(mail, 1, NOW).await, CodeTry::Verified);
    assert_eq!(w.try_code(mail, 1, NOW).await, CodeTry::AlreadyVerified);
    assert_eq!(w.try_code(mail, 7, NOW).await, CodeTry::AlreadyVerified);
    assert_eq!(w.issue(mail, 2, NOW + MINUTE).await, CodeIssue::AlreadyVerified);
}

pub(crate) async fn a_code_expires(w: World) {
    let mail = w.new_mail().await;
    let expiry = NOW + LIMITS.lifetime;
    assert_eq!(w.try_code(mail, 1, expiry).await, CodeTry::Expired);
    w.store.expire_codes(expiry).await.unwrap();
    assert_eq!(w.try_code(mail, 1, expiry).await, CodeTry::Expired);
    assert_eq!(
        w.log(mail).await[0].state,
        DeliveryState::Cancelled,
        "its mail is not sent any more"
    );
    let in_time = w.unverified("b@example.org", &[]).await;
    assert_eq!(w.try_code(in_time, 1, expiry - 1).await, CodeTry::Verified);
}

pub(crate) async fn five_wrong_tries_end_a_code(w: World) {
    let mail = w.new_mail().await;
    for left in (0..5).rev() {
        assert_eq!(w.try_code(mail, 9, NOW).await, CodeTry::Wrong { left });
    }
    for n in [1, 9] {
        assert_eq!(
            w.try_code(mail, n, NOW).await,
            CodeTry::Exceeded { wait: 0 },
            "even the right one"
        );
    }
    assert_eq!(w.issue(mail, 2, NOW + MINUTE).await, CodeIssue::Issued);
    assert_eq!(w.try_code(mail, 2, NOW + MINUTE).await, CodeTry::Verified);
}

pub(crate) async fn of_tries_at_once_five_are_compared(w: World) {
    let mail = w.new_mail().await;
    let tries = at_once(64, |_| {
        let store = w.store.clone();
        async move { store.try_code(mail, hash(9), LIMITS, NOW).await }
    });
    let tries: Vec<_> = tries.await.into_iter().map(|tried| tried.unwrap().unwrap()).collect();
    let wrong = |left| tries.iter().filter(|tried| **tried == CodeTry::Wrong { left }).count();
    assert_eq!([wrong(4), wrong(3), wrong(2), wrong(1), wrong(0)], [1; 5]);
    let exceeded = tries.iter().filter(|tried| matches!(tried, CodeTry::Exceeded { .. }));
    assert_eq!(exceeded.count(), 59);
}

pub(crate) async fn a_new_code_voids_the_old(w: World) {
    let mail = w.new_mail().await;
    assert_eq!(w.try_code(mail, 9, NOW).await, CodeTry::Wrong { left: 4 });
    assert_eq!(w.issue(mail, 2, NOW + MINUTE).await, CodeIssue::Issued);
    assert_eq!(w.try_code(mail, 1, NOW + MINUTE).await, CodeTry::Wrong { left: 4 });
    let due = w.to_send_at(ChannelKind::Email, NOW + MINUTE).await;
    assert_eq!(due.len(), 1, "the old one's mail is not sent");
    assert_eq!(due[0].sealed.as_ref(), Some(&code(2).sealed));
    assert_eq!(w.try_code(mail, 2, NOW + MINUTE).await, CodeTry::Verified);
}

pub(crate) async fn a_code_replaced_while_it_is_sent_is_wiped(w: World) {
    let mail = w.new_mail().await;
    let old = w.to_send(ChannelKind::Email).await.remove(0);
    assert_eq!(w.issue(mail, 2, NOW + MINUTE).await, CodeIssue::Issued);
    let (leases, late) = ([old.lease], DeliveryOutcome::Retry { not_before: NOW });
    let late = w
        .store
        .finish_deliveries(&leases, attempt(Some("x"), 450), late, None, NOW);
    assert!(late.await.is_err());
    let due = w.to_send_at(ChannelKind::Email, NOW + MINUTE).await;
    assert_eq!((due.len(), due[0].sealed.as_ref()), (1, Some(&code(2).sealed)));
}

pub(crate) async fn a_code_goes_out_as_a_delivery(w: World) {
    let mail = w.new_mail().await;
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    assert_eq!((claim.kind, claim.channel.channel), (DeliveryKind::Code, mail));
    assert!(claim.event.is_none());
    w.end(&claim, DeliveryOutcome::Retry { not_before: NOW }).await;
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    assert_eq!((claim.sealed.as_ref(), claim.attempt), (Some(&code(1).sealed), 2));
    w.end(&claim, DeliveryOutcome::Delivered).await;
    assert_eq!(w.log(mail).await[0].state, DeliveryState::Delivered);
    assert_eq!(
        w.store.replay_delivery(mail, claim.lease.delivery()).await.unwrap(),
        crate::Replay::NotReplayable
    );
}

pub(crate) async fn codes_cool_down(w: World) {
    let mail = w.new_mail().await;
    let early = w.issue(mail, 2, NOW + 20 * SECOND).await;
    assert_eq!(early, refused(CodeBound::CoolDown, 40 * SECOND));
    assert_eq!(w.issue(mail, 2, NOW + MINUTE).await, CodeIssue::Issued);
    assert_eq!(w.issue(mail, 3, NOW).await, CodeIssue::Issued, "the clock was set back");
}

pub(crate) async fn codes_a_day_are_bounded(w: World) {
    let mail = w.new_mail().await;
    for n in 1..10 {
        assert_eq!(w.issue(mail, 2, NOW + n * MINUTE).await, CodeIssue::Issued);
    }
    let eleventh = w.issue(mail, 2, NOW + 10 * MINUTE).await;
    assert_eq!(eleventh, refused(CodeBound::Channel, DAY - 10 * MINUTE));
    assert_eq!(
        w.try_code(mail, 2, NOW + 10 * MINUTE).await,
        CodeTry::Verified,
        "the last one is good"
    );
    // Another channel for the mailbox, and the same one created again.
    w.store.delete_channel(mail, NOW).await.unwrap();
    for spelling in ["a@example.org", "A@Example.org"] {
        let again = w.try_create(w.in_workspace(), mail_to(spelling, &[])).await;
        let expected = CodeRefusal {
            bound: CodeBound::Mailbox,
            wait: DAY,
        };
        assert!(
            matches!(again, ChannelCreation::Refused(refusal) if refusal == expected),
            "{again:?}"
        );
    }
    let none = w
        .store
        .channels(w.workspace, mail.scope, ChannelKind::Email, None)
        .await;
    assert!(none.unwrap().is_empty(), "what was refused is not there");
    w.unverified("b@example.org", &[]).await;
    let another = w.another_workspace("another").await;
    let elsewhere = ChannelRef {
        workspace: another,
        ..w.in_workspace()
    };
    w.channel_at(elsewhere, mail_to("a@example.org", &[])).await;
    let new = NewChannel {
        channel: w.in_workspace(),
        definition: mail_to("a@example.org", &[]),
        code: Some(code(1)),
    };
    let tomorrow = w.store.create_channel(new, MAX, LIMITS, NOW + DAY).await.unwrap();
    assert!(matches!(tomorrow, ChannelCreation::Created(_)));
}

pub(crate) async fn codes_of_a_workspace_are_bounded(w: World) {
    let few = CodeLimits {
        workspace_codes_a_day: 3,
        ..LIMITS
    };
    let create = async |n: usize| {
        let new = NewChannel {
            channel: w.in_workspace(),
            definition: mail_to(&format!("{n}@example.org"), &[]),
            code: Some(code(1)),
        };
        w.store.create_channel(new, MAX, few, NOW).await.unwrap()
    };
    for n in 0..3 {
        assert!(matches!(create(n).await, ChannelCreation::Created(_)));
    }
    let fourth = create(3).await;
    assert!(matches!(fourth, ChannelCreation::Refused(refusal) if refusal.bound == CodeBound::Workspace));
}

pub(crate) async fn wrong_tries_a_day_are_bounded(w: World) {
    let mail = w.new_mail().await;
    for round in 0..2 {
        let now = NOW + round * MINUTE;
        if round > 0 {
            assert_eq!(w.issue(mail, 1, now).await, CodeIssue::Issued);
        }
        for left in (0..5).rev() {
            assert_eq!(w.try_code(mail, 9, now).await, CodeTry::Wrong { left });
        }
    }
    let now = NOW + 2 * MINUTE;
    let wait = DAY - 2 * MINUTE;
    assert_eq!(w.try_code(mail, 1, now).await, CodeTry::Exceeded { wait });
    assert_eq!(w.issue(mail, 1, now).await, refused(CodeBound::WrongTries, wait));
    // Neither expiry nor a new channel helps before the day is over.
    w.store.expire_codes(now + LIMITS.lifetime).await.unwrap();
    w.store.delete_channel(mail, now).await.unwrap();
    let again = w.try_create(w.in_workspace(), mail_to("a@example.org", &[])).await;
    assert!(matches!(again, ChannelCreation::Refused(refusal) if refusal.bound == CodeBound::WrongTries));
    w.store.expire_codes(NOW + DAY + MINUTE).await.unwrap();
    let new = NewChannel {
        channel: w.in_workspace(),
        definition: mail_to("a@example.org", &[]),
        code: Some(code(1)),
    };
    let tomorrow = w
        .store
        .create_channel(new, MAX, LIMITS, NOW + DAY + MINUTE)
        .await
        .unwrap();
    assert!(matches!(tomorrow, ChannelCreation::Created(_)));
}

pub(crate) async fn tries_survive_a_crash(w: World) {
    let mail = w.new_mail().await;
    for left in [4, 3, 2] {
        assert_eq!(w.try_code(mail, 9, NOW).await, CodeTry::Wrong { left });
    }
    let store = w.backend.open_after_crash(super::world::BOUNDS).await;
    let tried = store.try_code(mail, hash(9), LIMITS, NOW).await.unwrap().unwrap();
    assert_eq!(tried, CodeTry::Wrong { left: 1 });
}

/// Random numbers of tries at once, right and wrong, new codes between: a small model says how many may have
/// been compared.
pub(crate) fn any_tries_at_once_match_the_model<B: Backend>(backend: impl Fn() -> B) {
    /// Tries at once (wrong ones, right ones), then whether another code is asked for.
    type Rounds = Vec<(usize, usize, bool)>;
    let rounds = proptest::collection::vec((0..8usize, 0..3usize, any::<bool>()), 1..6);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&rounds, |rounds: Rounds| {
            runtime.block_on(async {
                let w = World::new(backend()).await;
                tries_match(w, rounds).await;
            });
            Ok(())
        })
        .unwrap();
}

async fn tries_match(w: World, rounds: Vec<(usize, usize, bool)>) {
    let mail = w.new_mail().await;
    let (mut tries_of_code, mut wrong_today, mut verified) = (0, 0, false);
    for (minute, (wrong, right, renew)) in (0..).zip(rounds) {
        let now = NOW + minute * MINUTE;
        let tried = at_once(wrong + right, |n| {
            let store = w.store.clone();
            let presented = hash(if n < wrong { 9 } else { 1 });
            async move { store.try_code(mail, presented, LIMITS, now).await }
        });
        let (mut compared_wrong, mut compared_right) = (0, 0);
        for outcome in tried.await {
            match outcome.unwrap().unwrap() {
                CodeTry::Wrong { left } => {
                    compared_wrong += 1;
                    assert!(left < LIMITS.tries && !verified);
                }
                CodeTry::Verified => {
                    assert!(!verified, "verified once");
                    compared_right += 1;
                }
                CodeTry::AlreadyVerified => assert!(verified || right > 0),
                CodeTry::Exceeded { .. } => assert!(!verified),
                CodeTry::Expired => panic!("no code is that old"),
            }
        }
        assert!(compared_right <= 1);
        let room = (LIMITS.tries - tries_of_code).min(LIMITS.wrong_a_day - wrong_today);
        if verified {
            assert_eq!((compared_wrong, compared_right), (0, 0));
        } else if compared_right == 0 {
            // All that could be compared were, and no more.
            assert_eq!(compared_wrong, (wrong as u32).min(room));
            assert!(right == 0 || compared_wrong == room);
        } else {
            assert!(compared_wrong < room);
        }
        tries_of_code += compared_wrong + compared_right;
        wrong_today += compared_wrong;
        verified |= compared_right == 1;
        if renew && !verified {
            let issued = w.issue(mail, 1, now + MINUTE).await;
            assert_eq!(
                issued == CodeIssue::Issued,
                wrong_today < LIMITS.wrong_a_day,
                "{issued:?}"
            );
            if issued == CodeIssue::Issued {
                tries_of_code = 0;
            }
        }
    }
}
