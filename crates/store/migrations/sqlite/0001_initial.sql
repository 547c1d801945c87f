-- Ids are UUIDs in text form, instants are microseconds since the epoch in UTC, structured values are
-- JSON in text: the same in every database docmill runs on.

CREATE TABLE accounts (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL UNIQUE,
    created_at     INTEGER NOT NULL,
    last_create_at INTEGER NOT NULL DEFAULT 0 -- when a job creation was last let through
) STRICT;

CREATE TABLE workspaces (
    id              TEXT    NOT NULL PRIMARY KEY,
    account_id      TEXT    NOT NULL REFERENCES accounts (id),
    name            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    last_claimed_at INTEGER NOT NULL DEFAULT 0 -- breaks ties between workspaces waiting for a worker
) STRICT;

CREATE TABLE api_keys (
    id           TEXT    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id),
    name         TEXT    NOT NULL,
    prefix       TEXT    NOT NULL,
    secret_hash  TEXT    NOT NULL UNIQUE, -- SHA-256 of the key, hexadecimal
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

CREATE TABLE jobs (
    seq             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- order of arrival
    id              TEXT    NOT NULL UNIQUE,
    workspace_id    TEXT    NOT NULL REFERENCES workspaces (id),
    account_id      TEXT    NOT NULL REFERENCES accounts (id),
    workflow_id     TEXT    NOT NULL,
    workflow_name   TEXT    NOT NULL,
    job_type        TEXT    NOT NULL CHECK (job_type IN ('ephemeral', 'template', 'persistent', 'scheduled')),
    status          TEXT    NOT NULL CHECK (status IN ('SCHEDULED', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'STOPPED')),
    chain           TEXT    NOT NULL, -- the validated node chain
    retry_of        TEXT,             -- the job whose failed files this one runs again
    message         TEXT,
    created_at      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    files_total     INTEGER NOT NULL,
    files_succeeded INTEGER NOT NULL DEFAULT 0,
    files_failed    INTEGER NOT NULL DEFAULT 0,
    event_count     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_by_workspace ON jobs (workspace_id, seq);
CREATE INDEX jobs_by_workflow ON jobs (workspace_id, workflow_id, seq);
CREATE INDEX jobs_waiting ON jobs (account_id, seq) WHERE status = 'SCHEDULED';
CREATE INDEX jobs_running ON jobs (account_id) WHERE status = 'IN_PROGRESS';
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;

-- One row per input file of a job: the file, and the task of running it through the job's chain.
CREATE TABLE job_files (
    seq           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    job_id        TEXT    NOT NULL REFERENCES jobs (id),
    workspace_id  TEXT    NOT NULL,
    ordinal       INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    content_type  TEXT,
    size          INTEGER NOT NULL,
    blob_key      TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'succeeded', 'failed', 'stopped')),
    attempt       INTEGER NOT NULL DEFAULT 0, -- times it was claimed
    token         INTEGER NOT NULL DEFAULT 0, -- fencing token: grows with each claim
    lease_until   INTEGER,
    not_before    INTEGER NOT NULL DEFAULT 0,
    error_code    TEXT,
    error_message TEXT,
    warnings      TEXT,
    elements      INTEGER,
    pages         INTEGER,
    started_at    INTEGER,
    ended_at      INTEGER
) STRICT;
CREATE INDEX job_files_by_job ON job_files (job_id, ordinal);
CREATE INDEX job_files_by_blob ON job_files (blob_key);
CREATE INDEX job_files_ready ON job_files (workspace_id, seq) WHERE state = 'ready';
CREATE INDEX job_files_running ON job_files (workspace_id, lease_until) WHERE state = 'running';

CREATE TABLE outputs (
    file_id      TEXT    NOT NULL REFERENCES job_files (id),
    node_id      TEXT    NOT NULL,
    job_id       TEXT    NOT NULL,
    node_index   INTEGER NOT NULL,
    blob_key     TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    PRIMARY KEY (file_id, node_id)
) STRICT;
CREATE INDEX outputs_by_job ON outputs (job_id);
CREATE INDEX outputs_by_blob ON outputs (blob_key);

CREATE TABLE events (
    id           TEXT    NOT NULL PRIMARY KEY,
    job_id       TEXT    NOT NULL,
    workspace_id TEXT    NOT NULL,
    sequence     INTEGER NOT NULL, -- position among the job's events, from 1
    type         TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    UNIQUE (job_id, sequence)
) STRICT;

-- Blobs nothing refers to any more, to be deleted.
CREATE TABLE blob_garbage (
    blob_key TEXT NOT NULL PRIMARY KEY
) STRICT;
