"""Readiness of the database, the home, the Chroma server and the model server."""

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Any, Literal

import httpx2
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.engine import Engine

from sleuth.tools.errors import StoreError
from sleuth.tools.home import require_restored
from sleuth.tools.settings import Settings, client_options
from sleuth.tools.storage.database import in_thread, transaction
from sleuth.tools.storage.disk import remedy_of

SECONDS = 3.0
"""Longest time of one check."""

FRESH = 5.0
"""Seconds in which a result is used again: anybody may ask for it, and each check calls other servers."""


class Readiness(BaseModel):
    """Readiness to answer runs; `checks` needs a valid key.

    Without the model server the page, documents, search and finished runs still work: the server is `degraded`.
    """

    status: Literal["ok", "degraded", "unavailable"]
    checks: dict[str, str] | None = Field(default=None, description="`ok` or the problem, of each store and the model")


class ReadinessProbe:
    """Runs the checks, at most once in `FRESH` seconds."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._turn = asyncio.Lock()
        self._report: Readiness | None = None
        self._until = 0.0

    async def report(self) -> Readiness:
        """Return the latest result, or a new one if it is too old."""
        async with self._turn:
            if self._report is None or monotonic() > self._until:
                self._report = await self._check()
                self._until = monotonic() + FRESH
            return self._report

    async def _check(self) -> Readiness:
        checks: dict[str, Coroutine[Any, Any, None]] = {"database": self._database(), "home": self._home()}
        key = self._settings.model_key
        bearer = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        checks["model"] = _reach(f"{self._settings.model_url.rstrip('/')}/models", bearer, self._settings.proxy)
        if self._settings.vectors == "chroma" and self._settings.chroma_url:
            checks["chroma"] = _reach(f"{self._settings.chroma_url.rstrip('/')}/api/v2/heartbeat", {}, None)
        limited = [asyncio.wait_for(check, SECONDS) for check in checks.values()]
        results = await asyncio.gather(*limited, return_exceptions=True)
        states = {name: _problem(result) or "ok" for name, result in zip(checks, results, strict=True)}
        wrong = {name for name, state in states.items() if state != "ok"}
        return Readiness(status="unavailable" if wrong - {"model"} else "degraded" if wrong else "ok", checks=states)

    @in_thread
    def _database(self) -> None:
        with transaction(self._engine) as connection:
            connection.execute(text("SELECT 1"))

    @in_thread
    def _home(self) -> None:
        require_restored(self._settings.home)
        if problem := remedy_of(self._settings.home / "catalogue.db", ""):
            raise StoreError(problem)


async def _reach(url: str, headers: dict[str, str], proxy: str | None) -> None:
    async with httpx2.AsyncClient(timeout=SECONDS, **client_options(url, proxy)) as client:
        (await client.get(url, headers=headers)).raise_for_status()


def _problem(result: object) -> str:
    if isinstance(result, TimeoutError):
        return f"no answer within {SECONDS:.0f} s"
    return (str(result) or type(result).__name__) if isinstance(result, BaseException) else ""
