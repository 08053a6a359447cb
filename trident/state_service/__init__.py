"""Shows what states hold to whoever asks over HTTP, from whole committed batches."""
