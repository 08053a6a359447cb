"""The calls of users: topologies, streams, and the run of a topology."""
