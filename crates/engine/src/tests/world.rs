//! An engine with everything around it made up, but for the store.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_connectors::{ConnectorError, Destination, Document, Environment, ErrorKind, Result, Source};
use docmill_egress::{Egress, Policy};
use docmill_model::connector::{ConnectorRole, SourceObject};
use docmill_model::ids::{ConnectorId, JobId};
use docmill_model::limits::ParseLimits;
use docmill_model::workflow::{Schedule, WorkflowState, WorkflowType};
use docmill_notify::Sender;
use docmill_sandbox::Usage;
use docmill_store::blob::BlobStore;
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{FilePage, Job, JobFile, NewConnector, Principal, Store, Workflow, WorkflowDefinition};
use futures_util::stream::{self, BoxStream, StreamExt};
use ipnet::IpNet;
use serde_json::json;
use tempfile::TempDir;

use crate::connections::TestConnector;
use crate::{Engine, EngineConfig, NotificationConfig, RunOutput, Runner, Vault, access, now};

/// A source in memory.
#[derive(Default)]
pub(crate) struct FakeSource {
    /// Name, content and version.
    pub(crate) objects: Mutex<BTreeMap<String, (Bytes, Option<String>)>>,
    /// Goes on for ever after its objects.
    pub(crate) endless: AtomicBool,
    /// Listing hangs after its objects.
    pub(crate) silent: AtomicBool,
    /// Listings and fetches that fail before one works.
    pub(crate) list_failures: Mutex<Vec<ErrorKind>>,
    pub(crate) fetch_failures: Mutex<Vec<ErrorKind>>,
    /// Fetching hangs.
    pub(crate) fetch_hangs: AtomicBool,
    pub(crate) listings: AtomicU64,
    pub(crate) fetches: AtomicU64,
    /// Objects the last listing was asked for.
    pub(crate) pulled: Arc<AtomicU64>,
}

impl FakeSource {
    pub(crate) fn put(&self, name: &str, content: &str, version: Option<&str>) {
        let entry = (Bytes::from(content.to_owned()), version.map(str::to_owned));
        self.objects.lock().unwrap().insert(name.to_owned(), entry);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.objects.lock().unwrap().remove(name);
    }
}

fn object(name: &str, size: u64, version: Option<String>) -> SourceObject {
    SourceObject {
        locator: format!("loc:{name}"),
        name: name.to_owned(),
        size: Some(size),
        version,
        content_type: None,
        data_source: json!({"url": format!("fake://{name}")}),
    }
}

fn broken(failures: &Mutex<Vec<ErrorKind>>) -> Result<()> {
    match failures.lock().unwrap().pop() {
        Some(kind) => Err(ConnectorError::new(kind, "made to fail")),
        None => Ok(()),
    }
}

#[async_trait]
impl Source for FakeSource {
    async fn check(&self) -> Result<()> {
        broken(&self.list_failures)
    }

    fn list(&self, after: Option<String>) -> BoxStream<'_, Result<SourceObject>> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        self.pulled.store(0, Ordering::SeqCst);
        let pulled = self.pulled.clone();
        let objects = self.objects.lock().unwrap();
        let objects: Vec<_> = objects
            .iter()
            .map(|(name, (content, version))| object(name, content.len() as u64, version.clone()))
            .filter(|object| after.as_ref().is_none_or(|after| object.locator > *after))
            .map(Ok)
            .collect();
        let objects = stream::iter(objects);
        let failure = stream::iter(broken(&self.list_failures).err().map(Err));
        let more = if self.endless.load(Ordering::SeqCst) {
            stream::iter(0u64..)
                .map(|n| Ok(object(&format!("more/{n:09}"), 4, None)))
                .boxed()
        } else if self.silent.load(Ordering::SeqCst) {
            stream::pending().boxed()
        } else {
            stream::empty().boxed()
        };
        objects
            .chain(failure)
            .chain(more)
            .inspect(move |_| {
                pulled.fetch_add(1, Ordering::SeqCst);
            })
            .boxed()
    }

    async fn fetch(&self, object: &SourceObject, max_bytes: u64) -> Result<Bytes> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        if self.fetch_hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        broken(&self.fetch_failures)?;
        if object.name.starts_with("more/") {
            return Ok(Bytes::from_static(b"more"));
        }
        let objects = self.objects.lock().unwrap();
        let (content, _) = objects
            .get(&object.name)
            .ok_or_else(|| ConnectorError::new(ErrorKind::Missing, "it is gone"))?;
        if content.len() as u64 > max_bytes {
            return Err(ConnectorError::new(ErrorKind::TooLarge, "too large"));
        }
        Ok(content.clone())
    }
}

