"""What `import` loads, and the names under which it refuses to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.packaging.conftest import ROOT
from tests.packaging.test_order import imports

HEAVY = tuple(
    "pyspark pyarrow pandas numpy redis pymemcache happybase confluent_kafka kazoo httptools "
    "starlette thrift uvicorn opentelemetry prometheus_client pytest urllib3".split()
)


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("folder", ["states", "backends"])
def test_a_folder_is_not_importable_under_a_second_name(folder: str) -> None:
    done = python(f"import {folder}")
    assert done.returncode != 0
    assert f"ImportError: import trident.{folder}, not {folder}" in done.stderr


@pytest.mark.parametrize("folder", ["states", "backends"])
def test_the_right_name_imports(folder: str) -> None:
    done = python(f"import trident.{folder}")
    assert done.returncode == 0, done.stderr


def test_importing_trident_loads_no_engine_and_no_driver() -> None:
    done = python(f"import sys, trident; print(sorted(set({HEAVY}) & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr


def test_building_and_asking_locally_loads_no_engine_and_no_driver() -> None:
    done = python(
        "import sys\n"
        "from trident import TridentTopology, FixedBatchSpout, Fields, Count, Split\n"
        "topology = TridentTopology()\n"
        "spout = FixedBatchSpout(Fields(sentence=str), 1, ('the cat',))\n"
        "topology.newStream('s', spout).each('sentence', Split(), 'word')\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_packages_are_there_after_importing_trident_and_load_nothing_more() -> None:
    done = python(
        "import sys, trident\n"
        "print(trident.backends.sqlite.opaque.__name__, trident.backends.redis.opaque.__name__)\n"
        "print(trident.states.OpaqueMap.__name__)\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    assert done.stdout.splitlines() == ["opaque opaque", "OpaqueMap", "[]"], done.stderr


AT_ONCE = (
    *("trident.spark", "trident.kernels.arrow_", "trident.states.testing"),
    *("trident.tuples.arrow_columns", "trident.backends.rows.copying"),
    *("trident.server", "trident.client", "trident.wire", "trident.figures.prometheus"),
)
"""Where an engine, a driver or pytest may be imported at once: all else imports these late."""


def test_a_driver_and_an_engine_are_imported_late() -> None:
    plain = [
        module
        for module in sorted(imports())
        if not module.startswith(AT_ONCE) and not module.endswith((".__main__", ".pytest_plugin"))
    ]
    done = python(
        "import sys\n"
        "from importlib import import_module\n"
        f"for name in {plain}:\n"
        "    import_module(name)\n"
        f"    loaded = {{*{HEAVY}, 'trident.spark'}} & set(sys.modules)\n"
        "    assert not loaded, f'{name} loads {loaded}'"
    )
    assert done.returncode == 0, done.stderr
    assert len(plain) > 300


PACKAGES = {
    *("backends", "errors", "server", "spark", "states", "storm", "testing", "transactional")
}


def test_trident_lists_its_public_names_only() -> None:
    done = python(
        "import trident\n"
        "import trident.local, trident.log\n"
        "print(set(dir(trident)) ^ {*trident.__all__})"
    )
    assert eval(done.stdout) == PACKAGES | {"__version__"}, done.stderr


WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; import trident"


@pytest.mark.parametrize(
    "use", ["trident.spark.local_session()", "import trident.spark.spark_engine"]
)
def test_without_pyspark_the_engine_names_the_pip_line(use: str) -> None:
    done = python(f"{WITHOUT_SPARK}; {use}")
    *_, last = done.stderr.splitlines()
    assert last == (
        'ImportError: topologies on Spark need PySpark: pip install "trident-spark[spark]"'
    )


def test_without_pyspark_the_package_explains_itself() -> None:
    done = python(f"{WITHOUT_SPARK}; help(trident)")
    assert "class TridentTopology" in done.stdout, done.stderr


def test_every_public_name_can_be_imported() -> None:
    done = python("import trident\nfor name in trident.__all__: getattr(trident, name)")
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    done = python("import trident; trident.Topologie")
    assert "AttributeError" in done.stderr
    assert "Topologie" in done.stderr


def test_the_time_of_an_import_is_reported(
    record_property: Callable[[str, object], None],
) -> None:
    done = python("import trident", "-X", "importtime")
    assert done.returncode == 0
    *_, last = done.stderr.splitlines()
    microseconds = int(last.split("|")[1])
    record_property("import trident, ms", microseconds / 1000)
