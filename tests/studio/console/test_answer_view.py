"""What people see of an answer's evidence."""

from io import StringIO

from rich.console import Console

from sleuth.graphs.core.answer import Answer, Citation, Threshold, total_cost
from sleuth.studio.console.run_view import answer_view

PLACE = Citation(passage="holt", document="holt.md", title="Lena Holt", quote="Born in Varn.", start=0, end=13)
REACHED = Citation(**PLACE, why={"passage": "film.md", "name": "Holt"})


def shown(citation: Citation, method: str = "ras", threshold: Threshold | None = None) -> str:
    console = Console(record=True, width=100, file=StringIO())
    verdict = {"status": "answered", "text": "Varn", "citations": [citation], "cost": total_cost({})}
    about = {"thread": "t", "checkpoint": "c", "method": method, "question": "?", "threshold": threshold}
    console.print(answer_view(Answer(**about, **verdict)))  # type: ignore[arg-type]
    return console.export_text()


def test_a_threshold_is_named_with_what_it_is_of() -> None:
    fitted = Threshold(value=0.5622, by="fitted for small")
    assert "consistency threshold 0.56: fitted for small" in shown(PLACE, "retro-rag", fitted)
    assert "perplexity threshold 0.56: fitted for small" in shown(PLACE, "crp-rag", fitted)
    assert "threshold" not in shown(PLACE)


def test_a_citation_says_along_which_name_it_was_found() -> None:
    assert "    found from film.md by the name “Holt”" in shown(REACHED)
    assert "found from" not in shown(PLACE)
