#!/usr/bin/env python3
"""Breaks the code on purpose, one place at a time, and expects a named test to notice.

The mutants are listed in tests/mutants.toml and in the tables of documents that it names. They are
applied in copies of the tree with target directories of their own; the tree itself is never touched.
First all named tests must pass without a change; then, for each row, its test must fail with it.

    tests/mutants.py TEXT...       only rows whose rule, test or file contains one of the texts
    MUTANTS=TEXT make mutants      the same
    tests/mutants.py --check       whether each row's code is still there
"""

from __future__ import annotations

import argparse
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "mutants.toml"
# A test that runs for longer has noticed: something it waits for never comes. All tests of a target
# together pass within it when nothing is broken, so one of them alone is never near it.
TEST_SECONDS = 120
SOUND_SECONDS = 600
BUILD_SECONDS = 1800
BINARIES = ["build", "--workspace", "--bins", "--features", "sessionplane-server/failpoints"]
# Nobody reads a backtrace here: our own crates are linked without debug information, the
# dependencies stay as they are compiled already.
PROFILE = ["--config", "profile.dev.debug=0", "--config", 'profile.dev.package."*".debug="line-tables-only"']
# What `make soak` sets for the tests. A mutant is judged at the small counts.
COUNTS = (
    "SEEDS",
    "PROPTEST_CASES",
    "SESSIONPLANE_CRASHES",
    "SESSIONPLANE_POWER_LOSSES",
    "SESSIONPLANE_DAMAGES",
    "SESSIONPLANE_DAMAGED_PLACES",
    "SESSIONPLANE_DORMANT",
    "SESSIONPLANE_UPDATES",
    "SESSIONPLANE_SEEDS",
    "SESSIONPLANE_READS",
    "SESSIONPLANE_OBSERVERS",
    "SESSIONPLANE_FLAPPING",
    "SESSIONPLANE_SETTLED",
)


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
        command = ["cargo", verb, "--target-dir", str(self.target), *PROFILE, *rest]
        environment = {name: value for name, value in os.environ.items() if name not in COUNTS}
        environment |= {"CARGO_TERM_COLOR": "never", "CARGO_INCREMENTAL": "1", "RUST_BACKTRACE": "0"}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.tree, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            running.add(process)
            if stopping.is_set():
                end(process)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                # What it started goes with it, also when we are interrupted: one process group.
                end(process)
                running.discard(process)
            output.seek(0)
            return status, output.read()

    def build(self, run: tuple[str, ...], bins: bool) -> tuple[bool, str]:
        """Compiles a test target, and our binaries if it starts them."""
        output = ""
        for build in ([BINARIES] if bins else []) + [["test", *run, "--no-run"]]:
            status, output = self.cargo(build, BUILD_SECONDS)
            if status != 0:
                return False, output
        return True, output

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """Compiles and runs the mutant's test: `passed`, `failed`, `hung`, `broken` or `absent`."""
        built, output = self.build(mutant.run, mutant.bins)
        if not built:
            return "broken", output
        status, output = self.cargo(["test", *mutant.run, "--", mutant.test], TEST_SECONDS)
        if status is None:
            return "hung", output
        ran = sum(int(count) for pair in re.findall(r"(\d+) passed; (\d+) failed", output) for count in pair)
        if ran == 0:
            # A process that a signal ended says nothing of its tests: something was noticed.
            return ("failed" if status and "(signal: " in output else "absent"), output
        return ("passed" if status == 0 else "failed"), output

    def unsound(self, run: tuple[str, ...], bins: bool, tests: set[str]) -> dict[str, str]:
        """The tests of a target that do not pass on the unchanged code, and what they said."""
        built, output = self.build(run, bins)
        if not built:
            return dict.fromkeys(tests, f"the unchanged code does not compile\n{output}")
        _, output = self.cargo(["test", *run, "--", *sorted(tests)], SOUND_SECONDS)
        # A name stands for every test that contains it, as it does for cargo.
        lines = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (\w+)", output, re.MULTILINE)
        return {
            test: f"the unchanged code does not pass it\n{output}"
            for test in tests
            if {state for name, state in lines if test in name} != {"ok"}
        }

    def apply(self, mutant: Mutant) -> tuple[str, str]:
        """The verdict on one mutant, and what there is to read when it is not `caught`."""
        path = self.tree / mutant.file
        original = path.read_text() if path.is_file() else ""
        if mutant.old not in original:
            return "STALE", f"{mutant.file} does not contain:\n{mutant.old}"
        try:
            path.write_text(original.replace(mutant.old, mutant.new, 1))
            state, output = self.judge(mutant)
        finally:
            path.write_text(original)
        verdicts = {"passed": "MISSED", "failed": "caught", "hung": "caught", "broken": "BROKEN", "absent": "ABSENT"}
        return verdicts[state], output


