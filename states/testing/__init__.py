"""Tests for the authors of backing maps: the conformance suite and the protocol's state machine.

It alone of `trident.states` imports pytest and hypothesis; nothing of the library imports it.
"""
