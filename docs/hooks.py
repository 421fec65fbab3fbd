"""Hooks of the documentation site: navigation by folder, links into the repository, generated reference.

MkDocs calls the functions whose names begin with `on_`; see https://www.mkdocs.org/user-guide/configuration/#hooks.
A line `<!-- generate: NAME -->`, or `<!-- generate: NAME METHOD -->`, is replaced by what `GENERATORS[NAME]` returns.
`python docs/hooks.py` draws the state machines in the pages, from `<!-- graph:NAME -->` to `<!-- /graph -->`, and
writes the methods into langgraph.json.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MERMAID = ROOT / ".cache" / "mermaid" / "mermaid.min.js"

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
EXAMPLES_OF_COMMAND = re.compile("Examples:\n\n\b\n((?:sleuth.*\n)+)")
DIAGRAM = re.compile(r"(<!-- graph:([\w-]+) -->\n).*?(<!-- /graph -->)", re.DOTALL)
MARKER = re.compile(r"^<!-- generate: ([\w-]+)(?: ([\w-]+))? -->$", re.MULTILINE)


def on_config(config: Any) -> Any:  # noqa: ANN401 - MkDocsConfig is untyped
    """Expand each folder of the navigation into its pages; leave out folders that have none. Use the local Mermaid."""
    config.nav = [item for item in map(_with_pages, config.nav) if item]
    if MERMAID.exists():
        config.extra_javascript.append("assets/mermaid.min.js")
    return config


def _with_pages(item: dict[str, Any]) -> dict[str, Any] | None:
    ((title, target),) = item.items()
    if not (isinstance(target, str) and target.endswith("/")):
        return item
    pages = sorted((DOCS / target).rglob("*.md"), key=lambda page: (page.name != "index.md", page.as_posix()))
    return {title: [page.relative_to(DOCS).as_posix() for page in pages]} if pages else None


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401 - as MkDocs passes them
    """Add Mermaid if `make docs` could download it; without it, the theme loads Mermaid from unpkg.com."""
    from mkdocs.structure.files import File

    if MERMAID.exists():
        files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 - as MkDocs passes them
    """Fill in the generated parts of a page, and turn links to files outside `docs/` into plain text.

    The repository has no public address yet. Links to files that do not exist stay, and fail the build.
    """
    folder = (DOCS / page.file.src_uri).parent

    def without_link(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        outside = target.exists() and not target.is_relative_to(DOCS)
        return link[1] if outside else link[0]

    linked = LINK.sub(without_link, markdown)
    return MARKER.sub(lambda marker: GENERATORS[marker[1]](*filter(None, [marker[2]])), linked)


def commands() -> str:
    """Return the reference of every command, from the command line's own help."""
    import typer
    from typer.cli import get_docs_for_click

    from sleuth.studio.cli.app import COMMANDS, app, load

    context = typer.Context(typer.main.get_command(app), info_name="sleuth")
    parts = [
        get_docs_for_click(obj=load(name), ctx=context, name=f"sleuth {name}", indent=1).replace("~", r"\~")
        for name in COMMANDS
    ]
    return EXAMPLES_OF_COMMAND.sub(lambda found: f"Examples:\n\n```sh\n{found[1]}\n```\n", "\n".join(parts))


def python_names() -> str:
    """Return a mkdocstrings directive for each public name; the settings have a table of their own."""
    from typing import is_typeddict

    import sleuth

    names = [name for name in sorted(sleuth.__all__, key=str.lower) if name != "Settings"]
    fields = "\n    options:\n      show_if_no_docstring: true"  # no constructor shows the fields of a TypedDict
    return "\n\n".join(f"::: sleuth.{name}{fields if is_typeddict(getattr(sleuth, name)) else ''}" for name in names)


def settings() -> str:
    """Return the table of all settings with a complete `sleuth.toml`."""
    from sleuth.tools.settings import Settings

    schema = Settings.model_json_schema()["properties"]
    rows = ["| variable | type | default | meaning |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `SLEUTH_{name.upper()}` | {_type(field)} | {_default(name, field)} | {field['description']} |"
        for name, field in schema.items()
    ]
    lines = [_line(name, field) for name, field in schema.items()]
    return "\n".join([*rows, "", "### Example `sleuth.toml`", "", "```toml", *lines, "```"])


def _default(name: str, field: dict[str, Any]) -> str:
    if name in COMPUTED:
        return COMPUTED[name]
    default = field.get("default")
    return "none" if default is None else f"`{default}`"


def _line(name: str, field: dict[str, Any]) -> str:
    """Return a setting at its default, or a comment with an example where it has none."""
    default = field.get("default")
    return f"# {name} = {EXAMPLES[name]}" if default is None else f"{name} = {json.dumps(default)}"


