-- Drafts that the gate admitted: an ask that comes again is answered from here and never generated again.
-- They go with their entry, and the oldest first when they outgrow their share.
CREATE TABLE draft (
    kept INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id BLOB NOT NULL REFERENCES entry (public_id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    base_digest BLOB NOT NULL,
    target INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    text TEXT NOT NULL,
    model TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    judged INTEGER NOT NULL,
    UNIQUE (public_id, version, base_digest, target)
);
