"""A gateway of etcd where its clients look for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from patience import PATIENT_S
from scripted_etcd import Gateway

from faultline.systems_under_test.stores.etcd import gateway, leases, watches


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """The gateway; refreshes and watches wait long for what it says."""
    served = Gateway()
    monkeypatch.setattr(gateway, "CLIENT_PORT", served.port)
    monkeypatch.setattr(leases, "_ANSWERED_SHARE", PATIENT_S)
    monkeypatch.setattr(watches, "_SILENCE_S", PATIENT_S)
    yield served
    served.close()
