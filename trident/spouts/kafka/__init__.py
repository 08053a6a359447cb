"""Kafka's records as a stream; the driver, confluent-kafka, is imported when it is first used."""

from trident.spouts.kafka.records import KafkaRecord
from trident.spouts.kafka.settings import DeadLetterTopic, FirstPollOffsetStrategy
from trident.spouts.kafka.spout import KafkaSpout

__all__ = ["DeadLetterTopic", "FirstPollOffsetStrategy", "KafkaRecord", "KafkaSpout"]
