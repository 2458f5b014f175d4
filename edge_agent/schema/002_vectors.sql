-- Rotated binary codes (shared/memory/vectors.py), width/8 bytes each. A table of their own: they come later than
-- the entry and go before it, and neither may move its page.
CREATE TABLE vector (
    number INTEGER PRIMARY KEY,
    code BLOB NOT NULL
);

-- E of an older store grows by this table's first page.
UPDATE meta SET value = value + 1024 WHERE name = 'empty_bytes' AND value > 0;
