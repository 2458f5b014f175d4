-- What the memory plane did and spent; never what it holds.
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

-- moves: (number u32, from u8, to u8) of every move of one sweep.
CREATE TABLE sweep (
    row INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    stage INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    price REAL NOT NULL,
    budget_bytes INTEGER NOT NULL,
    logical_bytes INTEGER NOT NULL,
    disk_bytes INTEGER NOT NULL,
    moves BLOB NOT NULL,
    lost_exact BLOB NOT NULL
);

CREATE TABLE eviction (
    row INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    stage INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    class INTEGER NOT NULL,
    value REAL NOT NULL,
    reason TEXT NOT NULL
);

CREATE TABLE loop_point (
    row INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    stage INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    b REAL NOT NULL,
    capability REAL,
    n INTEGER NOT NULL,
    interval REAL
);

CREATE TABLE sample (
    row INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    body BLOB NOT NULL
);
