"""What the steps of a stream do: functions, filters, aggregators, queries and state updaters."""
