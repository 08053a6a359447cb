"""Kafka's records as a stream, and as a sink, on a real broker."""
