"""The report of an evaluation: tables, plots and comparisons."""

from sleuth.studio.evaluation.reporting.blocks import (
    Block,
    Heading,
    Paragraph,
    Picture,
    Table,
    align_columns,
    to_html,
    to_markdown,
)
from sleuth.studio.evaluation.reporting.compare import comparison_table
from sleuth.studio.evaluation.reporting.plots import draw_svg
from sleuth.studio.evaluation.reporting.report import label, methods_table, retrieval_table

__all__ = [
    "Block",
    "Heading",
    "Paragraph",
    "Picture",
    "Table",
    "align_columns",
    "comparison_table",
    "draw_svg",
    "label",
    "methods_table",
    "retrieval_table",
    "to_html",
    "to_markdown",
]
