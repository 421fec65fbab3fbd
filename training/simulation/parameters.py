"""Parameters of a simulated model: its error rates, its confidence and its speed."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sleuth.tools.errors import UnknownName, UsageError

ERRORS: dict[str, str] = {
    "wrong-question": "a sub-question that leads nowhere",
    "missed": "evidence in the sources is overlooked",
    "invented": "an answer is made up although the sources may contain it",
    "guessed": "an answer is made up if the sources do not contain it",
    "flattering": "a review passes a draft that it should not",
    "overconfident": "a judgement is a sure yes without support",
}
"""The kinds of errors; `ROLES` lists those of each role."""

CLOSED_BOOK = "closed-book"
"""The share of questions whose answer the model has memorized; not an error."""

_ANSWERING = ("missed", "invented", "guessed")
"""Errors of the roles that use `answering.find_answer`."""

ROLES: dict[str, tuple[str, ...]] = {
    "planner": ("wrong-question", "missed"),
    "expander": ("wrong-question",),
    "fuser": (),
    "refiner": ("wrong-question",),
    "detective": ("wrong-question", "missed"),
    "reader": _ANSWERING,
    "drafter": _ANSWERING,
    "answerer": _ANSWERING,
    "reasoner": _ANSWERING,
    "integrator": _ANSWERING,
    "aggregator": ("missed",),
    "extractor": ("missed",),
    "reviewer": ("missed", "flattering"),
    "verifier": ("missed", "overconfident"),
    "evaluator": ("missed", "overconfident"),
    "calculator": (),
    "recaller": (),
    "querier": ("missed",),
    "resolver": ("missed", "invented"),
    "summariser": ("missed", "invented"),
    "actor": ("wrong-question", "missed", "invented"),
    "searcher": ("wrong-question", "missed", "invented"),
    "classifier": (),
}
"""The errors of each role that a method asks."""


class Simulation(BaseModel):
    """The parameters of a simulated model; its replies depend on them and on the gold only.

    `rates` are shares from 0 to 1, by ROLE, by kind of error, or by ROLE.KIND; the most specific one applies.
    Perplexities and the log-odds of a yes are sampled around a median with a spread; the spread of perplexities is that
    of their logarithm.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 0
    rates: dict[str, float] = Field(default_factory=lambda: {CLOSED_BOOK: 0.02})
    supported_perplexity: float = Field(default=1.25, ge=1, description="median if the sources contain the answer")
    supported_spread: float = Field(default=0.2, ge=0)
    unsupported_perplexity: float = Field(default=8.0, ge=1, description="median if they do not")
    unsupported_spread: float = Field(default=0.8, ge=0)
    yes_odds: float = Field(default=2.5, ge=0, description="median log-odds of the right one of yes and no")
    yes_spread: float = Field(default=0.8, ge=0)
    reorder: float = Field(default=0.1, ge=0, le=1, description="share of next steps in another order")
    rephrase: float = Field(default=0.5, ge=0, le=1, description="share of samples in other words")
    prefill: float = Field(default=4000.0, gt=0, description="prompt tokens per second, where not cached")
    decode: float = Field(default=60.0, gt=0, description="reply tokens per second")

    @field_validator("rates")
    @classmethod
    def _known(cls, rates: dict[str, float]) -> dict[str, float]:
        kinds = [*ERRORS, CLOSED_BOOK]
        both = [f"{role}.{kind}" for role, own in ROLES.items() for kind in own]
        for name, rate in rates.items():
            if name not in (*ROLES, *kinds, *both):
                near = both if "." in name else [*ROLES, *kinds]
                hint = f"Roles: {', '.join(ROLES)}. Kinds of errors: {', '.join(kinds)}."
                raise UnknownName("simulated role or error", name, near, f"{hint} ROLE.KIND is one kind of one role.")
            if not 0 <= rate <= 1:
                raise ValueError(f"{name}={rate:g} is no share between 0 and 1")
        return rates

    def rate(self, role: str, kind: str) -> float:
        """Return the rate of an error of a role; 0 if the role does not make it."""
        if kind != CLOSED_BOOK and kind not in ROLES.get(role, ()):
            return 0.0
        return next((self.rates[name] for name in (f"{role}.{kind}", role, kind) if name in self.rates), 0.0)

    @classmethod
    def parse(cls, given: str, *, seed: int = 0) -> "Simulation":
        """Return the parameters given on the command line.

        Args:
            given: `NAME=RATE,...`, where NAME is ROLE, KIND or ROLE.KIND; or a TOML file, with fields at its top and
                rates in a table [rates].
            seed: the seed, also instead of that in the file.

        Raises:
            UsageError: the file cannot be read, an unknown name, with the nearest one, or a rate that is not a number.
        """
        values: dict[str, Any] = {}
        if given.endswith(".toml"):
            try:
                values = tomllib.loads(Path(given).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise UsageError(f"The parameters {given} cannot be read: {error}.") from error
            if "rates" in values:  # a dotted name without quotes is a table within a table
                values["rates"] = {
                    f"{name}.{kind}" if isinstance(value, dict) else name: rate
                    for name, value in values["rates"].items()
                    for kind, rate in (value.items() if isinstance(value, dict) else [("", value)])
                }
        else:
            entries = (part.partition("=") for part in given.split(",") if part.strip())
            values["rates"] = {CLOSED_BOOK: 0.02} | {name.strip(): rate.strip() for name, _, rate in entries}
        try:
            return cls.model_validate({**values, "seed": seed})
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise UsageError(f"The simulation's parameters cannot be used: {faults}.") from None
