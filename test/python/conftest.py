"""Fixtures of the binding's tests."""
import os

import pytest

import binding_kit as kit


@pytest.fixture
def path(tmp_path):
    p = tmp_path / "data"
    p.write_bytes(kit.DATA)
    return p


@pytest.fixture
def fd(path):
    n = os.open(path, os.O_RDWR)
    yield n
    os.close(n)


@pytest.fixture
def device():
    with kit.phoenix.Device(0) as d:
        yield d


@pytest.fixture
def buf():
    return kit.phoenix.aligned(4 * kit.PAGE)
