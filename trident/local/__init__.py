"""The local engine: the same plan, interpreted in one Python process without Spark."""
