"""What goes between servers and clients: errors and Thrift's messages, the same at both ends."""
