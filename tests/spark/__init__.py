"""What only the Spark engine has: Structured Streaming, stages, tasks and sessions."""
