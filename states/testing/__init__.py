"""Tests for the authors of backing maps: the conformance suite and the protocol's state machine.

Only this package imports pytest and hypothesis; nothing of the library imports it.
"""
