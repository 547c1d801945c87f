-- Nodes that call models: what was paid for is kept, counted and bounded; how pages were read. The same rules as in
-- version 1.

-- How far a file is whose chain calls models: the last node that is done, and what is needed to go on there.
CREATE TABLE checkpoints (
    file_id      TEXT NOT NULL PRIMARY KEY,
    job_id       TEXT NOT NULL,
    content_hash TEXT,          -- of the file's content, where it comes from a source
    state        TEXT NOT NULL  -- warnings and counts so far
) STRICT;
CREATE INDEX checkpoints_by_job ON checkpoints (job_id);

-- The outputs of the nodes that are done.
CREATE TABLE checkpoint_outputs (
    file_id    TEXT    NOT NULL REFERENCES checkpoints (file_id) ON DELETE CASCADE,
    node_index INTEGER NOT NULL,
    blob_key   TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    PRIMARY KEY (file_id, node_index)
) STRICT;
CREATE INDEX checkpoint_outputs_by_blob ON checkpoint_outputs (blob_key);

-- Answers of models, by what was asked.
CREATE TABLE answers (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT    NOT NULL,
    key          TEXT    NOT NULL, -- SHA-256 of provider, model and request, hexadecimal
    answer       BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL, -- to the hour
    UNIQUE (workspace_id, key)
) STRICT;
CREATE INDEX answers_by_use ON answers (workspace_id, used_at, created_at);
CREATE INDEX answers_unused ON answers (used_at);

-- Bytes of a workspace's answers.
CREATE TABLE answer_bytes (
    workspace_id TEXT    NOT NULL PRIMARY KEY,
    bytes        INTEGER NOT NULL
) STRICT;

-- What a node's calls for a file cost. Prices are in millionths; none where the model's price is not set.
CREATE TABLE file_costs (
    file_id    TEXT    NOT NULL,
    node_index INTEGER NOT NULL,
    job_id     TEXT    NOT NULL,
    model      TEXT    NOT NULL, -- provider/model
    calls      INTEGER NOT NULL,
    cached     INTEGER NOT NULL, -- answers that were there already
    retries    INTEGER NOT NULL,
    tokens_in  INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    millis     INTEGER NOT NULL,
    price      INTEGER,
    PRIMARY KEY (file_id, node_index)
) STRICT;
CREATE INDEX file_costs_by_job ON file_costs (job_id);

-- The same for all files of a job, of which there may be a million.
CREATE TABLE job_costs (
    job_id     TEXT    NOT NULL,
    node_index INTEGER NOT NULL,
    model      TEXT    NOT NULL,
    calls      INTEGER NOT NULL,
    cached     INTEGER NOT NULL,
    retries    INTEGER NOT NULL,
    tokens_in  INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    millis     INTEGER NOT NULL,
    price      INTEGER,
    PRIMARY KEY (job_id, node_index)
) STRICT;

-- What a workspace spent in a month. Jobs may go; this stays.
CREATE TABLE spending (
    workspace_id TEXT    NOT NULL,
    month        TEXT    NOT NULL, -- YYYY-MM
    price        INTEGER NOT NULL, -- millionths
    PRIMARY KEY (workspace_id, month)
) STRICT;

-- How the pages of a file were read. Apart from the file's row, which is read often: there may be thousands.
CREATE TABLE page_routes (
    file_id TEXT NOT NULL PRIMARY KEY,
    job_id  TEXT NOT NULL,
    routes  TEXT NOT NULL  -- JSON list, one object for each page
) STRICT;
CREATE INDEX page_routes_by_job ON page_routes (job_id);
