"""How often a simulated model errs, how sure it sounds, and how fast it would be."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sleuth.tools.errors import UnknownName, UsageError

ERRORS: dict[str, str] = {
    "wrong-question": "a sub-question that leads nowhere",
    "missed": "evidence that was shown is not seen",
    "invented": "an answer is made up, whatever was shown",
    "guessed": "an answer is made up where what was shown does not tell it",
    "flattering": "a review passes a draft that it should not",
    "overconfident": "a judgement is a sure yes without support",
    "misfiled": "a question is taken for one of another kind",
}
"""The kinds of errors; each role makes those that its work allows."""

CLOSED_BOOK = "closed-book"
"""Not an error: the share of questions whose answer the model knows unaided."""

_ANSWERING = ("missed", "invented", "guessed")
"""Of the roles whose answers `answering.told` gives."""

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
    "judge": (),
    "calculator": (),
    "recaller": (),
    "querier": ("missed",),
    "resolver": ("missed", "invented"),
    "summariser": ("missed", "invented"),
    "actor": ("wrong-question", "missed", "invented"),
    "classifier": ("misfiled",),
    "router": ("misfiled",),
    "rewriter": ("wrong-question",),
    "host": (),
}
"""The errors of each role."""


class Simulation(BaseModel):
    """The parameters of a simulated model; they and the gold make all its replies.

    `rates` are shares from 0 to 1, by ROLE, by kind of error, or by ROLE.KIND; the most special one holds. Perplexities
    and the log-odds of a yes are drawn around a median with a spread: of the logarithm for perplexities.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 0
    rates: dict[str, float] = Field(default_factory=lambda: {CLOSED_BOOK: 0.02})
    supported_perplexity: float = Field(default=1.25, ge=1, description="median where the sources tell")
    supported_spread: float = Field(default=0.2, ge=0)
    unsupported_perplexity: float = Field(default=8.0, ge=1, description="median where they do not")
    unsupported_spread: float = Field(default=0.8, ge=0)
    yes_odds: float = Field(default=2.5, ge=0, description="median log-odds of the right one of yes and no")
    yes_spread: float = Field(default=0.8, ge=0)
    teaching: bool = Field(default=False, description="says it as a model should learn to: see `Scene.statement`")
    reorder: float = Field(default=0.1, ge=0, le=1, description="samples of next steps that take another order")
    rephrase: float = Field(default=0.5, ge=0, le=1, description="samples that say the same in other words")
    prefill: float = Field(default=4000.0, gt=0, description="prompt tokens per second, where not cached")
    decode: float = Field(default=60.0, gt=0, description="reply tokens per second")

    @field_validator("rates")
    @classmethod
    def _known(cls, rates: dict[str, float]) -> dict[str, float]:
        for name, rate in rates.items():
            check(name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{name}={rate:g} is no share between 0 and 1")
        return rates

    def rate(self, role: str, kind: str) -> float:
        """How often a role makes an error of a kind; never where its work does not allow it."""
        if kind != CLOSED_BOOK and kind not in ROLES.get(role, ()):
            return 0.0
        return next((self.rates[name] for name in (f"{role}.{kind}", role, kind) if name in self.rates), 0.0)

    @classmethod
    def parse(cls, given: str, *, seed: int = 0) -> "Simulation":
        """What the command line says: `ROLE=RATE,...`, with kinds of errors, and ROLE.KIND, in the place of roles.

        Raises:
            UsageError: a name that is not there, with the nearest, or no share.
        """
        rates: dict[str, float] = {CLOSED_BOOK: 0.02}
        for entry in filter(None, (part.strip() for part in given.split(","))):
            name, _, rate = (part.strip() for part in entry.partition("="))
            check(name)
            rates[name] = _share(name, rate)
        return _made(cls, {"seed": seed, "rates": rates})

    @classmethod
    def from_toml(cls, path: Path) -> "Simulation":
        """The parameters in a file: fields at its top, rates in a table [rates].

        Raises:
            UsageError: no such file, or what is in it cannot be used.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"The parameters {path} cannot be read: {error}.") from error
        if "rates" in found:
            found["rates"] = _flat(found["rates"])
        return _made(cls, found)


def check(name: str) -> None:
    """Raises UnknownName, with the nearest, where a rate's name is neither a role nor a kind of error nor both."""
    kinds = [*ERRORS, CLOSED_BOOK]
    both = [f"{role}.{kind}" for role, own in ROLES.items() for kind in own]
    if name not in (*ROLES, *kinds, *both):
        near = both if "." in name else [*ROLES, *kinds]
        hint = f"Roles: {', '.join(ROLES)}. Kinds of errors: {', '.join(kinds)}. ROLE.KIND is one kind of one role."
        raise UnknownName("simulated role or error", name, near, hint)


def _share(name: str, rate: str) -> float:
    try:
        return float(rate)
    except ValueError:
        raise UsageError(f"{name}={rate} is no share: write {name}=0.1 for one in ten.") from None


def _flat(rates: Mapping[str, Any]) -> dict[str, Any]:
    """A dotted name without quotes is a table within a table."""
    flat: dict[str, Any] = {}
    for name, value in rates.items():
        flat |= {f"{name}.{kind}": rate for kind, rate in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _made(kind: type[Simulation], values: dict[str, Any]) -> Simulation:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise UsageError(f"The simulation's parameters cannot be used: {faults}.") from None
