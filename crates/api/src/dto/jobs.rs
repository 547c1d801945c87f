//! Jobs and their files.

use std::collections::BTreeMap;

use docmill_engine::{FileProgress, RunningFiles};
use docmill_model::PageRoute;
use docmill_model::chain::NodeChain;
use docmill_model::ids::FileId;
use docmill_model::job::{JobStatus, ListingState, TaskState};
use docmill_model::time::{iso8601, iso8601_duration};
use docmill_store::{Cost, FileCost, Job, JobFile};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::spent::{CallCost, NodeCost, PageDetails};

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobInformation {
    /// Id of the job.
    #[schema(format = "uuid")]
    id: String,
    /// Id of its workflow; a job made from local files has a hidden temporary one.
    #[schema(format = "uuid")]
    workflow_id: String,
    /// Name of its workflow.
    workflow_name: String,
    /// `SCHEDULED`, `IN_PROGRESS`, `COMPLETED`, `STOPPED` or `FAILED`.
    status: String,
    /// When it was accepted.
    #[schema(format = "date-time")]
    created_at: String,
    /// How long it ran, as an ISO 8601 duration; null until it has ended.
    runtime: Option<String>,
    /// Ids of its files in the order of upload; null for a run that reads from sources.
    input_file_ids: Option<Vec<String>>,
    /// Outputs that can be downloaded; null while there is none.
    output_node_files: Option<Vec<NodeFileMetadata>>,
    /// `ephemeral` for a chain given in the request, `template` for a template, `persistent` for a workflow
    /// run by hand, `scheduled` for one run by its schedule.
    job_type: String,
}

/// The output of one node for one file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeFileMetadata {
    /// Id of the node.
    #[schema(format = "uuid")]
    node_id: String,
    /// Id of the file, the same at every node.
    file_id: String,
    /// Type of the node.
    node_type: String,
    /// Subtype of the node.
    node_subtype: String,
}

impl From<Job> for JobInformation {
    fn from(job: Job) -> Self {
        let runtime = job
            .ended_at
            .map(|end| iso8601_duration(end - job.started_at.unwrap_or(end)));
        let outputs: Vec<_> = job
            .outputs
            .iter()
            .filter_map(|(node, file)| {
                let node = job.chain.nodes().iter().find(|n| n.id == *node)?;
                Some(NodeFileMetadata {
                    node_id: node.id.to_string(),
                    file_id: file.to_string(),
                    node_type: node.kind.clone(),
                    node_subtype: node.subtype.clone(),
                })
            })
            .collect();
        Self {
            id: job.id.to_string(),
            workflow_id: job.workflow.to_string(),
            workflow_name: job.workflow_name,
            status: job.status.to_string(),
            created_at: iso8601(job.created_at),
            runtime,
            input_file_ids: (!job.from_sources).then(|| job.file_ids.iter().map(ToString::to_string).collect()),
            output_node_files: (!outputs.is_empty()).then_some(outputs),
            job_type: job.job_type.to_string(),
        }
    }
}

impl JobInformation {
    /// For the answer to a creation, which never tells of an end: a quick job may be done before its
    /// answer is written.
    pub(crate) fn not_ended(&mut self) {
        if self.runtime.take().is_some() {
            self.status = JobStatus::InProgress.to_string();
            self.output_node_files = None;
        }
    }
}

/// How far a job is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobDetails {
    #[schema(format = "uuid")]
    id: String,
    /// `SCHEDULED`, `IN_PROGRESS`, `SUCCESS`, `COMPLETED_WITH_ERRORS`, `STOPPED` or `FAILED`.
    processing_status: String,
    /// Counts of files per node, in chain order.
    node_stats: Vec<NodeStats>,
    summary: JobSummary,
    /// Why the job ended as it did.
    message: Option<String>,
    /// For a run that reads from sources: `open` while they are being listed, then `complete` or `failed`.
    listing: Option<String>,
    /// For a run that reads from sources: files left alone because they had not changed since the last run.
    files_unchanged: Option<u64>,
    /// Pages of the files below known so far.
    pages_total: u64,
    /// Pages of the files below that are done.
    pages_done: u64,
    /// What calls of models cost so far, of all nodes and files together.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CallCost>,
    /// The files, as far as `offset` and `limit` say.
    files: Vec<FileDetails>,
}

/// Counts of files at one node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeStats {
    node_name: String,
    node_type: String,
    node_subtype: String,
    /// Files that have not reached the node.
    ready: u64,
    /// Files the node is working on.
    in_progress: u64,
    /// Files the node has done.
    success: u64,
    /// Files that failed at the node.
    failure: u64,
    /// What its calls of a model cost so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CallCost>,
}

