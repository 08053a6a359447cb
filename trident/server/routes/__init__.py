"""What a server answers over HTTP, by the paths of its URLs."""
