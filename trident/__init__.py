"""Trident-style streams on Spark with external state that is exact."""
