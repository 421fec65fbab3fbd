from pathlib import Path

import pytest
from pydantic import BaseModel

from sleuth.tools.checked_data import read_toml


class Row(BaseModel, extra="forbid"):
    number: int


def test_tables_of_a_data_file_are_models_by_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "rows.toml"
    file.write_text("[one]\nnumber = 1\n[two]\nnumber = 2\n")
    assert read_toml(file, dict[str, Row]) == {"one": Row(number=1), "two": Row(number=2)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[one", "end of document"),
        ("[one]", r"one\.number"),
        ("[one]\nnumber = 1\nx = 2", r"one\.x"),
        ("one = 1", "one"),
    ],
)
def test_data_file_that_does_not_fit_names_itself_and_the_place(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "rows.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"(?s)rows\.toml.*{problem}"):
        read_toml(file, dict[str, Row])
