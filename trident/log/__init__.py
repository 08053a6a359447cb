"""The coordinator log: what is committed, which attempt is next, and which run may write."""
