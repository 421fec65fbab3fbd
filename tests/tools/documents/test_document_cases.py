"""Documents of each kind and format have the text that their readers see."""

from pathlib import Path

import pytest

from sleuth.tools.documents.loading import load
from tests.support.document_cases import Case, cases, unwanted


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.kind}-{case.name}") for case in cases()])
def test_document_has_its_text_in_one_form(case: Case, tmp_path: Path) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.data)
    text = load(path).text
    assert [expected for expected in case.expected if expected not in text] == [], text
    assert unwanted(case, text) == [], text
