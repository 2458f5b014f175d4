-- One file a tenant. `generation` rises when this hub has lost its tail: acks of an older one are void.
CREATE TABLE tenant (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    archive_bytes INTEGER NOT NULL
);

-- Where each edge stands. `prev_chain` tells a replay of the last batch from another history; `last_ack` is
-- what it is answered with.
CREATE TABLE cursor (
    edge TEXT PRIMARY KEY,
    epoch BLOB NOT NULL,
    seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    prev_chain BLOB NOT NULL,
    last_ack BLOB NOT NULL,
    alarmed INTEGER NOT NULL
) WITHOUT ROWID;

-- Epochs that an edge has left: a copy that still speaks in one of them is old, or a clone.
CREATE TABLE retired_epoch (
    edge TEXT NOT NULL,
    epoch BLOB NOT NULL,
    PRIMARY KEY (edge, epoch)
) WITHOUT ROWID;

-- Crystallized state. `number` is the edge's name for the entry, NULL once another entry has it. `epoch` is
-- the one that last created it: entries of an older epoch are what the edge no longer has, or has as a stub.
-- `creations` counts how often this version was applied in its epoch: 1, always.
CREATE TABLE entry (
    public_id BLOB PRIMARY KEY,
    edge TEXT NOT NULL,
    number INTEGER,
    epoch BLOB NOT NULL,
    version INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    memory_class INTEGER NOT NULL,
    created_wall_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,
    value REAL NOT NULL,
    text_bytes INTEGER NOT NULL,
    links BLOB NOT NULL,
    rung INTEGER NOT NULL,
    overlay_rung INTEGER NOT NULL,
    provenance TEXT NOT NULL,
    creations INTEGER NOT NULL,
    residue_rung INTEGER,
    residue_levelling INTEGER,
    residue BLOB
);
CREATE UNIQUE INDEX entry_number ON entry (edge, number) WHERE number IS NOT NULL;

-- The archive: layers of an entry's present version, all of one levelling.
CREATE TABLE layer (
    public_id BLOB NOT NULL REFERENCES entry (public_id),
    rung_above INTEGER NOT NULL,
    levelling INTEGER NOT NULL,
    epoch BLOB NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (public_id, rung_above)
);

CREATE TABLE original (
    public_id BLOB PRIMARY KEY REFERENCES entry (public_id),
    payload BLOB NOT NULL
);

-- What is left of forgotten entries; the epoch tells a new entry of the same id from an old copy's.
CREATE TABLE tombstone (
    hash BLOB PRIMARY KEY,
    edge TEXT NOT NULL,
    epoch BLOB NOT NULL
) WITHOUT ROWID;
