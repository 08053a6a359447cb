"""A name of Storm's that the package hasn't says what to use instead."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import trident
from tests.packaging.test_from_storm import PUBLISHED
from trident.api.absent_names import INSTEAD

CLASSES = [
    name
    for names in PUBLISHED.values()
    for name in names.split()
    if name[0].isupper() and name not in trident.__all__
]


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_that_storm_published_is_there_or_told_of(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. \w.*[.)]"):
        getattr(trident, name)


def test_an_import_says_it_too() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'BaseFunction' .*trident.Function"):
        exec("from trident import BaseFunction")
    with pytest.raises(ImportError, match=r"KafkaSpout\.opaque"):
        exec("from trident import OpaqueTridentKafkaSpout")
    with pytest.raises(ImportError, match=r"'Tester' from 'trident'\. It is in trident\.testing"):
        exec("from trident import Tester")


def test_a_mistyped_import_is_told_the_nearest_name() -> None:
    with pytest.raises(ImportError, match=r"'TridentTopolgy' .* Did you mean 'TridentTopology'\?"):
        exec("from trident import TridentTopolgy")


def test_what_is_told_of_is_absent() -> None:
    assert not [name for name in INSTEAD if hasattr(trident, name)]


def test_what_nobody_published_is_just_absent() -> None:
    missing: Any = "seperate"
    assert getattr(trident, missing, None) is None
    with pytest.raises(AttributeError, match="no attribute 'seperate'$"):
        getattr(trident, missing)


def test_a_module_of_the_package_can_still_be_imported_by_name() -> None:
    program = "from trident import log, page; print(log.__name__, page.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("trident.log trident.page\n", "")
