"""A model for evaluation at scale: it plays every role from a question's gold, and errs as often as it is told to.

What it says is simulated, and labelled so: `Reply.model` is "simulated". It never waits; seconds are virtual.
"""

from sleuth.agents.model import Message, Reply, Request, Usage
from sleuth.studio.simulation.gold import Gold
from sleuth.studio.simulation.handlers import HANDLERS
from sleuth.studio.simulation.parameters import Simulation
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.usage import UsageMeter, prompt_tokens, tokens

NAME = "simulated"


class SimulatedModel:
    """The model of one question's run; make a new one for each run, since it caches the run's prompts.

    A reply depends on the simulation's seed, the question's id, and the request's content and place.
    """

    def __init__(self, gold: Gold, simulation: Simulation, *, context_window: int = 8192) -> None:
        self.gold = gold
        self.simulation = simulation
        self._context_window = context_window
        self._meter = UsageMeter(simulation)

    @property
    def context_window(self) -> int:
        """As set."""
        return self._context_window

    async def call(self, request: Request) -> Reply:
        """What the role says of what it was shown."""
        structured = HANDLERS[request.prompt](RequestView(gold=self.gold, simulation=self.simulation, request=request))
        prompt, written = prompt_tokens(request.messages), tokens(structured.text)
        cached = self._meter.cached(request.messages)
        return Reply(
            text=structured.text,
            finish="stop",
            model=NAME,
            usage=Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=written),
            seconds=self._meter.seconds(prompt - cached, written),
            logprobs=structured.logprobs(request.sampling),
            warnings=[],
        )

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """As the replies' usage counts them."""
        return prompt_tokens(messages)
