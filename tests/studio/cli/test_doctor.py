"""Findings of checks that succeed, fail or crash."""

from collections.abc import Awaitable, Callable

import pytest

from sleuth.studio.cli.doctor_checks import Finding, run_check
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings


async def fine(_settings: Settings) -> str:
    return "all there"


async def broken(_settings: Settings) -> str:
    raise StoreError("it is locked")


async def crashing(_settings: Settings) -> str:
    raise KeyError("surprise")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (fine, Finding(name="thing", ok=True, detail="all there")),
        (broken, Finding(name="thing", ok=False, detail="it is locked", fix="fix thing")),
        (crashing, Finding(name="thing", ok=False, detail="KeyError: 'surprise'", fix="fix thing")),
    ],
)
async def test_run_check_outcome_becomes_a_finding(
    run: Callable[[Settings], Awaitable[str]], expected: Finding
) -> None:
    assert await run_check("thing", run, "fix thing", Settings()) == expected
