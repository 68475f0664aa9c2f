"""Fixtures of the binding's tests."""
import os

import pytest

import binding_kit as kit
import need

# Tests, or whole files, that have nothing to say on an emulated device.
HOST_ONLY = {
    "test_load": "chooses vendors and device folders itself",
    "test_fork_closed": "is about children that may not use the library",
    "test_find_device_is_identity_on_the_host": "is about the host connector",
    "test_target_is_the_memory_itself_on_the_host": "is about the host connector",
    "test_memory_that_is_not_mapped_or_not_writable_is_efault": "is about the host connector",
    "test_an_alarm_storm_changes_no_result": "opens and ioctls wait for phx, and give EINTR without SA_RESTART",
}


def pytest_runtest_setup(item):
    why = HOST_ONLY.get(item.originalname) or HOST_ONLY.get(item.module.__name__)
    if kit.EMULATED and why:
        need.pointless(f"on the host device only: {why}")


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
