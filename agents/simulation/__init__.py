"""A model that plays every role from gold annotations: evaluation at scale without a model server."""

from sleuth.agents.simulation.gold import Gold, Hop, gold_of
from sleuth.agents.simulation.handed import gold_on_pages
from sleuth.agents.simulation.model import SimulatedModel
from sleuth.agents.simulation.parameters import Simulation

__all__ = ["Gold", "Hop", "SimulatedModel", "Simulation", "gold_of", "gold_on_pages"]
