"""What runs are made with beside their store: the same for questions that people ask and for those of an evaluation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from sleuth.graphs.core import fitted_thresholds
from sleuth.graphs.runs import Services
from sleuth.studio.model_server import PACKAGED
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.sources.knowledge_graph import open_graph
from sleuth.tools.sources.question_attributes.svm import find_svm
from sleuth.tools.storage import SqlTriples

Furnish = Callable[..., Services]
"""Makes services of a `model` and the `triples` that its runs share."""


@asynccontextmanager
async def furnished(
    settings: Settings, library: Collection, *, model_of: Callable[[str], str], triples: SqlTriples | None = None
) -> AsyncIterator[Furnish]:
    """All that does not depend on the model, open as long as the block lasts.

    Args:
        model_of: the name of the model that answers for a role.
        triples: those of the collection, asked as a knowledge graph where the settings name none.

    Raises:
        StoreError: what was trained or fitted here, or the knowledge graph's file, cannot be read.
    """
    async with open_graph(settings.knowledge_graph, triples) as graph:
        yield partial(
            Services,
            retriever=library,
            embedder=library.embedder,
            graph=graph,
            tracing=settings.tracing,
            predictor=await asyncio.to_thread(find_svm, settings.home, library.embedder),
            thresholds=await asyncio.to_thread(fitted_thresholds, [settings.home, PACKAGED], model_of),
        )
