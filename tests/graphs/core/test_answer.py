from sleuth.graphs.core.answer import subruns_in


def test_subruns_of_a_chat_and_of_auto_are_listed() -> None:
    subrun = {"method": "par-rag", "status": "queued"}
    assert subruns_in({"hops": {"1": subrun}}) == subruns_in({"hop": subrun}) == [subrun]
    assert subruns_in({"hops": {}}) == []
    assert subruns_in({}) is subruns_in({"hop": None}) is None