COMPUTED = {"home": "the user's data folder", "model_url": "the running server of the home, or port 8000 here"}
"""Defaults that depend on the machine."""

EXAMPLES = {
    "home": '"/srv/sleuth"',
    "model_url": '"http://127.0.0.1:8000/v1"',
    "runs": '"results/embedded"',
    "model": '"Qwen/Qwen3-8B"',
    "models": '{drafter = "Qwen/Qwen3-32B"}',
    "model_key": '"S3cret"',
    "loaders": '{".ipynb" = "NotebookLoader"}',
    "knowledge_graph": '"http://127.0.0.1:8800"',
    "database_url": '"postgresql://sleuth@db.example/sleuth"',
    "proxy": '"http://proxy.example:3128"',
    "reranker": '"http://127.0.0.1:8001/rerank"',
    "reranker_model": '"BAAI/bge-reranker-v2-m3"',
    "reranker_key": '"S3cret"',
    "chroma_url": '"http://chroma.example:8000"',
    "checker": '"checker"',
    "api_keys": '"anna:S3cret,ben:0ther"',
    "api_keys_file": '"/etc/sleuth/keys"',
    "embed_keys": '"site:Publ1c@https://example.org"',
    "operator": '"anna"',
    "keep_originals": "true",
    "require_citations": "true",
    "ingest_workers": "4",
    "ray": '"head.example:6379"',
    "requests_a_minute": "60",
    "tokens_a_day": "2000000",
}
"""Values for settings without a default."""


def http_routes() -> str:
    """Return every route of `sleuth serve` with its parameters, from the server's OpenAPI description."""
    from sleuth.studio.server.app import create_app
    from sleuth.tools.settings import Settings

    api = create_app(Settings()).openapi()
    parts, topic = [], ""
    for path, operations in api["paths"].items():
        for verb, operation in operations.items():
            if operation["tags"][0] != topic:
                topic = operation["tags"][0]
                parts.append(f"## {topic.capitalize()}")
            parts.append(_operation(f"{verb.upper()} {path}", operation))
    schemas = api["components"]["schemas"]
    parts.append("## Schemas")
    parts += [_schema(name, schemas[name]) for name in sorted(schemas) if schemas[name].get("properties")]
    return "\n\n".join(parts)


def _operation(title: str, operation: dict[str, Any]) -> str:
    parts = [f"### `{title}`", operation.get("description", "")]
    if parameters := operation.get("parameters"):
        lines = ["| parameter | in | type | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {each.get('description', '')} |"
            for each in parameters
        ]
        parts.append("\n".join(lines))
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body: {_type(body['schema'])} as `{kind}`.")
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            kinds = [_type(body.get("schema", {})) for body in response.get("content", {}).values()]
            parts.append(f"Returns {status}{': ' + ', '.join(kinds) if any(kinds) else ''}.")
    return "\n\n".join(filter(None, parts))


def _schema(name: str, schema: dict[str, Any]) -> str:
    lines = [f"#### {name}", "", schema.get("description", ""), "", "| field | type | meaning |", "| --- | --- | --- |"]
    required = schema.get("required", [])
    for field, about in schema["properties"].items():
        optional = "" if field in required else " (optional)"
        lines.append(f"| `{field}` | {_type(about)}{optional} | {about.get('description', '')} |")
    return "\n".join(lines)


def _type(schema: dict[str, Any]) -> str:
    """Return a short name of a JSON schema's type, with its range."""
    if reference := schema.get("$ref"):
        name = reference.rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})" if "components" in reference else name
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(part) for part in parts if part.get("type") != "null"))
    kind = schema.get("type", "")
    if kind == "array":
        return f"list of {_type(schema.get('items', {})) or 'values'}"
    bounds = [f"{sign} {schema[key]}" for key, sign in BOUNDS.items() if key in schema]
    return f"{kind}{', ' if bounds else ''}{', '.join(bounds)}"


def methods() -> str:
    """Return the table of all methods."""
    from sleuth.graphs.registry import METHODS

    lines = ["| method | when | model calls per question |", "| --- | --- | --- |"]
    for name, method in METHODS.items():
        page = f"{name}.md" if (DOCS / "methods" / f"{name}.md").exists() else f"baselines.md#{name}"
        lines.append(f"| [{name}]({page}) | {method.when} | {method.calls} |")
    return "\n".join(lines)


