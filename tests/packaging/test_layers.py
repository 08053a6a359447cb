"""Who may import what: the table of docs/architecture.md, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

EVERYWHERE = {"cachetools", "orjson"}
ENGINE = {"pyspark", "pyarrow", "py4j", "numpy"}  # pyspark[sql] brings them all
DRIVERS = {
    "redis": {"redis", "hiredis"},
    "memcached": {"pymemcache"},
    "hbase": {"happybase", "thriftpy2", "Hbase_thrift"},
    "postgres": {"psycopg"},
}
TRANSPORTS = {
    "server": {"httptools", "starlette", "uvicorn"},
    "client": {"urllib3"},
    "wire": {"thrift"},
}
DRIVERS_OF_CHECKPOINTS = {"zookeeper": {"kazoo"}}


@dataclass(frozen=True)
class Import:
    """One import statement that runs: those for type checkers only are left out."""

    module: str
    line: int
    at_import: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def is_standard(self) -> bool:
        return self.top in sys.stdlib_module_names

    def is_from(self, *packages: str) -> bool:
        return any(f"{self.module}.".startswith(f"{package}.") for package in packages)


def imports_of(path: Path) -> Iterator[Import]:
    yield from _imports(ast.parse(path.read_text(encoding="utf-8")).body, at_import=True)


def _imports(body: list[ast.stmt], *, at_import: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(name.name, node.lineno, at_import)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: name the module in full"
            assert node.module is not None
            for name in node.names:
                yield Import(f"{node.module}.{name.name}", node.lineno, at_import)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, at_import=at_import)
        else:
            inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for field in ("body", "orelse", "finalbody", "handlers"):
                yield from _imports(getattr(node, field, []), at_import=inside)
            for case in getattr(node, "cases", []):
                yield from _imports(case.body, at_import=inside)


def sources(folder: str) -> list[Path]:
    """The Python files of a folder of the project, links not followed."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        linked = any(parent.is_symlink() for parent in path.parents if ROOT in parent.parents)
        if not linked:
            found.append(path)
    return found


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources("states"), ids=identify)
def test_states_need_only_the_core_packages(path: Path) -> None:
    testing = (ROOT / "states" / "testing") in path.parents
    allowed = EVERYWHERE | ({"pytest", "hypothesis"} if testing else set())
    for found in imports_of(path):
        assert found.is_standard or found.top in allowed or found.is_from("trident.states"), found


@pytest.mark.parametrize("path", sources("backends"), ids=identify)
def test_a_backend_needs_states_and_its_driver_late(path: Path) -> None:
    known = DRIVERS | DRIVERS_OF_CHECKPOINTS
    drivers = known.get(path.relative_to(ROOT / "backends").parts[0], set())
    for found in imports_of(path):
        if found.top in drivers and not found.is_standard:
            assert not found.at_import, f"{found}: import the driver where it is first used"
            continue
        assert (
            found.is_standard
            or found.top in EVERYWHERE
            or found.is_from("trident.states", "trident.backends")
        ), found


@pytest.mark.parametrize("path", sources("trident"), ids=identify)
def test_only_the_spark_engine_imports_spark(path: Path) -> None:
    engine = (ROOT / "trident" / "spark") in path.parents
    allowed = EVERYWHERE | {"trident"} | (ENGINE if engine else set())
    allowed |= TRANSPORTS.get(path.relative_to(ROOT / "trident").parts[0], set())
    allowed |= {"prometheus_client"} if path.name == "prometheus.py" else set()
    allowed |= {"IPython"} if path == ROOT / "trident" / "page" / "live_display.py" else set()
    allowed |= {"pytest"} if path == ROOT / "trident" / "pytest_plugin.py" else set()
    spans = path == ROOT / "trident" / "figures" / "opentelemetry.py"
    allowed |= {"opentelemetry"} if spans else set()
    for found in imports_of(path):
        assert found.is_standard or found.top in allowed, found
        if not engine:
            spark = found.is_from("trident.spark") and found.at_import
            assert not spark, f"{found}: import the engine where it is chosen"


@pytest.mark.parametrize("path", sources("trident/plan"), ids=identify)
def test_the_plan_knows_no_engine(path: Path) -> None:
    for found in imports_of(path):
        assert not found.is_from("trident.spark", "trident.local", "trident.batch"), found


@pytest.mark.parametrize("path", sources("trident/kernels"), ids=identify)
def test_the_kernels_know_no_engine(path: Path) -> None:
    for found in imports_of(path):
        assert not found.is_from("trident.spark", "trident.local", "trident.batch"), found


ASKED = [
    path
    for name in ("drpc", "figures", "page", "state_service")
    for path in sources(f"trident/{name}")
]


