"""A model that plays the roles of a method from gold annotations, for `python -m training.simulation`."""

from training.simulation.gold import Gold, Hop, gold_of, gold_on_pages
from training.simulation.model import SimulatedModel
from training.simulation.parameters import Simulation

__all__ = ["Gold", "Hop", "SimulatedModel", "Simulation", "gold_of", "gold_on_pages"]
