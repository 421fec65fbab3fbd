"""Results on standard output, progress on standard error, no control characters."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from sleuth.studio.console.output import Listing, activity, counted, emit, progress_console


@dataclass(frozen=True, kw_only=True)
class Thing:
    place: Path
    names: tuple[str, ...]


def test_emit_json_prints_exactly_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Thing(place=Path("/a"), names=("ä", "b"))], True, "for people")
    assert json.loads(capsys.readouterr().out) == [{"place": "/a", "names": ["ä", "b"]}]


def test_json_escapes_control_and_bidi_characters(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a\x1b[31m\x7f\x9b2J\u202eb\u2069\u061c\té"
    emit({text: text}, True, "")
    shown = capsys.readouterr().out
    assert json.loads(shown) == {text: text}
    assert not {character for character in shown if not character.isprintable()} - {"\n"}
    assert "é" in shown


def listing() -> Listing:
    table = Listing("thread", "hops", "question", folded=["question"], right=["hops"])
    table.add_row("i" * 60, "  2", Text("Which [red]tower[/red]\tstands\nhere? " * 6, style="red"))
    return table


TABLE = f"thread\thops\tquestion\n{'i' * 60}\t2\t{' '.join(['Which [red]tower[/red] stands here?'] * 6)}\nmore [x]\n"
LONG = "[bold] :cat: " + "long " * 60


@pytest.mark.parametrize(
    ("human", "piped"),
    [
        (Group(listing(), Text("more [x]")), TABLE),
        (Panel(Text("word " * 40), title=Text("title")), f"title\n{'word ' * 40}\n"),
        (LONG, f"{LONG}\n"),
    ],
    ids=["table", "panel", "text"],
)
def test_piped_result_is_unwrapped(human: RenderableType, piped: str, capsys: pytest.CaptureFixture[str]) -> None:
    emit(None, False, human)
    assert capsys.readouterr().out == piped


@pytest.mark.parametrize("columns", ["30", "80", "120"])
def test_listing_in_a_terminal_shows_whole_ids(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", columns)
    emit(None, False, listing())
    shown = capsys.readouterr().out
    assert "i" * 60 in shown
    assert "…" not in shown
    assert shown.count("[red]tower[/red]") == 6


def test_control_characters_are_removed_from_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said = "a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\x7fe\r\u202e\u2066\u200ef\tg\nh"
    emit(None, False, said)
    emit(None, False, Panel(Text(said)))
    progress_console().print(Text(said))
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert shown.count("a[31mb]0;titlec2Jdef") == 3
    assert not {character for character in shown if not character.isprintable()} - {"\n", "\t"}


def test_colors_are_kept_in_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    emit(None, False, Text("red", style="red"))
    assert "\x1b[31mred\x1b[0m" in capsys.readouterr().out


def test_progress_outside_a_terminal_is_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with activity("Working") as report:
        report("first [stage]")
        report("second stage")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "first [stage]\nsecond stage\n"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 entities"), (1, "1 entity"), (2, "2 entities"), (12_000, "12,000 entities")]
)
def test_counted_has_the_plural_unless_one(number: int, text: str) -> None:
    assert counted(number, "entity", "entities") == text
    assert counted(1, "question") == "1 question"
    assert counted(3, "new passage") == "3 new passages"
