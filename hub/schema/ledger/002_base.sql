-- Which base an attempt was for: the same ask is not paid for twice in a stage. `estimated` 1: the endpoint did not
-- say what it used, `tokens` is the most that it can have been.
ALTER TABLE spending ADD COLUMN base_digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE spending ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
