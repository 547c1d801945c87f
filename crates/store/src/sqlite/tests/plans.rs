//! No hot statement reads a whole table of jobs or files.

use docmill_model::ids::{ConnectorId, NodeId, WorkspaceId};
use docmill_model::workflow::WorkflowState;
use sqlx::{AssertSqlSafe, Row};

use super::FIVE;
use crate::sqlite::channels::{CANCEL, CHANNEL, CHANNELS, IN_SCOPE};
use crate::sqlite::claims::{ABANDONED, CLAIM, CLAIMABLE};
use crate::sqlite::codes::{BUDGET, CODE, FORGET_BUDGETS, FORGET_CODES, VOID_EXPIRED, VOID_MAILS};
use crate::sqlite::connectors::{CONNECTOR_BY_ID, CONNECTOR_BY_KEY, CONNECTORS, USERS};
use crate::sqlite::deletion::EXPIRED;
use crate::sqlite::deliveries::{
    CHANNELS_OF_CLAIMS, CLAIM_FOR, CLAIM_SIBLINGS, CLAIMED, EVENTS_OF_CLAIMS, GIVE_BACK, MAILED, NEXT, RECEIVERS,
};
use crate::sqlite::delivery_ends::{FINISH, NOTE_BOUNCE, NOTE_FAILURE, NOTE_SUCCESS};
use crate::sqlite::delivery_log::{
    AGAIN, ALL_AGAIN, ATTEMPTS, FORGET_CHANNELS, FORGET_EVENTS, LATEST, LATEST_ENDED, LATEST_PENDING, OLD_DELIVERIES,
    ONE as ONE_DELIVERY,
};
use crate::sqlite::events::{HAND_OUT, NOTICED, PROGRESS, SUBSCRIBERS};
use crate::sqlite::firings::{DUE, NEXT_DUE};
use crate::sqlite::inbox::{
    MARK, MARK_UNTIL, MARK_WORKFLOW_UNTIL, NOTIFICATION, PAGE, UNREAD, UNREAD_OF_WORKFLOW, UNREAD_PAGE,
    UNREAD_WORKFLOW_PAGE, WORKFLOW_PAGE,
};
use crate::sqlite::jobs::{FAILED_FILES, FILES};
use crate::sqlite::jobs::{LIST, LIST_IN_STATUS, LIST_OF_WORKFLOW, ONE};
use crate::sqlite::keys::{PRINCIPAL_BY_HASH, PRINCIPAL_BY_KEY};
use crate::sqlite::lifecycle::{NEXT_WAITING, STOP_READY, STOP_RUNNING};
use crate::sqlite::listed_pages::{ADD_FILES, NOTE_SEEN, NOTE_UNCHANGED, REMOVED};
use crate::sqlite::listings::{BACKLOG, CLAIM_LISTINGS, HELD};
use crate::sqlite::page_routes::PAGE_ROUTES;
use crate::sqlite::paid::{
    ANSWERS, CHECKPOINT, CHECKPOINT_OUTPUTS, DROP_BLOBS, EVICT, FILE_COSTS, FORGET, JOB_COSTS, SPENT, TOUCH, UNUSED,
};
use crate::sqlite::slugs::{CONNECTOR_KEY, WORKFLOW_KEY};
use crate::sqlite::workflow_list::{Driver, Search};
use crate::sqlite::workflows::{ACTIVE_JOBS, WORKFLOW_BY_ID, WORKFLOW_BY_KEY};
use crate::sqlite::{SqliteStore, upkeep};
use crate::{WorkflowFilter, WorkflowOrder};

