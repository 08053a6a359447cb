"""What ``python -m trident`` does: a module for each command, which `trident.cli.main` lists.

The module of a command has ``add_arguments(parser)`` and ``run(arguments)``, which returns the exit
status: 0 where all is well, 1 where the command has found something, 2 for wrong use.
"""
