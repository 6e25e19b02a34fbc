#!/usr/bin/env python3
"""Writes docs/conformance.md: rule -> tests -> changes of the code that they notice.

The tests are read off the sources by their names (`c12_...`, `c21_b14_...`), the changes off
tests/mutants.toml and the documents that it names. `--check` writes nothing and fails if the page
is out of date, if a rule of docs/contract.md has no test, or if a mutant names a test that is none.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
SOURCES = ["tests", "server", "client"]
NAME = re.compile(r"fn (c\d\d_\w+)")
RULE = re.compile(r"^- \*\*C(\d+)\*\*", re.MULTILINE)

# Clauses of rules in scope whose subject comes in a later part: C1-C64 are scheduled by parts A to I.
LATER = [
    ("C3, C4", "for Fleet; `NAME_TAKEN`", "D"),
    ("C4", "hidden sessions within a tenant, by policy", "E"),
    ("C3, C10, C11, C40", "messages", "F"),
    ("C27, C31, C36, C41", "a shared store and replicas", "later than I"),
    ("C42", "processes of a former run", "D"),
    ("C43", "adoption of an engine transcript ahead of ours", "G"),
    ("C54", "identities beyond the owner", "C"),
    ("C56", "sequence, chain hash and checkpoints", "E"),
]


def tests() -> dict[int, list[tuple[str, str]]]:
    """Rule number -> (test, file), each name once per file."""
    found: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for top in SOURCES:
        for path in sorted((ROOT / top).rglob("*.rs")):
            if "target" in path.parts:
                continue
            for name in NAME.findall(path.read_text()):
                for number in re.findall(r"(?:^|_)c(\d\d)(?=_)", name):
                    found[int(number)].add((name, str(path.relative_to(ROOT))))
    return {rule: sorted(rows) for rule, rows in found.items()}


def names() -> set[str]:
    """Every function in the sources: a mutant's test need not be named after a rule."""
    files = (path for top in SOURCES for path in (ROOT / top).rglob("*.rs") if "target" not in path.parts)
    return {name for path in files for name in re.findall(r"fn (\w+)", path.read_text())}


def rows(document: Path) -> list[tuple[str, str, str]]:
    """(rules, test, change) of the table in a document."""
    found = []
    for line in document.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0].startswith("C"):
            found.append((cells[0], cells[1].strip("`").split("::")[-1], f"{cells[2]}: {cells[3]}"))
    return found


def mutants() -> dict[int, list[tuple[str, str]]]:
    """Rule number -> (test, change)."""
    config = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    listed = []
    for table in config.get("table", []):
        listed += rows(ROOT / table["doc"])
    for row in config.get("mutant", []):
        change = f"`{Path(row['file']).name}`: `{short(row['old'])}` => `{short(row['new'])}`"
        listed.append((row["rule"], row["test"].split("::")[-1], change))
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for rules, test, change in listed:
        for number in re.findall(r"C(\d+)", rules):
            found[int(number)].append((test, change))
    return found


def short(text: str) -> str:
    """A change on one line, for a table."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= 90 else line[:87] + "..."


def page(proven: dict[int, list[tuple[str, str]]], noticed: dict[int, list[tuple[str, str]]]) -> str:
    """The document."""
    out = [
        "# Conformance",
        "",
        "Which test proves which rule of [contract.md](contract.md), and a change of the code that it was seen to notice. Written by",
        "`tests/conformance.py`; `make lint` fails when it is out of date. `make mutants` applies every change below, one at a",
        "time, in a copy of the tree, and expects the test beside it to fail. Tests of the contract suite run twice: in process over",
        "a memory store, and through the Rust client over a real server and a durable store.",
        "",
        "## By rule",
        "",
    ]
    for rule in sorted(proven):
        out += [f"### C{rule}", "", "| test | in |", "|---|---|"]
        out += [f"| `{name}` | `{file}` |" for name, file in proven[rule]]
        if rule in noticed:
            out += ["", "| a change it notices | by |", "|---|---|"]
            out += [f"| {change} | `{test}` |" for test, change in noticed[rule]]
        out.append("")
    out += ["## Clauses of later parts", "", "| rule | clause | part |", "|---|---|---|"]
    out += [f"| {rule} | {clause} | {part} |" for rule, clause, part in LATER]
    return "\n".join(out) + "\n"


def main() -> int:
    proven, noticed = tests(), mutants()
    text = page(proven, noticed)
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    problems = []
    if not PAGE.exists() or PAGE.read_text() != text:
        problems.append("docs/conformance.md is out of date: run tests/conformance.py")
    promised = {int(number) for number in RULE.findall((ROOT / "docs" / "contract.md").read_text())}
    problems += [f"C{rule} has no test that names it" for rule in sorted(promised - set(proven))]
    known = names()
    for rows_ in noticed.values():
        problems += [f"a mutant names {test}, which is no test" for test, _ in rows_ if test not in known]
    for problem in sorted(set(problems)):
        print(f"conformance: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
