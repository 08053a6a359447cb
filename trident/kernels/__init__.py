"""Kernels: what each step does with the tuples of one partition, the same on both engines."""
