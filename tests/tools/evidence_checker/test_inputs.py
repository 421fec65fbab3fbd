from checker import TOKENIZER

from sleuth.tools.evidence_checker import Evidence
from sleuth.tools.evidence_checker.inputs import WINDOW, Layout

LAYOUT = Layout(TOKENIZER)
ASKED = LAYOUT.question("Who built the ferry?")


def test_offsets_are_characters_of_the_text_without_the_title() -> None:
    text = "Öda Brask's ferry — built 1911 — sank."
    (piece,) = LAYOUT.pieces(ASKED, [Evidence(text=text, title="Ferry of Kestrow")])
    assert "1911" in [text[start:end] for start, end in zip(piece.starts, piece.ends, strict=True)]


def test_window_has_the_question_then_title_and_text_of_each_piece() -> None:
    pieces = LAYOUT.pieces(ASKED, [Evidence(text="It sank.", title="Ferry"), Evidence(text="Rain falls.")])
    window = LAYOUT.window(ASKED, pieces)
    title = LAYOUT.question("Ferry.")
    wanted = [101, *ASKED, 102, *title, *LAYOUT.question("It sank."), 102, *LAYOUT.question("Rain falls."), 102]
    assert list(window.ids) == wanted
    assert window.types == (0,) * (len(ASKED) + 2) + (1,) * (len(wanted) - len(ASKED) - 2)
    assert [[window.ids[at] for at in place] for _, *place in window.places()] == [
        [title[0], LAYOUT.question("It")[0], 102],
        [LAYOUT.question("Rain")[0], LAYOUT.question("Rain")[0], 102],
    ]


def test_windows_contain_every_piece_once_and_fit() -> None:
    passages = [Evidence(text="a stone bridge over the river " * length) for length in (5, 40, 200, 1, 30)]
    pieces = LAYOUT.pieces(ASKED, passages)
    windows = list(LAYOUT.windows(ASKED, pieces))
    assert [piece for window in windows for piece in window.pieces] == pieces
    assert all(len(window.ids) <= WINDOW for window in windows)
    assert [piece.passage for piece in pieces] == [0, 1, 2, 2, 2, 3, 4]
    whole = [character for piece in pieces if piece.passage == 2 for character in piece.starts]
    assert whole == sorted(set(whole))


def test_a_long_passage_is_cut_at_the_ends_of_sentences() -> None:
    sentences = ["The ferry carried people over the river " + "again " * count + "." for count in (70, 25, 30, 300, 5)]
    pieces = Layout(TOKENIZER, piece=96).pieces(ASKED, [Evidence(text=" ".join(sentences), title="Ferry")])
    text = " ".join(sentences)
    cut = [text[piece.starts[0] : piece.ends[-1]] for piece in pieces]
    assert cut[:2] == [sentences[0], " ".join(sentences[1:3])]
    assert all(len(piece.ids) <= 96 for piece in pieces)
    assert "".join(cut).replace(" ", "") == text.replace(" ", "")
