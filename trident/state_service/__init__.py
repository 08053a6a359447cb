"""Answers requests for the values of states by key, from whole committed batches."""
