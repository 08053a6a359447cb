"""Clients: programs elsewhere that ask a server for queries and states."""
