"""How passages, steps, facts and conversations are written into prompts."""

from sleuth.agents.formatting.conversation import LATEST, Heard, Turn, latest, values
from sleuth.agents.formatting.facts import Facts, Numbers, SubQuery, in_prompt
from sleuth.agents.formatting.quotes import MOST, Evidence, Quote, Quotes
from sleuth.agents.formatting.references import LABELS, Kind, Labelled, listed
from sleuth.agents.formatting.sources import Source, number, unfenced, unmarked
from sleuth.agents.formatting.steps import Step, line

__all__ = [
    "LABELS",
    "LATEST",
    "MOST",
    "Evidence",
    "Facts",
    "Heard",
    "Kind",
    "Labelled",
    "Numbers",
    "Quote",
    "Quotes",
    "Source",
    "Step",
    "SubQuery",
    "Turn",
    "in_prompt",
    "latest",
    "line",
    "listed",
    "number",
    "unfenced",
    "unmarked",
    "values",
]
