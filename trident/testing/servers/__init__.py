"""Real servers that tests start, hurt and start again.

Each is the program that Debian (or, for HBase, Maven) delivers, on free ports of this machine
alone. `setup/servers` installs them; `tests/conftest.py` shares one of each among all tests, and
a test that hurts a server starts its own.
"""
