"""Roles whose replies people read are asked to answer in the language of the question."""

from typing import Any

import pytest

from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.roles.inputs import ReadInput, StepsInput
from sleuth.agents.roles.planning import PLAN
from sleuth.agents.roles.reading import READ
from sleuth.tools.text.language import may_be_english

ENGLISH = [
    "When was the shipyard founded?",
    "Are Ballota and Myosotis both evergreens?",
    "Was Jamie Curry or Alyaksey Vasilewski born first?",
    "Is Colgú Mac Faílbe Flaind's uncle older than Félix De Blochausen?",
    "Lady Morrable",
]
OTHERS = [
    "Wann endet der Vertrag?",
    "Wer gründete die Werft?",
    "Wie hoch ist die Miete?",
    "Welche Firma baute die Lady Morrable?",
    "In welchem Jahr wurde die Werft gegründet?",
    "¿Quién fundó el astillero?",
    "¿Cuándo termina el contrato?",
    "¿Cuánto cuesta el alquiler?",
    "¿En qué año se fundó la empresa?",
    "¿Dónde está el faro?",
    "Quel est le loyer annuel?",
    "Chi ha costruito il faro?",
    "合同什么时候到期？",
]


@pytest.mark.parametrize("question", [*ENGLISH, *OTHERS])
def test_language_is_recognized(question: str) -> None:
    assert may_be_english(question) == (question in ENGLISH)


@pytest.mark.parametrize(
    ("role", "given", "is_told"),
    [
        (READ, ReadInput(question=OTHERS[0], sources=()), True),
        (READ, ReadInput(question=ENGLISH[0], sources=()), False),
        (PLAN, StepsInput(question=OTHERS[0]), False),
    ],
)
def test_only_replies_for_people_are_in_the_language(role: Any, given: Any, is_told: bool) -> None:
    text = "\n".join(message["content"] for message in render_messages(role, given))
    assert ("language of the question" in text) == is_told
