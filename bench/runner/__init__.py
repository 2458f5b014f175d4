"""Runs cells of the bench: one environment, one policy, one seed, one path of budgets."""
