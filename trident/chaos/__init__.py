"""Kills the processes of a topology, over and over, and compares what it keeps with the truth.

The command is ``python -m trident chaos``; docs/reliability.md tells what it does and claims. The
files of this package, in the order in which they build on each other:

=================  ==============================================================================
``record``         the words that the source holds, and spouts over them
``truth``          what each state has to hold after so many words
``contender``      what is put to the test: here a topology
``by_hand``        the same by a plain loop, to show that the test can fail
``classical``      the same by a classical opaque map, which late writes break
``life``           the life of a driver, and what becomes of it
``process``        a process that may be stopped, continued and killed
``reader``         a process that reads committed values meanwhile
``trouble``        what is done to a server
``store``          the store, given or started; ``servers`` has those that are started
``changes``        the record of changes for tables of rows, and what they have to hold
``tables``         these tables: written by a topology, and by hand
``rounds``         what happens to the drivers of an episode
``on_spark``       the same on Spark
``tally``          what was counted, and ``report`` says it
``campaign``       episode after episode, until the time is over
=================  ==============================================================================
"""
