"""Health, metrics and methods."""

import asyncio
from contextlib import suppress
from functools import cache
from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse

from sleuth.agents.llm.endpoint import Endpoint
from sleuth.graphs.core.method import REPORT, SURVEY, Method
from sleuth.graphs.registry import METHODS, arrows, runnable
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.state import AccessDep, ServerStateDep
from sleuth.studio.server.telemetry.readiness import Readiness
from sleuth.tools.errors import DISTRIBUTION, SleuthError

router = APIRouter(tags=["about"])


@router.get("/healthz", response_model_exclude_none=True)
async def healthz(request: Request, server: ServerStateDep) -> forms.Health:
    """Report that the server is up; with a valid key, also its version, model and number of active runs."""
    if request.state.owner is None:
        return forms.Health()
    model, problem = None, None
    try:
        model = (await server.tenants.model()).name_of("default")
    except SleuthError as error:
        problem = str(error)
    running = len(server.run_worker.jobs)
    return forms.Health(version=version(DISTRIBUTION), model=model, problem=problem, running=running)


@router.get("/livez")
async def livez() -> forms.Health:
    """Report that the process answers; it examines nothing else."""
    return forms.Health()


@router.get("/readyz", response_model_exclude_none=True, responses={503: {"model": Readiness}})
async def readyz(request: Request, response: Response, server: ServerStateDep) -> Readiness:
    """Report whether runs can be answered; with a valid key, also the problem of each store and of the model server.

    The status is 503 if a store cannot be used. Without the model server it is 200 and `degraded`: documents, search
    and finished runs still work.
    """
    report = await server.readiness.report()
    response.status_code = 503 if report.status == "unavailable" else 200
    return report if request.state.owner is not None else Readiness(status=report.status)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(server: ServerStateDep, owner: Owner) -> PlainTextResponse:
    """Return the metrics for Prometheus, which needs a key like every client; those of owners are for the operator."""
    with_owners = server.is_operator(owner)
    return PlainTextResponse(server.telemetry.metrics(with_owners=with_owners), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/owners")
async def owners(server: ServerStateDep, owner: Owner) -> list[str]:
    """Return the owners whose runs the owner of the key may list, this one first; all of them for the operator."""
    others = await server.tenants.store.threads.owners() if server.is_operator(owner) else []
    return list(dict.fromkeys([owner, *others]))


@router.get("/v1/offered-models")
async def offered_models(server: ServerStateDep, owner: Owner) -> list[str]:
    """Return the models that a run may use; empty if the model server cannot be asked."""
    with suppress(SleuthError):
        async with await asyncio.to_thread(Endpoint, server.settings) as endpoint:
            return [*(await endpoint.models() or ())]
    return []


@router.get("/v1/methods")
async def methods(access: AccessDep) -> list[forms.MethodView]:
    """Return the methods with their state machines and settings, and the average cost of the owner's finished runs."""
    costs = await access.runs.store.threads.average_costs()
    views = await asyncio.to_thread(lambda: [_view(runnable(name)) for name in (*METHODS, SURVEY, REPORT)])
    return [view.model_copy(update={"average": costs.get(view.name)}) for view in views]


@cache
def _view(method: Method) -> forms.MethodView:
    graph = method.graph()
    edges = [{"from": a, "to": b, "conditional": arrow != "-->"} for a, arrow, b in arrows(graph)]
    return forms.MethodView(
        name=method.name,
        summary=method.line,
        paper=method.paper,
        when=method.when,
        baseline=method.baseline,
        calls=method.calls,
        nodes=list(graph.nodes),
        graph={"nodes": ["__start__", *graph.nodes, "__end__"], "edges": edges},
        settings=method.settings.model_json_schema(),
    )
