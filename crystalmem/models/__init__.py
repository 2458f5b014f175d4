"""Models are prepared by hand, once: weights come as pinned packages, checked by hash, never imported."""
