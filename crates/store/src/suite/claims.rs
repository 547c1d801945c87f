//! Handing files to workers.

use std::collections::{HashMap, HashSet};

use docmill_model::ids::{FileId, WorkspaceId};
use docmill_model::job::TaskState;
use docmill_model::time::SECOND;

use super::World;
use super::world::{LEASE, NOW, at_once, retried, succeeded};
use crate::Claim;

pub(crate) async fn nothing_ready_claims_nothing(w: World) {
    assert!(w.claim(10).await.is_empty());
    w.create(2).await;
    assert!(w.claim(0).await.is_empty());
    assert_eq!(w.claim(10).await.len(), 2);
    assert!(w.claim(10).await.is_empty());
}

pub(crate) async fn a_claim_carries_what_the_worker_needs(w: World) {
    let job = w.new_job(1);
    w.add(job.clone()).await;
    let claim = w.claim_one().await;
    let file = &job.files[0];
    assert_eq!((claim.job, claim.workspace), (job.id, job.workspace));
    assert_eq!((claim.lease.file(), claim.size), (file.id, file.size));
    assert_eq!((&claim.name, &claim.content_type), (&file.name, &file.content_type));
    assert_eq!((&claim.input, &claim.chain), (&file.input, &job.chain));
    assert_eq!((claim.attempt, claim.lease.token()), (1, 1));
    let file = w.files(job.id).await.remove(0);
    assert_eq!(
        (file.state, file.attempt, file.started_at),
        (TaskState::Running, 1, Some(NOW))
    );
}

pub(crate) async fn first_come_first_served(w: World) {
    let (a, b) = (w.new_job(3), w.new_job(2));
    w.add(a.clone()).await;
    w.add(b.clone()).await;
    let expected: Vec<_> = a.files.iter().chain(&b.files).map(|file| file.id).collect();
    let mut claimed = Vec::new();
    for max in [1, 3, 2] {
        claimed.extend(w.claim(max).await.iter().map(|claim| claim.lease.file()));
    }
    assert_eq!(claimed, expected);
}

pub(crate) async fn many_claimers_share_without_doubles(w: World) {
    let w = w.with_limit(0).await;
    let other = w.another_workspace("b").await;
    let mut all: HashSet<FileId> = HashSet::new();
    for n in 0..20 {
        let mut job = w.new_job(10);
        if n % 2 == 0 {
            job.workspace = other;
        }
        all.extend(job.files.iter().map(|file| file.id));
        w.add(job).await;
    }
    let claims = at_once(64, |n| {
        let store = w.store.clone();
        async move {
            let mut mine = Vec::new();
            loop {
                let claims = store.claim(1 + n % 4, LEASE, NOW).await?;
                if claims.is_empty() {
                    return Ok(mine);
                }
                mine.extend(claims);
            }
        }
    });
    let claims: Vec<Claim> = claims.await.into_iter().flat_map(Result::unwrap).collect();
    let claimed: HashSet<FileId> = claims.iter().map(|claim| claim.lease.file()).collect();
    assert_eq!(claims.len(), 200, "no double");
    assert_eq!(claimed, all, "no loss");
    assert!(claims.iter().all(|claim| claim.lease.token() == 1));
}

fn by_workspace(claims: &[Claim]) -> HashMap<WorkspaceId, usize> {
    let mut counts = HashMap::new();
    for claim in claims {
        *counts.entry(claim.workspace).or_default() += 1;
    }
    counts
}

pub(crate) async fn fewest_running_comes_first(w: World) {
    let b = w.another_workspace("b").await;
    w.create(10).await;
    assert_eq!(w.claim(4).await.len(), 4);
    w.create_in(b, 10).await;
    // The first has four running, so the other catches up before they share.
    assert_eq!(by_workspace(&w.claim(3).await), HashMap::from([(b, 3)]));
    assert_eq!(
        by_workspace(&w.claim(5).await),
        HashMap::from([(w.workspace, 2), (b, 3)])
    );
    assert_eq!(
        by_workspace(&w.claim(100).await),
        HashMap::from([(w.workspace, 4), (b, 4)])
    );
}

pub(crate) async fn equals_take_turns(w: World) {
    let b = w.another_workspace("b").await;
    w.create(4).await;
    w.create_in(b, 4).await;
    // One worker that always finishes before it claims again: nobody ever has more running than another.
    let mut turns = Vec::new();
    for _ in 0..8 {
        let claim = w.claim_one().await;
        turns.push(claim.workspace);
        w.finish(claim.lease, succeeded(&claim)).await;
    }
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
}

pub(crate) async fn a_late_workspace_is_not_kept_waiting(w: World) {
    let w = w.with_limit(0).await;
    for _ in 0..10 {
        w.create(10).await;
    }
    w.claim(8).await;
    let late = w.another_workspace("late").await;
    w.create_in(late, 1).await;
    assert_eq!(w.claim_one().await.workspace, late);
}

pub(crate) async fn not_before_is_respected(w: World) {
    let job = w.new_job(2);
    w.add(job.clone()).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, retried(NOW + 10 * SECOND)).await;
    let other = w.claim(10).await;
    assert_eq!(other.len(), 1, "the second file overtakes the first");
    assert_eq!(other[0].lease.file(), job.files[1].id);
    let just_before = w.store.claim(10, LEASE, NOW + 10 * SECOND - 1).await.unwrap();
    assert!(just_before.is_empty());
    let then = w.store.claim(10, LEASE, NOW + 10 * SECOND).await.unwrap();
    assert_eq!(then.len(), 1);
    assert_eq!((then[0].lease.file(), then[0].attempt), (job.files[0].id, 2));
    let file = w.files(job.id).await.remove(0);
    assert_eq!(file.started_at, Some(NOW), "when it was first claimed");
}

pub(crate) async fn at_most_max_are_claimed(w: World) {
    for name in ["b", "c", "d"] {
        let workspace = w.another_workspace(name).await;
        w.create_in(workspace, 3).await;
    }
    assert_eq!(w.claim(2).await.len(), 2);
    assert_eq!(w.claim(5).await.len(), 5);
    assert_eq!(w.claim(usize::MAX).await.len(), 2);
}
