"""The job: what an engine runs for a batch group or a query, made of the plan once."""
