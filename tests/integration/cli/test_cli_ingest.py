"""`sleuth ingest` of files that cannot be read: exit status, and one line for each reason."""

import asyncio
from pathlib import Path

import pytest
from cli_process import Done, sleuth


async def ingested(tmp_path: Path, *arguments: str, **files: str) -> Done:
    folder = tmp_path / "docs"
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    for name, text in files.items():
        await asyncio.to_thread((folder / name).write_text, text)
    home = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none"}
    return await sleuth("ingest", str(folder), *arguments, **home)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"empty.md": ""}, "empty.md: is empty."),
        ({"a.xyz": "text"}, "a.xyz: files of this type are not read. Convert it"),
        ({".a.md": "text"}, ".a.md: is hidden."),
        ({}, "There is nothing to read there."),
    ],
)
async def test_ingest_of_nothing_readable_fails_with_the_reason(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    done = await ingested(tmp_path, **files)
    assert done.status == 1
    assert (done.out + done.err).count(reason) == 1


@pytest.mark.nightly
async def test_documents_are_found_by_their_own_fields(tmp_path: Path) -> None:
    lease = "---\ntitle: Lease\nclient: Ada\nrooms: 3\n---\nThe rent is 40 euro."
    sidecar = '{"client": "Edric", "author": "Rosa"}'
    files = {"lease.md": lease, "dues.txt": "The dues are 30 euro.", "dues.txt.meta.json": sidecar}
    await ingested(tmp_path, "--meta", "town=Varn", "--meta", "Case No=7", **files)
    home = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none"}
    listed = (await sleuth("docs", "list", "--json", **home)).json()
    given = {"town": "Varn", "case_no": "7"}
    assert {row["id"]: (row["author"], row["meta"]) for row in listed} == {
        "dues.txt": ("Rosa", {"client": "Edric", **given}),
        "lease.md": ("", {"client": "Ada", "rooms": "3", **given}),
    }
    await ingested(tmp_path, "--meta", "case_no=", **{"lease.md": lease.replace("client: Ada\n", "")})

    async def found(where: str) -> list[str]:
        return [hit["document"] for hit in (await sleuth("search", "euro", "--where", where, "--json", **home)).json()]

    assert [await found(where) for where in ("client=edric", "rooms>2 town:var")] == [["dues.txt"], ["lease.md"]]
    refused = await sleuth("search", "euro", "--where", "case_no=7", **home)
    assert refused.status != 0 and "client" in refused.err
    named = await ingested(tmp_path, "--meta", "type=pdf")
    assert named.status != 0 and "cannot be an own field" in named.err


async def test_ingest_prints_the_first_failures_and_counts_the_rest(tmp_path: Path) -> None:
    failing = {f"empty{number:02}.md": "" for number in range(25)}
    other = {f"picture{number:02}.png": "x" for number in range(12)}
    done = await ingested(tmp_path, **failing, **other, **{"a.md": "Edric Gannow was born in Brindlecote."})
    assert done.status == 0
    assert [(done.out + done.err).count(name) for name in failing] == [1] * 10 + [0] * 15
    assert [name for name in other if name in done.out] == sorted(other)[:10]
    assert "2 more" in done.out
    as_json = await ingested(tmp_path, "--json")
    assert [Path(line.split(":")[0]).name for line in as_json.json()["passed_over"]] == sorted(other)
    assert len(as_json.json()["failures"]) == 25
    assert (as_json.json()["unchanged"], as_json.json()["failed"]) == (1, 25)
