"""Sources that hand out batches from the driver."""