/// The steps of a statement's plan that read a table from end to end, and all its steps.
async fn scans(store: &SqliteStore, sql: &str) -> (Vec<String>, Vec<String>) {
    let explain = format!("EXPLAIN QUERY PLAN {sql}");
    let rows = sqlx::query(AssertSqlSafe(explain))
        .fetch_all(&store.readers)
        .await
        .unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    // `SCAN t USING INDEX jobs_running` reads a partial index: only the rows that are wanted.
    let partial = [
        "jobs_waiting",
        "jobs_running",
        "job_files_ready",
        "job_files_running",
        "jobs_ended",
        "listings_started",
        "channels_of_workflows",
        "deliveries_pending",
    ];
    let whole = |step: &str| {
        step.starts_with("SCAN") && step != "SCAN CONSTANT ROW" && !step.starts_with("SCAN (subquery")
            // A value given with the statement, and a search of the index of names.
            && !step.ends_with("VIRTUAL TABLE INDEX 1:") && !step.contains("VIRTUAL TABLE INDEX 0:M")
    };
    let scan = |step: &&String| whole(step) && !partial.iter().any(|index| step.contains(index));
    (steps.iter().filter(scan).cloned().collect(), steps.clone())
}

#[tokio::test]
async fn hot_statements_use_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let lists = [ONE, LIST, LIST_OF_WORKFLOW, LIST_IN_STATUS];
    let lists = lists.iter().flat_map(|list| [list.jobs, list.files, list.outputs]);
    let others = [
        CLAIM,
        ABANDONED,
        NEXT_WAITING,
        PRINCIPAL_BY_HASH,
        PRINCIPAL_BY_KEY,
        EXPIRED,
        upkeep::REFERRED,
        upkeep::COUNTS,
        FILES,
        FAILED_FILES,
        STOP_READY,
        STOP_RUNNING,
        CONNECTOR_BY_ID,
        CONNECTOR_BY_KEY,
        CONNECTORS,
        USERS,
        CONNECTOR_KEY,
        WORKFLOW_KEY,
        WORKFLOW_BY_ID,
        WORKFLOW_BY_KEY,
        ACTIVE_JOBS,
        DUE,
        NEXT_DUE,
        CLAIM_LISTINGS,
        BACKLOG,
        HELD,
        NOTE_UNCHANGED,
        NOTE_SEEN,
        ADD_FILES,
        REMOVED,
        ANSWERS,
        TOUCH,
        EVICT,
        UNUSED,
        FORGET,
        CHECKPOINT,
        CHECKPOINT_OUTPUTS,
        DROP_BLOBS,
        JOB_COSTS,
        FILE_COSTS,
        PAGE_ROUTES,
        SPENT,
    ];
    for sql in lists.chain(others) {
        let (scans, steps) = scans(&store, sql).await;
        assert!(!steps.is_empty());
        assert!(scans.is_empty(), "{sql}\n{steps:#?}");
    }
    // Claiming looks at each workspace, of which there are few, but never at all files.
    let (scans, steps) = scans(&store, CLAIMABLE).await;
    assert!(scans.iter().all(|step| step.starts_with("SCAN w")), "{steps:#?}");
    assert!(steps.iter().any(|step| step.contains("job_files_ready")), "{steps:#?}");
}

/// A page of a listing costs the same however many objects the workflow knows.
#[tokio::test]
async fn a_page_looks_up_each_of_its_objects() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    for sql in [NOTE_UNCHANGED, NOTE_SEEN, ADD_FILES] {
        let (_, steps) = scans(&store, sql).await;
        let known = |step: &&String| step.starts_with("SEARCH p") && !step.contains("locator=?");
        assert!(steps.iter().any(|step| step.contains("locator=?")), "{steps:#?}");
        assert!(!steps.iter().any(|step| known(&step)), "{steps:#?}");
    }
}

#[tokio::test]
async fn a_scan_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let (scans, _) = scans(&store, "SELECT * FROM job_files WHERE name = 'x'").await;
    assert_eq!(scans.len(), 1);
}

