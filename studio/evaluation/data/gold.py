"""The texts behind gold ids: what simulation answers from, and how it is known that the model was shown them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sleuth.agents.formatting import Source, escape_chat_markers, format_sources, parse_sources
from sleuth.studio.evaluation.data.questions import GoldQuestion
from sleuth.tools.collection import Collection


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldTexts:
    """Title and text of every gold passage, or of the whole document, by id."""

    texts: Mapping[str, tuple[str, str]]

    def of(self, question: GoldQuestion) -> dict[str, tuple[str, str]]:
        """Return those of a question that are in the collection."""
        return {id: self.texts[id] for id in question.gold if id in self.texts}

    def shown(self, question: GoldQuestion, prompts: Iterable[str]) -> list[str]:
        """Return the gold ids whose text is a source in these prompts, complete or in part."""
        gold = {id: [_as_shown(title, text)] for id, (title, text) in self.of(question).items()}
        blocks = {(source.title, source.text) for prompt in prompts for _, source in parse_sources(prompt)}
        found = [id for id, [(name, body)] in gold.items() if any(t == name and b in body for t, b in blocks if b)]
        return sorted(found)


async def gold_texts(library: Collection, questions: Sequence[GoldQuestion]) -> GoldTexts:
    """Read them from the collection; ids that are not there are left out."""
    wanted = sorted({id for question in questions for id in question.gold})
    known = await library.known_ids(wanted)
    texts = {passage.id: (passage.title, passage.text) for passage in await library.passages(wanted)}
    for id in sorted(known - texts.keys()):
        document = await library.document(id)
        texts[id] = (document.title, document.text)
    return GoldTexts(texts=texts)


def _as_shown(title: str, text: str) -> tuple[str, str]:
    """Return a title and a text as a prompt has them."""
    [(_, source)] = parse_sources(escape_chat_markers(format_sources((Source(title=title, text=text),))))
    return source.title, source.text
