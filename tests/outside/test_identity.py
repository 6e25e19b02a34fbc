"""docs/identity.md: its recipes make what it says that they make."""

import re
import unittest

from server import CONFIG, ROOT, SESSIONCTL, Server, run

RECIPE = re.compile(r"(?s)```\n(openssl req .*?)```")


def recipes(page: str) -> list[str]:
    """The blocks of a page that begin with openssl."""
    return RECIPE.findall((ROOT / page).read_text())


class Certificates(unittest.TestCase):
    def test_c54_an_authority_of_ones_own_lets_in_who_shows_a_certificate_of_it_and_nobody_else(self):
        (of_server,), (of_clients,) = recipes("deploy/README.md"), recipes("docs/identity.md")
        with Server(config=CONFIG) as server:
            for recipe in [of_server, of_clients]:
                run("sh", "-ec", recipe, cwd=server.folder)
            server.stop()
            more = '\n[tls]\ncert_file = "tls.crt"\nkey_file = "tls.key"\n'
            more += 'client_ca_file = "clients.pem"\nclient_auth = "require"\n'
            server.config.write_text(CONFIG + more)
            server.start()
            port = server.address.rsplit(":", 1)[1]
            words = ["--address", f"https://localhost:{port}", "--data-dir", server.data_dir, "--tls-ca", "tls.crt"]
            asks = lambda *more: run(  # noqa: E731
                SESSIONCTL, *words, *more, "capabilities", "--agent", "scripted", cwd=server.folder, check=False
            )
            shown = asks("--tls-cert", "ci.pem", "--tls-key", "ci.key")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            refused = asks()
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("certificate", refused.stderr)


if __name__ == "__main__":
    unittest.main()
