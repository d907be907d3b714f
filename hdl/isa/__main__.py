"""`python -m hdl.isa asm|dis [FILE]`: assembly text to hexadecimal words, one a line, and back.

With --insn both write lines for GNU as instead; asm reads such lines too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .asm import WORD_MAX, AsmError, assemble_program, disassemble, format_word
from .csr import DEFAULT_CSR_BASE
from .insn import insn_line


def _parse_words(text: str) -> list[int]:
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        body = line.partition("#")[0].strip()
        if not body:
            continue
        try:
            word = int(body, 16)
        except ValueError:
            raise AsmError(f"line {number}: {body!r} is not a word such as 0x0000007b") from None
        if not 0 <= word <= WORD_MAX:
            raise AsmError(f"line {number}: {body!r} does not fit in 32 bits")
        words.append(word)
    return words


def _insn_text(word: int, csr_base: int) -> str:
    """The line for GNU as, with the instruction as a comment."""
    line, text = insn_line(word), disassemble(word, csr_base=csr_base)
    if text.startswith(".word"):
        text = text.partition("# ")[2]
    return f"{line:<48}# {text}" if text else line


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status, 2 for input that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m hdl.isa", description=__doc__)
    parser.add_argument("action", choices=("asm", "dis"), help="assemble or disassemble")
    parser.add_argument("file", nargs="?", default="-", help="input file (default: stdin)")
    parser.add_argument("-o", "--output", help="output file (default: stdout)")
    parser.add_argument(
        "--csr-base",
        type=lambda text: int(text, 0),
        default=DEFAULT_CSR_BASE,
        help="number of mxcfg (default: %(default)#x)",
    )
    parser.add_argument(
        "--insn", action="store_true", help="write .insn lines for GNU as, the text as a comment"
    )
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
        if options.action == "asm":
            words = assemble_program(text, csr_base=options.csr_base)
        else:
            words = _parse_words(text)
        if options.insn:
            lines = [_insn_text(word, options.csr_base) for word in words]
        elif options.action == "asm":
            lines = [format_word(word) for word in words]
        else:
            lines = [disassemble(word, csr_base=options.csr_base) for word in words]
        result = "".join(f"{line}\n" for line in lines)
        if options.output is None:
            sys.stdout.write(result)
        else:
            Path(options.output).write_text(result)
    except (AsmError, OSError, UnicodeDecodeError) as error:
        print(f"hdl.isa: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
