"""What steps do within a partition, without an engine."""
