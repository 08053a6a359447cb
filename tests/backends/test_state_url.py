"""The URL of a state: what it means, what is wrong with it, and what is never shown of it."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT
from trident.backends.checkpoints import CHECKPOINTS, checkpoint_from_url
from trident.backends.memory import MemoryStore
from trident.backends.redis.store import RedisStore
from trident.backends.sqlite import SQLiteStore
from trident.backends.state_spec import StateSpec
from trident.backends.state_url import StateURL
from trident.backends.urls import STATES, state_from_url
from trident.backends.zookeeper.checkpoint import ZooKeeperCheckpoint
from trident.errors import StateURLError, UsageError
from trident.states import JSONSerializer, MapStateFactory, PickleSerializer, StateType, Store

SECRET = "s3cr3t"
COMMON = {
    "hosted",
    "kind",
    "prefix",
    "cache_size",
    "max_get",
    "max_put",
    "serializer",
    "snapshot_key",
    "written_by",
}


def store_of(url: str) -> Store:
    factory = state_from_url(url)
    assert isinstance(factory, MapStateFactory)
    return factory.store


def url_of(scheme: str) -> str:
    place = {"memory": "words", "sqlite": "counts.db"}.get(scheme, "//h")
    return f"{scheme}:{place}{'/service' if scheme.endswith('sentinel') else ''}"


def elsewhere(scheme: str) -> set[str]:
    """The parameters in Python that a URL says by its scheme, login, hosts and path."""
    redis = set("host port db user password cluster sentinels service".split())
    of_cluster, of_sentinel = {"partitions"}, {"sentinel_user", "sentinel_password"}
    match scheme.removeprefix("rediss").removeprefix("redis"):
        case "":
            return redis | of_cluster | of_sentinel
        case "+cluster":
            return redis | of_sentinel
        case "+sentinel":
            return redis | of_cluster
        case "memcached":
            return {"nodes"}
        case "hbase":
            return {"host", "port", "table", "family"}
        case "postgresql":
            return {"host", "port", "database", "user", "password"}
        case "sqlite":
            return {"path"}
        case _:
            return {"id"}


class TestParsing:
    def test_all_parts(self) -> None:
        url = StateURL.parse("Redis+Sentinel://me:pw@One:26379,two/main/3?prefix=counts&ttl=5")
        assert url == StateURL(
            "redis+sentinel",
            "me",
            "pw",
            (("one", 26379), ("two", None)),
            "/main/3",
            {"prefix": "counts", "ttl": "5"},
        )

    @pytest.mark.parametrize(
        ("text", "hosts", "path"),
        [
            ("redis://host", (("host", None),), ""),
            ("redis://host/", (("host", None),), "/"),
            ("redis:///0", (), "/0"),
            ("redis://[::1]:6379/0", (("::1", 6379),), "/0"),
            ("redis://[FE80::1%25eth0]", (("fe80::1%eth0", None),), ""),
            ("memcached://[::1],[::2]:7", (("::1", None), ("::2", 7)), ""),
            ("sqlite:counts.db", (), "counts.db"),
            ("sqlite:///var/counts.db", (), "/var/counts.db"),
            ("sqlite:/var/counts.db", (), "/var/counts.db"),
            ("sqlite:a%20b%3F%23%25.db", (), "a b?#%.db"),
            ("memory:", (), ""),
            ("hbase://h:9090/space:table/family", (("h", 9090),), "/space:table/family"),
        ],
    )
    def test_hosts_and_paths(
        self, text: str, hosts: tuple[tuple[str, int | None], ...], path: str
    ) -> None:
        url = StateURL.parse(text)
        assert (url.hosts, url.path) == (hosts, path)

    @pytest.mark.parametrize(
        ("text", "login"),
        [
            ("redis://h", (None, None)),
            ("redis://me@h", ("me", None)),
            ("redis://me:@h", ("me", None)),
            ("redis://:pw@h", (None, "pw")),
            ("redis://me:a:b@h", ("me", "a:b")),
            ("redis://me:a@b@h", ("me", "a@b")),
            ("redis://m%C3%A9:%40%2F%3A%3F%23%25+@h", ("mé", "@/:?#%+")),
        ],
    )
    def test_logins(self, text: str, login: tuple[str | None, str | None]) -> None:
        url = StateURL.parse(text)
        assert (url.user, url.password) == login

    def test_values_of_options_may_be_empty_and_hold_anything_encoded(self) -> None:
        url = StateURL.parse("memory:?prefix=&more=a%26b%3Dc=d+e%0A")
        assert url.options == {"prefix": "", "more": "a&b=c=d+e\n"}

    @pytest.mark.parametrize(
        "text",
        [
            "redis://h:1,[::1]:2/0?prefix=a%20b&cache_size=1",
            "sqlite:/a%20b/c%40d.db",
            "memory:x?prefix=",
            "redis://m%C3%A9.example/",
        ],
    )
    def test_without_secrets_its_text_is_the_url_again(self, text: str) -> None:
        url = StateURL.parse(text)
        assert StateURL.parse(str(url)) == url

    def test_it_pickles_copies_and_hashes(self) -> None:
        url = StateURL.parse("redis://me:pw@h/0?prefix=a")
        for again in (pickle.loads(pickle.dumps(url)), copy.deepcopy(url)):
            assert again == url
            assert hash(again) == hash(url)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("redis", r"starts with a scheme, found 'redis'. Write it as in \"sqlite:counts.db\""),
            ("counts.db", r"found 'counts.db'.*\"redis://localhost:6379/0\?prefix=counts\""),
            ("", "starts with a scheme. Write"),
            ("://host", "starts with a scheme. Write"),
            ("redis://host:port", "port is not from 1 to 65535"),
            ("redis://host:0", "port is not from 1 to 65535"),
            ("redis://host:65536", "port is not from 1 to 65535"),
            ("redis://::1", "IPv6 address in brackets"),
            ("redis://[::1", "IPv6 address in brackets"),
            ("redis://a,,b", "a host is neither a name"),
            ("redis://a,", "a host is neither a name"),
            ("redis://:6379", "a host is neither a name"),
            ("redis://a%2Fb", "a host is neither a name"),
            ("redis://me:pw@", "a user is given, and no host"),
            ("redis://h/0#part", "holds a #. Write it as %23"),
            ("redis://h/0\n", "holds a space or a line break. Strip it"),
            ("sqlite:my counts.db", "write a space as %20"),
            ("sqlite:100%.db", "Write it as %25"),
            ("sqlite:%ff.db", "not UTF-8"),
            ("sqlite:\udcff.db", "half of a surrogate pair. It has no UTF-8: take it out"),
            ("redis://me:\ud800@h", "half of a surrogate pair"),
            ("redis://h?prefix=\ud800", "half of a surrogate pair"),
            ("sqlite:me@work.db", "@ is %40"),
            ("memory:?cache", "written name=value"),
            ("memory:?=1", "written name=value"),
            ("memory:?cache_size=1&", "written name=value"),
            ("memory:?cache_size=1&cache_size=1", "option cache_size is given twice"),
        ],
    )
    def test_what_is_malformed(self, text: str, says: str) -> None:
        with pytest.raises(StateURLError, match=says):
            StateURL.parse(text)


class TestOptions:
    def test_the_common_ones(self) -> None:
        url = (
            "memory:?kind=transactional&prefix=p&cache_size=7&max_get=8&max_put=9&serializer=pickle"
        )
        options = StateURL.parse(url).read()
        assert options.kind is StateType.TRANSACTIONAL
        assert options.prefix == "p"
        assert options.state == {
            "cache_size": 7,
            "max_get": 8,
            "max_put": 9,
            "serializer": PickleSerializer(),
        }

    def test_what_is_not_given(self) -> None:
        options = StateURL.parse("memory:").read(ttl=int)
        assert (options.kind, options.prefix) == (StateType.OPAQUE, None)
        assert options.state == options.own == {}

    def test_an_empty_prefix_is_given(self) -> None:
        assert StateURL.parse("memory:?prefix=").read().prefix == ""

    @pytest.mark.parametrize(
        ("text", "kind", "value"),
        [
            ("true", bool, True),
            ("0", bool, False),
            ("-12", int, -12),
            ("2.5", float, 2.5),
            ("3", float, 3.0),
            ("1e-3", float, 0.001),
            ("x", str, "x"),
        ],
    )
    def test_values_become_what_their_option_is(self, text: str, kind: type, value: object) -> None:
        found = StateURL.parse(f"memory:?own={text}").read(own=kind).own["own"]
        assert (found, type(found)) == (value, kind)

    @pytest.mark.parametrize(
        ("option", "says"),
        [
            ("cache_size=", "option cache_size takes a whole number, 0 or more, found ''"),
            ("cache_size=-1", "0 or more, found '-1'"),
            ("cache_size=1_000", "found '1_000'"),
            ("cache_size=1e3", "found '1e3'"),
            ("kind=", "option kind is empty; there are: opaque, transactional, nontransactional"),
            ("kind=opaqe", "option kind can't be 'opaqe'.*Did you mean 'opaque'?"),
            ("serializer=xml", "can't be 'xml'; there are: json, pickle"),
            (
                "cach_size=1",
                r"'cach_size'; there are: cache_size, .* Did you mean 'cache_size'\?",
            ),
            ("TTL=1", "unknown option 'TTL'"),
            ("ttl=soon", "option ttl takes a whole number, found 'soon'"),
            ("tls=yes", "option tls takes true or false, found 'yes'"),
            ("timeout=nan", "option timeout takes a number, found 'nan'"),
            ("timeout=1e999", "takes a number"),
            ("layout=", "option layout takes a text that is not empty"),
        ],
    )
    def test_what_is_wrong(self, option: str, says: str) -> None:
        url = StateURL.parse(f"redis://h?{option}")
        with pytest.raises(StateURLError, match=says):
            url.read(tls=bool, ttl=int, timeout=float, layout=str)


class TestSecrets:
    @pytest.mark.parametrize(
        "text",
        [
            f"redis://me:{SECRET}@h/0",
            f"redis://:{SECRET}@h/0",
            f"redis://{SECRET}@h/0",
            f"redis://h/0?password={SECRET}",
            f"redis://h/0?sentinel_password={SECRET}&api-key={SECRET}&auth_token={SECRET}",
        ],
    )
    def test_a_url_hides_them(self, text: str) -> None:
        url = StateURL.parse(text)
        spec = StateSpec(text, 4)
        for shown in (str(url), repr(url), f"{url!s:.30}", repr([url]), repr(spec), str(spec)):
            assert SECRET not in shown
        assert "***" in repr(url)

    @pytest.mark.parametrize(
        "text",
        [
            SECRET + "@h",
            f"me:{SECRET}@h:6379/0",
            f"//me:{SECRET}@h:6379/0",
            f"redis//me:{SECRET}@h",
            f"redis:me:{SECRET}@h",
            f"redis:/me:{SECRET}@h",
            f"redis://me:{SECRET}@",
            f"redis://me:{SECRET}@h:none",
            f"redis://me:{SECRET}@h h",
            f"redis://me:{SECRET}@h\n",
            f"redis://me:{SECRET}@h?cache",
            f"redis://me:{SECRET}@h?cach_size=1",
            f"redis://me:{SECRET}@h?kind=other",
            f"redis://me:{SECRET}@h?kind=opaque&kind=opaque",
            f"redis://me:{SECRET}@[h",
            f"redis://me:{SECRET}@h,,h",
            f"redis://me:{SECRET}%zz@h",
            f"redis://me:{SECRET}%ff@h",
            f"redis://me:1/{SECRET}@h",
            f"redis://me:{SECRET}/{SECRET}@h",
            f"redis://me:1?{SECRET}@h",
            f"redis://me:1?{SECRET}=x@h",
            f"redis://me:1#{SECRET}@h",
            f"redis://me:{SECRET} {SECRET}@h",
            f"rediss+claster://me:{SECRET}@h",
            f"memory://me:{SECRET}@h",
            f"sqlite://me:{SECRET}@h/counts.db",
            f"sqlite://me:{SECRET}@h/counts.db?cache_size=x",
            f"memory:?password={SECRET}",
            f"memory:?password=x&{SECRET}=y",
            f"memory:?password=x&{SECRET}",
            f"memory:?password={SECRET}&password={SECRET}",
        ],
    )
    def test_no_error_shows_them(self, text: str) -> None:
        with pytest.raises(StateURLError) as caught:
            state_from_url(text)
        error = caught.value
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert SECRET.encode() not in pickle.dumps(error)
        chain: BaseException | None = error
        while chain is not None:
            assert SECRET not in f"{chain}{chain!r}{chain.args}"
            chain = chain.__cause__ or chain.__context__
        told = traceback.TracebackException.from_exception(error).format_exception_only()
        assert SECRET not in "".join(told)

    def test_a_value_of_a_secret_option_is_not_shown_either(self) -> None:
        url = StateURL.parse(f"redis://h?token={SECRET}")
        with pytest.raises(StateURLError, match="takes a whole number") as caught:
            url.read(token=int)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("rest", [f"{SECRET}=y", f"{SECRET}=y&{SECRET}=z", SECRET])
    def test_nor_what_may_be_the_rest_of_one(self, rest: str) -> None:
        with pytest.raises(StateURLError) as caught:
            StateURL.parse(f"redis://h?token=x&{rest}").read(token=str)
        assert SECRET not in str(caught.value)

    def test_a_login_given_where_something_else_is_due_is_masked(self) -> None:
        error = UsageError("each: unknown field", f"redis://me:{SECRET}@h/0")
        assert str(error) == "each: unknown field 'redis://***@h/0'."
        assert SECRET.encode() not in pickle.dumps(error)


class TestSQLite:
    def test_a_relative_path_is_one_of_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert store_of("sqlite:counts.db") == SQLiteStore(str(tmp_path / "counts.db"))
        assert not list(tmp_path.iterdir())

    def test_everything_is_told_to_the_store(self) -> None:
        url = "sqlite:///var/c.db?prefix=p&kind=nontransactional&serializer=pickle&patience=1.5"
        factory = state_from_url(f"{url}&cache_size=3")
        kind, pickled = StateType.NON_TRANSACTIONAL, PickleSerializer()
        store = SQLiteStore("/var/c.db", "p", kind, pickled, 1.5)
        assert factory == MapStateFactory(store, kind, pickled, cache_size=3)

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("sqlite:", "^sqlite:: SQLiteStore: path '' is no file"),
            ("sqlite::memory:", "use MemoryMapState"),
            ("sqlite:c.db?prefix=", "can't name a table"),
            ("sqlite://counts.db", 'has no hosts.*Write "sqlite:name", or "sqlite:///folder/name"'),
            ("sqlite:c.db?size=3", "unknown option 'size'"),
        ],
    )
    def test_what_it_refuses(self, url: str, says: str) -> None:
        with pytest.raises(StateURLError, match=says):
            state_from_url(url)

    def test_its_state_works(self, tmp_path: Path) -> None:
        state = state_from_url(f"sqlite://{tmp_path}/counts.db").makeState()
        state.beginCommit(1)
        state.commit(1)
        state.close()


class TestMemory:
    def test_entries_of_an_id_are_shared(self) -> None:
        url = "memory:shared-by-url"
        one, other = (state_from_url(url).makeState() for _ in range(2))
        one.beginCommit(1)
        one.multiPut([("cat",)], [1])  # type: ignore[attr-defined]
        one.commit(1)
        assert other.multiGet([("cat",)]) == [1]  # type: ignore[attr-defined]

    def test_without_an_id_they_are_not(self) -> None:
        assert store_of("memory:") != store_of("memory:")

    def test_a_prefix_that_is_not_given_is_the_name_of_the_state(self) -> None:
        store = MemoryStore("a", prefix=None)
        assert store_of("memory:a") == store
        assert store.named("counts").identity == ("memory", "a", "counts")
        assert MemoryStore("a").named("counts").identity == ("memory", "a", "")

    def test_a_size_bounds_it(self) -> None:
        assert store_of("memory:a?size=10&prefix=") == MemoryStore("a", 10)
        with pytest.raises(StateURLError, match="size -1 is below 0; 0 keeps all"):
            state_from_url("memory:a?size=-1")


class TestSchemes:
    @pytest.mark.parametrize(
        ("scheme", "nearest", "extra"),
        [
            ("reddis", "redis", "redis"),
            ("memcache", "memcached", "memcached"),
            ("hbas", "hbase", "hbase"),
            ("postgres", "postgresql", "postgres"),
            ("sqlite3", "sqlite", "redis"),
        ],
    )
    def test_an_unknown_one_is_told_the_nearest(
        self, scheme: str, nearest: str, extra: str
    ) -> None:
        with pytest.raises(StateURLError) as caught:
            state_from_url(f"{scheme}://h")
        text = str(caught.value)
        assert f"no scheme of a state's URL is '{scheme}'; there are: " in text
        assert all(known in text for known in STATES.built_in)
        assert f"Did you mean '{nearest}'?" in text
        assert f'pip install "trident-spark[{extra}]"' in text

    @pytest.mark.parametrize("scheme", STATES.built_in)
    def test_an_option_is_called_as_the_parameter_is_in_python(self, scheme: str) -> None:
        with pytest.raises(StateURLError) as caught:
            state_from_url(f"{url_of(scheme)}?colour=red")
        options = set(caught.value.allowed)
        store = store_of(url_of(scheme))
        parameters = {each.name for made in (MapStateFactory, store) for each in fields(made)}
        assert options <= parameters
        assert parameters - options - {"store", "key_factory", "schema"} == elsewhere(scheme)

    @pytest.mark.parametrize("scheme", CHECKPOINTS.built_in)
    def test_an_option_of_a_checkpoint_is_called_so_too(self, scheme: str) -> None:
        redis = scheme.startswith("redis")
        url = url_of(scheme) if redis else f"{scheme}://h/words"
        with pytest.raises(StateURLError) as caught:
            checkpoint_from_url(StateURL.parse(f"{url}?colour=red"))
        options = set(caught.value.allowed)
        if scheme in ("s3", "az", "gs"):
            told = (ROOT / "docs" / "checkpoints.md").read_text()
            assert all(f"`{option}=`" in told for option in options)
            return
        made = RedisStore if redis else ZooKeeperCheckpoint
        assert options <= {*inspect.signature(made).parameters}

    def test_every_driver_has_its_extra(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = {built_in.extra for built_in in STATES.built_in.values() if built_in.extra}
        assert extras == {"redis", "memcached", "hbase", "postgres"}
        assert extras <= set(project["optional-dependencies"])

    @pytest.mark.parametrize("scheme", STATES.built_in)
    def test_the_guide_lists_each_with_its_options(self, scheme: str) -> None:
        lines = (ROOT / "docs" / "states.md").read_text().splitlines()
        named = STATES.built_in
        rows = {known: [line for line in lines if f"`{known}:" in line] for known in named}
        told = rows[scheme] + (rows["redis"] if scheme.startswith("redis") else [])
        with pytest.raises(StateURLError, match="unknown option 'colour'") as caught:
            state_from_url(f"{url_of(scheme)}?colour=red")
        own = set(caught.value.args[2]) - COMMON
        assert own
        for option in own:
            assert f"`{option}`" in "".join(told), option

    @pytest.mark.parametrize("given", [b"memory:", None, Path("counts.db")])
    def test_what_is_no_string(self, given: object) -> None:
        with pytest.raises(StateURLError, match="is a string, found '(bytes|NoneType|PosixPath)'"):
            state_from_url(given)  # type: ignore[arg-type]


class Packages:
    """Installed packages, as their metadata tells of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, package: str, scheme: str, home: str) -> None:
        info = self.folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{STATES.group}]\n{scheme} = {home}\n")

    def module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield Packages(tmp_path)
    for name in set(sys.modules) - before:
        del sys.modules[name]