def method_settings(name: str = "") -> str:
    """Return the table of a method's settings, or of the settings that all methods with an evidence check share."""
    from sleuth.graphs.core.context import CheckedSettings
    from sleuth.graphs.registry import runnable

    kind = runnable(name).settings if name else CheckedSettings
    shared = CheckedSettings.model_fields if name and issubclass(kind, CheckedSettings) else {}
    default, paper = kind(), kind().as_in_paper()
    lines = ["| setting | default | `paper` profile | meaning |", "| --- | --- | --- | --- |"]
    for setting, field in kind.model_fields.items():
        if setting not in shared:
            value, published = getattr(default, setting), getattr(paper, setting)
            differs = "" if value == published else _code(published)
            meaning = (field.description or "").replace("|", "\\|")
            lines.append(f"| `{setting}` | {_code(value)} | {differs} | {meaning} |")
    if shared:
        lines += ["", "The settings of the [evidence check](index.md#evidence-check) apply too."]
    return "\n".join(lines)


def fidelity(name: str) -> str:
    """Return the parts of a method's paper as a table: source, status, code and settings."""
    from sleuth.graphs.registry import METHODS

    method = METHODS[name]
    default, paper = method.settings(), method.settings().as_in_paper()
    home = f"{method.settings.__module__.rpartition('.')[0].removeprefix('sleuth.')}."
    lines = ["| part | in the paper | status | code | settings |", "| --- | --- | --- | --- | --- |"]
    for each in method.parts.values():
        status = f"{each.status}: {each.note}" if each.note else each.status
        code = ", ".join(f"`{place.removeprefix(home)}`" for place in each.code)
        values = ", ".join(_paper_value(key, getattr(default, key), getattr(paper, key)) for key in each.settings)
        cells = (cell.replace("|", "\\|") for cell in (each.part, each.source, status, code, values))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _paper_value(setting: str, default: object, paper: object) -> str:
    differs = "" if default == paper else f" {_code(paper)} (default {_code(default) or 'none'})"
    return f"`{setting}`{differs}"


def _code(value: object) -> str:
    return "" if value in (None, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

GENERATORS: dict[str, Callable[..., str]] = {
    "cli": commands,
    "fidelity": fidelity,
    "http": http_routes,
    "method-settings": method_settings,
    "methods": methods,
    "python": python_names,
    "settings": settings,
}


def graphs() -> dict[str, Any]:
    """Return every graph by name: chat and the methods."""
    from sleuth.graphs.registry import METHODS, OTHERS

    return {name: method.graph() for name, method in {"chat": OTHERS["chat"], **METHODS}.items()}


def mermaid(graph: Any) -> str:  # noqa: ANN401 - a LangGraph graph
    """Return a graph as a Mermaid flowchart: solid arrows always follow, a router chooses among dotted ones."""
    from sleuth.graphs.registry import arrows

    shapes = {"__start__": "START([start])", "__end__": "END([end])"}
    lines = [f"    {shapes.get(a, a)} {arrow} {shapes.get(b, b)}" for a, arrow, b in arrows(graph)]
    return "\n".join(["flowchart TD", *lines])


def redraw(text: str) -> str:
    """Return a page with its marked diagrams replaced by the current ones."""
    known = graphs()
    return DIAGRAM.sub(lambda found: f"{found[1]}```mermaid\n{mermaid(known[found[2]])}\n```\n{found[3]}", text)


def serve_graphs() -> str:
    """Return langgraph.json, with an entry for each method."""
    from sleuth.graphs.registry import METHODS, OTHERS, runnable
    from sleuth.tools.settings import TRACING_VARIABLES

    here = "sleuth.studio.langgraph_dev"
    config = {
        "$schema": "https://langgra.ph/schema.json",
        "python_version": "3.11",
        "dependencies": ["."],
        "checkpointer": {"path": f"{here}.checkpointer.saver", "serde": {"pickle_fallback": False}},
        "http": {f"disable_{name}": True for name in ("store", "mcp", "a2a", "ui", "webhooks")},
        "graphs": {
            name: {"path": f"{here}.graphs:{name.replace('-', '_')}", "description": runnable(name).line}
            for name in (*METHODS, *OTHERS)
        },
        # An empty key for the control plane: its default is LANGSMITH_API_KEY.
        "env": {
            "SLEUTH_TRACING": "off",
            **dict.fromkeys(TRACING_VARIABLES, "false"),
            "LANGSMITH_CONTROL_PLANE_API_KEY": "",
        },
    }
    return json.dumps(config, indent=2) + "\n"


if __name__ == "__main__":
    (ROOT / "langgraph.json").write_text(serve_graphs(), encoding="utf-8")
    for path in DOCS.rglob("*.md"):
        path.write_text(redraw(path.read_text(encoding="utf-8")), encoding="utf-8")
