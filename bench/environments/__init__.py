"""Environments: streams of writes, questions, and what an answer from the store's own texts is worth."""
