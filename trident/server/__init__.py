"""What listens for requests, over HTTP and Thrift, and the client that sends them."""
