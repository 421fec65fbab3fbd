"""Results that an older release has written."""

import json
from pathlib import Path

from sleuth.studio.evaluation.scoring.results import RESULTS, open_results
from sleuth.studio.evaluation.scoring.summary import node_means

NODE = {"calls": 2, "prompt_tokens": 9, "completion_tokens": 3}


async def test_seconds_of_older_results_are_model_seconds(tmp_path: Path) -> None:
    node = {**NODE, "seconds": 7.5}
    cost = {**node, "cached_tokens": 0, "nodes": {"answer": node}}
    line = {"thread": "a", "status": "answered", "cost": cost, "scores": {"em": 1.0, "seconds": 7.5}}
    (tmp_path / RESULTS).write_text(json.dumps(line) + "\n")
    kept = (await open_results(tmp_path)).by_thread["a"]
    assert kept["cost"]["model_seconds"] == 7.5
    assert kept["scores"] == {"em": 1.0, "model_seconds": 7.5, "seconds": None}
    assert node_means([kept]) == {"answer": {**NODE, "model_seconds": 7.5}}
