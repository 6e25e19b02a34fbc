"""Runs the commands of a page's tour, README's or another's, and compares what the page shows with what they print.

Between the marks `<!-- tour -->` and `<!-- /tour -->` each block of kind `console` is a terminal: lines that begin
with `$ ` are commands, what follows is their output. A line `[...]` stands for any lines. Each
command has to come to its end, so that all of them can be pasted at once. A block of kind `toml` is a file, called as its first line says. `tour.py --write [PAGE]` puts what is printed now in
place of what the page shows: whole outputs where nothing is left out, else the same lines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from server import DEADLINE, ROOT, SESSIONCTL, Server, clean_environment, wait_until

README = ROOT / "README.md"
FLEET = ROOT / "docs" / "tour-fleet.md"
MARKS = re.compile(r"(?s)(?<=<!-- tour -->).*?(?=<!-- /tour -->)")
BLOCK = re.compile(r"(?s)(?<=```console\n).*?(?=```)")
FILE = re.compile(r"(?s)```toml\n# (\S+)\n(.*?)```")
# The folder of a tour that needs one, as its page calls it.
FOLDER, IN_HOME = "/home/you/fleet", "~/fleet"
GAP = "[...]"
DEFAULT = "127.0.0.1:50051"


class Mismatch(Exception):
    """A page shows what is not so."""


def normal(line: str) -> str:
    """A line without what differs from run to run."""
    line = re.sub(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "ID", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line)
    line = re.sub(r"\b\d+(\.\d+)?[smhd]\b", "AGE", line)
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "N", line)).strip()


def fitting(shown: list[str], printed: list[str]) -> list[str]:
    """What is printed, left out where `shown` leaves out; fails if that does not fit."""
    if not shown:
        return printed
    found, at, gap = [], 0, False
    for line in shown:
        if line.strip() == GAP:
            gap = True
            found.append(GAP)
            continue
        until = len(printed) if gap else at + 1
        hit = next((n for n in range(at, until) if n < len(printed) and normal(printed[n]) == normal(line)), None)
        if hit is None:
            raise Mismatch(f"the page shows\n  {line}\nand what is printed from there on is\n" + "\n".join(printed[at:]))
        found.append(printed[hit])
        at, gap = hit + 1, False
    if not gap and at != len(printed):
        raise Mismatch("the page does not show\n" + "\n".join(printed[at:]))
    return found


class Terminal:
    """Plays the blocks, against one server and its successors."""

    def __init__(self) -> None:
        self.server: Server | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="sessionplane-tour-")).resolve()

    def keep(self, path: str, text: str) -> None:
        """A file that the page tells to write."""
        self.here(path).write_text(text.replace(FOLDER, str(self.folder)))

    def here(self, path: str) -> Path:
        return Path(path.replace(IN_HOME, str(self.folder)))

    def play(self, block: str) -> str:
        """One block, with what its commands print now."""
        commands: list[tuple[str, list[str]]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        lines = []
        for command, shown in commands:
            try:
                lines += [f"$ {command}", *fitting(shown, self.run(command))]
            except Mismatch as problem:
                raise Mismatch(f"$ {command}\n{problem}") from None
        return "".join(line + "\n" for line in lines)

    def run(self, command: str) -> list[str]:
        match command.split():
            case ["make", "run"]:
                return self.serve("")
            case ["target/debug/sessiond", "--config", path]:
                return self.serve(self.here(path).read_text())
            case ["export", _]:
                # The token is found in another way here.
                return []
            case ["kill", "-KILL", *_]:
                self.server.kill()
                return []
            case [*_, "&"]:
                raise Mismatch("what follows it would race with it")
        ended = subprocess.run(timeout=DEADLINE, stdout=subprocess.PIPE, **self.options(command))
        return self.lines(ended.stdout)

    def serve(self, config: str) -> list[str]:
        before = len(self.server.log()) if self.server else 0
        if self.server:
            self.server.start()
        else:
            self.server = Server(config=config, cwd=ROOT)
        wait_until(lambda: "stop it with" in self.server.log()[before:], "the server has said how to stop it")
        return self.lines(self.server.log()[before:])

    def options(self, command: str) -> dict:
        command = command.replace("target/debug/sessionctl", str(SESSIONCTL)).replace(IN_HOME, str(self.folder))
        environment = clean_environment(NO_COLOR="1", GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        if self.server:
            token = self.server.data_dir / "owner.token"
            environment |= {"SESSIONPLANE_ADDRESS": self.server.address, "SESSIONPLANE_TOKEN_FILE": str(token)}
        words = ["bash", "-c", "exec " + command]
        return {"args": words, "cwd": ROOT, "env": environment, "text": True, "stderr": subprocess.STDOUT}

    def lines(self, text: str) -> list[str]:
        """As a terminal of somebody with the default settings would show them."""
        # What is one line with the program's short name may be two with its whole path.
        text = re.sub(r" \\\n +", " ", text)
        text = text.replace(str(SESSIONCTL), "target/debug/sessionctl")
        text = text.replace(str(self.folder), FOLDER)
        if not self.server:
            return [line.rstrip() for line in text.splitlines()]
        text = text.replace(self.server.address, DEFAULT).replace(str(ROOT), "/path/to/sessionplane")
        text = text.replace(f" --data-dir {self.server.data_dir}", "").replace(f" --address http://{DEFAULT}", "")
        text = text.replace(str(self.server.data_dir), "~/.local/state/sessionplane")
        return [line.rstrip() for line in text.splitlines()]

    def close(self) -> None:
        if self.server:
            self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def play(text: str) -> str:
    """A page, with what its tour prints now."""
    terminal = Terminal()
    try:
        for path, file in FILE.findall(text):
            terminal.keep(path, file)
        replayed = MARKS.sub(lambda tour: BLOCK.sub(lambda block: terminal.play(block[0]), tour[0]), text)
    finally:
        terminal.close()
    return replayed


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--write", *pages]:
            for page in map(Path, pages or [README]):
                page.write_text(play(page.read_text()))
        case _:
            sys.exit(__doc__)
