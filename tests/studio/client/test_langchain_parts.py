"""LangChain's parts in sleuth, and sleuth's in LangChain."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kelp_fair import FAIR, QUESTION, READING, Fixed, replying
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.exceptions import ModelConnectionError
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

import sleuth
from sleuth import sync
from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.search import Query
from sleuth.tools.search.langchain import LangChainRetriever
from sleuth.tools.search.vectors.embedder import LangChainEmbedder
from sleuth.tools.storage.locks import hold

FOUND = (Document(FAIR, metadata={"source": "fair.md", "title": "Fairs"}), Document(FAIR), Document("Nothing."))


@pytest.fixture
def settings(tmp_path: Path) -> sleuth.Settings:
    return sleuth.Settings(home=tmp_path / "home", embedder="none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in {"fair": FAIR, "light": "Edric Gannow built the light.", "inn": "The inn is old."}.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


async def test_model_and_retriever_of_others_answer(settings: sleuth.Settings) -> None:
    async with sleuth.open(settings, model=replying(READING), retriever=Fixed(found=FOUND)) as app:
        answer = await app.ask(QUESTION, method="plain-rag")
    assert (answer.status, answer.text) == ("answered", "Kelp Fair")
    (citation,) = answer.citations
    assert (citation["document"], citation["title"], citation["quote"]) == (
        "fair.md",
        "Fairs",
        "The Kelp Fair is held at Brindlecote every May.",
    )


async def test_vector_store_is_searched() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    await store.aadd_texts([FAIR, "The inn is old."], ids=["a", "b"])
    hits = await LangChainRetriever(store).search(Query(text=FAIR, k=1))
    assert [(hit.passage.id, hit.passage.text, hit.rank) for hit in hits] == [("a", FAIR, 1)]
    with pytest.raises(UsageError, match="empty"):
        await LangChainRetriever(store).search(Query(text=" "))


async def test_embeddings_of_others_are_used(settings: sleuth.Settings, folder: Path) -> None:
    embeddings = AboutFairs()
    report = await sleuth.ingest(folder, embedder=embeddings, settings=settings)
    assert report.added == 3
    async with sleuth.open(settings, model=replying(), embedder=embeddings) as app:
        hits = await app.search("Which fair?", k=1, mode="dense")
    assert [hit.passage.text for hit in hits] == [FAIR]
    with pytest.raises(sleuth.SleuthError, match="AboutFairs"):
        await sleuth.ingest(folder, embedder=Constant(), settings=settings)


class AboutFairs(Embeddings):
    """Embeddings of whether a text is about a fair."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.1] if "fair" in text.lower() else [0.1, 1.0]


class Constant(Embeddings):
    """Embeddings with a name of their own."""

    model = "constant"
    row: tuple[float, ...] = (3.0, 4.0)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*self.row] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [*self.row]


def test_vectors_have_length_one() -> None:
    embedder = LangChainEmbedder(Constant())
    assert embedder.name == "Constant:constant"
    assert embedder.embed_passages(["a", "b"]).tolist() == np.asarray([[0.6, 0.8]] * 2, dtype=np.float32).tolist()
    Constant.row = (0.0, 0.0)
    with pytest.raises(UsageError, match="no usable vectors"):
        embedder.embed_query("a")


def test_failure_of_the_embedder_is_named() -> None:
    class Down(Constant):
        def embed_query(self, text: str) -> list[float]:
            raise ModelConnectionError("no route")

        embed_documents = embed_query  # type: ignore[assignment]

    for embed in (LangChainEmbedder(Down()).embed_query, LangChainEmbedder(Down()).embed_passages):
        with pytest.raises(StoreError, match="The embedder Down:constant fails: ModelConnectionError: no route"):
            embed("a")  # type: ignore[operator]


async def test_functions_of_the_package(settings: sleuth.Settings, folder: Path) -> None:
    await sleuth.ingest(folder, settings=settings)
    (hit,) = await sleuth.search("fair at Brindlecote", k=1, settings=settings)
    assert hit.passage.text == FAIR
    async with sleuth.open(settings, model=replying(READING)) as app:
        answer = await app.ask(QUESTION, method="plain-rag")
        assert [each.id for each in await app.documents()] == ["fair.md", "inn.md", "light.md"]
        assert [each.id for each in await app.documents(find="fair")] == ["fair.md"]
        moments = await app.history(answer.thread)
        assert moments[0].next == []
        branch = await app.fork(answer.thread, at=moments[-2].checkpoint)
        assert branch["thread"] == answer.thread


