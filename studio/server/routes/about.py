"""What there is: health, methods."""

import asyncio
from functools import cache
from importlib.metadata import version

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse

from sleuth.graphs.core import Method
from sleuth.graphs.diagrams import arrows
from sleuth.graphs.registry import METHODS
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.state import TheHouse
from sleuth.tools.errors import SleuthError
from sleuth.tools.optional_imports import DISTRIBUTION

router = APIRouter(tags=["about"])


@router.get("/healthz", response_model_exclude_none=True)
async def healthz(request: Request, house: TheHouse) -> forms.Health:
    """That the server is up, for anybody; its version and model for those who may ask."""
    if request.state.owner is None:
        return forms.Health()
    model, problem = None, None
    try:
        model = (await house.tenants.model()).name_of("default")
    except SleuthError as error:
        problem = str(error)
    return forms.Health(version=version(DISTRIBUTION), model=model, problem=problem, running=house.jobs.active)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(house: TheHouse) -> PlainTextResponse:
    """For Prometheus, which sends a key like everybody else."""
    return PlainTextResponse(house.telemetry.metrics(), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/methods")
async def methods() -> list[forms.MethodView]:
    """The methods with their state machines and settings."""
    return await asyncio.to_thread(lambda: [_view(each) for each in METHODS.values()])


@cache
def _view(method: Method) -> forms.MethodView:
    graph = method.graph()
    edges = [forms.Edge(source=a, to=b, conditional=arrow != "-->") for a, arrow, b in arrows(graph)]
    nodes = ["__start__", *graph.nodes, "__end__"]
    return forms.MethodView(
        name=method.name,
        summary=method.line,
        paper=method.paper,
        when=method.when,
        calls=method.calls,
        nodes=list(graph.nodes),
        graph=forms.GraphView(nodes=nodes, edges=edges),
        settings=method.settings.model_json_schema(),
    )
