"""A server without tokens, and pages of other sites in a browser on the same machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.drpc.asking import PATIENCE
from trident import TridentTopology
from trident.drpc.errors import DRPCInternalError, DRPCUsageError
from trident.server.access import is_this_machine
from trident.server.server import DRPCServer
from trident.wire.errors import read_error


def topology() -> TridentTopology:
    topology = TridentTopology()
    topology.newDRPCStream("upper").map(str.upper, "text")
    return topology


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    with DRPCServer(topology(), port=0) as server:
        yield server


def asked(server: DRPCServer, path: str, **headers: str) -> tuple[int, str]:
    """The status and the error that a browser is told."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        method = "GET" if path.startswith("/api") or "Origin" not in sent else "POST"
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        told = response.read()
        return response.status, json.loads(told)["error"] if response.status >= 400 else ""
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/", "/healthz", "/figures.json", "/drpc/upper/a", "/no"])
@pytest.mark.parametrize("host", ["news.example", "news.example:3774", "127.0.0.1.example", "box"])
def test_a_name_that_may_be_another_sites_is_refused(
    server: DRPCServer, path: str, host: str
) -> None:
    assert asked(server, path, Host=host) == (403, "OTHER_SITE")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "a.localhost", "10.0.0.7", "[::1]:1"])
def test_addresses_and_names_of_this_machine_are_answered(server: DRPCServer, host: str) -> None:
    assert asked(server, "/drpc/upper/a", Host=host) == (200, "")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://news.example"},
        {"Origin": "null"},
        {"Referer": "https://news.example/page"},
        {"Referer": "about:blank"},
        {"Referer": "http://[odd"},
        {"Origin": "https://news.example", "Referer": "http://localhost/"},
    ],
)
@pytest.mark.parametrize("path", ["/drpc/upper", "/drpc/upper/a", "/api/v1/state"])
def test_a_page_of_another_site_calls_and_reads_nothing(
    server: DRPCServer, path: str, headers: dict[str, str]
) -> None:
    assert asked(server, path, **headers) == (403, "OTHER_SITE")


def test_a_referer_of_the_own_page_is_answered(server: DRPCServer) -> None:
    own = f"http://127.0.0.1:{server.port}/"
    assert asked(server, "/drpc/upper/a", Referer=own) == (200, "")


def test_what_a_browser_says_itself_counts_before_a_referer(server: DRPCServer) -> None:
    headers = {"Sec_Fetch_Site": "same-origin", "Referer": "https://news.example"}
    assert asked(server, "/drpc/upper/a", **headers) == (200, "")


def test_a_server_that_is_open_to_others_refuses_other_sites_too_and_says_that_it_is_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DRPCServer(topology(), "0.0.0.0", port=0) as server:
        [warned] = [each for each in caplog.records if "may call" in each.getMessage()]
        assert warned.levelname == "WARNING"
        assert "everybody who reaches 0.0.0.0" in warned.getMessage()
        assert asked(server, "/drpc/upper/a", Host="box.example") == (200, "")
        page = {"Host": "box.example", "Origin": "https://news.example"}
        assert asked(server, "/drpc/upper", **page) == (403, "OTHER_SITE")


@pytest.mark.parametrize("tokens", [None, {"ann": "s3cret"}])
def test_a_server_with_names_is_asked_by_no_other(tokens: dict[str, str] | None) -> None:
    known = {"Authorization": "Bearer s3cret"}
    with DRPCServer(topology(), port=0, tokens=tokens, names=["Box.example"]) as server:
        for host in ("box.example", "BOX.example:3774", "localhost", "127.0.0.1"):
            assert asked(server, "/drpc/upper/a", Host=host, **known) == (200, "")
        refused = asked(server, "/drpc/upper/a", Host="news.example", **known)
        assert refused == (403, "OTHER_SITE")


def test_one_name_that_is_no_list_is_refused() -> None:
    with pytest.raises(DRPCUsageError, match="names= is a list of host names, found 'box'"):
        DRPCServer(topology(), port=0, names="box")


def test_a_server_on_this_machine_or_with_tokens_warns_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DRPCServer(topology(), port=0), DRPCServer(topology(), "0.0.0.0", 0, tokens={"a": "b"}):
        assert not [each for each in caplog.records if "may call" in each.getMessage()]


@pytest.mark.parametrize("name", ["metrics", "page", "healthz", "openapi.json", "state/count"])
def test_a_function_that_is_called_as_a_page_of_the_servers_is_refused(name: str) -> None:
    topology = TridentTopology()
    topology.newDRPCStream(name).map(str.upper, "text")
    with pytest.raises(DRPCUsageError, match=f"of no function: '{name}'. Give the function anoth"):
        DRPCServer(topology, port=0)


def test_a_page_of_its_own_calls_and_a_link_leads_to_the_page(server: DRPCServer) -> None:
    own = f"http://127.0.0.1:{server.port}"
    assert asked(server, "/drpc/upper", Origin=own)[0] == 200
    assert asked(server, "/drpc/upper", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200
    assert asked(server, "/drpc/upper", Sec_Fetch_Site="none")[0] == 200
    assert asked(server, "/", Sec_Fetch_Site="cross-site")[0] == 200


def test_with_tokens_only_they_count() -> None:
    with DRPCServer(topology(), port=0, tokens={"ann": "s3cret"}) as server:
        behind_a_proxy = {"Host": "box.example", "Sec_Fetch_Site": "cross-site"}
        assert asked(server, "/drpc/upper/a", **behind_a_proxy)[0] == 401
        known = {**behind_a_proxy, "Authorization": "Bearer s3cret"}
        assert asked(server, "/drpc/upper/a", **known) == (200, "")


def test_a_client_raises_what_it_is_told() -> None:
    told = json.dumps({"error": "OTHER_SITE", "errorMessage": "Ask for localhost"}).encode()
    error = read_error("upper", "a", 403, told)
    assert isinstance(error, DRPCInternalError)
    assert "Ask for localhost" in str(error)


def test_only_this_machine_reaches_a_loopback_address() -> None:
    hosts = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "cache")
    assert list(map(is_this_machine, hosts)) == [True, True, True, False, False]
