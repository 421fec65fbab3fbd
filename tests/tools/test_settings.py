import pytest
from pydantic import ValidationError

from sleuth.tools.settings import Settings


def test_loader_classes_come_from_the_environment_by_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_LOADERS", '{".ipynb": "NotebookLoader", ".EPUB": "UnstructuredEPubLoader"}')
    assert Settings().loaders == {".ipynb": "NotebookLoader", ".epub": "UnstructuredEPubLoader"}


@pytest.mark.parametrize("name", ["model_url", "embedder", "knowledge_graph", "chroma_url"])
def test_an_address_with_a_password_is_refused_since_addresses_are_written_down(name: str) -> None:
    with pytest.raises(ValidationError, match="has a name or a password in it") as caught:
        Settings.model_validate({name: "https://anna:s3cret@example.org/v1"})
    assert "s3cret" not in caught.value.errors()[0]["msg"]
    Settings.model_validate({name: "https://example.org/v1/@latest"})


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        ("ipynb", "is no file suffix"),
        ("", "is no file suffix"),
        (".", "is no file suffix"),
        (".tar.gz", "is no file suffix"),
        (".jsonl", "is read as a corpus"),
        (".JSONL", "is read as a corpus"),
    ],
)
def test_what_is_no_suffix_of_a_file_that_a_class_may_read_is_refused(suffix: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Settings(loaders={suffix: "NotebookLoader"})
