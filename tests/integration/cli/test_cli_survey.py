"""`sleuth survey` from outside: the table on the terminal and in files, a try of few documents, and an update."""

import asyncio
import csv
import json
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cli_process import sleuth
from openpyxl import load_workbook
from scripted_backend import Asked, Scripted, proxying

from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

ENDS = {"alder": "2027-03-31", "birch": "2026-12-31", "cedar": "", "dogwood": "=1+1"}
COLUMNS = '[[columns]]\nname = "end"\nquestion = "When does it end?"\n'


def script(asked: Asked) -> Any:
    if asked.prompt == "planner/survey":
        end = {"name": "end", "question": "When does it end?", "kind": "date"}
        return {"columns": [end], "conditions": [{"column": "end", "operator": "=", "value": "2027"}]}
    if asked.prompt == "answerer/survey":
        return {"sentence": "1 contract ends in 2027." if "2027: 1" in asked.text else "None of 99 does."}
    (title,) = asked.titles()
    end = ENDS[title.lower()]
    return {
        "answerable": bool(end),
        "answer": end,
        "citations": [{"source": 1, "quote": f"It ends on {end}."}] if end else [],
    }


def write(folder: Path, *names: str) -> None:
    for name in names:
        text = f"# {name.title()}\n\nIt ends on {ENDS[name]}." if ENDS[name] else f"# {name.title()}\n\nIt never ends."
        (folder / f"{name}.md").write_text(text)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    settings = Settings(home=tmp_path / "home", embedder="none")
    docs = tmp_path / "docs"
    await asyncio.to_thread(docs.mkdir)
    await asyncio.to_thread(write, docs, *ENDS)
    assert (await ingest([docs], settings=settings)).failed == 0
    return settings.home


@pytest.fixture
async def env(home: Path) -> AsyncIterator[dict[str, str]]:
    async with proxying(Scripted(script)) as proxy:
        yield {"SLEUTH_HOME": str(home), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}


async def test_survey_counts_and_writes_its_table(env: dict[str, str], tmp_path: Path) -> None:
    files = [tmp_path / f"table.{suffix}" for suffix in ("csv", "xlsx", "md", "json")]
    outs = [part for file in files for part in ("--out", str(file))]
    done = await sleuth("survey", "Which contracts end in 2027?", *outs, "--thread", "ends", **env)
    assert done.status == 0, done.err
    assert "4 documents, at least 4 model calls" in done.err
    lines = done.out.splitlines()
    assert lines[0] == "1 contract ends in 2027."
    assert "documents with end = 2027: 1" in done.out
    assert lines[-1] == "Alder\t2027-03-31"
    rows = list(csv.reader(StringIO((tmp_path / "table.csv").read_text("utf-8-sig"))))
    assert rows[0] == ["document", "title", "counted", "end", "end: quote"]
    assert [row[1:3] for row in rows[1:]] == [["Alder", "yes"], ["Birch", "no"], ["Cedar", "no"], ["Dogwood", "no"]]
    assert rows[1][4] == "It ends on 2027-03-31."
    assert rows[4][3].startswith("'=1+1")  # a spreadsheet would compute it
    sheet = load_workbook(tmp_path / "table.xlsx")["survey"]
    assert [cell.data_type for cell in sheet["D"]] == ["s"] * 5
    assert json.loads((tmp_path / "table.json").read_text())["rows"][0]["cells"]["end"]["citations"]
    assert "| Alder | yes | 2027-03-31 |" in (tmp_path / "table.md").read_text()


async def test_survey_is_tried_and_updated(env: dict[str, str], home: Path, tmp_path: Path) -> None:
    columns = tmp_path / "columns.toml"
    columns.write_text(COLUMNS)
    given = ("--columns", str(columns), "--limit", "2", "--thread", "two", "--json")
    first = (await sleuth("survey", "When do they end?", *given, **env)).json()
    assert [row["title"] for row in first["table"]["rows"]] == ["Alder", "Birch"]
    assert "documents left out by the settings: 2" in first["table"]["figures"]
    await asyncio.to_thread(write, tmp_path / "docs", "birch")
    again = (await sleuth("survey", "--update", "two", "--json", **env)).json()
    assert again["table"]["rows"] == first["table"]["rows"]
    assert again["cost"]["calls"] == first["cost"]["calls"] + 1  # only the sentence is new
