"""Retention policies that run inside the real edge daemon for comparison (`ports.Retention`)."""