/// Counts of files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobSummary {
    total_docs: u64,
    total_docs_succeeded: u64,
    total_docs_failed: u64,
}

/// One file of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileDetails {
    file_id: String,
    /// Name as uploaded.
    document: String,
    /// Bytes.
    size: u64,
    /// `waiting`, `ready`, `running`, `succeeded`, `failed` or `stopped`.
    state: String,
    /// Times it was started.
    attempts: u32,
    /// Stable code of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What was not done, or not fully.
    warnings: Vec<FileWarning>,
    /// What calls of models cost for the file, by node; left out when there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costs: Vec<NodeCost>,
    /// Elements of the last node's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<u64>,
    pages_done: u64,
    pages_total: u64,
    /// How each page was read, of PDFs and pictures that are done. One answer tells of 20,000 pages at most; of files
    /// behind those ask with `offset`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pages: Vec<PageDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// Time from the first start to the end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
}

/// Something a reader of an output should know.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileWarning {
    /// Stable code.
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_number: Option<u32>,
    /// The element it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    element_id: Option<String>,
}

impl JobDetails {
    /// The details with these of its files: all of them, except for a run that reads from sources.
    pub(crate) fn new(job: &Job, files: &[JobFile], running: &RunningFiles) -> Self {
        let processing_status = match job.status {
            // Files that were never found out about count like ones that failed.
            JobStatus::Completed if job.files_failed > 0 || job.listing == Some(ListingState::Failed) => {
                "COMPLETED_WITH_ERRORS"
            }
            JobStatus::Completed => "SUCCESS",
            other => other.as_str(),
        };
        let node_stats = if job.from_sources {
            run_stats(job, &running.of_job(job.id))
        } else {
            node_stats(&job.chain, files, running)
        };
        let mut details = Self {
            id: job.id.to_string(),
            processing_status: processing_status.to_owned(),
            node_stats,
            summary: JobSummary {
                total_docs: job.files_total,
                total_docs_succeeded: job.files_succeeded,
                total_docs_failed: job.files_failed,
            },
            message: job.message.clone(),
            listing: job.listing.map(|listing| listing.to_string()),
            files_unchanged: job.from_sources.then_some(job.files_unchanged),
            pages_total: 0,
            pages_done: 0,
            cost: None,
            files: files.iter().map(|file| FileDetails::new(file, running)).collect(),
        };
        details.count_pages();
        details
    }

    /// Adds what nodes and files cost.
    pub(crate) fn with_costs(mut self, job: &Job, nodes: Vec<(u32, Cost)>, files: Vec<FileCost>) -> Self {
        for (node, cost) in nodes {
            let sum = self.cost.get_or_insert_default();
            sum.add(&cost);
            if let Some(stats) = self.node_stats.get_mut(node as usize) {
                stats.cost = Some(CallCost::of(cost));
            }
        }
        let mut by_file = BTreeMap::<String, Vec<NodeCost>>::new();
        for FileCost { file, node, cost } in files {
            let Some(of) = job.chain.nodes().get(node as usize) else {
                continue;
            };
            by_file.entry(file.to_string()).or_default().push(NodeCost {
                node_id: of.id.to_string(),
                node_name: of.name.clone(),
                cost: CallCost::of(cost),
            });
        }
        for file in &mut self.files {
            file.costs = by_file.remove(&file.file_id).unwrap_or_default();
        }
        self
    }

    /// Adds how pages were read.
    pub(crate) fn with_routes(mut self, files: Vec<(FileId, Vec<PageRoute>)>) -> Self {
        let mut by_file: BTreeMap<String, Vec<PageRoute>> =
            files.into_iter().map(|(id, routes)| (id.to_string(), routes)).collect();
        for file in &mut self.files {
            let routes = by_file.remove(&file.file_id).unwrap_or_default();
            file.pages = routes.into_iter().map(PageDetails::from).collect();
        }
        self
    }

    /// Only some of the files.
    pub(crate) fn page(mut self, offset: u64, limit: u32) -> Self {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.files = self.files.into_iter().skip(offset).take(limit as usize).collect();
        self.count_pages();
        self
    }

    /// How many files are told.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    fn count_pages(&mut self) {
        self.pages_total = self.files.iter().map(|file| file.pages_total).sum();
        self.pages_done = self.files.iter().map(|file| file.pages_done).sum();
    }
}