async def test_open_sleuth_deletes_documents(settings: sleuth.Settings, folder: Path) -> None:
    settings, embeddings = settings.model_copy(update={"wait": 0.0}), AboutFairs()
    await sleuth.ingest(folder, embedder=embeddings, settings=settings)
    async with sleuth.open(settings, model=replying(), embedder=embeddings) as app:
        assert await app.delete("fair.md") == 1
        assert {hit.passage.document_id for hit in await app.search(FAIR, k=3, mode="dense")} == {"light.md", "inn.md"}
        with pytest.raises(sleuth.SleuthError, match="fair"):
            await app.delete("fair.md")
        async with hold(settings.home, "exclusive", command="sleuth ingest"):
            with pytest.raises(sleuth.SleuthError, match="in use by `sleuth ingest`"):
                await app.delete("inn.md")


def test_functions_without_await(settings: sleuth.Settings, folder: Path) -> None:
    assert sync.ingest(folder, settings=settings).added == 3
    assert sync.search("fair", k=1, settings=settings)[0].passage.text == FAIR
    with sync.open(settings, model=replying(READING, READING, READING)) as app:
        answer = app.ask(QUESTION, method="plain-rag")
        *steps, last = app.stream(QUESTION, method="plain-rag")
        assert app.resume(answer.thread) == answer
        assert app.as_tool("plain-rag").invoke({"question": QUESTION}).startswith("Kelp Fair")
        assert [document.page_content for document in app.as_retriever(k=1).invoke("fair")] == [FAIR]
        half = app.stream(QUESTION, method="plain-rag")
        next(half)
        half.close()
        with pytest.raises(sleuth.SleuthError, match="nothing"):
            app.history("nothing")
        assert app.delete("inn.md") == 1
    assert isinstance(last, sleuth.Answer) and last.text == answer.text
    assert [step.state for step in steps if isinstance(step, sleuth.Step)].count("finished") >= 1


async def test_functions_without_await_work_in_a_running_loop(settings: sleuth.Settings, folder: Path) -> None:
    assert sync.ingest(folder, settings=settings).added == 3


async def test_synchronous_call_does_not_block_the_loop_of_an_open_sleuth(settings: sleuth.Settings) -> None:
    async with sleuth.open(settings, model=replying(READING), retriever=Fixed(found=FOUND)) as app:
        retriever, tool = app.as_retriever(), app.as_tool("plain-rag")
        assert tool.args["question"]["type"] == "string"
        with pytest.raises(UsageError, match="use `ainvoke`"):
            retriever.invoke(QUESTION)
        text = await asyncio.to_thread(tool.invoke, {"question": QUESTION})
    assert text.startswith("Kelp Fair")


@pytest.fixture(scope="class")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sleuth.Settings]:
    folder = tmp_path_factory.mktemp("standard")
    for number in range(5):
        (folder / f"fair-{number}.md").write_text(f"Fair {number} is held in May.", encoding="utf-8")
    settings = sleuth.Settings(home=folder / "home", embedder="none")
    sync.ingest(folder, settings=settings)
    yield settings


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's standard tests of retrievers."""

    @pytest.fixture(autouse=True)
    def _home(self, home: sleuth.Settings) -> Iterator[None]:
        with sync.open(home, model=replying()) as app:
            made = app.as_retriever()
            self.made = {"search": made.search, "opener": made.opener}
            self.kind = type(made)
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return self.kind

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.made

    @property
    def retriever_query_example(self) -> str:
        return "Which fair is held in May?"


class _Tool:
    @pytest.fixture(autouse=True)
    def _opened(self, tmp_path: Path) -> Iterator[None]:
        settings = sleuth.Settings(home=tmp_path / "home", embedder="none")
        with sync.open(settings, model=replying(*[READING] * 9), retriever=Fixed(found=FOUND)) as app:
            self.made = app.as_tool("plain-rag")
            yield

    @property
    def tool_constructor(self) -> BaseTool:
        return self.made

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION}


class TestToolUnit(_Tool, ToolsUnitTests):
    """LangChain's standard unit tests of tools."""


class TestTool(_Tool, ToolsIntegrationTests):
    """LangChain's standard tests of tool calls."""
