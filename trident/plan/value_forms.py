"""The form that a state's values have now, as its spec or its operation says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trident.backends.state_spec import StateSpec
from trident.errors import OperationTypeError, PlanError, described
from trident.operations.interfaces import Operation
from trident.states.maps.factory import MapStateFactory
from trident.states.schema import ValueSchema
from trident.states.serializers import JSONSerializer, PickleSerializer
from trident.states.state import StateFactory

Form = Callable[[int, Callable[[Any, int], Any]], ValueSchema]


def with_form(
    call: str, factory: StateFactory, spec: StateSpec, operation: object, form: Form
) -> StateFactory:
    """Return the factory of a state whose values have the form that spec or operation say."""
    given: Any = spec if spec.schema_version is not None else operation
    version = getattr(given, "schema_version", 1)
    if type(version) is not int or version < 1:
        what = f"{call}: schema_version is a whole number from 1, found"
        raise OperationTypeError(what, described(version))
    if version == 1:
        return factory
    upgrade = getattr(given, "upgrade", None)
    if not callable(upgrade) or getattr(upgrade, "__func__", None) is Operation.upgrade:
        what = f"{call}: schema_version={version} without an upgrade() of earlier values, of"
        advice = "Write upgrade(value, version), which returns the value in the new form."
        found = "the StateSpec" if given is spec else described(given)
        raise OperationTypeError(what, found, (), advice)
    if not isinstance(factory, MapStateFactory):
        what = f"{call}: only map states keep values with a schema_version, found"
        raise PlanError(what, factory.label)
    if type(factory.serializer) not in (JSONSerializer, PickleSerializer):
        what = f"{call}: only the library's serializers keep a schema_version, found"
        advice = "Let your serializer tell the forms apart."
        raise PlanError(what, type(factory.serializer).__name__, (), advice)
    return factory.of_schema(form(version, upgrade))
