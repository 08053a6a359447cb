"""The coordinator log: what is committed, which attempt is next, and who may say so."""
