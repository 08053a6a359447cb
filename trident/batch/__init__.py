"""Runs the batches of a group exactly once, on either engine and for either clock."""
