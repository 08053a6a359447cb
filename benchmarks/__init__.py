"""How fast it is, beside what one would have written by hand: ``make bench``. Never fails."""
