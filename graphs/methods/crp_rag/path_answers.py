"""CRP-RAG's answers along paths: step by step or at once, and what several paths come to (section 3.4)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.reasoning import path_answerer as integrator
from sleuth.graphs.core import Note, ask_or
from sleuth.graphs.evidence import clean, known_steps, note, sentence_with, support
from sleuth.graphs.methods.crp_rag.knowledge import Backing
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Nodes, Path, stages, steps_of
from sleuth.tools.text import comparison_key

Results = Mapping[Path, Note]


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The nodes on the paths to an answer, and what each of them rests on.

    `notes` were handed over. Without `iterate` each path is answered at once (the ablation of section 5.1).
    """

    nodes: Nodes
    notes: Mapping[str, Note]
    backing: Mapping[str, Backing]
    iterate: bool

    async def results(self, paths: Sequence[Path], asking: Desk, affords: Callable[[int], bool]) -> dict[Path, Note]:
        """The result at each step of each path; only the first steps' where more calls cannot be afforded."""
        results: dict[Path, Note] = {}
        for stage in stages(paths) if self.iterate else [paths]:
            if not affords(len(self.to_ask(stage))):
                break
            results |= await self._take(stage, results, asking)
        return results

    def notes_of(self, results: Results) -> dict[str, Note | None]:
        """What was found out, by path; a handed-over note of the same key makes room."""
        found = {label(path): results[path] for path in self.to_ask(list(results))}
        return {**{f"known {key}": self.notes[key] for key in found if key in self.notes}, **found}

    def to_ask(self, stage: Sequence[Path]) -> list[Path]:
        """Those of several paths whose last step is not known."""
        return [path for path in stage if not self.backing[path[-1]].note]

    async def _take(self, stage: Sequence[Path], results: Results, asking: Desk) -> dict[Path, Note]:
        """The results of several paths, side by side; what was handed over is not asked again."""
        asked = self.to_ask(stage)
        asks = (
            self._take_step(path, results, asking) if self.iterate else self._take_path(path, asking) for path in asked
        )
        found = await asyncio.gather(*asks)
        known = {path: note for path in stage if (note := self.backing[path[-1]].note)}
        return known | dict(zip(asked, found, strict=True))

    async def _take_step(self, path: Path, results: Results, asking: Desk) -> Note:
        """The result of a path's last step, with the results before it as known conditions (equations 11 and 12)."""
        backing, step = self.backing[path[-1]], self.nodes[path[-1]]["content"]
        before = [results[path[:length]] for length in range(2, len(path))]
        given = integrator.TakeStepInput(
            question=self._question,
            step=step,
            known=(*self._known_along(path), *known_steps(before)),
            sources=backing.sources,
        )
        role = integrator.TAKE_LAST_STEP if self._ends(path) else integrator.TAKE_STEP
        said = await ask_or(asking, role, given, integrator.Result(), f"Step {path[-1]} has no result.")
        return _found(step, clean(said.answer), [backing])

    def _ends(self, path: Path) -> bool:
        """Whether the path's last step is a last one, and not the question itself."""
        return len(path) > 1 and self.nodes[path[-1]]["end"]

    async def _take_path(self, path: Path, asking: Desk) -> Note:
        """A path's answer in one reading of all its steps."""
        backing = [self.backing[key] for key in steps_of(path)]
        given = integrator.TakePathInput(
            question=self._question,
            steps=tuple(self.nodes[key]["content"] for key in steps_of(path)),
            known=self._known_along(path),
            sources=tuple(source for each in backing for source in each.sources),
        )
        loss = f"{label(path).capitalize()} has no answer."
        said = await ask_or(asking, integrator.TAKE_PATH, given, integrator.Result(), loss)
        return _found(self._question, clean(said.answer), backing)

    def _known_along(self, path: Path) -> tuple[Step, ...]:
        """What was handed over; the question itself has it among its sources already."""
        return () if len(path) == 1 else known_steps(self.notes.values())

    @property
    def _question(self) -> str:
        return self.nodes[SOURCE]["content"]

    async def integrate(self, paths: Sequence[Path], results: Results, asking: Desk) -> str:
        """One answer from those of several paths (equation 13)."""
        answers = tuple(
            integrator.PathAnswer(answer=results[path]["finding"], steps=known_steps(along(path, results)))
            for path in paths
        )
        given = integrator.IntegrateInput(question=self._question, answers=answers)
        first = integrator.Integrated(answer=answers[0].answer)
        said = await ask_or(asking, integrator.INTEGRATE, given, first, "The first path's answer stands for all.")
        return clean(said.answer)


def along(path: Path, results: Results) -> list[Note]:
    """The results on a path, in order."""
    beginnings = (path[:length] for length in range(1, len(path) + 1))
    return [results[beginning] for beginning in beginnings if beginning in results]


def label(path: Path) -> str:
    """A path in messages and, with the word before it, as a note's key."""
    return "path " + ">".join(path)


def contradictions(nodes: Nodes, results: Results) -> list[str]:
    """A line for each step that several paths share and whose results on them exclude each other in words."""
    by_node: dict[str, dict[str, list[str]]] = {}
    for path, found in results.items():
        if found["finding"]:
            told = by_node.setdefault(path[-1], {})
            told.setdefault(_same(comparison_key(found["finding"].rstrip(".")), told), []).append(
                f"{found['finding']!r} by {label(path)}"
            )
    return [
        f"Paths contradict each other at step {key}, {nodes[key]['content']!r}: "
        + ", ".join(ways[0] for ways in told.values())
        for key, told in by_node.items()
        if len(told) > 1
    ]


def _same(said: str, told: Iterable[str]) -> str:
    """The earlier words that stand in these or have these in them, as "1868" and "in 1868"; else these."""
    return next((other for other in told if f" {other} " in f" {said} " or f" {said} " in f" {other} "), said)


def _found(step: str, answer: str, backing: Sequence[Backing]) -> Note:
    """A result with the citations that show it; what its knowledge cites where nothing shows it word for word."""
    cited = [citation for each in backing for citation in each.citations]
    showing = [citation for citation in cited if sentence_with(answer, citation["quote"])]
    shown = [passage for each in backing for passage in each.shown]
    return note(step, answer, (showing or support(answer, shown) or cited) if answer else [])
