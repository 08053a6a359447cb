"""What listens for requests, over HTTP and Thrift, and answers them."""
