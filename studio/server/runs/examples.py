"""Example questions about an owner's documents, which the configured model writes in the background."""

import asyncio
import logging
from hashlib import sha256

from sleuth.graphs.core.context import Budget
from sleuth.studio.evaluation.question_maker import WrittenQuestions, make_questions
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.tenants import Tenants
from sleuth.tools.collection import Collection
from sleuth.tools.errors import SleuthError

_log = logging.getLogger(__name__)

EXAMPLES = 3
MAX_CALLS = 15
"""Model calls for the examples of one state of the documents."""


class ExampleQuestions:
    """Example questions of all owners: a file for each owner and state of the documents, written once."""

    def __init__(self, tenants: Tenants, quota: Quota) -> None:
        self._tenants = tenants
        self._quota = quota
        self._folder = tenants.settings.home / "examples"
        self._making: dict[str, asyncio.Task[None]] = {}

    async def of(self, owner: str, *, write: bool = True) -> list[str]:
        """Return the questions about the present documents. If none were tried, start to write them with `write`."""
        collection = await self._tenants.collection(owner)
        name = f"{sha256(owner.encode()).hexdigest()[:16]}-{await collection.version()}.jsonl"
        file = await asyncio.to_thread(WrittenQuestions, self._folder / name)
        settings = self._tenants.settings
        is_new = write and not (file.rows or file.dropped) and owner not in self._making
        if is_new and settings.example_questions and (await collection.count())[1]:
            self._making[owner] = asyncio.create_task(self._make(owner, collection, file))
        return [str(row["question"]) for row in file.rows]

    async def close(self) -> None:
        """Stop writing."""
        tasks = list(self._making.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, owner: str, collection: Collection, file: WrittenQuestions) -> None:
        """Write questions that one passage answers; without a model server a later request tries again."""
        try:
            await self._quota.require(owner)
            model = await self._tenants.model()
            await asyncio.to_thread(self._remove_others, file)
            made_questions = make_questions(
                collection, model, file, {"single": EXAMPLES}, budget=Budget(max_calls=MAX_CALLS), concurrency=1
            )
            async for made in made_questions:
                await self._quota.add(owner, made.tokens)
        except SleuthError as error:
            _log.info("no example questions were written: %s", error)
        finally:
            del self._making[owner]

    def _remove_others(self, file: WrittenQuestions) -> None:
        """Remove the questions about earlier states of the documents."""
        for path in self._folder.glob(f"{file.path.name.partition('-')[0]}-*"):
            path.unlink(missing_ok=True)
