"""One txid, whatever engine and clock: place, begin, run, ready, commit, announce."""
