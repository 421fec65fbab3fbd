"""Model servers that people run on their own machines, with the replies that their documentation shows."""

from typing import Any

from model_server import EVERYTHING, ModelServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LOCAL = EVERYTHING - {"copies", "choice", "tokenize"}


def listing(*names: str) -> list[dict[str, Any]]:
    """The list of models in OpenAI's format, without context windows."""
    return [{"id": name, "object": "model", "created": 1_686_935_002, "owned_by": "library"} for name in names]


def ollama(
    *,
    window: int | None = 4096,
    parameters: str = 'stop                           "<|im_end|>"',
    loaded: bool = False,
) -> ModelServer:
    """Ollama with one model, which its first request loads; `window` is the context that `/api/ps` reports."""
    server = ModelServer(supports=LOCAL, models=listing("qwen3:8b"))

    async def running(request: Request) -> Response:
        entry = {"name": "qwen3:8b", "model": "qwen3:8b", "size": 5_137_025_024, "details": {"format": "gguf"}}
        context = {} if window is None else {"context_length": window}
        is_loaded = loaded or server.probes or server.calls
        return JSONResponse({"models": [{**entry, **context}] if is_loaded else []})

    async def show(request: Request) -> Response:
        assert await request.json() == {"model": "qwen3:8b"}
        about = {"general.architecture": "qwen3", "qwen3.context_length": 40_960, "qwen3.block_count": 36}
        return JSONResponse({"parameters": parameters, "details": {"family": "qwen3"}, "model_info": about})

    server.routes = [Route("/api/ps", running), Route("/api/show", show, methods=["POST"])]
    return server


def llama_cpp(window: int = 2048) -> ModelServer:
    """llama-server with one model."""
    server = ModelServer(supports=LOCAL, models=listing("qwen3-8b.gguf"))

    async def properties(request: Request) -> Response:
        assert request.query_params["model"] == "qwen3-8b.gguf"
        return JSONResponse({"default_generation_settings": {"id": 0, "n_ctx": window}, "total_slots": 4})

    server.routes = [Route("/props", properties)]
    return server


def lm_studio(window: int = 4096) -> ModelServer:
    """LM Studio with two models, of which requests load the first; it answers unknown paths with status 200."""
    server = ModelServer(supports=LOCAL, models=listing("llama-3.1-8b", "nomic-embed"))

    async def models(request: Request) -> Response:
        loaded = bool(server.probes or server.calls)
        state: dict[str, Any] = (
            {"state": "loaded", "loaded_context_length": window} if loaded else {"state": "unloaded"}
        )
        entry = {"id": "llama-3.1-8b", "object": "model", "type": "llm", "max_context_length": 131_072}
        other = {"id": "nomic-embed", "object": "model", "type": "embeddings", "max_context_length": 2048}
        return JSONResponse({"object": "list", "data": [{**entry, **state}, other]})

    async def unknown(request: Request) -> Response:
        return JSONResponse({"error": f"Unexpected endpoint or method. (GET {request.url.path})"})

    server.routes = [Route("/api/v0/models", models), Route("/{path:path}", unknown)]
    return server
