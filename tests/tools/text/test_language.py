import pytest

from sleuth.tools.text import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Mühle mahlte das Korn der umliegenden Dörfer.", "de"),
        ("El molino molió el trigo de las aldeas vecinas.", "es"),
        ("The mill ground the corn of the villages nearby.", "en"),
        ("磨坊为附近的村庄磨麦子，现在已经关闭。", "zh"),
        ("Mill 7", None),
        ("", None),
        ("\x00\ud800 ", None),
    ],
)
def test_language_is_detected_or_uncertain(text: str, language: str | None) -> None:
    assert detect_language(text) == language
