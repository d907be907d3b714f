"""Pieces of Markdown that the generated documents share."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["WIDTH", "filled", "table", "wrapped"]

WIDTH = 100


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, and an empty line."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


def filled(text: str, numbers: Mapping[str, object]) -> str:
    """`text` with `{name}` replaced by what `numbers` has under that name."""
    for name, value in numbers.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def wrapped(text: str) -> str:
    """Paragraphs and list items in lines of even length; tables, headings and code as they are."""
    out, code = [], False
    for block in text.split("\n\n"):
        fences = block.count("```")
        if code or fences or block.startswith(("|", "#")):
            out.append(block)
            code ^= fences % 2 == 1
            continue
        pieces = re.split(r"\n(?=- )", block)
        for index, piece in enumerate(pieces):
            hang = "  " if piece.startswith("- ") else ""
            pieces[index] = textwrap.fill(
                " ".join(piece.split()),
                WIDTH,
                subsequent_indent=hang,
                break_long_words=False,
                break_on_hyphens=False,
            )
        out.append("\n".join(pieces))
    return "\n\n".join(out)
