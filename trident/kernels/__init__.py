"""What steps do with the tuples of one partition, the same on every engine."""
