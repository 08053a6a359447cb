"""Spouts of every interface, on the local engine."""
