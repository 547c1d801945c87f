//! Random operations, and after each the store must look like a small model of it in memory.
//!
//! The model says what must hold: an acknowledged job never disappears; an account never runs more jobs
//! than it may; a file has one accepted result; what ended stays as it ended; a job has ended exactly when
//! all its files have; each transition has one event; fencing tokens grow.

use std::collections::{BTreeSet, HashMap};

use docmill_model::ids::{AccountId, FileId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus, TaskState};
use docmill_model::time::{Micros, SECOND};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::world::{NOW, blob_of, failed, new_job, output_keys, retried, retry_of, succeeded};
use super::{Backend, World};
use crate::{Claim, DeleteOutcome, FilePage, JobFilter, Lease, NewJob, StoreError};

/// Few, so that jobs wait.
const LIMIT: usize = 2;
const LEASE: Micros = 10 * SECOND;
const ATTEMPTS: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Success,
    Failure,
    Retry,
}

/// Numbers choose among what there is, round about.
#[derive(Clone, Debug)]
enum Op {
    Create { place: usize, files: usize },
    RetryJob { job: usize },
    Claim { max: usize },
    Finish { lease: usize, outcome: Outcome },
    Renew { lease: usize },
    Release { lease: usize },
    Stop { job: usize },
    Delete { job: usize },
    Expire,
    Recover { all: bool },
    Settle,
    Wait { seconds: i64 },
}

