#!/usr/bin/env python3
"""Writes docs/conformance.md: rule -> tests -> changes of the code that they notice, and fault -> tests.

The tests are read off the sources by their names (`c12_...`, `c21_b14_...`, `b54_...`), the changes
off tests/mutants.toml and the documents that it names. `--check` writes nothing and fails if the page
is out of date, if a rule of docs/contract.md has no test or no change, if a fault in scope has no
test, if a test's name almost names a rule, or if a mutant names a test that is none.
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
NAME = re.compile(r"(?:fn |def test_)((?:[bc]\d\d_)+\w+)")
# A test whose name looks as if it named a rule, and is not found by it.
MISNAMED = re.compile(r"(?:fn |def test_)([bc](?:\d|\d{3,})_\w+)")
RULE = re.compile(r"^- \*\*C(\d+)\*\*", re.MULTILINE)

# Clauses of rules in scope whose subject comes in a later part: C1-C64 are scheduled by parts A to I.
LATER = [
    ("C3, C10, C11, C40", "messages", "F"),
    ("C27, C31, C36, C41", "a shared store and replicas", "later than I"),
    ("C15", "capacity", "F"),
    ("C43", "adoption of an engine transcript ahead of ours", "G"),
    ("C54", "identities of sessions' own agents", "E"),
    ("C56", "records of refusals, how a call came, and why something happened", "E"),
    ("C58", "answers to questions and what a compaction is asked to keep, by their trust", "E"),
    ("C59", "origins in the audit record", "E"),
    ("C60", "budgets and request rates", "E"),
    ("C61", "retention", "E"),
]


# Kinds of faults from public reports that parts A and B are built against: what went wrong elsewhere.
FAULTS = {
    1: "a stream forgets what was emitted while its reader was away",
    4: "a resumed stream tells other kinds of events than before",
    5: "a client takes any closed connection for the end",
    6: "the state is older than an event that was seen",
    8: "a slow observer skips silently, or starves others",
    9: "a proxy that buffers or cuts idle streams leaves nothing to see",
    10: "half-closed connections keep their queues",
    12: "an abort by somebody who came later is not heard",
    14: "an abort is told as a normal end",
    15: "a run has no end once its caller vanished",
    16: "an accepted input is neither delivered nor told as lost",
    18: "an input to an agent that ends leaves no trace",
    20: "inputs during a compaction are lost",
    22: "a repeat starts a second run or sends twice",
    25: "a session that waits for somebody is listed as working, or twice",
    27: "a session is busy for ever",
    30: "a run that has settled is still listed as running",
    31: "open questions vanish at a restart, and answering them succeeds",
    33: "answered questions are asked again after a reconnect",
    34: "two writers have one session",
    36: "a lease follows the wall clock",
    38: "a limit of size is not the one that is told, or half of something is stored",
    41: "a text that is cut or odd makes a session unusable",
    43: "a name is not found beyond the first page",
    45: "a session goes on in another directory than its own",
    48: "a path or a link leads out of a session's directory",
    50: "a compaction that fails takes the transcript with it",
    52: "two processes append to one transcript",
    54: "a store cannot be opened after an abrupt stop",
    59: "an exit waits for connections that never finish",
    61: "a connection that ignores its end stays for ever",
}
# Faults of which a part, or all, comes later.
LATER_FAULTS = [
    ("B16, B18, B20, B38", "messages of the inbox", "F"),
    ("B34, B36, B52", "two servers on one store; until then a second one is refused, and old tokens are", "later than I"),
    ("B56", "the time to open a store that was written for long", "not scheduled"),
    ("B64", "origins in the audit record", "E"),
]


def sources() -> list[Path]:
    """The Rust files of tests and code, and the Python tests that look at the server from outside."""
    files = [path for top in SOURCES for kind in ("*.rs", "outside/*.py") for path in (ROOT / top).rglob(kind)]
    return sorted(path for path in files if "target" not in path.relative_to(ROOT).parts)


def tests(letter: str) -> dict[int, list[tuple[str, str]]]:
    """Number of a rule (`c`) or fault (`b`) -> (test, file), each name once per file."""
    found: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for path in sources():
        for name in NAME.findall(path.read_text()):
            for number in re.findall(rf"(?:^|_){letter}(\d\d)(?=_)", name):
                found[int(number)].add((name, str(path.relative_to(ROOT))))
    return {number: sorted(rows) for number, rows in found.items()}


def names() -> set[str]:
    """Every function in the sources: a mutant's test need not be named after a rule."""
    return {name for path in sources() for name in re.findall(r"fn (\w+)", path.read_text())}


def misnamed() -> list[str]:
    """Tests that are not found by the rule that they seem to name."""
    return sorted(name for path in sources() for name in MISNAMED.findall(path.read_text()))


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


Rows = dict[int, list[tuple[str, str]]]


def page(proven: Rows, noticed: Rows, provoked: Rows) -> str:
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
    out += ["", "## By fault", "", "Kinds of faults that were reported of other programs, and the tests that provoke them here.", ""]
    out += ["| fault | what went wrong | test | in |", "|---|---|---|---|"]
    for fault, wrong in FAULTS.items():
        out += [f"| B{fault:02} | {wrong} | `{name}` | `{file}` |" for name, file in provoked.get(fault, [])]
    out += ["", "## Faults of later parts", "", "| fault | of it | part |", "|---|---|---|"]
    out += [f"| {fault} | {of_it} | {part} |" for fault, of_it, part in LATER_FAULTS]
    return "\n".join(out) + "\n"


def main() -> int:
    proven, noticed, provoked = tests("c"), mutants(), tests("b")
    text = page(proven, noticed, provoked)
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    problems = []
    if not PAGE.exists() or PAGE.read_text() != text:
        problems.append("docs/conformance.md is out of date: run tests/conformance.py")
    promised = {int(number) for number in RULE.findall((ROOT / "docs" / "contract.md").read_text())}
    problems += [f"C{rule} has no test that names it" for rule in sorted(promised - set(proven))]
    problems += [f"C{rule} has no change of the code that a test of it notices" for rule in sorted(promised - set(noticed))]
    problems += [f"B{fault:02} is in scope and no test is named after it" for fault in FAULTS if fault not in provoked]
    problems += [f"{name} is found by no rule: rules have two digits" for name in misnamed()]
    known = names()
    for rows_ in noticed.values():
        problems += [f"a mutant names {test}, which is no test" for test, _ in rows_ if test not in known]
    for problem in sorted(set(problems)):
        print(f"conformance: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