running: set[subprocess.Popen[str]] = set()
"""What our workers have started."""
stopping = threading.Event()
"""We were interrupted: nothing is started, and what was found is not told."""


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ours(_directory: str, names: list[str]) -> set[str]:
    return {name for name in names if "sessionplane" in name or name.startswith(("sessiond", "sessionctl"))}


def soundness(copy: Copy, mutants: list[Mutant]) -> dict[tuple[str, ...], str]:
    """The rows' tests that do not pass on the unchanged code, by target and name."""
    faults: dict[tuple[str, ...], str] = {}
    for run in dict.fromkeys(mutant.run for mutant in mutants):
        rows = [mutant for mutant in mutants if mutant.run == run]
        found = copy.unsound(run, any(row.bins for row in rows), {row.test for row in rows})
        print(f"mutants: {' '.join(run)}: {len(rows)} rows, {len(found)} tests do not pass unchanged", flush=True)
        faults |= {(*run, test): text for test, text in found.items()}
    return faults


class Work:
    """The rows that are to be judged, and what became of those that were."""

    def __init__(self, mutants: list[Mutant], faults: dict[tuple[str, ...], str]) -> None:
        self.rows: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        for mutant in mutants:
            self.rows.put(mutant)
        self.faults = faults
        self.numbers = itertools.count(1)
        self.counts: dict[str, int] = {}
        self.problems: list[tuple[Mutant, str, str]] = []
        self.lock = threading.Lock()

    def run(self, copy: Copy) -> None:
        """Judges rows in a copy until none is left."""
        while not stopping.is_set():
            try:
                mutant = self.rows.get_nowait()
            except queue.Empty:
                return
            fault = self.faults.get((*mutant.run, mutant.test))
            self.note(mutant, *(copy.apply(mutant) if fault is None else ("UNSOUND", fault)))

    def note(self, mutant: Mutant, verdict: str, output: str) -> None:
        if stopping.is_set():
            return
        with self.lock:
            self.counts[verdict] = self.counts.get(verdict, 0) + 1
            print(f"{next(self.numbers):3} {verdict:8} {mutant.rule:10} {Path(mutant.file).name:20} {mutant.test}", flush=True)
            if verdict != "caught":
                self.problems.append((mutant, verdict, output))


def examine(mutants: list[Mutant], directory: Path, workers: int) -> Work:
    """Judges all rows, in as many copies as there are workers."""
    copies = [Copy(directory / str(number)) for number in range(workers)]
    for copy in copies:
        copy.fill()
    work = Work(mutants, soundness(copies[0], mutants))
    threads = [threading.Thread(target=work.run, args=(copy,), daemon=True) for copy in copies]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        # If we are interrupted, what the workers started ends before their copies are cleared away.
        stopping.set()
        for process in list(running):
            end(process)
    return work


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Without TEXT all rows are judged, which takes most of an hour.")
    parser.add_argument("text", nargs="*", default=[os.environ.get("MUTANTS", "")], help="only rows whose rule, test or file contains it")
    parser.add_argument("--workers", type=int, default=int(os.environ.get("WORKERS", "2")), help="copies that are tested at once (default: 2)")
    parser.add_argument("--list", action="store_true", help="print the rows and judge none")
    parser.add_argument("--check", action="store_true", help="only see whether each row's code is there")
    return parser.parse_args()


def stale(mutants: list[Mutant]) -> int:
    """Tells which rows quote code that is there no more."""
    gone = [mutant for mutant in mutants if mutant.old not in (ROOT / mutant.file).read_text()]
    for mutant in gone:
        print(f"STALE {mutant.rule} {mutant.test}: {mutant.file} has no {mutant.old!r}")
    print(f"mutants: {len(mutants)} rows, {len(gone)} of them stale")
    return 1 if gone else 0


def main() -> int:
    asked = arguments()
    # However we are stopped, the copies and what runs in them are cleared away.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    mutants = [m for m in load() if any(word in text for word in asked.text for text in (m.rule, m.test, m.file))]
    if not mutants:
        sys.exit(f"no mutant matches {asked.text!r}")
    if asked.check:
        return stale(mutants)
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.rule:10} {mutant.file}: {mutant.test}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sessionplane-mutants-", ignore_cleanup_errors=True) as directory:
        print(f"mutants: {len(mutants)}, in {directory}", flush=True)
        work = examine(mutants, Path(directory), asked.workers)
    for mutant, verdict, output in work.problems:
        print(f"\n{verdict}: {mutant.rule} {mutant.file}: {mutant.old!r} => {mutant.new!r}")
        print("\n".join(output.splitlines()[-25:]))
    print(f"\nmutants: {', '.join(f'{count} {verdict}' for verdict, count in sorted(work.counts.items()))}")
    judged = sum(work.counts.values())
    if judged != len(mutants):
        sys.exit(f"{len(mutants) - judged} rows were not judged: a worker failed, see above")
    return 1 if work.problems else 0


if __name__ == "__main__":
    sys.exit(main())
