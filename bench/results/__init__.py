"""Tables and figures from the rows of the bench: generated, never typed."""
