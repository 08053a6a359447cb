"""What an engine may leave out or move without changing a result."""
