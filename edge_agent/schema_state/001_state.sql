-- Books beside the memory: no text of any entry is ever here.
CREATE TABLE stage (
    stage INTEGER PRIMARY KEY,
    b REAL NOT NULL,
    capability REAL,
    grades INTEGER NOT NULL,
    low REAL,
    high REAL,
    measured REAL,
    tokens INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL
);

-- Never trimmed: the edge's copy of what recrystallization spent and got.
CREATE TABLE ledger (
    row INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    stage INTEGER NOT NULL,
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    target INTEGER NOT NULL,
    source TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    link_bytes INTEGER NOT NULL,
    admitted INTEGER NOT NULL,
    reason TEXT NOT NULL,
    wall_ns INTEGER NOT NULL
);

-- One row a sweep: moves = (number u32, origin u8, to u8) each, lost = u32 each.
CREATE TABLE sweep (
    row INTEGER PRIMARY KEY,
    stage INTEGER NOT NULL,
    price REAL NOT NULL,
    guard_yielded INTEGER NOT NULL,
    moves BLOB NOT NULL,
    lost BLOB NOT NULL,
    wall_ns INTEGER NOT NULL
);

CREATE TABLE eviction (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    memory_class INTEGER NOT NULL,
    value REAL NOT NULL,
    reason TEXT NOT NULL,
    stage INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL
);

-- A write asks whether its id was evicted.
CREATE INDEX eviction_id ON eviction (id);
