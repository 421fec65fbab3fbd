from sleuth.studio.cli.commands.documents import explanation_lines
from sleuth.tools.types import Explanation, Reason


def reason(kind: str) -> Reason:
    return Reason(
        kind=kind,  # type: ignore[arg-type]
        source="ferry",
        name="Oda\nBrask",
        stands_in="ferry",
        start=0,
        end=9,
        sentence="Built for\nOda Brask.",
        gain=0.5,
    )


def test_explanation_shows_each_link_with_its_sentence() -> None:
    why = Explanation(
        parts={"words": 0.25, "meaning": 0.0}, reasons=(reason("names"), reason("named_by"), reason("shares"))
    )
    lines = [line.plain.strip() for line in explanation_lines(why)]
    assert lines == [
        "· words 0.25",
        "· ferry names it: “Oda Brask” (+0.50)",
        "ferry: Built for Oda Brask.",
        "· it names ferry: “Oda Brask” (+0.50)",
        "ferry: Built for Oda Brask.",
        "· ferry and it both name “Oda Brask” (+0.50)",
        "ferry: Built for Oda Brask.",
    ]
