"""Windows: what users declare, what their states keep, and when they end."""
