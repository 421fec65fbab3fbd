"""The code of docs/contributing/first-changes.md works with the present interfaces."""

import re
from pathlib import Path

import pytest
from all_roles_model import AllRolesModel
from scenes import Case, Replying, Shelf, example, passage
from scripted_model import ScriptedModel

from sleuth.graphs.registry import GROUP, METHODS, Registry, configure
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "first-changes.md"


CODE = dict(re.findall(r'```python title="(?:\w+/)+(\w+)\.py"\n(.*?)```', PAGE.read_text("utf-8"), re.S))
"""The examples by the names of their modules."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with the methods of the guide, as entry points."""
    for module in ("best_passage", "second_opinion"):
        (tmp_path / f"{module}.py").write_text(CODE[module], encoding="utf-8")
    metadata = tmp_path / "their_methods-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-methods\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[sleuth.methods]\nbest-passage = best_passage:METHOD\nbroken = no_such_module:METHOD\n"
        "par-rag = best_passage:METHOD\nno-method = best_passage:Settings\nsecond-opinion = second_opinion:METHOD\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("package")
async def test_package_adds_the_method_of_the_guide() -> None:
    methods = Registry({"par-rag": "methods.par_rag.graph"}, group=GROUP)
    assert list(methods) == ["par-rag", "best-passage", "broken", "no-method", "second-opinion"]
    added = methods["best-passage"]
    assert added.nodes() == ["retrieve", "answer", "check_evidence"]
    assert methods["par-rag"].nodes() == METHODS["par-rag"].nodes()  # nobody replaces a method
    reply = {"answerable": True, "answer": "30 m", "citations": [{"source": 1, "quote": "It is 30 m high"}]}
    tower = passage("tower", "The tower stands in Varn. It is 30 m high.")
    verdict = await Case(added.graph, ScriptedModel([reply]), Shelf([tower]), added.settings()).run("How high is it?")
    assert (verdict["text"], verdict["citations"][0]["quote"]) == ("30 m", "It is 30 m high")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("second", "status"), [("1868", "answered"), ("1901", "unknown")])
async def test_method_of_the_guide_asks_other_methods(second: str, status: str) -> None:
    chain, added = example("q08"), Registry({}, group=GROUP)["second-opinion"]
    everyone, agent = AllRolesModel(chain), {"action": "answer", "answer": second, "citations": []}
    model = Replying(lambda request: agent if request.role == "actor" else everyone.reply_to(request))
    case = Case(added.graph, model, Shelf(chain.passages), added.settings())
    context = case._context()
    verdict = await case.run(chain.question, subruns=CheckpointerSubruns(saver=case.saver, context=context))
    assert (verdict["status"], [each["method"] for each in case.state["hops"].values()]) == (
        status,
        ["plain-rag", "agent"],
    )
    with pytest.raises(UsageError, match="'auto' asks other methods itself"):
        configure(added, {"first": "auto"}, "default")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "problem"),
    [("broken", "cannot be loaded: No module named 'no_such_module'"), ("no-method", "is no sleuth.Method")],
)
def test_error_names_the_method_that_cannot_be_loaded(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Registry({}, group=GROUP)[name]


def test_files_that_the_guide_opens_exist() -> None:
    root = PAGE.parents[2]
    named = re.findall(r"^\| \(?\d\)? \| `([^`]+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    missing = [path for path in named if Path(path).stem not in CODE and not (root / path).exists()]
    assert missing == [], f"first-changes.md names files that do not exist: {missing}"
