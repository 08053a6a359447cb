"""The local engine: runs a plan in one Python process, without Spark."""
