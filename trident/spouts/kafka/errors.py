"""Errors of streams from Kafka; what fails for want of a broker is a `SourceUnavailableError`."""

from __future__ import annotations

from dataclasses import dataclass

from trident.states.errors import TridentError


@dataclass(eq=False, repr=False)
class KafkaRecordError(TridentError):
    """A record can't be made a tuple; nothing of its batch was written."""

    topic: str
    """The topic."""
    partition: int
    """The partition."""
    offset: int
    """Where in the partition the record is."""
    problem: str
    """What was found."""

    _template = (
        "the record of topic {topic!r}, partition {partition}, offset {offset}: {problem}. Change "
        "what decodes it, or pass such records over with on_error='skip', or put them aside with "
        "on_error=DeadLetterTopic(...) or a function of yours."
    )


@dataclass(eq=False, repr=False)
class KafkaDataLossError(TridentError):
    """Records that the stream has not read to their end are no longer there."""

    topic: str
    """The topic."""
    partition: int
    """The partition."""
    problem: str
    """What was found."""

    _template = (
        "topic {topic!r}, partition {partition}: {problem}. The run stops before it writes. "
        "Restore the topic, or go on without them with fail_on_data_loss=False; keep records for "
        "longer than a run may stand still."
    )