@pytest.mark.parametrize("path", ASKED, ids=identify)
def test_what_is_asked_knows_nothing_of_who_listens_and_who_asks(path: Path) -> None:
    for found in imports_of(path):
        assert not found.is_from("trident.server", "trident.client", "trident.wire"), found


@pytest.mark.parametrize("path", sources("trident/client"), ids=identify)
def test_a_client_knows_no_server(path: Path) -> None:
    for found in imports_of(path):
        assert not found.is_from("trident.server"), found


@pytest.mark.parametrize("path", sources("trident/page"), ids=identify)
def test_the_page_knows_no_engine_and_no_run(path: Path) -> None:
    engines = ("trident.spark", "trident.local", "trident.batch", "trident.run")
    for found in imports_of(path):
        assert not found.is_from(*engines), found


def test_an_import_that_only_type_checkers_see_is_allowed(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("if TYPE_CHECKING:\n    import pyspark\nelse:\n    import json\n")
    assert [found.module for found in imports_of(module)] == ["json"]


def test_imports_inside_functions_and_branches_are_seen(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "def f():\n    try:\n        import redis\n"
        "    except ImportError:\n        import happybase\n"
    )
    assert [(found.module, found.at_import) for found in imports_of(module)] == [
        ("redis", False),
        ("happybase", False),
    ]


def test_no_module_of_the_library_imports_itself_by_a_circle() -> None:
    """Counted is what runs when a module is imported, packages' own files included."""
    modules = modules_of("trident", "states", "backends")
    assert {"trident", "trident.states.state", "trident.backends.urls"} <= modules.keys()
    found = circles(modules, at_import=True)
    assert not found, f"these import each other: {found}"


def test_no_module_imports_itself_late_or_for_type_checkers_only() -> None:
    found = circles(modules_of("trident", "states", "backends"))
    assert not found, f"these import each other: {found}"


@pytest.mark.parametrize(
    ("text", "at_import"),
    [
        ("from trident.states.b import B", True),
        ("import trident.states.b", True),
        ("def late():\n    from trident.states.b import B", False),
        ("if TYPE_CHECKING:\n    from trident.states.b import B", False),
    ],
)
def test_a_circle_is_found(tmp_path: Path, text: str, at_import: bool) -> None:
    modules = {f"trident.states.{name}": tmp_path / f"{name}.py" for name in "abcd"}
    texts = [text, "from trident.states.c import C", "import trident.states.a", text]
    for path, content in zip(modules.values(), texts, strict=True):
        path.write_text(content)
    assert circles(modules).keys() == modules.keys() - {"trident.states.d"}
    assert bool(circles(modules, at_import=True)) == at_import


def test_a_circle_through_a_package_is_found(tmp_path: Path) -> None:
    modules = {"trident.states": tmp_path / "__init__.py", "trident.states.a": tmp_path / "a.py"}
    modules["trident.states"].write_text("from trident.states.a import A")
    modules["trident.states.a"].write_text("from trident.states import B")
    assert circles(modules, at_import=True).keys() == modules.keys()


def modules_of(*folders: str) -> dict[str, Path]:
    """The files of some folders, by the names by which they are imported."""
    return {module_of(path): path for folder in folders for path in sources(folder)}


def circles(modules: Mapping[str, Path], *, at_import: bool = False) -> dict[str, set[str]]:
    """The modules that import each other, and what lies between circles, with what they import."""
    find = _imported_at_once if at_import else _imported
    imports = {module: set(find(path, modules)) for module, path in modules.items()}
    while free := _outside_circles(imports):
        imports = {module: found - free for module, found in imports.items() if module not in free}
    return imports


def _outside_circles(imports: Mapping[str, set[str]]) -> set[str]:
    """The modules that import none of these, or that none of these imports."""
    imported = {found for each in imports.values() for found in each}
    return {module for module, found in imports.items() if not found or module not in imported}


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    top, *others = path.relative_to(ROOT).with_suffix("").parts
    package = "trident" if top == "trident" else f"trident.{top}"
    return ".".join([package, *others]).removesuffix(".__init__")


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """What a file imports anywhere; a package's own file, which loads names late, is left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and path.name != "__init__.py":
            for name in node.names:
                full = f"{node.module}.{name.name}"
                found = full if full in modules else str(node.module)
                if found in modules and modules[found].name != "__init__.py":
                    yield found
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)


def _imported_at_once(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """What a file imports when it is imported; of a package's name the package."""
    for found in imports_of(path):
        if found.at_import:
            package = found.module.rpartition(".")[0]
            yield from [name for name in (found.module, package) if name in modules][:1]
