"""Real servers that are started, hurt and started again: by tests, and by users who try a state.

Each is the program that Debian delivers, for HBase and Kafka Maven and for SeaweedFS PyPI, on free
ports of this machine alone. `trident.pytest_plugin` shares one of each among all tests; a test that
hurts a server starts its own.
"""
