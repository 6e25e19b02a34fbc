"""README and the pages it leads to are true."""

import re
import unittest

import tour
from server import ROOT


class Readme(unittest.TestCase):
    def test_the_tour_is_what_happens(self):
        text = tour.README.read_text()
        blocks = tour.BLOCK.findall(tour.MARKS.search(text)[0])
        self.assertGreaterEqual(len(blocks), 4)
        tour.play(text)

    def test_what_readme_shows_and_is_not_printed_is_noticed(self):
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["completed"], ["failed"])
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["one"], ["one", "two"])
        with self.assertRaises(tour.Mismatch):
            tour.fitting(["[...]", "three"], ["one", "two"])
        self.assertEqual(tour.fitting(["[...]", "took 2 s"], ["one", "took 3 s"]), ["[...]", "took 3 s"])

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
