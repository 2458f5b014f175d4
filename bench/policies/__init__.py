"""Retention policies under one contract, and those of the real edge daemon (`ports.Retention`)."""
