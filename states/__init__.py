"""State that is exact: values, maps and the protocol that keeps them so."""

if __name__ != "trident.states":  # the same class must not exist twice
    raise ImportError("import trident.states, not states: the folder is only its source")
