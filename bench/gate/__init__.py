"""The gate's suite: corrupted drafts that must be rejected, faithful ones that must be admitted."""