/// A destination in memory.
#[derive(Default)]
pub(crate) struct FakeDestination {
    /// Name and elements by record id.
    pub(crate) documents: Mutex<BTreeMap<String, (String, Bytes)>>,
    pub(crate) puts: AtomicU64,
    pub(crate) put_failures: Mutex<Vec<ErrorKind>>,
    pub(crate) put_hangs: AtomicBool,
}

impl FakeDestination {
    /// Name and text of each document, by name.
    pub(crate) fn held(&self) -> Vec<(String, String)> {
        let documents = self.documents.lock().unwrap();
        let mut held: Vec<_> = documents
            .values()
            .map(|(name, elements)| (name.clone(), String::from_utf8_lossy(elements).into_owned()))
            .collect();
        held.sort();
        held
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.held().into_iter().map(|(name, _)| name).collect()
    }
}

#[async_trait]
impl Destination for FakeDestination {
    async fn check(&self) -> Result<()> {
        broken(&self.put_failures)
    }

    async fn put(&self, document: &Document) -> Result<()> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        if self.put_hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        broken(&self.put_failures)?;
        let held = (document.name.clone(), document.elements.clone());
        self.documents.lock().unwrap().insert(document.record_id.clone(), held);
        Ok(())
    }

    async fn delete(&self, record_id: &str, _name: &str) -> Result<()> {
        broken(&self.put_failures)?;
        self.documents.lock().unwrap().remove(record_id);
        Ok(())
    }
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) principal: Principal,
    pub(crate) source: Arc<FakeSource>,
    pub(crate) destination: Arc<FakeDestination>,
    pub(crate) source_id: ConnectorId,
    pub(crate) destination_id: ConnectorId,
    pub(crate) home: TempDir,
    /// How its servers tell of events.
    pub(crate) notifications: NotificationConfig,
}

pub(crate) fn config() -> EngineConfig {
    EngineConfig {
        lease: Duration::from_secs(30),
        max_attempts: 20,
        drain: Duration::from_secs(5),
        retention: None,
        create_gap: Duration::ZERO,
        max_file_bytes: 1_000,
        max_files_per_run: None,
        models: crate::Models::none(),
        parse_limits: ParseLimits::default(),
    }
}

/// The only work of the made up child processes: the document is the text, the scope and the folder.
fn runner() -> Runner {
    Runner::pretending(2, |request, input, _| {
        let text = String::from_utf8_lossy(input);
        let element = json!([{
            "text": text, "scope": request.scope, "filename": request.filename,
            "folder": request.file_directory, "data_source": request.data_source,
        }]);
        Ok(RunOutput {
            inspection: None,
            routes: Vec::new(),
            outputs: vec![Bytes::from(element.to_string()); request.chain.nodes().len()],
            warnings: Vec::new(),
            elements: 1,
            pages: 0,
            filetype: None,
            usage: Usage::default(),
        })
    })
}

/// Mails as files.
fn files(home: &TempDir) -> NotificationConfig {
    NotificationConfig::files(home.path().join("outbox"), Sender::parse("mill@example.com").unwrap())
}

