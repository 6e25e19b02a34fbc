#!/usr/bin/env python3
"""Breaks the code on purpose, one place at a time, and expects a named test to notice.

The mutants are listed in tests/mutants.toml and in the tables of documents that it names. They are
applied in a copy of the tree with a target directory of its own; the tree itself is never touched.
For each the test must pass without the change and fail with it.

    MUTANTS=text tests/mutants.py    only rows whose rule, test or file contains the text
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "mutants.toml"
# A test that runs for longer has noticed: something it waits for never comes.
TEST_SECONDS = 120
BUILD_SECONDS = 1800
BINARIES = ["build", "--workspace", "--bins", "--features", "sessionplane-server/failpoints"]


@dataclass(frozen=True)
class Mutant:
    """One change, and the test that has to notice it."""

    rule: str
    test: str
    file: str
    old: str
    new: str
    run: tuple[str, ...]
    """Arguments of `cargo test` that select the test's target."""
    bins: bool
    """The test starts our binaries, so they are built first."""


def load() -> list[Mutant]:
    """All mutants: those of the file, then those of the documents it names."""
    with TABLE.open("rb") as file:
        config = tomllib.load(file)
    mutants = [
        Mutant(row["rule"], row["test"], row["file"], row["old"], row["new"], tuple(row["run"].split()), row.get("bins", False))
        for row in config.get("mutant", [])
    ]
    for table in config.get("table", []):
        mutants += document(table)
    return mutants


def document(table: dict[str, str]) -> list[Mutant]:
    """The rows `| rule | test | file | old => new |` of a Markdown document, if it is there."""
    path = ROOT / table["doc"]
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        # A pipe inside a cell is written as \|.
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4 or "=>" not in cells[3]:
            continue
        change = re.fullmatch(r"`(.+)` => (?:`(.*)`|\(nothing\))", cells[3])
        if change is None:
            sys.exit(f"{table['doc']}:{number}: expected `old` => `new`, found {cells[3]}")
        test, file = (cell.strip("`") for cell in cells[1:3])
        # A path without a directory lies where most of the table's files do.
        file = file if "/" in file else f"{table['files']}/{file}"
        run = tuple(table["run"].split())
        rows.append(Mutant(cells[0], test, file, change[1], change[2] or "", run, False))
    return rows


class Copy:
    """A copy of the tree with a target directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self.target = directory / "target"

    def fill(self) -> None:
        """Copies the files that git would, and the compiled dependencies."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            source, copy = ROOT / name, self.tree / name
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
        metadata = subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout
        found = re.search(r'"target_directory":"([^"]+)"', metadata)
        built = Path(found[1]) / "debug" if found else ROOT / "target" / "debug"
        # Dependencies compile alike in both; our own crates are compiled anew.
        for part in ("deps", "build", ".fingerprint"):
            if (built / part).is_dir():
                shutil.copytree(built / part, self.target / "debug" / part, ignore=ours)

    def cargo(self, arguments: list[str], seconds: int) -> tuple[int | None, str]:
        """Runs cargo in the copy; the status is none if it took too long."""
        verb, rest = arguments[0], arguments[1:]
        command = ["cargo", verb, "--target-dir", str(self.target), *rest]
        # A directory outside of any repository: no wrapper, hook or editor sees the copy.
        environment = os.environ | {"CARGO_TERM_COLOR": "never", "CARGO_INCREMENTAL": "1"}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.tree, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                # What it started goes with it, also when we are interrupted: one process group.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            return status, output.read()

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """Compiles and runs the mutant's test: `passed`, `failed`, `hung`, `broken` or `absent`."""
        builds = [BINARIES] if mutant.bins else []
        builds.append(["test", *mutant.run, "--no-run"])
        for build in builds:
            status, output = self.cargo(build, BUILD_SECONDS)
            if status != 0:
                return "broken", output
        status, output = self.cargo(["test", *mutant.run, "--", mutant.test], TEST_SECONDS)
        if status is None:
            return "hung", output
        ran = sum(int(count) for pair in re.findall(r"(\d+) passed; (\d+) failed", output) for count in pair)
        if ran == 0:
            return "absent", output
        return ("passed" if status == 0 else "failed"), output

    def replace(self, mutant: Mutant, text: str) -> None:
        path = self.tree / mutant.file
        path.write_text(text)


def ours(_directory: str, names: list[str]) -> set[str]:
    return {name for name in names if "sessionplane" in name or name.startswith(("sessiond", "sessionctl"))}


def examine(copy: Copy, mutant: Mutant, sound: set[tuple[str, ...]]) -> tuple[str, str]:
    """The verdict on one mutant, and what there is to read when it is not `caught`."""
    path = copy.tree / mutant.file
    original = path.read_text() if path.is_file() else ""
    if mutant.old not in original:
        return "STALE", f"{mutant.file} does not contain:\n{mutant.old}"
    key = (*mutant.run, mutant.test)
    if key not in sound:
        state, output = copy.judge(mutant)
        if state != "passed":
            return "UNSOUND", f"the unchanged code: {state}\n{output}"
        sound.add(key)
    try:
        copy.replace(mutant, original.replace(mutant.old, mutant.new, 1))
        state, output = copy.judge(mutant)
    finally:
        copy.replace(mutant, original)
    verdicts = {"passed": "MISSED", "failed": "caught", "hung": "caught", "broken": "BROKEN", "absent": "ABSENT"}
    return verdicts[state], output


def main() -> int:
    # However we are stopped, the copy and what runs in it are cleared away.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    selected = os.environ.get("MUTANTS", "")
    mutants = [m for m in load() if any(selected in text for text in (m.rule, m.test, m.file))]
    if not mutants:
        sys.exit(f"no mutant matches {selected!r}")
    counts: dict[str, int] = {}
    problems = []
    sound: set[tuple[str, ...]] = set()
    with tempfile.TemporaryDirectory(prefix="sessionplane-mutants-") as directory:
        copy = Copy(Path(directory))
        print(f"mutants: {len(mutants)}, in {directory}", flush=True)
        copy.fill()
        for number, mutant in enumerate(mutants, 1):
            verdict, output = examine(copy, mutant, sound)
            counts[verdict] = counts.get(verdict, 0) + 1
            print(f"{number:3} {verdict:8} {mutant.rule:10} {Path(mutant.file).name:20} {mutant.test}", flush=True)
            if verdict != "caught":
                problems.append((mutant, verdict, output))
    for mutant, verdict, output in problems:
        print(f"\n{verdict}: {mutant.rule} {mutant.file}: {mutant.old!r} => {mutant.new!r}")
        print("\n".join(output.splitlines()[-25:]))
    print(f"\nmutants: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
