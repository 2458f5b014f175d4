"""Environments, policies, runner, tables and figures."""
