-- The log and the tables built from it. Facts are the stream's memory; the other tables are the lasting state, and can
-- be rebuilt from the facts (those at or below the floor are the snapshot: the newest of each key).

CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  epoch TEXT NOT NULL,
  head INTEGER NOT NULL DEFAULT 0,
  floor INTEGER NOT NULL DEFAULT 0,
  skip INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL
);

CREATE TABLE facts (
  workspace TEXT NOT NULL,
  seq INTEGER NOT NULL,
  batch INTEGER NOT NULL,          -- the commit it came with: trimming never splits one
  time REAL NOT NULL,
  by BLOB NOT NULL,
  session TEXT NOT NULL,
  run TEXT NOT NULL,
  kind TEXT NOT NULL,
  change TEXT NOT NULL,
  key TEXT NOT NULL,
  body BLOB NOT NULL,
  private BLOB
);
CREATE UNIQUE INDEX facts_seq ON facts (workspace, seq);
CREATE INDEX facts_key ON facts (workspace, kind, key, seq) WHERE key <> '';
CREATE INDEX facts_session ON facts (workspace, session);

CREATE TABLE sessions (
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  parent TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
);

CREATE TABLE messages (
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  run TEXT NOT NULL,
  number INTEGER NOT NULL,
  position INTEGER NOT NULL,
  role TEXT NOT NULL,
  unfinished INTEGER NOT NULL,     -- still being written: its text so far is in memory
  body BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
);
CREATE INDEX messages_order ON messages (workspace, session, number, position);

CREATE TABLE runs (
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  place INTEGER NOT NULL,          -- the order in which runs were accepted in the workspace
  body BLOB NOT NULL,
  private BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
);
CREATE INDEX runs_order ON runs (workspace, place);
CREATE INDEX runs_session ON runs (workspace, session, number);
CREATE INDEX runs_open ON runs (workspace, place) WHERE state IN ('accepted', 'queued', 'running', 'waiting');

CREATE TABLE permissions (          -- those still waiting for an answer
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  run TEXT NOT NULL,
  body BLOB NOT NULL,
  private BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
);

CREATE TABLE questions (            -- batches still waiting for an answer
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  run TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
);

CREATE TABLE grants (
  workspace TEXT NOT NULL,
  session TEXT NOT NULL,
  tool TEXT NOT NULL,
  action TEXT NOT NULL,
  resource TEXT NOT NULL,          -- '' where a pattern takes its place
  pattern TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (workspace, session, tool, action, resource, pattern)
);

CREATE TABLE files (
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  path TEXT NOT NULL,
  version INTEGER NOT NULL,
  body BLOB NOT NULL,
  run TEXT NOT NULL DEFAULT '',
  seq INTEGER NOT NULL DEFAULT 0,
  digest TEXT NOT NULL DEFAULT '', -- of its content; '' when it is not known
  before TEXT NOT NULL DEFAULT '', -- of what it was before
  PRIMARY KEY (workspace, id)
);
CREATE INDEX files_session ON files (workspace, session, path, version);
CREATE INDEX files_run ON files (workspace, run);

CREATE TABLE checkpoints (          -- the text so far of messages that are being written: not facts
  workspace TEXT NOT NULL,
  message TEXT NOT NULL,
  session TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (workspace, message)
);
