"""The edge daemon: one tenant's memory plane."""
