"""How a test says that something is missing on this machine: it is skipped with
a line that names the thing, or fails if PHX_REQUIRE names it (`all`, or a list
with commas). No test calls pytest.skip itself (internal/archtest)."""
import os

import pytest


def required(thing):
    return bool({thing, "all"} & set(os.environ.get("PHX_REQUIRE", "").split(",")))


def missing(thing, why):
    """Ends the test: `thing`, a word of PHX_REQUIRE, is not here."""
    if required(thing):
        pytest.fail(f"PHX_REQUIRE asks for {thing}: {why}")
    pytest.skip(f"no {thing} here: {why}")


def pointless(why):
    """Ends the test: it has nothing to say here, and nothing is missing."""
    pytest.skip(why)
