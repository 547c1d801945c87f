-- Notification channels: who is told of what, what is on its way to them, and the inbox. The same rules as
-- in version 1. A scope is the id of a workflow, or empty for the whole workspace.

-- Events tell of channels too, and are what the inbox shows. They outlive their jobs.
CREATE TABLE new_events (
    id           TEXT    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    workflow_id  TEXT,
    job_id       TEXT,             -- none: tells of a channel
    sequence     INTEGER NOT NULL, -- position among the job's events, from 1
    type         TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    failed_files TEXT,             -- the first ones, with reasons; goes with the job
    created_at   INTEGER NOT NULL,
    read_at      INTEGER,
    UNIQUE (job_id, sequence)
) STRICT;
-- What was there before there was an inbox is no news.
INSERT INTO new_events (id, workspace_id, workflow_id, job_id, sequence, type, payload, created_at, read_at)
    SELECT id, workspace_id, payload ->> 'workflow_id', job_id, sequence, type, payload, created_at, created_at
    FROM events;
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;
CREATE INDEX events_inbox ON events (workspace_id, created_at, id, type);
CREATE INDEX events_of_workflow ON events (workspace_id, workflow_id, created_at, id, type, read_at);
CREATE INDEX events_unread ON events (workspace_id, created_at, id, type) WHERE read_at IS NULL;
CREATE INDEX events_by_age ON events (created_at);

ALTER TABLE jobs ADD COLUMN progress_at INTEGER NOT NULL DEFAULT 0; -- when progress was last told of

CREATE TABLE channels (
    seq             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    workspace_id    TEXT    NOT NULL REFERENCES workspaces (id),
    scope           TEXT    NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind IN ('email', 'webhook')),
    description     TEXT,
    events          TEXT    NOT NULL, -- types, as the client ordered them
    wanted          INTEGER NOT NULL CHECK (wanted IN (0, 1)),
    receiver        TEXT    NOT NULL, -- the mailbox behind the address, or host and port
    address         TEXT    NOT NULL, -- where mail goes, or the URL
    cc              TEXT    NOT NULL DEFAULT '[]',
    reply_to        TEXT,
    secrets         BLOB,             -- encrypted
    verified_at     INTEGER,
    disabled_at     INTEGER,          -- by the server
    disabled_reason TEXT,
    bounced_at      INTEGER,
    bounce_reason   TEXT,
    failing_since   INTEGER,          -- first failure since the last success
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX channels_by_scope ON channels (workspace_id, scope, kind, seq);
CREATE INDEX channels_of_workflows ON channels (scope) WHERE scope <> '';

-- What each channel is told of: how an event finds its channels.
CREATE TABLE channel_events (
    workspace_id TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    channel_seq  INTEGER NOT NULL REFERENCES channels (seq) ON DELETE CASCADE,
    PRIMARY KEY (workspace_id, scope, type, channel_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_events_by_channel ON channel_events (channel_seq);

-- The code of an unverified channel.
CREATE TABLE channel_codes (
    channel_id TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL, -- HMAC-SHA256 with a key the database does not hold
    tries      INTEGER NOT NULL DEFAULT 0,
    issued_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX channel_codes_by_age ON channel_codes (expires_at);

-- Codes sent and wrong tries of a day. Not bound to channels: deleting one gives nothing back.
CREATE TABLE code_budgets (
    subject TEXT    NOT NULL, -- a channel, a workspace, or a mailbox in a workspace
    what    TEXT    NOT NULL CHECK (what IN ('code', 'wrong')),
    since   INTEGER NOT NULL, -- the first use of the day
    used    INTEGER NOT NULL,
    PRIMARY KEY (subject, what)
) STRICT;
CREATE INDEX code_budgets_by_age ON code_budgets (since);

-- One row for each event and channel (and each code and test): the outbox, and afterwards the log.
CREATE TABLE deliveries (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    workspace_id TEXT    NOT NULL,
    channel_id   TEXT    NOT NULL, -- may be deleted meanwhile
    kind         TEXT    NOT NULL CHECK (kind IN ('event', 'code', 'test', 'notice')),
    event_id     TEXT,
    lane         TEXT    NOT NULL CHECK (lane IN ('email', 'webhook')),
    receiver     TEXT    NOT NULL,
    sealed       BLOB,             -- a code, encrypted, until it is sent
    state        TEXT    NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('pending', 'delivered', 'failed', 'cancelled')),
    again        INTEGER NOT NULL DEFAULT 0 CHECK (again IN (0, 1)), -- not the first attempt
    attempt      INTEGER NOT NULL DEFAULT 0, -- since it was created or replayed
    attempts     INTEGER NOT NULL DEFAULT 0, -- made in all
    token        INTEGER NOT NULL DEFAULT 0, -- fencing token: grows with each claim
    lease_until  INTEGER,                    -- while claimed
    not_before   INTEGER NOT NULL,
    last_status  INTEGER,
    last_error   TEXT,
    digest_of    TEXT,                       -- the delivery it was sent together with
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    UNIQUE (event_id, channel_id)
) STRICT;
-- An event is handed to many channels in one commit. An index of all deliveries by channel would have each of
-- them change a page of its own; what is pending is little, and what has ended comes one by one.
CREATE INDEX deliveries_pending ON deliveries (channel_id) WHERE state = 'pending';
CREATE INDEX deliveries_log ON deliveries (channel_id, state) WHERE ended_at IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (lane, again, receiver, not_before)
    WHERE state = 'pending' AND lease_until IS NULL;
CREATE INDEX deliveries_due ON deliveries (lane, not_before) WHERE state = 'pending' AND lease_until IS NULL;
CREATE INDEX deliveries_claimed ON deliveries (lane, receiver, lease_until)
    WHERE state = 'pending' AND lease_until IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX deliveries_mailed ON deliveries (workspace_id, receiver, ended_at)
    WHERE state = 'delivered' AND lane = 'email' AND kind = 'event' AND digest_of IS NULL;
CREATE INDEX deliveries_sealed ON deliveries (channel_id) WHERE sealed IS NOT NULL;

CREATE TABLE delivery_attempts (
    delivery_seq INTEGER NOT NULL,
    number       INTEGER NOT NULL, -- from 1
    started_at   INTEGER NOT NULL,
    duration     INTEGER NOT NULL,
    status       INTEGER,
    response     TEXT,
    error        TEXT,
    PRIMARY KEY (delivery_seq, number)
) STRICT, WITHOUT ROWID;
