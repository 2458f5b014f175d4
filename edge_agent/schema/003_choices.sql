-- Clauses of an original that a model would rather keep (varint gaps), written once and before any layer is made:
-- from then on they are part of the entry's levels.
CREATE TABLE choice (
    number INTEGER PRIMARY KEY,
    clauses BLOB NOT NULL
);

-- E of an older store grows by this table's first page.
UPDATE meta SET value = value + 1024 WHERE name = 'empty_bytes' AND value > 0;
