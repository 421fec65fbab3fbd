"""The threads of a request's owner, by the ids that clients use."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from sleuth.graphs.persistence import Thread
from sleuth.graphs.runs import RunService
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.routes.runs import find_id, scoped_id
from sleuth.studio.server.state import ServerState, ServerStateDep


@dataclass(frozen=True, kw_only=True)
class Access:
    """One owner's threads.

    A client that chooses the id of a thread sees this id. On a server with keys it is stored as `owner:id`, so that
    nobody learns which ids others have chosen.
    """

    server: ServerState
    owner: str
    runs: RunService

    async def thread(self, name: str) -> Thread:
        """Return a thread; raise UnknownName for threads of others."""
        return await self.runs.store.threads.get(await self.find(name) or name)

    async def find(self, name: str) -> str | None:
        """Return the stored id of a thread, or None."""
        return await find_id(name, self.runs, self.server, self.owner)

    def stored_id(self, name: str) -> str:
        """Return the id under which a thread with a chosen name is stored."""
        return scoped_id(name, self.server, self.owner)

    def public_id(self, id: str) -> str:
        """Return the id that the client uses."""
        return id.removeprefix(f"{self.owner}:") if self.server.settings.has_keys else id


async def _access(server: ServerStateDep, owner: Owner) -> Access:
    return Access(server=server, owner=owner, runs=await server.tenants.read_only_runs(owner))


AccessDep = Annotated[Access, Depends(_access)]