/// Counts of a run that may have a million files, from what the job counts itself and what runs here. A
/// file that fails counts at the first node: its outputs are recorded together, or not at all.
fn run_stats(job: &Job, running: &[FileProgress]) -> Vec<NodeStats> {
    let under_way = running.len() as u64;
    let ended = job.files_succeeded + job.files_failed;
    let left = if job.status.is_terminal() {
        0
    } else {
        job.files_total.saturating_sub(ended + under_way)
    };
    let nodes = job.chain.nodes().iter().enumerate();
    nodes
        .map(|(index, node)| {
            let done = running.iter().filter(|file| file.nodes_done as usize > index).count() as u64;
            let here = running.iter().filter(|file| file.nodes_done as usize == index).count() as u64;
            NodeStats {
                node_name: node.name.clone(),
                node_type: node.kind.clone(),
                node_subtype: node.subtype.clone(),
                ready: left + (under_way - done - here),
                in_progress: here,
                success: job.files_succeeded + done,
                failure: if index == 0 { job.files_failed } else { 0 },
                cost: None,
            }
        })
        .collect()
}

fn node_stats(chain: &NodeChain, files: &[JobFile], running: &RunningFiles) -> Vec<NodeStats> {
    let mut stats: Vec<_> = chain
        .nodes()
        .iter()
        .map(|node| NodeStats {
            node_name: node.name.clone(),
            node_type: node.kind.clone(),
            node_subtype: node.subtype.clone(),
            ready: 0,
            in_progress: 0,
            success: 0,
            failure: 0,
            cost: None,
        })
        .collect();
    for file in files {
        // Outputs are recorded together when the last node is done; until then the process knows best.
        let done = match file.state {
            TaskState::Running => running
                .progress(file.id)
                .map_or(0, |progress| progress.nodes_done as usize),
            // Where they went to a destination, none is recorded.
            TaskState::Succeeded => usize::MAX,
            _ => file.nodes_done as usize,
        };
        for (index, node) in stats.iter_mut().enumerate() {
            match file.state {
                _ if index < done => node.success += 1,
                TaskState::Waiting | TaskState::Ready => node.ready += 1,
                TaskState::Running if index == done => node.in_progress += 1,
                TaskState::Running => node.ready += 1,
                TaskState::Failed if index == done => node.failure += 1,
                TaskState::Failed | TaskState::Stopped | TaskState::Succeeded => {}
            }
        }
    }
    stats
}

impl FileDetails {
    fn new(file: &JobFile, running: &RunningFiles) -> Self {
        let progress = running
            .progress(file.id)
            .filter(|_| file.state == TaskState::Running)
            .unwrap_or_default();
        let pages = file.pages.unwrap_or_default();
        Self {
            file_id: file.id.to_string(),
            document: file.name.clone(),
            size: file.size,
            state: file.state.to_string(),
            attempts: file.attempt,
            error_code: file.error.as_ref().map(|(code, _)| code.to_string()),
            error: file.error.as_ref().map(|(_, message)| message.clone()),
            warnings: file
                .warnings
                .iter()
                .map(|warning| FileWarning {
                    code: serde_json::to_value(warning.code)
                        .ok()
                        .and_then(|code| code.as_str().map(str::to_owned))
                        .unwrap_or_default(),
                    message: warning.message.clone(),
                    page_number: warning.page_number,
                    element_id: warning.element_id.clone(),
                })
                .collect(),
            costs: Vec::new(),
            pages: Vec::new(),
            elements: file.elements,
            pages_done: pages.max(progress.pages_done.into()),
            pages_total: pages.max(progress.pages_total.into()),
            started_at: file.started_at.map(iso8601),
            ended_at: file.ended_at.map(iso8601),
            duration_ms: file
                .started_at
                .zip(file.ended_at)
                .map(|(start, end)| (end - start) / 1_000),
        }
    }
}

/// The files of a job that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobFailedFiles {
    failed_files: Vec<FailedFile>,
}

/// A file that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedFile {
    /// Name of the file.
    document: String,
    /// Reason.
    error: String,
    /// Stable code.
    code: String,
    file_id: String,
}

impl From<Vec<JobFile>> for JobFailedFiles {
    fn from(files: Vec<JobFile>) -> Self {
        let failed = files.into_iter().filter_map(|file| {
            let (code, error) = file.error?;
            (file.state == TaskState::Failed).then(|| FailedFile {
                document: file.name,
                error,
                code: code.to_string(),
                file_id: file.id.to_string(),
            })
        });
        Self {
            failed_files: failed.collect(),
        }
    }
}

/// What became of a cancellation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelResult {
    pub(crate) id: String,
    /// `cancelled`, or the status the job had ended with before.
    pub(crate) status: String,
    pub(crate) message: String,
}

/// The form of a new job.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct CreateJobForm {
    /// JSON object with `job_nodes` (array of nodes) or `template_id`; `job_nodes` wins when both are there.
    request_data: String,
    /// Files; the part may also be called `input_files[]`.
    #[schema(value_type = Option<Vec<String>>, format = Binary)]
    input_files: Option<Vec<String>>,
}