/// Every way to find a page, for every order and set of filters.
#[tokio::test]
async fn lists_of_workflows_never_read_the_whole_table() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let orders = [
        WorkflowOrder::Id,
        WorkflowOrder::Name,
        WorkflowOrder::State,
        WorkflowOrder::Kind,
        WorkflowOrder::CreatedAt,
        WorkflowOrder::UpdatedAt,
    ];
    let workspace = WorkspaceId::new();
    let mut statements = 0;
    for (order, descending, filters) in orders
        .into_iter()
        .flat_map(|order| [false, true].map(|descending| (order, descending)))
        .flat_map(|(order, descending)| (0..64u32).map(move |filters| (order, descending, filters)))
    {
        let has = |bit: u32| filters & (1 << bit) != 0;
        let filter = WorkflowFilter {
            node: has(0).then(NodeId::new),
            source: has(1).then(ConnectorId::new),
            destination: has(2).then(ConnectorId::new),
            state: has(3).then_some(WorkflowState::Active),
            created_since: has(4).then_some(1),
            created_before: has(4).then_some(2),
            name: has(5).then(|| "name".into()),
            order,
            descending,
            limit: 10,
            ..WorkflowFilter::default()
        };
        let drivers: Vec<Option<Driver>> = Search::new(workspace, &filter).drivers().map(Some).collect();
        for driver in drivers.into_iter().chain([None]) {
            let mut search = Search::new(workspace, &filter);
            let count = driver.map(Driver::count_statement);
            let page = search.page_statement(driver, &filter);
            for sql in count.into_iter().chain([page]) {
                let (scans, steps) = scans(&store, &sql).await;
                assert!(!steps.is_empty() && scans.is_empty(), "{sql}\n{steps:#?}");
                // Walking sorts nothing: it stops when the page is full.
                let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
                assert!(driver.is_some() || !sorts, "{sql}\n{steps:#?}");
                statements += 1;
            }
        }
    }
    assert!(statements > 1_000);
}

#[tokio::test]
async fn statements_of_channels_use_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let statements = [
        CANCEL,
        CHANNEL,
        CHANNELS,
        IN_SCOPE,
        BUDGET,
        CODE,
        FORGET_BUDGETS,
        FORGET_CODES,
        VOID_EXPIRED,
        VOID_MAILS,
        CHANNELS_OF_CLAIMS,
        CLAIM_FOR,
        CLAIM_SIBLINGS,
        CLAIMED,
        EVENTS_OF_CLAIMS,
        GIVE_BACK,
        MAILED,
        NEXT,
        RECEIVERS,
        FINISH,
        NOTE_BOUNCE,
        NOTE_FAILURE,
        NOTE_SUCCESS,
        AGAIN,
        ALL_AGAIN,
        ATTEMPTS,
        FORGET_CHANNELS,
        FORGET_EVENTS,
        LATEST,
        LATEST_ENDED,
        LATEST_PENDING,
        OLD_DELIVERIES,
        ONE_DELIVERY,
        HAND_OUT,
        NOTICED,
        PROGRESS,
        SUBSCRIBERS,
        MARK,
        MARK_UNTIL,
        MARK_WORKFLOW_UNTIL,
        NOTIFICATION,
        UNREAD,
        UNREAD_OF_WORKFLOW,
    ];
    let pages = [PAGE, UNREAD_PAGE, WORKFLOW_PAGE, UNREAD_WORKFLOW_PAGE];
    for sql in statements.into_iter().chain(pages) {
        let (scans, steps) = scans(&store, sql).await;
        // What a statement itself puts together: a list given with it, receivers found so far.
        let own = |step: &String| {
            ["r", "receivers", "counted", "(subquery"].iter().any(|name| {
                step.strip_prefix("SCAN ")
                    .is_some_and(|of| of == *name || of.starts_with("(subquery"))
            })
        };
        let scans: Vec<_> = scans.iter().filter(|step| !own(step)).collect();
        assert!(!steps.is_empty() && scans.is_empty(), "{sql}\n{steps:#?}");
        // A page of a long list is walked to, not sorted out of the whole.
        let inner = steps.iter().filter(|step| step.contains("TEMP B-TREE")).count();
        assert!(!pages.contains(&sql) || inner <= 1, "{sql}\n{steps:#?}");
        assert!(![NEXT, CLAIM_FOR].contains(&sql) || inner == 0, "{sql}\n{steps:#?}");
    }
}
