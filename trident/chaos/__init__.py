"""Kills the processes of a topology, over and over, and compares what it keeps with the truth.

The command is ``python -m trident chaos``; docs/reliability.md tells what it does and claims. The
files of this package, in the order in which they build on each other:

=================  ==============================================================================
``record``         the words that the source holds, and spouts over them
``truth``          what each state has to hold after each of the words
``process``        a process that may be stopped, continued and killed, and its fate
``contender``      what is put to the test: a topology, its source, and how its states are read
``by_hand``        the same by loops that lose or count twice, to show that the test can fail
``reader``         a process that reads committed values meanwhile
``report``         what was counted, and how it is said
``servers``        the servers that are started, and what is done to them
``rounds``         what happens to the drivers of an episode, and episode after episode
``ways``           how drivers run: here without Spark
``store``          maps in a store, given or started
``tables``         tables of rows: their record, written by a topology and by hand
``rebuilding``     a topology whose states are built anew beside it, and swapped in
``on_spark``       the same on Spark
=================  ==============================================================================
"""
