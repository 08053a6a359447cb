"""What lies between a map state and its store: a way to write for each ability, and layers."""
