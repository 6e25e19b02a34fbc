"""README and the pages it leads to are true."""

import os
import pty
import re
import tempfile
import unittest
from pathlib import Path

import tour
from server import ROOT, TARGET, clean_environment


def interrupted(*words: str, once: bytes, **environment: str) -> tuple[int, str]:
    """Runs a program on a terminal and presses Ctrl-C there once it has said something: how it ended, and all it said."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execvpe(words[0], words, clean_environment(**environment))
    said, pressed = b"", False
    try:
        # Linux tells by an error that nobody has the terminal any more.
        while piece := os.read(terminal, 65536):
            said += piece
            if once in said and not pressed:
                pressed = os.write(terminal, b"\x03") == 1
    except OSError:
        pass
    os.close(terminal)
    return os.waitpid(child, 0)[1], said.decode()


class Readme(unittest.TestCase):
    def test_the_tour_is_what_happens(self):
        text = tour.README.read_text()
        blocks = tour.BLOCK.findall(tour.MARKS.search(text)[0])
        self.assertGreaterEqual(len(blocks), 4)
        tour.play(text)

    def test_the_fleet_tour_is_what_happens(self):
        text = tour.FLEET.read_text()
        blocks = tour.BLOCK.findall(tour.MARKS.search(text)[0])
        self.assertGreaterEqual(len(blocks), 6)
        tour.play(text)

    def test_what_readme_shows_and_is_not_printed_is_noticed(self):
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["completed"], ["failed"])
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["one"], ["one", "two"])
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["[...]", "three"], ["one", "two"])
        self.assertEqual(tour.fitting(["[...]", "took 2 s"], ["one", "took 3 s"]), ["[...]", "took 3 s"])

    def test_a_server_of_make_run_that_is_stopped_is_no_failure_of_make(self):
        with tempfile.TemporaryDirectory() as folder:
            # What is built is tested; nothing is built here.
            cargo = Path(folder) / "cargo"
            cargo.write_text("#!/bin/sh\n")
            cargo.chmod(0o755)
            where = f"--listen 127.0.0.1:0 --data-dir {folder}/data"
            _, said = interrupted(
                "make", "run", f"ARGS={where}", once=b"stop it with Ctrl-C",
                PATH=f"{folder}:{os.environ['PATH']}", CARGO_TARGET_DIR=str(TARGET),
            )  # fmt: skip
        self.assertIn("stopped: ", said)
        self.assertNotIn("***", said)

    def test_it_is_short(self):
        self.assertLess(len(tour.README.read_text().splitlines()), 200)

    def test_every_page_is_in_the_index_and_every_link_leads_somewhere(self):
        pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "deploy/README.md", ROOT / "examples/README.md"]
        pages += sorted((ROOT / "docs").glob("*.md"))
        for page in pages:
            for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page.relative_to(ROOT)}: {link}")
        index = (ROOT / "docs/README.md").read_text()
        for page in sorted((ROOT / "docs").glob("*.md")):
            if page.name != "README.md":
                self.assertIn(f"]({page.name})", index)


if __name__ == "__main__":
    unittest.main()