fn engine_on(
    home: &TempDir,
    store: &Arc<SqliteStore>,
    config: EngineConfig,
    notifications: NotificationConfig,
) -> Engine {
    Engine::new(
        store.clone(),
        BlobStore::local(&home.path().join("blobs")).unwrap(),
        runner(),
        Environment {
            egress: Egress::new(Policy {
                allow: vec![IpNet::from(IpAddr::from([127, 0, 0, 1]))],
                allow_http: true,
                ..Policy::default()
            }),
            local_roots: Some(vec![home.path().to_owned()]),
            ambient_credentials: false,
        },
        Vault::new(&[1; 32]).unwrap(),
        config,
        notifications,
    )
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(config()).await
    }

    pub(crate) async fn with(config: EngineConfig) -> Self {
        Self::telling(config, |_| ()).await
    }

    pub(crate) async fn telling(config: EngineConfig, change: impl FnOnce(&mut NotificationConfig)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut notifications = files(&home);
        change(&mut notifications);
        let slots = Slots {
            local_jobs: 5,
            workflow_jobs: 5,
        };
        let store = Arc::new(SqliteStore::open(&home.path().join("db"), slots).await.unwrap());
        let workspace = access::ensure_default_workspace(store.as_ref(), now()).await.unwrap();
        let account = store.accounts().await.unwrap()[0].id;
        let key = store
            .create_key(access::key_record(workspace, "test", "dm_test-key"), now())
            .await
            .unwrap();
        let principal = Principal {
            account,
            workspace,
            key,
        };
        let engine = engine_on(&home, &store, config, notifications.clone());
        let mut world = Self {
            engine,
            store,
            principal,
            source: Arc::default(),
            destination: Arc::default(),
            source_id: ConnectorId::new(),
            destination_id: ConnectorId::new(),
            home,
            notifications,
        };
        world.source_id = world.add_source(world.source.clone()).await;
        let destination = TestConnector::Destination(world.destination.clone());
        world.destination_id = world.connect(ConnectorRole::Destination, destination).await;
        world
    }

    /// Another server on the same store, with the same source and destination.
    pub(crate) fn next_server(&self) -> Engine {
        let engine = engine_on(&self.home, &self.store, config(), self.notifications.clone());
        let connections = &engine.shared.connections;
        connections.adopt(self.source_id, TestConnector::Source(self.source.clone()));
        connections.adopt(
            self.destination_id,
            TestConnector::Destination(self.destination.clone()),
        );
        engine
    }

    pub(crate) async fn add_source(&self, source: Arc<FakeSource>) -> ConnectorId {
        self.connect(ConnectorRole::Source, TestConnector::Source(source)).await
    }

    async fn connect(&self, role: ConnectorRole, opened: TestConnector) -> ConnectorId {
        let id = ConnectorId::new();
        let new = NewConnector {
            id,
            workspace: self.principal.workspace,
            role,
            name: "fake".into(),
            key: None,
            kind: "fake".into(),
            config: json!({}),
        };
        self.store.create_connector(new, now()).await.unwrap();
        self.engine.shared.connections.adopt(id, opened);
        id
    }

    /// From the source to the destination, with one partition node.
    pub(crate) fn definition(&self) -> WorkflowDefinition {
        let nodes = json!([{"name": "partition", "type": "partition", "subtype": "unstructured_api", "settings": {}}]);
        WorkflowDefinition {
            name: "flow".into(),
            kind: WorkflowType::Custom,
            sources: vec![self.source_id],
            destinations: vec![self.destination_id],
            nodes: docmill_model::chain::parse(&nodes, &[]).unwrap().1,
            schedule: None,
            next_fire_at: None,
            state: WorkflowState::Active,
            reprocess_all: false,
            delete_removed: false,
        }
    }

    pub(crate) async fn workflow(&self, change: impl FnOnce(&mut WorkflowDefinition)) -> Workflow {
        let mut definition = self.definition();
        change(&mut definition);
        self.engine
            .create_workflow(&self.principal, None, definition)
            .await
            .unwrap()
    }

    pub(crate) async fn scheduled(&self, cron: &str) -> Workflow {
        let schedule: Schedule = crate::schedule::parse(cron, None, docmill_model::workflow::Overlap::Skip).unwrap();
        self.workflow(|definition| definition.schedule = Some(schedule)).await
    }

    /// Runs a workflow to its end.
    pub(crate) async fn run(&self, workflow: &Workflow) -> Job {
        let job = self
            .engine
            .run_workflow(&self.principal, workflow, Vec::new())
            .await
            .unwrap();
        self.end_of(job.id).await
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job(self.principal.workspace, id).await.unwrap().unwrap()
    }

    pub(crate) async fn end_of(&self, id: JobId) -> Job {
        until("the job to end", async || {
            Some(self.job(id).await).filter(|job| job.status.is_terminal())
        })
        .await
    }

    pub(crate) async fn files(&self, job: JobId) -> Vec<JobFile> {
        let files = self.store.job_files(self.principal.workspace, job, FilePage::ALL).await;
        files.unwrap().unwrap()
    }
}

/// Waits for something, and not for ever.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = std::time::Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "waited too long for {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
