//! Nodes that call models: checkpoints, kept answers, costs.

use std::collections::BTreeSet;

use docmill_model::ids::{FileId, JobId};
use docmill_model::time::SECOND;
use serde_json::json;

use super::World;
use super::world::{LEASE, NOW, failed, new_file, output_keys, succeeded};
use crate::{CallRecord, Checkpoint, Claim, Cost, DeleteOutcome, FileOutcome, NewJob, StoreError};

const DAY: i64 = 24 * 3_600 * SECOND;

fn checkpoint(keys: &[&str]) -> Checkpoint {
    Checkpoint {
        outputs: keys.iter().map(|key| ((*key).to_owned(), 5)).collect(),
        content_hash: Some("h".into()),
        state: json!({"pages": 3}),
    }
}

fn cost(calls: u64, price: Option<i64>) -> Cost {
    Cost {
        model: "openai/m".into(),
        calls,
        cached: 1,
        retries: 2,
        tokens_in: 30,
        tokens_out: 4,
        millis: 50,
        price,
    }
}

fn record(claim: &Claim, node: u32, answers: &[(&str, usize)]) -> CallRecord {
    CallRecord {
        workspace: claim.workspace,
        job: claim.job,
        file: claim.lease.file(),
        node,
        cost: cost(answers.len() as u64, Some(7)),
        month: "2026-11".into(),
        answers: answers
            .iter()
            .map(|(key, size)| ((*key).to_owned(), vec![b'a'; *size]))
            .collect(),
        used: Vec::new(),
    }
}

impl World {
    async fn save(&self, claim: &Claim, keys: &[&str]) -> crate::Result<()> {
        self.store.save_checkpoint(claim.lease, checkpoint(keys)).await
    }

    async fn rubbish(&self) -> BTreeSet<String> {
        self.store.garbage(1000).await.unwrap().into_iter().collect()
    }

    /// Which of these answers are kept.
    async fn kept(&self, keys: &[&str]) -> BTreeSet<String> {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let answers = self.store.answers(self.workspace, &keys).await.unwrap();
        answers.into_iter().map(|(key, _)| key).collect()
    }

    /// A job of one file that failed after a checkpoint.
    async fn failed_after(&self, keys: &[&str]) -> NewJob {
        let job = self.new_job(1);
        self.add(job.clone()).await;
        let claim = self.claim_one().await;
        self.save(&claim, keys).await.unwrap();
        self.finish(claim.lease, failed("x")).await;
        job
    }

