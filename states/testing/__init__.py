"""Tests for the authors of backing maps, and the model the protocol is checked against.

Only this package imports pytest and hypothesis; nothing of the library imports it.
"""
