"""Examples in the help of each command."""

EXAMPLES = {
    "init": ["sleuth init", "sleuth init --yes"],
    "ingest": [
        "sleuth ingest papers/ notes.md",
        "sleuth ingest corpus.jsonl.gz",
        "sleuth ingest --rebuild",
        "sleuth ingest --from-chroma ~/app/chroma_db",
        "sleuth ingest scans/ --workers 4 --keep-originals",
    ],
    "sync": ["sleuth sync reports/", "sleuth sync reports/ --yes --watch"],
    "docs list": ["sleuth docs list", "sleuth docs list --where 'tag=contract date>=2025'"],
    "docs show": ["sleuth docs show papers/light.pdf", "sleuth docs show papers/li"],
    "docs delete": ["sleuth docs delete papers/light.pdf papers/lamp.pdf"],
    "search": [
        'sleuth search "who built the light"',
        'sleuth search "lamp oil" --mode keyword -k 20 --json',
        'sleuth search "Edric Gannow" --mode graph --explain',
        "sleuth search 'lamp oil' --where 'path:reports/** !tag=draft date>=2025-03'",
    ],
    "triples read": ["sleuth triples read"],
    "triples status": ["sleuth triples status --json"],
    "triples import": ["sleuth triples import triples.jsonl.gz --model mine"],
    "ask": [
        'sleuth ask "Where was the builder of the light born?"',
        'sleuth ask "Who built the light?" --method ras --max-calls 20',
        "sleuth ask 'What did the light cost?' --where 'tag=contract author:gannow'",
        'sleuth ask "Who wrote this page?" --page https://example.org/page.html',
        "sleuth ask",
    ],
    "report": [
        "sleuth report 'What do the contracts state about liability?' --out liability.docx",
        "sleuth report 'How did the project develop?' --approve --method par-rag",
    ],
    "survey": [
        "sleuth survey 'Which contracts end in 2027?' --where 'path:contracts/**'",
        "sleuth survey 'What do the contracts cost?' --columns columns.toml --out contracts.xlsx",
        "sleuth survey 'Which reports mention corrosion?' --limit 5",
        "sleuth survey --update 3f9a --out contracts.csv",
    ],
    "resume": ["sleuth resume 3f9a", "sleuth resume 3f9a --max-calls 40"],
    "runs list": ["sleuth runs list", "sleuth runs list --all --limit 200"],
    "runs show": ["sleuth runs show 3f9a", "sleuth runs show 3f9a --json"],
    "runs history": ["sleuth runs history 3f9a"],
    "runs fork": [
        "sleuth runs fork 3f9a --at 3",
        "sleuth runs fork 3f9a --at plan --state 'wave=[\"1\"]'",
        "sleuth runs fork 3f9a --at answer --method ras",
        "sleuth runs fork 3f9a --at draft --name second-try",
    ],
    "runs export": ["sleuth runs export 3f9a > run.json"],
    "runs delete": ["sleuth runs delete 3f9a 77b0"],
    "runs prune": ["sleuth runs prune --older-than 30d", "sleuth runs prune --older-than 30d --keep-last 10 --yes"],
    "methods": ["sleuth methods", "sleuth methods par-rag"],
    "eval": [
        "sleuth eval questions.jsonl --methods par-rag,ras --out results/first",
        "sleuth eval questions.jsonl --retrieval hybrid,graph --out results/search",
        "sleuth eval --compare results/first results/second",
    ],
    "questions make": [
        "sleuth questions make --n 50 --out questions.jsonl",
        "sleuth questions make --n 100 --multi 0.6 --unanswerable 0.1 --out questions.jsonl",
    ],
    "questions feedback": ["sleuth questions feedback --out feedback.jsonl"],
    "calibrate": ["sleuth calibrate questions.jsonl --out results/calibration"],
    "model install": ["sleuth model install"],
    "model serve": ["sleuth model serve", "sleuth model serve --print-command Qwen/Qwen3-8B --gpus 1"],
    "model status": ["sleuth model status --json"],
    "model stop": ["sleuth model stop"],
    "serve": ["sleuth serve", "sleuth serve --host 0.0.0.0 --port 8080"],
    "mcp": ["sleuth mcp"],
    "backup": ["sleuth backup backups/2026-05-01.zip"],
    "restore": ["sleuth restore backups/2026-05-01.zip --check", "sleuth restore backups/2026-05-01.zip"],
    "doctor": ["sleuth doctor", "sleuth doctor --model", "sleuth doctor --json > report.json"],
}
"""Command lines by command."""


def epilog(command: str) -> str | None:
    """Return the examples of a command as the end of its help; the backspace keeps the lines as they are."""
    lines = EXAMPLES.get(command)
    return "\n".join(["Examples:", "", "\b", *lines]) if lines else None
