"""What can go wrong with a real server while a topology counts, played on real servers.

Each test says what happens; each time the log or the error says where and what to do, the batch is
retried or the run stops, and the counts come out exact.
"""
