-- Workflows with their connectors, schedules and runs. The same rules as in version 1.

CREATE TABLE connectors (
    id           TEXT    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id),
    role         TEXT    NOT NULL CHECK (role IN ('source', 'destination')),
    name         TEXT    NOT NULL,
    key          TEXT    NOT NULL, -- slug
    kind         TEXT    NOT NULL,
    config       TEXT    NOT NULL, -- settings; secrets in it are encrypted
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER,
    UNIQUE (workspace_id, role, key)
) STRICT;
CREATE INDEX connectors_in_order ON connectors (workspace_id, role, created_at, id);

CREATE TABLE connection_checks (
    id           TEXT    NOT NULL PRIMARY KEY,
    connector_id TEXT    NOT NULL UNIQUE REFERENCES connectors (id) ON DELETE CASCADE, -- only the latest is kept
    status       TEXT    NOT NULL CHECK (status IN ('SCHEDULED', 'SUCCESS', 'FAILURE')),
    reason       TEXT,
    created_at   INTEGER NOT NULL,
    reported_at  INTEGER
) STRICT;

CREATE TABLE workflows (
    seq            INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    workspace_id   TEXT    NOT NULL REFERENCES workspaces (id),
    account_id     TEXT    NOT NULL REFERENCES accounts (id), -- whose slots its scheduled runs take
    key_id         TEXT    NOT NULL,                          -- the API key that created it
    key            TEXT    NOT NULL,                          -- slug
    name           TEXT    NOT NULL,
    name_lower     TEXT    NOT NULL,                          -- what is searched: each character in lower case
    kind           TEXT    NOT NULL CHECK (kind IN ('basic', 'advanced', 'platinum', 'custom', 'template')),
    state          TEXT    NOT NULL CHECK (state IN ('active', 'inactive')),
    sources        TEXT    NOT NULL,                          -- ids of connectors
    destinations   TEXT    NOT NULL,
    nodes          TEXT    NOT NULL,
    schedule       TEXT,
    next_fire_at   INTEGER,
    reprocess_all  INTEGER NOT NULL CHECK (reprocess_all IN (0, 1)),
    delete_removed INTEGER NOT NULL CHECK (delete_removed IN (0, 1)),
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER,
    changed_at     INTEGER NOT NULL,                          -- updated_at, or created_at where there is none
    deleted_at     INTEGER,
    deleted        INTEGER NOT NULL DEFAULT 0 CHECK (deleted = (deleted_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX workflows_by_key ON workflows (workspace_id, key) WHERE deleted = 0;
CREATE INDEX workflows_due ON workflows (next_fire_at)
    WHERE next_fire_at IS NOT NULL AND state = 'active' AND deleted = 0;

-- Lists of workflows are walked in one of these orders, without reading the rows themselves: each index
-- holds what the filters ask for. Ties go by id upwards in either direction, hence one for each.
CREATE INDEX workflows_id ON workflows (workspace_id, deleted, id, state, created_at, name_lower);
CREATE INDEX workflows_name ON workflows (workspace_id, deleted, name, id, state, created_at, name_lower);
CREATE INDEX workflows_name_down ON workflows (workspace_id, deleted, name DESC, id, state, created_at, name_lower);
CREATE INDEX workflows_state ON workflows (workspace_id, deleted, state, id, created_at, name_lower);
CREATE INDEX workflows_state_down ON workflows (workspace_id, deleted, state DESC, id, created_at, name_lower);
CREATE INDEX workflows_kind ON workflows (workspace_id, deleted, kind, id, state, created_at, name_lower);
CREATE INDEX workflows_kind_down ON workflows (workspace_id, deleted, kind DESC, id, state, created_at, name_lower);
CREATE INDEX workflows_created ON workflows (workspace_id, deleted, created_at, id, state, name_lower);
CREATE INDEX workflows_created_down ON workflows (workspace_id, deleted, created_at DESC, id, state, name_lower);
CREATE INDEX workflows_changed ON workflows (workspace_id, deleted, changed_at, id, state, created_at, name_lower);
CREATE INDEX workflows_changed_down
    ON workflows (workspace_id, deleted, changed_at DESC, id, state, created_at, name_lower);

-- Finds names by any three or more characters in them. Rows are `name_lower` by `seq`.
CREATE VIRTUAL TABLE workflow_names USING fts5 (
    name_lower, content = '', tokenize = 'trigram case_sensitive 1', columnsize = 0
);

-- What a workflow refers to: connectors by their role, and its nodes.
CREATE TABLE workflow_refs (
    workspace_id TEXT    NOT NULL,
    deleted      INTEGER NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('source', 'destination', 'node')),
    ref_id       TEXT    NOT NULL,
    workflow_seq INTEGER NOT NULL REFERENCES workflows (seq),
    PRIMARY KEY (workspace_id, role, ref_id, deleted, workflow_seq)
) STRICT;
CREATE INDEX workflow_refs_by_workflow ON workflow_refs (workflow_seq);

-- One row for each instant a schedule fired: what makes firing twice impossible.
CREATE TABLE firings (
    workflow_id TEXT    NOT NULL,
    fire_at     INTEGER NOT NULL, -- the instant of the schedule
    job_id      TEXT,             -- none where it was skipped
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, fire_at)
) STRICT;

-- What runs have beyond other jobs.
ALTER TABLE jobs ADD COLUMN stored INTEGER NOT NULL DEFAULT 0 CHECK (stored IN (0, 1)); -- of a stored workflow
ALTER TABLE jobs ADD COLUMN from_sources INTEGER NOT NULL DEFAULT 0 CHECK (from_sources IN (0, 1));
ALTER TABLE jobs ADD COLUMN destinations TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN reprocess_all INTEGER NOT NULL DEFAULT 0 CHECK (reprocess_all IN (0, 1));
ALTER TABLE jobs ADD COLUMN files_unchanged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN listing TEXT CHECK (listing IN ('open', 'complete', 'failed')); -- none without sources
ALTER TABLE jobs ADD COLUMN listing_error TEXT;
DROP INDEX jobs_waiting; -- each kind of job waits for slots of its own now
CREATE INDEX jobs_waiting ON jobs (account_id, stored, seq) WHERE status = 'SCHEDULED';
CREATE INDEX jobs_active_runs ON jobs (workflow_id) WHERE stored = 1 AND status IN ('SCHEDULED', 'IN_PROGRESS');

-- Runs whose sources are not listed to the end; a row goes with the end of its listing.
CREATE TABLE listings (
    job_id         TEXT    NOT NULL PRIMARY KEY REFERENCES jobs (id),
    job_seq        INTEGER NOT NULL,
    started        INTEGER NOT NULL DEFAULT 0 CHECK (started IN (0, 1)), -- whether the run has
    sources        TEXT    NOT NULL,
    delete_removed INTEGER NOT NULL CHECK (delete_removed IN (0, 1)),
    source_index   INTEGER NOT NULL DEFAULT 0, -- where to go on: position of the source,
    locator        TEXT,                       -- and the last object recorded of it
    listed         INTEGER NOT NULL DEFAULT 0, -- objects seen: the next file's ordinal
    attempt        INTEGER NOT NULL DEFAULT 0, -- claims since it last came further
    token          INTEGER NOT NULL DEFAULT 0, -- fencing token: grows with each claim
    lease_until    INTEGER,
    not_before     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX listings_started ON listings (job_seq) WHERE started = 1;

ALTER TABLE job_files ADD COLUMN source_id TEXT; -- where the file comes from; then blob_key is empty
ALTER TABLE job_files ADD COLUMN locator TEXT;   -- the object there
ALTER TABLE job_files ADD COLUMN object TEXT;    -- what the source told of it
ALTER TABLE job_files ADD COLUMN action TEXT CHECK (action IN ('process', 'delete'));
CREATE UNIQUE INDEX job_files_by_object ON job_files (job_id, source_id, locator) WHERE source_id IS NOT NULL;
CREATE INDEX job_files_failed ON job_files (job_id, ordinal) WHERE state = 'failed';

-- What a workflow has processed: how its next run tells what is new.
CREATE TABLE processed_objects (
    workflow_id  TEXT    NOT NULL,
    source_id    TEXT    NOT NULL,
    locator      TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    version      TEXT,
    content_hash TEXT,             -- SHA-256 of the content, hexadecimal
    seen_by      INTEGER NOT NULL, -- seq of the last job that listed it
    PRIMARY KEY (workflow_id, source_id, locator)
) STRICT;

-- Deleted workflows whose processed objects are still to be removed.
CREATE TABLE forgotten_workflows (
    workflow_id TEXT NOT NULL PRIMARY KEY
) STRICT;

-- Who writes documents where, for destinations that name documents after their files. The first workflow and
-- source at a place write plain names; all later ones write names that hold a part of the document's id, so
-- that equal names of theirs do not meet. A row never changes what names it stands for, so names stay.
CREATE TABLE document_names (
    workspace_id TEXT    NOT NULL,
    place        TEXT    NOT NULL, -- where the destination leads to
    workflow_id  TEXT    NOT NULL,
    source_id    TEXT    NOT NULL,
    plain        INTEGER NOT NULL CHECK (plain IN (0, 1)),
    PRIMARY KEY (workspace_id, place, workflow_id, source_id)
) STRICT;
CREATE UNIQUE INDEX document_names_plain ON document_names (workspace_id, place) WHERE plain = 1;
