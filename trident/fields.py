"""Where `Fields` was: tuples that a state keeps pickled name this module."""

from trident.tuples.fields import Fields as Fields