fn op() -> impl Strategy<Value = Op> {
    let number = 0..64usize;
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        2 => Just(Outcome::Failure),
        1 => Just(Outcome::Retry),
    ];
    prop_oneof![
        6 => (number.clone(), 0..4usize).prop_map(|(place, files)| Op::Create { place, files }),
        2 => number.clone().prop_map(|job| Op::RetryJob { job }),
        8 => (0..4usize).prop_map(|max| Op::Claim { max }),
        10 => (number.clone(), outcome).prop_map(|(lease, outcome)| Op::Finish { lease, outcome }),
        2 => number.clone().prop_map(|lease| Op::Renew { lease }),
        2 => number.clone().prop_map(|lease| Op::Release { lease }),
        2 => number.clone().prop_map(|job| Op::Stop { job }),
        2 => number.prop_map(|job| Op::Delete { job }),
        1 => Just(Op::Expire),
        2 => any::<bool>().prop_map(|all| Op::Recover { all }),
        1 => Just(Op::Settle),
        3 => (0..15i64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

/// Runs many random sequences, each against a fresh store.
pub(crate) fn random_operations<B: Backend>(backend: impl Fn() -> B) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config {
        cases: 32,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&prop::collection::vec(op(), 1..80), |ops| {
            runtime.block_on(run(backend(), &ops));
            Ok(())
        })
        .unwrap();
}

async fn run(backend: impl Backend, ops: &[Op]) {
    let world = World::new(backend).await.with_limit(LIMIT as u32).await;
    let second = world.another_workspace("second").await;
    let (account, third) = world.another_account("third").await;
    let places = vec![
        (world.account, world.workspace),
        (world.account, second),
        (account, third),
    ];
    let mut pair = Pair {
        world,
        places,
        model: Model::default(),
        held: Vec::new(),
        now: NOW,
    };
    for op in ops {
        pair.apply(op).await;
        pair.compare(false).await;
    }
    pair.compare(true).await;
}

#[derive(Debug)]
struct File {
    id: FileId,
    state: TaskState,
    attempt: u32,
    token: i64,
    lease_until: Micros,
    not_before: Micros,
}

#[derive(Debug)]
struct Modelled {
    new: NewJob,
    status: JobStatus,
    ended_at: Micros,
    files: Vec<File>,
    events: Vec<EventType>,
    blobs: BTreeSet<String>,
}

impl Modelled {
    fn enter(&mut self, status: JobStatus, now: Micros) {
        assert!(!self.status.is_terminal());
        self.status = status;
        self.events.push(status.event());
        self.ended_at = now;
    }

    fn count(&self, state: TaskState) -> usize {
        self.files.iter().filter(|file| file.state == state).count()
    }
}

/// The store in memory. Deleted jobs leave their blobs.
#[derive(Default)]
struct Model {
    jobs: Vec<Modelled>,
    deleted_blobs: BTreeSet<String>,
}

impl Model {
    fn create(&mut self, new: NewJob, now: Micros) {
        let files = new.files.iter().map(|file| File {
            id: file.id,
            state: TaskState::Waiting,
            attempt: 0,
            token: 0,
            lease_until: 0,
            not_before: 0,
        });
        let (account, fresh) = (new.account, self.jobs.len());
        self.jobs.push(Modelled {
            files: files.collect(),
            status: JobStatus::Scheduled,
            ended_at: 0,
            events: vec![EventType::JobScheduled],
            blobs: new.files.iter().map(|file| blob_of(&file.input)).collect(),
            new,
        });
        self.admit(account, Some(fresh), now);
    }

    fn admit(&mut self, account: AccountId, fresh: Option<usize>, now: Micros) {
        let running = |job: &Modelled| job.new.account == account && job.status == JobStatus::InProgress;
        for at in 0..self.jobs.len() {
            if self.jobs.iter().filter(|job| running(job)).count() >= LIMIT {
                return;
            }
            let job = &mut self.jobs[at];
            if job.new.account != account || job.status != JobStatus::Scheduled {
                continue;
            }
            job.enter(JobStatus::InProgress, now);
            for file in &mut job.files {
                file.state = TaskState::Ready;
            }
            if job.files.is_empty() && fresh != Some(at) {
                job.enter(JobStatus::Completed, now);
            }
        }
    }

    fn file(&mut self, lease: Lease) -> Option<(usize, usize)> {
        self.jobs.iter().enumerate().find_map(|(at, job)| {
            let live = |file: &File| {
                file.id == lease.file() && file.token == lease.token() && file.state == TaskState::Running
            };
            Some((at, job.files.iter().position(live)?))
        })
    }

    fn end_file(&mut self, (job, file): (usize, usize), state: TaskState, now: Micros) {
        let ended = &mut self.jobs[job];
        ended.files[file].state = state;
        let (good, bad) = (ended.count(TaskState::Succeeded), ended.count(TaskState::Failed));
        if good + bad < ended.files.len() {
            return;
        }
        let failed = good == 0 && bad > 0;
        ended.enter(
            if failed {
                JobStatus::Failed
            } else {
                JobStatus::Completed
            },
            now,
        );
        let account = ended.new.account;
        self.admit(account, None, now);
    }

    fn delete(&mut self, at: usize) {
        let job = self.jobs.remove(at);
        self.deleted_blobs.extend(job.blobs);
    }
}

struct Pair {
    world: World,
    places: Vec<(AccountId, WorkspaceId)>,
    model: Model,
    /// Everything that was ever claimed: most of it is stale.
    held: Vec<Claim>,
    now: Micros,
}

/// The item a number stands for.
fn pick<T>(items: &[T], number: usize) -> Option<(usize, &T)> {
    let at = number.checked_rem(items.len())?;
    items.get(at).map(|item| (at, item))
}

impl Pair {
    async fn apply(&mut self, op: &Op) {
        let (store, now) = (self.world.store.clone(), self.now);
        match *op {
            Op::Create { place, files } => {
                let (account, workspace) = self.places[place % self.places.len()];
                self.create(new_job(account, workspace, files)).await;
            }
            Op::RetryJob { job } => {
                if let Some((_, job)) = pick(&self.model.jobs, job) {
                    self.create(retry_of(&job.new)).await;
                }
            }
            Op::Claim { max } => self.claim(max).await,
            Op::Finish { lease, outcome } => self.finish(lease, outcome).await,
            Op::Renew { lease } => {
                let Some((_, claim)) = pick(&self.held, lease) else {
                    return;
                };
                let lost = store.renew(&[claim.lease], now + LEASE).await.unwrap();
                match self.model.file(claim.lease) {
                    None => assert_eq!(lost, [claim.lease]),
                    Some((job, file)) => {
                        assert!(lost.is_empty());
                        self.model.jobs[job].files[file].lease_until = now + LEASE;
                    }
                }
            }
            Op::Release { lease } => {
                let Some((_, claim)) = pick(&self.held, lease) else {
                    return;
                };
                store.release(claim.lease).await.unwrap();
                if let Some((job, file)) = self.model.file(claim.lease) {
                    let file = &mut self.model.jobs[job].files[file];
                    file.state = TaskState::Ready;
                    file.attempt -= 1;
                }
            }
            Op::Stop { job } => self.stop(job).await,
            Op::Delete { job } => self.delete(job).await,
            Op::Expire => {
                let before = now - 20 * SECOND;
                let old = |job: &Modelled| job.status.is_terminal() && job.ended_at < before;
                let expired = store.expire_jobs(before, 100).await.unwrap();
                let count = self.model.jobs.len();
                while let Some(at) = self.model.jobs.iter().position(old) {
                    self.model.delete(at);
                }
                assert_eq!(expired as usize, count - self.model.jobs.len());
            }
            Op::Recover { all } => self.recover(all).await,
            Op::Settle => {
                store.settle(now).await.unwrap();
                for at in 0..self.model.jobs.len() {
                    let job = &mut self.model.jobs[at];
                    if job.files.is_empty() && job.status == JobStatus::InProgress {
                        job.enter(JobStatus::Completed, now);
                    }
                }
                for (account, _) in self.places.clone() {
                    self.model.admit(account, None, now);
                }
            }
            Op::Wait { seconds } => self.now += seconds * SECOND,
        }
    }

    async fn create(&mut self, job: NewJob) {
        self.world.store.create_job(job.clone(), self.now).await.unwrap();
        self.model.create(job, self.now);
    }

    async fn claim(&mut self, max: usize) {
        let now = self.now;
        let claims = self.world.store.claim(max, now + LEASE, now).await.unwrap();
        let mut ready: HashMap<WorkspaceId, Vec<FileId>> = HashMap::new();
        for job in &self.model.jobs {
            let files = job.files.iter();
            let files = files.filter(|file| file.state == TaskState::Ready && file.not_before <= now);
            ready
                .entry(job.new.workspace)
                .or_default()
                .extend(files.map(|file| file.id));
        }
        let total: usize = ready.values().map(Vec::len).sum();
        assert_eq!(claims.len(), max.min(total), "as many as there are");
        for claim in claims {
            let first = ready.get_mut(&claim.workspace).unwrap().remove(0);
            assert_eq!(claim.lease.file(), first, "first come, first served in a workspace");
            let job = self.model.jobs.iter_mut().find(|job| job.new.id == claim.job).unwrap();
            let file = job.files.iter_mut().find(|file| file.id == first).unwrap();
            assert!(claim.lease.token() > file.token, "tokens grow");
            file.state = TaskState::Running;
            file.attempt += 1;
            file.token = claim.lease.token();
            file.lease_until = now + LEASE;
            assert_eq!(claim.attempt, file.attempt);
            self.held.push(claim);
        }
    }

    async fn finish(&mut self, number: usize, outcome: Outcome) {
        let now = self.now;
        let Some((_, claim)) = pick(&self.held, number) else {
            return;
        };
        let what = match outcome {
            Outcome::Success => succeeded(claim),
            Outcome::Failure => failed("x"),
            Outcome::Retry => retried(now + SECOND),
        };
        let result = self.world.store.finish(claim.lease, what, now).await;
        let Some((job, file)) = self.model.file(claim.lease) else {
            assert!(matches!(result, Err(StoreError::LeaseLost)), "{result:?}");
            return;
        };
        result.unwrap();
        match outcome {
            Outcome::Success => {
                let keys = output_keys(claim).into_iter().map(|output| output.2);
                self.model.jobs[job].blobs.extend(keys);
                self.model.end_file((job, file), TaskState::Succeeded, now);
            }
            Outcome::Failure => self.model.end_file((job, file), TaskState::Failed, now),
            Outcome::Retry => {
                let file = &mut self.model.jobs[job].files[file];
                file.state = TaskState::Ready;
                file.not_before = now + SECOND;
            }
        }
    }

    async fn stop(&mut self, number: usize) {
        let now = self.now;
        let Some((at, job)) = pick(&self.model.jobs, number) else {
            return;
        };
        let before = self.world.store.stop_job(job.new.workspace, job.new.id, now).await;
        assert_eq!(before.unwrap(), Some(job.status));
        let job = &mut self.model.jobs[at];
        if job.status.is_terminal() {
            return;
        }
        job.enter(JobStatus::Stopped, now);
        for file in &mut job.files {
            if matches!(file.state, TaskState::Waiting | TaskState::Ready | TaskState::Running) {
                file.state = TaskState::Stopped;
            }
        }
        let account = job.new.account;
        self.model.admit(account, None, now);
    }

    async fn delete(&mut self, number: usize) {
        let Some((at, job)) = pick(&self.model.jobs, number) else {
            return;
        };
        let outcome = self
            .world
            .store
            .delete_job(job.new.workspace, job.new.id)
            .await
            .unwrap();
        if job.status.is_terminal() {
            assert_eq!(outcome, DeleteOutcome::Deleted);
            self.model.delete(at);
        } else {
            assert_eq!(outcome, DeleteOutcome::NotEnded);
        }
    }

    async fn recover(&mut self, all: bool) {
        let now = self.now;
        let count = self.world.store.recover(all, ATTEMPTS, now).await.unwrap();
        let mut gone = Vec::new();
        for (job, modelled) in self.model.jobs.iter().enumerate() {
            for (at, file) in modelled.files.iter().enumerate() {
                if file.state == TaskState::Running && (all || file.lease_until < now) {
                    gone.push((job, at));
                }
            }
        }
        assert_eq!(count as usize, gone.len());
        for (job, at) in gone {
            let file = &mut self.model.jobs[job].files[at];
            if file.attempt < ATTEMPTS {
                file.state = TaskState::Ready;
                file.not_before = 0;
            } else {
                self.model.end_file((job, at), TaskState::Failed, now);
            }
        }
    }

    /// The store looks like the model; with `deep`, in every detail.
    async fn compare(&self, deep: bool) {
        let store = &self.world.store;
        for (_, workspace) in &self.places {
            let listed = store.jobs(*workspace, &JobFilter::default()).await.unwrap();
            let expected = self.model.jobs.iter().rev();
            let expected: Vec<_> = expected.filter(|job| job.new.workspace == *workspace).collect();
            assert_eq!(listed.len(), expected.len(), "no job disappears, none appears");
            for (job, modelled) in listed.iter().zip(expected) {
                assert_eq!((job.id, job.status), (modelled.new.id, modelled.status));
                assert_eq!(job.files_succeeded as usize, modelled.count(TaskState::Succeeded));
                assert_eq!(job.files_failed as usize, modelled.count(TaskState::Failed));
                if deep {
                    self.compare_job(modelled).await;
                }
            }
        }
        for (account, _) in &self.places {
            let jobs = self.model.jobs.iter().filter(|job| job.new.account == *account);
            let running = jobs.filter(|job| job.status == JobStatus::InProgress);
            assert!(running.count() <= LIMIT);
        }
        let garbage: BTreeSet<_> = store.garbage(10_000).await.unwrap().into_iter().collect();
        let referenced = |key: &&String| self.model.jobs.iter().any(|job| job.blobs.contains(*key));
        let expected = self.model.deleted_blobs.iter().filter(|key| !referenced(key)).cloned();
        assert_eq!(garbage, expected.collect(), "garbage is what nobody refers to any more");
    }

    async fn compare_job(&self, modelled: &Modelled) {
        let (store, new) = (&self.world.store, &modelled.new);
        let files = store
            .job_files(new.workspace, new.id, FilePage::ALL)
            .await
            .unwrap()
            .unwrap();
        for (file, expected) in files.iter().zip(&modelled.files) {
            assert_eq!(
                (file.id, file.state, file.attempt),
                (expected.id, expected.state, expected.attempt)
            );
        }
        let open = |state| matches!(state, TaskState::Waiting | TaskState::Ready | TaskState::Running);
        if !files.is_empty() {
            let all_ended = files.iter().all(|file| !open(file.state));
            assert_eq!(
                modelled.status.is_terminal(),
                all_ended,
                "a job ends with its last file"
            );
        }
        let events = store.events(new.workspace, new.id, 0).await.unwrap();
        let sequences: Vec<_> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, (1..=events.len() as i64).collect::<Vec<_>>());
        let types: Vec<_> = events.iter().map(|event| event.event_type).collect();
        assert_eq!(types, modelled.events, "one event for each transition");
    }
}
