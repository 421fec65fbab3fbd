"""Write the graphs of langgraph.json from the registry of methods: `python -m sleuth.studio.langgraph_dev.config`."""

import json
import sys
from pathlib import Path

from sleuth.graphs.registry import CHAT, METHODS, REPORT, SURVEY


def variable_of(name: str) -> str:
    """Return the name under which `graphs.py` has the graph of a method."""
    return name.replace("-", "_")


def with_graphs(text: str) -> str:
    """Return the text of a langgraph.json with one entry per method, and one for the chat."""
    graphs = {
        method.name: {
            "path": f"sleuth.studio.langgraph_dev.graphs:{variable_of(method.name)}",
            "description": method.line,
        }
        for method in (*METHODS.values(), SURVEY, REPORT, CHAT)
    }
    return json.dumps({**json.loads(text), "graphs": graphs}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "langgraph.json")
    file.write_text(with_graphs(file.read_text(encoding="utf-8")), encoding="utf-8")
