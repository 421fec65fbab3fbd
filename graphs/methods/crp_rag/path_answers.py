"""CRP-RAG's answers along paths, step by step or in one call, and the answer from several paths (section 3.4)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import reasoning
from sleuth.graphs.core import Note, ask_or
from sleuth.graphs.evidence import as_steps, find_sentence, find_support, make_note, strip_marks
from sleuth.graphs.methods.crp_rag.knowledge import StepEvidence
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Nodes, Path, path_prefixes, path_steps
from sleuth.tools.text import comparison_key

Results = Mapping[Path, Note]


@dataclass(frozen=True, kw_only=True)
class PathAnswerer:
    """Answers the paths of a graph from the evidence of their nodes.

    `notes` are inherited. Without `iterate` each path is answered in one call (the ablation of section 5.1).
    """

    nodes: Nodes
    notes: Mapping[str, Note]
    backing: Mapping[str, StepEvidence]
    iterate: bool

    async def results(
        self, paths: Sequence[Path], model: ModelCaller, affords: Callable[[int], bool]
    ) -> dict[Path, Note]:
        """Return the result at each step of each path; only those of the first steps if the budget does not suffice for
        more.
        """
        results: dict[Path, Note] = {}
        for stage in path_prefixes(paths) if self.iterate else [paths]:
            if not affords(len(self.to_ask(stage))):
                break
            results |= await self._take(stage, results, model)
        return results

    def notes_of(self, results: Results) -> dict[str, Note | None]:
        """Return the findings by path; an inherited note with the same key gets a new key."""
        found = {path_label(path): results[path] for path in self.to_ask(list(results))}
        return {**{f"known {key}": self.notes[key] for key in found if key in self.notes}, **found}

    def to_ask(self, stage: Sequence[Path]) -> list[Path]:
        """Return the paths whose last step has no inherited answer."""
        return [path for path in stage if not self.backing[path[-1]].note]

    async def _take(self, stage: Sequence[Path], results: Results, model: ModelCaller) -> dict[Path, Note]:
        """Return the results of several paths, answered in parallel; inherited answers are not asked for again."""
        asked = self.to_ask(stage)
        asks = (
            self._take_step(path, results, model) if self.iterate else self._take_path(path, model) for path in asked
        )
        found = await asyncio.gather(*asks)
        known = {path: note for path in stage if (note := self.backing[path[-1]].note)}
        return known | dict(zip(asked, found, strict=True))

    async def _take_step(self, path: Path, results: Results, model: ModelCaller) -> Note:
        """Answer a path's last step, with the results before it as known conditions (equations 11 and 12)."""
        backing, step = self.backing[path[-1]], self.nodes[path[-1]]["content"]
        before = [results[path[:length]] for length in range(2, len(path))]
        given = reasoning.TakeStepInput(
            question=self._question,
            step=step,
            known=(*self._known_along(path), *as_steps(before)),
            sources=backing.sources,
        )
        role = reasoning.TAKE_LAST_STEP if self._ends(path) else reasoning.TAKE_STEP
        said = await ask_or(model, role, given, reasoning.Result(), f"Step {path[-1]} has no result.")
        return _found(step, strip_marks(said.answer), [backing])

    def _ends(self, path: Path) -> bool:
        """Return whether the path ends with a last step other than the question itself."""
        return len(path) > 1 and self.nodes[path[-1]]["end"]

    async def _take_path(self, path: Path, model: ModelCaller) -> Note:
        """Answer a path in one reading of all its steps."""
        backing = [self.backing[key] for key in path_steps(path)]
        given = reasoning.TakePathInput(
            question=self._question,
            steps=tuple(self.nodes[key]["content"] for key in path_steps(path)),
            known=self._known_along(path),
            sources=tuple(source for each in backing for source in each.sources),
        )
        loss = f"{path_label(path).capitalize()} has no answer."
        said = await ask_or(model, reasoning.TAKE_PATH, given, reasoning.Result(), loss)
        return _found(self._question, strip_marks(said.answer), backing)

    def _known_along(self, path: Path) -> tuple[Step, ...]:
        """Return the inherited notes; the question itself has them among its sources already."""
        return () if len(path) == 1 else as_steps(self.notes.values())

    @property
    def _question(self) -> str:
        return self.nodes[SOURCE]["content"]

    async def integrate(self, paths: Sequence[Path], results: Results, model: ModelCaller) -> str:
        """Combine the answers of several paths (equation 13)."""
        answers = tuple(
            reasoning.PathAnswer(answer=results[path]["finding"], steps=as_steps(notes_on_path(path, results)))
            for path in paths
        )
        given = reasoning.IntegrateInput(question=self._question, answers=answers)
        first = reasoning.Integrated(answer=answers[0].answer)
        said = await ask_or(model, reasoning.INTEGRATE, given, first, "The first path's answer is taken.")
        return strip_marks(said.answer)


def notes_on_path(path: Path, results: Results) -> list[Note]:
    """Return the results on a path, in order."""
    beginnings = (path[:length] for length in range(1, len(path) + 1))
    return [results[beginning] for beginning in beginnings if beginning in results]


def path_label(path: Path) -> str:
    """Return the name of a path in messages, also the key of its note."""
    return "path " + ">".join(path)


def find_contradictions(nodes: Nodes, results: Results) -> list[str]:
    """Return a line for each step that several paths share with results that exclude each other in words."""
    by_node: dict[str, dict[str, list[str]]] = {}
    for path, found in results.items():
        if found["finding"]:
            others, result = by_node.setdefault(path[-1], {}), comparison_key(found["finding"].rstrip("."))
            # One finding may contain the other, as "in 1868" and "1868": they agree.
            same = (other for other in others if f" {other} " in f" {result} " or f" {result} " in f" {other} ")
            others.setdefault(next(same, result), []).append(f"{found['finding']!r} by {path_label(path)}")
    return [
        f"Paths contradict each other at step {key}, {nodes[key]['content']!r}: "
        + ", ".join(paths[0] for paths in results_of_step.values())
        for key, results_of_step in by_node.items()
        if len(results_of_step) > 1
    ]


def _found(step: str, answer: str, backing: Sequence[StepEvidence]) -> Note:
    """Return a result with the citations that contain it, or those of its knowledge if no text contains it verbatim."""
    cited = [citation for each in backing for citation in each.citations]
    showing = [citation for citation in cited if find_sentence(answer, citation["quote"])]
    shown = [passage for each in backing for passage in each.shown]
    return make_note(step, answer, (showing or find_support(answer, shown) or cited) if answer else [])
