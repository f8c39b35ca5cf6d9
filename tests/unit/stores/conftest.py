"""A gateway of etcd where its clients look for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scripted_etcd import Gateway

from faultline.systems_under_test.stores.etcd import gateway


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    served = Gateway()
    monkeypatch.setattr(gateway, "CLIENT_PORT", served.port)
    yield served
    served.close()
