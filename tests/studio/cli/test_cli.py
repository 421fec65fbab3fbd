"""The command line as a whole."""

from typer.testing import CliRunner

from sleuth.studio.cli.app import app


def test_help_text_keeps_its_brackets() -> None:
    shown = CliRunner().invoke(app, ["triples", "import", "--help"]).output
    assert '{"id": PASSAGE, "triples": [[s, p, o], …]}' in " ".join(shown.split())
