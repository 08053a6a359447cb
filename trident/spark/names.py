"""Whether Spark can tell the fields of every step apart, also from the engine's own columns."""

from __future__ import annotations

from pyspark.sql import SparkSession

from trident.errors import FieldError
from trident.spark.group import GroupPlan

_OURS = "__trident"


def check_names(group: GroupPlan, spark: SparkSession) -> None:
    """No step has a field that is named like a column of the engine's.

    Nor two whose names differ only in case, unless Spark heeds that.

    Raises
    ------
    FieldError
        For a step that has, with where it was declared.
    """
    for node in group.nodes:
        for name in node.fields:
            if name.lower().startswith(_OURS):
                what = f"{node.origin.call} at {node.origin}: on Spark no field can be named"
                raise FieldError(what, name, (), f"Names that begin with {_OURS} are taken.")
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return
    for node in group.nodes:
        known: dict[str, str] = {}
        for name in node.fields:
            other = known.setdefault(name.lower(), name)
            if other != name:
                what = (
                    f"{node.origin.call} at {node.origin}: Spark doesn't tell {name!r} from the "
                    "field"
                )
                advice = "Rename one of them, or set spark.sql.caseSensitive to true."
                raise FieldError(what, other, (), advice)