    /// Its retry, going on from the checkpoint.
    async fn resumed(&self, job: &NewJob) -> JobId {
        let mut retry = self.new_job(0);
        retry.retry_of = Some(job.id);
        for file in &job.files {
            let mut again = new_file(self.workspace, &file.name);
            again.input = file.input.clone();
            again.resumes = Some(file.id);
            retry.files.push(again);
        }
        self.add(retry).await
    }
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

pub(crate) async fn a_checkpoint_reads_back_and_is_replaced(w: World) {
    w.create(1).await;
    let claim = w.claim_one().await;
    let file = claim.lease.file();
    assert_eq!(w.store.checkpoint(file).await.unwrap(), None);
    w.save(&claim, &["a", "b"]).await.unwrap();
    assert_eq!(w.store.checkpoint(file).await.unwrap(), Some(checkpoint(&["a", "b"])));
    w.save(&claim, &["a", "c", "d"]).await.unwrap();
    assert_eq!(
        w.store.checkpoint(file).await.unwrap(),
        Some(checkpoint(&["a", "c", "d"]))
    );
    assert_eq!(w.rubbish().await, set(&["b"]), "what is not needed any more");
    let keys: Vec<_> = ["a", "b", "c"].iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(w.store.unreferenced(&keys).await.unwrap(), ["b"]);
}

pub(crate) async fn a_lost_lease_saves_no_checkpoint(w: World) {
    w.create(1).await;
    let stale = w.claim_one().await;
    w.save(&stale, &["a"]).await.unwrap();
    assert_eq!(w.store.recover(false, 9, LEASE + 1).await.unwrap(), 1);
    assert!(matches!(w.save(&stale, &["b"]).await, Err(StoreError::LeaseLost)));
    let live = w.claim_one().await;
    assert!(matches!(w.save(&stale, &["b"]).await, Err(StoreError::LeaseLost)));
    let found = w.store.checkpoint(live.lease.file()).await.unwrap();
    assert_eq!(found, Some(checkpoint(&["a"])), "the next attempt goes on there");
    assert!(w.rubbish().await.is_empty());
}

pub(crate) async fn success_ends_a_checkpoint_and_keeps_its_outputs(w: World) {
    w.create(2).await;
    for kept in [true, false] {
        let claim = w.claim_one().await;
        let keys: Vec<_> = output_keys(&claim).into_iter().map(|(_, _, key, _)| key).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        w.save(&claim, &keys).await.unwrap();
        let outcome = match succeeded(&claim) {
            FileOutcome::Succeeded {
                warnings,
                elements,
                pages,
                routes,
                content_hash,
                ..
            } if !kept => FileOutcome::Succeeded {
                outputs: Vec::new(),
                warnings,
                elements,
                pages,
                routes,
                content_hash,
            },
            all => all,
        };
        w.finish(claim.lease, outcome).await;
        assert_eq!(w.store.checkpoint(claim.lease.file()).await.unwrap(), None);
        let expected = if kept { BTreeSet::new() } else { set(&keys) };
        assert_eq!(w.rubbish().await, expected);
    }
}

pub(crate) async fn a_retry_goes_on_from_its_originals_checkpoint(w: World) {
    let job = w.failed_after(&["a", "b"]).await;
    let retry = w.resumed(&job).await;
    let claim = w.claim_one().await;
    assert_eq!(claim.job, retry);
    let found = w.store.checkpoint(claim.lease.file()).await.unwrap();
    assert_eq!(found, Some(checkpoint(&["a", "b"])));
    assert!(
        w.store.checkpoint(job.files[0].id).await.unwrap().is_some(),
        "the original's stays"
    );
}

pub(crate) async fn a_checkpoints_blobs_go_with_the_last_job_that_needs_them(w: World) {
    let job = w.failed_after(&["a", "b"]).await;
    let retry = w.resumed(&job).await;
    let claim = w.claim_one().await;
    let mut outcome = succeeded(&claim);
    if let FileOutcome::Succeeded { outputs, .. } = &mut outcome {
        outputs[0].2 = "a".into();
        outputs[1].2 = "b2".into();
    }
    w.finish(claim.lease, outcome).await;
    let deleted = w.store.delete_job(w.workspace, job.id).await.unwrap();
    assert_eq!(deleted, DeleteOutcome::Deleted);
    assert!(!w.rubbish().await.contains("a"), "it is the retry's output");
    assert!(w.rubbish().await.contains("b"));
    w.store.delete_job(w.workspace, retry).await.unwrap();
    assert!(w.rubbish().await.is_superset(&set(&["a", "b", "b2"])));
}

pub(crate) async fn answers_are_kept_by_workspace(w: World) {
    w.create(1).await;
    let claim = w.claim_one().await;
    w.store
        .record_calls(record(&claim, 1, &[("k1", 3), ("k2", 4)]), 1_000, NOW)
        .await
        .unwrap();
    let keys = ["k1".to_owned(), "k3".to_owned()];
    let found = w.store.answers(w.workspace, &keys).await.unwrap();
    assert_eq!(found, [("k1".to_owned(), b"aaa".to_vec())]);
    let other = w.another_workspace("other").await;
    assert!(w.store.answers(other, &keys).await.unwrap().is_empty());
    w.store.forget_answers(other, vec!["k1".into()]).await.unwrap();
    assert_eq!(w.kept(&["k1", "k2"]).await, set(&["k1", "k2"]));
    w.store.forget_answers(w.workspace, vec!["k1".into()]).await.unwrap();
    assert_eq!(w.kept(&["k1", "k2"]).await, set(&["k2"]));
    w.store
        .record_calls(record(&claim, 1, &[("k4", 3)]), 0, NOW)
        .await
        .unwrap();
    assert!(w.kept(&["k4"]).await.is_empty(), "0 bytes keep none");
}

pub(crate) async fn of_too_many_answers_the_least_recently_used_go(w: World) {
    w.create(1).await;
    let claim = w.claim_one().await;
    let keep = async |key: &str, max_bytes: u64, at: i64| {
        let record = record(&claim, 1, &[(key, 10)]);
        w.store.record_calls(record, max_bytes, at).await.unwrap();
    };
    for (n, key) in (0..).zip(["a", "b", "c"]) {
        keep(key, 25, NOW + n * SECOND).await;
    }
    assert_eq!(w.kept(&["a", "b", "c"]).await.len(), 3, "none of them is a day old");
    let mut used = record(&claim, 1, &[]);
    used.used = vec!["a".into()];
    w.store.record_calls(used, 25, NOW + DAY).await.unwrap();
    keep("d", 35, NOW + DAY + 2 * SECOND).await;
    assert_eq!(w.kept(&["a", "b", "c", "d"]).await, set(&["a", "c", "d"]));
    keep("e", 15, NOW + DAY + 2 * SECOND).await;
    assert_eq!(
        w.kept(&["a", "b", "c", "d", "e"]).await,
        set(&["c", "d", "e"]),
        "the others are not a day old"
    );
}

pub(crate) async fn unused_answers_expire(w: World) {
    w.create(1).await;
    let claim = w.claim_one().await;
    w.store
        .record_calls(record(&claim, 1, &[("a", 10), ("b", 10)]), 1_000, NOW)
        .await
        .unwrap();
    let mut used = record(&claim, 1, &[]);
    used.used = vec!["a".into()];
    w.store.record_calls(used, 1_000, NOW + DAY).await.unwrap();
    assert_eq!(w.store.expire_answers(NOW, 10).await.unwrap(), 0);
    assert_eq!(w.store.expire_answers(NOW + SECOND, 10).await.unwrap(), 1);
    assert_eq!(w.kept(&["a", "b"]).await, set(&["a"]));
}

pub(crate) async fn costs_add_up_by_file_job_and_month(w: World) {
    let job = w.create(2).await;
    let claims = w.claim(2).await;
    for claim in &claims {
        for node in [1, 2, 1] {
            w.store
                .record_calls(record(claim, node, &[("x", 1)]), 0, NOW)
                .await
                .unwrap();
        }
    }
    let mut unpriced = record(&claims[0], 2, &[]);
    unpriced.cost = cost(0, None);
    unpriced.month = "2026-12".into();
    w.store.record_calls(unpriced, 0, NOW).await.unwrap();
    let costs = w.store.job_costs(w.workspace, job).await.unwrap();
    let told: Vec<_> = costs
        .iter()
        .map(|(node, cost)| (*node, cost.calls, cost.tokens_in, cost.price))
        .collect();
    assert_eq!(told, [(1, 4, 120, Some(28)), (2, 2, 90, Some(14))]);
    let files: Vec<FileId> = claims.iter().map(|claim| claim.lease.file()).collect();
    let of_file = w.store.file_costs(w.workspace, job, &files[..1]).await.unwrap();
    let told: Vec<_> = of_file
        .iter()
        .map(|one| (one.file, one.node, one.cost.calls, one.cost.price))
        .collect();
    assert_eq!(told, [(files[0], 1, 2, Some(14)), (files[0], 2, 1, Some(7))]);
    assert_eq!(w.store.spent(w.workspace, "2026-11").await.unwrap(), 42);
    assert_eq!(w.store.spent(w.workspace, "2026-12").await.unwrap(), 0);
    let other = w.another_workspace("other").await;
    assert_eq!(w.store.spent(other, "2026-11").await.unwrap(), 0);
    assert!(w.store.job_costs(other, job).await.unwrap().is_empty());
    assert!(w.store.file_costs(other, job, &files).await.unwrap().is_empty());

    for claim in &claims {
        w.finish(claim.lease, failed("x")).await;
    }
    w.store.delete_job(w.workspace, job).await.unwrap();
    assert!(w.store.job_costs(w.workspace, job).await.unwrap().is_empty());
    assert_eq!(
        w.store.spent(w.workspace, "2026-11").await.unwrap(),
        42,
        "what is spent is spent"
    );
    w.store.record_calls(record(&claims[0], 1, &[]), 0, NOW).await.unwrap();
    assert!(
        w.store.job_costs(w.workspace, job).await.unwrap().is_empty(),
        "the job is gone"
    );
}
