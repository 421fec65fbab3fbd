"""A model that plays the roles of a method from gold annotations, for evaluation without a model server."""

from sleuth.studio.simulation.gold import Gold, Hop, gold_of, gold_on_pages
from sleuth.studio.simulation.model import SimulatedModel
from sleuth.studio.simulation.parameters import Simulation

__all__ = ["Gold", "Hop", "SimulatedModel", "Simulation", "gold_of", "gold_on_pages"]
