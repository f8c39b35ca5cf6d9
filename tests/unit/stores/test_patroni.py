"""Patroni as an adapter: its configuration, what its members say of themselves, and when they serve."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest
from patience import PATIENT_S

from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.postgresql import patroni as patroni_module
from faultline.systems_under_test.stores.postgresql.patroni import Patroni

PLACE = StorePlace(
    node="cyrene",
    addresses={"athens": "10.0.0.1", "byzantium": "10.0.0.2", "cyrene": "10.0.0.3"},
    folder="/cyrene",
    options={name: option.default for name, option in Patroni.options.items()},
)


def test_patroni_starts_an_etcd_of_all_members_beside_it() -> None:
    store = Patroni()
    assert isinstance(store, HostedStore)
    files = store.files(PLACE)
    configuration = json.loads(files["patroni.yml"])
    assert configuration["etcd3"]["hosts"] == ["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"]
    assert configuration["postgresql"]["data_dir"] == "/cyrene/data/postgresql/database"
    assert "--initial-cluster=athens=http://10.0.0.1:2380" in files["start.sh"]
    assert "--data-dir=/cyrene/data/etcd/data" in files["start.sh"] and files["start.sh"].endswith("wait -n\n")


@pytest.mark.parametrize(("synchronous", "mode"), [("on", True), ("off", False)])
def test_who_may_be_promoted_is_an_option(synchronous: str, mode: bool) -> None:
    place = msgspec.structs.replace(PLACE, options={**PLACE.options, "synchronous": synchronous, "ttl_s": "9"})
    rules = json.loads(Patroni().files(place)["patroni.yml"])["bootstrap"]["dcs"]
    assert rules["synchronous_mode"] is mode
    assert rules["ttl"] >= rules["loop_wait"] + 2 * rules["retry_timeout"], "else Patroni gives up before the key ends"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield the answer of a Patroni on the loopback address, to be filled in; with `broken`, it is cut short."""
    answer: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b"{" if answer.get("broken") else json.dumps(answer).encode()
            self.send_response(503)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Discard the line."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr(patroni_module, "REST_PORT", server.server_address[1])
    yield answer
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_member_is_what_its_patroni_says(told: dict[str, Any]) -> None:
    streaming = [
        {"application_name": "athens", "state": "streaming"},
        {"application_name": "cyrene", "state": "catchup"},
    ]
    told.update(role="master", state="running", timeline=4, replication=streaming)
    status = Patroni().status("127.0.0.1", PATIENT_S)
    assert (status.role, status.generation, status.detail) == ("leader", 4, {"streaming": ["athens"]})
    told.update(state="starting")
    assert Patroni().status("127.0.0.1", PATIENT_S).role == "standby"
    told["broken"] = True
    with pytest.raises(OSError, match="no status"):
        Patroni().status("127.0.0.1", PATIENT_S)


def leader(*streaming: str) -> NodeStatus:
    return NodeStatus(role="leader", generation=2, detail={"streaming": list(streaming)})


def test_the_cluster_serves_when_its_only_primary_has_a_standby_that_confirms() -> None:
    standby = NodeStatus(role="standby", generation=2, detail={"streaming": []})
    serving = Patroni().serving
    assert serving({"athens": leader("cyrene"), "byzantium": standby, "cyrene": standby}) == "athens leads"
    assert serving({"athens": leader("pg_basebackup"), "byzantium": standby, "cyrene": standby}) is None
    assert serving({"athens": leader("cyrene"), "byzantium": None, "cyrene": standby}) == "athens leads"
    assert serving({"athens": leader("cyrene"), "byzantium": None, "cyrene": None}) is None
    assert serving({"athens": None, "byzantium": standby, "cyrene": standby}) is None
    assert serving({"athens": leader("cyrene"), "byzantium": leader("cyrene"), "cyrene": standby}) is None
    assert serving({"athens": leader()}) == "athens leads"
