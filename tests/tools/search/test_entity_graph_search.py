from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from small_collection import SmallCollection, passage

from sleuth.tools.search.entity_graph.edges import QueryTerms
from sleuth.tools.search.entity_graph.search import Candidate, Meaning, find_candidates
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Passage


class Scene(SmallCollection):
    """A collection that can be searched."""

    meaning: Meaning | None = None

    def ask(
        self, text: str, *, entities: Sequence[str] = (), seen: Sequence[str] = (), hop: bool = False
    ) -> dict[str, Candidate]:
        query = Query(text=text, entities=tuple(entities), seen=frozenset(seen), hop=hop)
        _, found = find_candidates(query, self.graph, self.keywords, self.fetch, self.meaning)
        return {candidate.passage.id: candidate for candidate in found}


FILM = passage("film", "Low Tide", "Low Tide is a film of 1931. It was directed by Oda Brask. Edith Vey played in it.")
DIRECTOR = passage("director", "Oda Brask", "She was born in Kestrow.")
ACTOR = passage("actor", "Edith Vey", "She came from Marrabeck.")
QUESTION = "Where was the one who directed Low Tide?"


def test_the_sentence_that_matches_best_decides_between_names(tmp_path: Path) -> None:
    found = Scene(tmp_path, [FILM, DIRECTOR, ACTOR]).ask(QUESTION)
    assert list(found)[:3] == ["film", "director", "actor"]
    director, actor = found["director"].links[0], found["actor"].links[0]
    assert (director.kind, director.name, director.r) == ("names", "Oda Brask", 1.0)
    assert actor.r < 1.0
    again = Scene(tmp_path / "again", [FILM, DIRECTOR, ACTOR])
    found = again.ask("Where was the director of Low Tide born?")  # what the target adds to the question is its nc
    assert (found["director"].links[0].nc > 0, found["actor"].links[0].nc) == (True, 0)
    assert 0 < found["director"].coverage < 1
    assert again.ask("?!") == {}


def test_a_passage_that_names_what_was_found_is_reached(tmp_path: Path) -> None:
    review = passage("review", "Notes", "Some said that Low Tide was dull.")
    link = next(
        link for link in Scene(tmp_path, [FILM, review]).ask("Low Tide")["review"].links if link.kind == "named_by"
    )
    assert (link.source, link.stands_in, link.name) == ("film", "review", "Low Tide")


def test_a_rare_name_in_both_is_an_edge_and_one_of_the_question_is_not(tmp_path: Path) -> None:
    other = passage("other", "A harbour", "The harbour belonged to Edith Vey.")
    found = Scene(tmp_path, [FILM, other]).ask("What was Low Tide?")
    assert found["other"].links[0].kind == "shares"
    again = Scene(tmp_path / "again", [FILM, other]).ask("What had Edith Vey to do with Low Tide?")
    assert all(link.name != "Edith Vey" for link in again["other"].links if link.kind == "shares")


def test_of_two_namesakes_each_counts_less(tmp_path: Path) -> None:
    namesake = passage("namesake", "Oda Brask (pilot)", "He flew.")
    alone = Scene(tmp_path, [FILM, DIRECTOR]).ask(QUESTION)["director"].links[0]
    shared = Scene(tmp_path / "b", [FILM, DIRECTOR, namesake]).ask(QUESTION)["director"].links[0]
    assert shared.w == pytest.approx(alone.w / 2**0.5)


def test_nearness_in_meaning_is_a_part_of_the_score(tmp_path: Path) -> None:
    def meaning(_text: str, _k: int) -> list[tuple[str, float]]:
        return [("actor", 0.9), ("film", 0.5), ("f1", 0.1)]

    scene = Scene(tmp_path, [FILM, DIRECTOR, ACTOR])
    scene.meaning = meaning
    found = scene.ask("tide")
    assert found["actor"].base.meaning == 1.0
    assert found["film"].base.meaning == pytest.approx(0.5)


def test_edges_go_out_from_what_was_seen(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [FILM, DIRECTOR, ACTOR])
    assert "director" not in scene.ask("Where was that person?")
    assert scene.ask("Where was that person?", seen=["film"])["director"].score > 0


def test_names_known_so_far_count_like_words_of_the_question(tmp_path: Path) -> None:
    found = Scene(tmp_path, [FILM, DIRECTOR, ACTOR]).ask("Where was that person?", entities=["Oda Brask"])
    assert list(found)[:2] == ["director", "film"]
    assert found["film"].base.entities == 1.0


def test_for_a_hop_own_words_count_more_than_connections(tmp_path: Path) -> None:
    told = passage("told", "A book of the coast", "The tide was low.")
    scene = Scene(tmp_path, [FILM, DIRECTOR, told])
    assert list(scene.ask(QUESTION))[:2] == ["film", "director"]
    assert list(scene.ask(QUESTION, hop=True))[:2] == ["film", "told"]


LOWER = "low tide was a film that oda brask directed in nineteen thirty one at the old pier"


@pytest.mark.parametrize(
    ("first", "second", "question"),
    [
        (passage("a", "low tide", LOWER), passage("b", "oda brask", "she was born there"), "who made low tide"),
        (passage("a", "低潮", "《低潮》是王小明導演的電影。"), passage("b", "王小明", "他出生於香港。"), "低潮"),
        (
            passage("a", "فيلم منخفض", "فيلم منخفض أخرجه كريم البحري"),
            passage("b", "كريم البحري", "ولد هناك"),
            "فيلم منخفض",
        ),
    ],
    ids=["lower case", "Chinese", "Arabic"],
)
def test_without_capitals_titles_are_still_found(
    first: Passage, second: Passage, question: str, tmp_path: Path
) -> None:
    found = Scene(tmp_path, [first, second]).ask(question)
    assert list(found)[:2] == ["a", "b"]
    assert found["b"].links[0].kind == "names"


def test_changed_passage_is_read_again(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    rewritten = passage("film", "Low Tide", FILM.text.replace("Oda Brask", "Edith Vey"))
    first = Scene(before, [FILM, DIRECTOR, ACTOR]).ask(QUESTION)
    assert list(Scene(after, [rewritten, DIRECTOR, ACTOR]).ask(QUESTION))[:2] == ["film", "actor"]
    again = Scene(before, [FILM, DIRECTOR, ACTOR]).ask(QUESTION)
    assert list(again) == list(first)
    assert [each.score for each in again.values()] == [each.score for each in first.values()]


def test_a_share_of_the_question_does_not_depend_on_the_order_of_its_words(tmp_path: Path) -> None:
    words = "pike lake hill lark mill"
    texts = [" ".join(words.split()[: number % 5 + 1]) for number in range(12)]
    keywords = KeywordIndex(tmp_path)
    keywords.apply(upsert=[passage(f"p{at}", "", text) for at, text in enumerate(texts)], delete=[])
    asked = QueryTerms(words, keywords)
    orders = permutations([*asked.weights][:4])
    assert len({asked.share(order) for order in orders}) == 1
    keywords.close()
