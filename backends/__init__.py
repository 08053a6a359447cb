"""Backing maps, one module a store; each imports its driver when it is first used."""

if __name__ != "trident.backends":  # the same class must not exist twice
    raise ImportError("import trident.backends, not backends: the folder is only its source")
