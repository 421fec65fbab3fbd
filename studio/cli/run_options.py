"""Options of the commands that run methods, with the descriptions of all interfaces."""

from typing import Annotated, get_args

import typer

from sleuth.graphs.core import context


def _help(option: object) -> str:
    text = get_args(option)[1].description
    return f"{text[0].upper()}{text[1:]}."


Calls = Annotated[int | None, typer.Option("--max-calls", min=1, help=_help(context.Calls))]
Tokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help=_help(context.Tokens))]
Seconds = Annotated[float | None, typer.Option("--max-seconds", min=0.001, help=_help(context.Seconds))]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=f"{_help(context.Values)} May be repeated.")
]
Label = Annotated[str, typer.Option(help=_help(context.Label))]
