"""What lies between a map state and its store: an adapter for what the store can do, and layers."""
