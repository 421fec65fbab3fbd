"""Services that runs need in addition to their store, for single questions and for evaluations."""

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

ServiceFactory = Callable[..., Services]
"""Creates services from a `model` and the `triples` that its runs share."""


@asynccontextmanager
async def build_services(
    settings: Settings, library: Collection, *, model_of: Callable[[str], str], triples: SqlTriples | None = None
) -> AsyncIterator[ServiceFactory]:
    """Open everything that does not depend on the model, and yield a factory of services.

    Args:
        settings: the settings of the home.
        library: the open collection.
        model_of: returns the name of the model of a role.
        triples: triples of the collection, used as knowledge graph if the settings name none.

    Raises:
        StoreError: a trained classifier, a fitted threshold or the knowledge graph's file cannot be read.
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
