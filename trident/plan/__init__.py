"""The immutable plan that the fluent calls build; nothing in here knows an engine."""
