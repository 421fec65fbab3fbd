"""`sleuth eval` with a simulated model, or with some parts of the runs taken from the gold answers.

    python -m training.simulation QUESTIONS.jsonl --methods par-rag --simulate drafter=0.1 --out FOLDER
    python -m training.simulation QUESTIONS.jsonl --methods par-rag --gold planner,passages --out FOLDER

Options other than these two are those of `sleuth eval`.
"""

import argparse

from sleuth.studio.cli.app import app, run_cli
from sleuth.studio.evaluation.gold import Players
from sleuth.tools.errors import UsageError
from training.simulation.parameters import Simulation
from training.simulation.players import OraclePlayers, SimulatedPlayers, oracle_parts


def players(simulate: str | None, gold: str, seed: int) -> Players:
    """Return what plays the roles.

    Raises:
        UsageError: neither or both of the two are given, or one of them cannot be used.
    """
    if (simulate is None) == (not gold):
        raise UsageError("Give either --simulate or --gold; without both, use `sleuth eval`.")
    if simulate is not None:
        return SimulatedPlayers(Simulation.parse(simulate, seed=seed))
    return OraclePlayers(oracle_parts([name.strip() for name in gold.split(",") if name.strip()]))


def main() -> None:
    """Run `sleuth eval` with these players."""
    parser = argparse.ArgumentParser(prog="python -m training.simulation", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--simulate", metavar="ROLE=RATE,...|FILE.toml", help="error rates of the simulated roles")
    parser.add_argument("--gold", default="", help="roles, or `passages`, that are taken from the gold")
    parser.add_argument("--seed", type=int, default=0, help="of the sample, the simulation and the statistics")
    given, rest = parser.parse_known_args()

    def command() -> object:
        return app(["eval", *rest, "--seed", str(given.seed)], obj=players(given.simulate, given.gold, given.seed))

    run_cli(command)


if __name__ == "__main__":
    main()
