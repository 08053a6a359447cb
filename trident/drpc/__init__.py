"""Answers queries of a topology's states, in this process, from whole committed batches."""
