"""Runs spouts: one stream's spout during a run, on the driver and by partitions."""
