"""What people see of an answer's evidence."""

from io import StringIO

from rich.console import Console

from sleuth.graphs.answer import Answer, Citation, cost_of
from sleuth.studio.view import answer_view

PLACE = Citation(passage="holt", document="holt.md", title="Lena Holt", quote="Born in Varn.", start=0, end=13)
REACHED = Citation(**PLACE, why={"passage": "film.md", "name": "Holt"})


def shown(citation: Citation) -> str:
    console = Console(record=True, width=100, file=StringIO())
    verdict = {"status": "answered", "text": "Varn", "citations": [citation], "cost": cost_of({})}
    console.print(answer_view(Answer(thread="t", checkpoint="c", method="ras", question="?", **verdict)))  # type: ignore[arg-type]
    return console.export_text()


def test_a_citation_says_along_which_name_it_was_found() -> None:
    assert "    found from film.md by the name “Holt”" in shown(REACHED)
    assert "found from" not in shown(PLACE)
