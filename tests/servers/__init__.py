"""Servers that only this project's own tests start."""
