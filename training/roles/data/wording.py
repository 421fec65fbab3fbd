"""Wording of examples: natural questions, and replies in the form that guided decoding produces."""

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

from training.simulation import Gold
from training.simulation.wording import describe

_ASKED = {
    "author": "Who wrote {}?",
    "award received": "Which award did {} receive?",
    "cause of death": "What did {} die of?",
    "child": "Who is the child of {}?",
    "composer": "Who composed {}?",
    "country": "Which country is {} in?",
    "capital of": "What is {} the capital of?",
    "conflict": "Which conflict was {} in?",
    "continent": "Which continent is {} on?",
    "country of citizenship": "Which country is {} a citizen of?",
    "country of origin": "Which country does {} come from?",
    "date of birth": "When was {} born?",
    "date of death": "When did {} die?",
    "director": "Who directed {}?",
    "educated at": "Where was {} educated?",
    "employer": "Who employed {}?",
    "follows": "What does {} follow?",
    "instance of": "What kind of thing is {}?",
    "licensed to broadcast to": "Where may {} broadcast to?",
    "located in or next to body of water": "Which body of water is {} in or next to?",
    "located in the administrative territorial entity": "Which district or region is {} in?",
    "location": "Where is {}?",
    "location of formation": "Where was {} formed?",
    "member of political party": "Which party was {} a member of?",
    "member of sports team": "Which team did {} play for?",
    "mouth of the watercourse": "What does {} flow into?",
    "part of": "What is {} part of?",
    "shares border with": "What does {} share a border with?",
    "father": "Who is the father of {}?",
    "inception": "When was {} founded?",
    "mother": "Who is the mother of {}?",
    "performer": "Who performed {}?",
    "place of birth": "Where was {} born?",
    "place of burial": "Where was {} buried?",
    "place of death": "Where did {} die?",
    "presenter": "Who presents {}?",
    "producer": "Who produced {}?",
    "publication date": "When did {} come out?",
    "publisher": "Who published {}?",
    "sibling": "Who is the sibling of {}?",
    "spouse": "Who was {} married to?",
}
"""Relations of 2WikiMultihopQA and MuSiQue as questions; others are asked for by name."""

_RELATIVES = ("child", "father", "mother", "spouse")
_MAKERS = ("author", "composer", "director", "performer", "presenter", "producer")
"""Relations to a person that a question may continue from; makers are also described by their work."""

_ALSO_ASKED = {
    "country of citizenship": ("What is the nationality of {}?", "From which country does {} come?"),
    "educated at": ("At which school or university did {} study?", "Where did {} go to school?"),
    "place of birth": ("What is the birthplace of {}?", "In which place was {} born?"),
    "place of death": ("In which place did {} die?",),
    "spouse": ("Whom did {} marry?", "Who was the wife or husband of {}?"),
}
"""Some relations in further words."""

_BY_NAME = re.compile(rf"What is the ({'|'.join(sorted(_ASKED, key=len, reverse=True))}) of ([^?\n]+)\?")


_CLUMSY = re.compile(r" of of |the place where (?:was|is|did|does) |What is said about ")


def is_awkward(text: str) -> bool:
    """Return whether a text has unnatural steps: of relations that make no phrase, or derived ones."""
    return _CLUMSY.search(text) is not None


def paraphrase_naturally(text: str) -> str:
    """Return a text with the simulation's "What is the director of X?" as "Who directed X?"."""
    return _BY_NAME.sub(lambda found: _ASKED[found[1]].format(found[2]), text)


def reword(gold: Gold, dice: Random) -> str:
    """Return a question of two steps about a person whom the first one finds, in other words; any other as it is.

    Sets made from templates ask in a few forms only: what is learned from them alone is the form.
    """
    if gold.origin != "triples" or len(gold.hops) != 2 or gold.hops[1].subject != "#1":
        return gold.question
    by, of, asked = gold.hops[0].predicate, gold.hops[0].subject, gold.hops[1].predicate
    if by not in _RELATIVES + _MAKERS or asked not in _ASKED:
        return gold.question
    last = dice.choice([_ASKED[asked], *_ALSO_ASKED.get(asked, ())])
    forms = [last.format(f"the {by} of {of}"), last.format(f"{of}'s {by}")]
    if by in _MAKERS:
        person = describe(_ASKED[by].format(of))
        clause = person.removeprefix("the person")
        forms += [last.format(person), f"{last.format('the person').removesuffix('?')}{clause}?"]
    return dice.choice(forms)


def guided(reply: str, schema: Mapping[str, Any] | None) -> str:
    """Return a reply with the fields of its schema, in that order; a plain one unchanged.

    A list that may not be empty gets one empty entry.
    """
    if schema is None:
        return reply
    said = json.loads(reply)
    shape = next((each for each in schema["anyOf"] if _fits(said, each)), {}) if "anyOf" in schema else schema
    written = {name: _filled(said[name], field) for name, field in shape.get("properties", {}).items()}
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _fits(said: Mapping[str, Any], shape: Mapping[str, Any]) -> bool:
    return all(said[name] == field["const"] for name, field in shape["properties"].items() if "const" in field)


def _filled(value: Any, field: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    empty = value == [] and field.get("minItems", 0)
    return [{"source": 1, "quote": ""}] if empty else value
