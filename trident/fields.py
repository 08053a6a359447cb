"""Where `Fields` was once: tuples that states have pickled refer to this module."""

from trident.tuples.fields import Fields as Fields
