-- Every attempt to lift an entry. `settled` 0: the tokens are a reservation, kept in full if the hub dies.
CREATE TABLE spending (
    attempt INTEGER PRIMARY KEY,
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
    wall_ns INTEGER NOT NULL,
    settled INTEGER NOT NULL
);
CREATE INDEX spending_stage ON spending (tenant, stage);
