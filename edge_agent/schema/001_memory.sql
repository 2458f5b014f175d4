-- One tenant's memory plane. Every byte here is budget: no secondary index, fixed-width rows where rows change.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- facts: edge_agent.table.FACTS, fixed width, so that a demotion never moves the row.
CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    digest BLOB NOT NULL,
    version INTEGER NOT NULL,
    facts BLOB NOT NULL
);

-- heat: edge_agent.table.HEAT; only entries that were recalled have a row.
CREATE TABLE heat (
    number INTEGER PRIMARY KEY,
    heat BLOB NOT NULL
);

-- Bodies: TEXT = one entry's original; BLOB = a packed block. text_bytes: original text of all its first members.
CREATE TABLE block (
    number INTEGER PRIMARY KEY,
    text_bytes INTEGER NOT NULL,
    body NOT NULL
);

CREATE TABLE overlay (
    number INTEGER PRIMARY KEY,
    rung INTEGER NOT NULL,
    model TEXT NOT NULL,
    created_wall_ns INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- Co-retrieval: at most 8 of (neighbour u32, count u16).
CREATE TABLE edge (
    number INTEGER PRIMARY KEY,
    edges BLOB NOT NULL
);

-- References that the writer gave: u32 each.
CREATE TABLE reference (
    number INTEGER PRIMARY KEY,
    targets BLOB NOT NULL
);

CREATE TABLE dictionary (
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    op INTEGER NOT NULL,
    version INTEGER NOT NULL
);

-- The batch in flight, sent again unchanged until acked: at most one row.
CREATE TABLE sent (
    last_seq INTEGER PRIMARY KEY,
    body BLOB NOT NULL
);

-- Open recall ids: (number u32, weight f32) of every hit.
CREATE TABLE recall (
    rank INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    created_wall_ns INTEGER NOT NULL,
    hits BLOB NOT NULL
);

-- stub: edge_agent.table.STUB; what an eviction leaves where the hub holds every layer.
CREATE TABLE stub (
    number INTEGER PRIMARY KEY,
    stub BLOB NOT NULL
);

-- A forgotten entry until the hub has heard of it: scope.tombstone_hash.
CREATE TABLE tombstone (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL
);