class TestOtherPackages:
    def test_a_scheme_they_register_works_like_ours(self, packages: Packages) -> None:
        packages.add("some-store", "some", "some_store_a:from_url")
        packages.module("some_store_a", "from trident.backends.memory import from_url\n")
        assert store_of("some:a") == store_of("memory:a")

    def test_it_is_listed_where_another_is_unknown(self, packages: Packages) -> None:
        packages.add("some-store", "some", "some_store_b:from_url")
        with pytest.raises(StateURLError, match=r"redis, .*, some, sqlite. Did you mean 'some'\?"):
            state_from_url("somme:a")

    def test_ours_are_not_taken_over(self, packages: Packages) -> None:
        packages.add("some-store", "memory", "some_store_c:from_url")
        assert store_of("memory:a") == MemoryStore("a", prefix=None)

    def test_two_packages_with_one_scheme_are_named(self, packages: Packages) -> None:
        packages.add("some-store", "some", "some_store_d:from_url")
        packages.add("other-store", "some", "other_store_d:make")
        says = (
            "several packages register it: other_store_d:make of the package other-store and "
            "some_store_d:from_url of the package some-store. Uninstall"
        )
        with pytest.raises(StateURLError, match=says):
            state_from_url("some:a")

    @pytest.mark.parametrize(
        ("module", "cause"),
        [
            ("import a_driver_that_is_not_there", ModuleNotFoundError),
            ("1 / 0", ZeroDivisionError),
            ("", AttributeError),
        ],
    )
    def test_one_that_does_not_import_is_named(
        self, packages: Packages, module: str, cause: type[Exception]
    ) -> None:
        packages.add("some-store", "some", "some_store_e:from_url")
        packages.module("some_store_e", module)
        says = f"of the package some-store can't be loaded: {cause.__name__}: .+ Repair"
        with pytest.raises(StateURLError, match=says) as caught:
            state_from_url("some:a")
        assert isinstance(caught.value.__cause__, cause)

    def test_one_that_makes_something_else_is_named(self, packages: Packages) -> None:
        packages.add("some-store", "some", "some_store_f:StateURL")
        packages.module("some_store_f", "StateURL = repr\n")
        with pytest.raises(StateURLError, match="package some-store returned no StateFactory"):
            state_from_url("some:a")


def test_json_is_the_default() -> None:
    factory = state_from_url("sqlite:counts.db")
    assert isinstance(factory, MapStateFactory)
    assert factory.serializer == JSONSerializer()
