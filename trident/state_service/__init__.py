"""Shows what states hold to whoever asks by key, from whole committed batches."""
