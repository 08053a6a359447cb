"""Words a second by the size of a batch, beside what one would use instead: ``BENCH=sizes``."""
