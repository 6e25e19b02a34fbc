"""The deployment files: each is what its own checker accepts, all say the same, and what they say is so."""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

import yaml

from server import ROOT, SESSIOND, TOOLS, VENV, Server, clean_environment, run, wait_until

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
UNIT = (DEPLOY / "systemd" / "sessiond.service").read_text()
COMPOSE = DEPLOY / "compose" / "compose.yaml"
MANIFEST = DEPLOY / "kubernetes" / "sessionplane.yaml"
CONFIG = tomllib.loads((DEPLOY / "sessiond.toml").read_text())
README = (DEPLOY / "README.md").read_text()
USER = "65532"


@functools.cache
def compose() -> dict:
    """compose.yaml as the parser of compose itself understands it."""
    return json.loads(run(TOOLS / "compose-go", "-format", "json", COMPOSE).stdout)


@functools.cache
def objects() -> dict[str, dict]:
    return {found["kind"]: found for found in yaml.safe_load_all(MANIFEST.read_text())}


def pod() -> dict:
    return objects()["StatefulSet"]["spec"]["template"]["spec"]


@functools.cache
def static_binary() -> Path:
    """Built by the script that the Dockerfile runs, without optimization."""
    # It compiles everything anew, which takes minutes on a busy machine.
    return Path(run(DEPLOY / "static.sh", env=os.environ, timeout=1200).stdout.strip()) / "sessiond"


def unit(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


class Checkers(unittest.TestCase):
    def test_the_dockerfile_has_no_finding(self):
        run(VENV / "hadolint", "--failure-threshold", "style", DEPLOY / "Dockerfile")

    def test_the_manifest_fits_the_strict_schemas(self):
        for version in ["1.29", "1.34", "1.37"]:
            run(VENV / "kubernetes-validate", "--strict", "-k", version, MANIFEST)

    def test_compose_understands_its_file(self):
        self.assertEqual(list(compose()["services"]), ["sessiond"])

    def test_systemd_understands_the_unit_and_calls_it_well_hardened(self):
        with tempfile.TemporaryDirectory() as folder:
            # The binary is not installed here: the unit is checked with where it is.
            text = UNIT.replace("/usr/bin/sessiond", str(SESSIOND))
            path = Path(folder) / "sessiond.service"
            path.write_text(text)
            said = run("systemd-analyze", "verify", "--man=no", path)
            self.assertNotIn("sessiond.service:", said.stdout + said.stderr)
            run("systemd-analyze", "security", "--offline=yes", "--threshold=20", path)


class Agreement(unittest.TestCase):
    """One value in many files is one value."""

    def test_ports_are_the_configured_ones_everywhere(self):
        calls, health = (int(CONFIG[key].rsplit(":", 1)[1]) for key in ("listen", "health_listen"))
        self.assertIn(f"\nEXPOSE {calls} {health}\n", DOCKERFILE)
        ports = compose()["services"]["sessiond"]["ports"]
        self.assertEqual([(port["target"], port["published"]) for port in ports], [(calls, str(calls))])
        self.assertEqual({port["host_ip"] for port in ports}, {"127.0.0.1"})
        container = pod()["containers"][0]
        named = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(named, {"grpc": calls, "health": health})
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
            self.assertEqual(container[probe]["grpc"]["port"], health, probe)
        for service in (found for found in yaml.safe_load_all(MANIFEST.read_text()) if found["kind"] == "Service"):
            (port,) = service["spec"]["ports"]
            self.assertEqual((port["port"], named[port["targetPort"]], port["appProtocol"]), (calls, calls, "grpc"))
        (rule,) = objects()["NetworkPolicy"]["spec"]["ingress"]
        self.assertEqual([port["port"] for port in rule["ports"]], [calls])

    def test_the_manifest_holds_the_configuration_itself(self):
        held = objects()["ConfigMap"]["data"]["sessiond.toml"]
        self.assertEqual(held, (DEPLOY / "sessiond.toml").read_text())

    def test_names_and_labels_meet(self):
        labels = {"app.kubernetes.io/name": "sessionplane"}
        stateful = objects()["StatefulSet"]["spec"]
        self.assertEqual(stateful["replicas"], 1)
        self.assertEqual(stateful["selector"]["matchLabels"], labels)
        self.assertEqual(stateful["template"]["metadata"]["labels"], labels)
        services = {
            found["metadata"]["name"]: found["spec"]
            for found in yaml.safe_load_all(MANIFEST.read_text())
            if found["kind"] == "Service"
        }
        self.assertEqual(services[stateful["serviceName"]]["clusterIP"], "None")
        self.assertEqual([spec["selector"] for spec in services.values()], [labels, labels])
        for kind, key in [("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")]:
            self.assertEqual(objects()[kind]["spec"][key]["matchLabels"], labels)
        (claim,) = stateful["volumeClaimTemplates"]
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOnce"])
        volumes = {volume["name"] for volume in pod()["volumes"]} | {claim["metadata"]["name"]}
        self.assertEqual({mount["name"] for mount in pod()["containers"][0]["volumeMounts"]}, volumes)

    def test_paths_are_the_configured_ones_everywhere(self):
        data = Path(CONFIG["data_dir"])
        tls = Path(CONFIG["tls"]["cert_file"]).parent
        workspace = CONFIG["workspaces"]["main"]["root"]
        config = "/etc/sessionplane/sessiond.toml"
        wanted = {str(data.parent), str(tls), workspace, config}
        for mounts in [
            {mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]},
            {mount["target"] for mount in compose()["services"]["sessiond"]["volumes"]},
        ]:
            self.assertEqual(mounts, wanted)
        self.assertIn(f'VOLUME ["{data.parent}"]', DOCKERFILE)
        self.assertIn(f"WORKDIR {workspace}\n", DOCKERFILE)
        self.assertEqual(Path(CONFIG["tls"]["key_file"]).parent, tls)
        self.assertIn(f"SESSIONPLANE_DATA_DIR={data} ", DOCKERFILE)
        self.assertIn(f"SESSIONPLANE_CONFIG={config}\n", DOCKERFILE)
        # A secret of type kubernetes.io/tls has these two names, and no others.
        names = {Path(CONFIG["tls"][key]).name for key in ("cert_file", "key_file")}
        self.assertEqual(names, {"tls.crt", "tls.key"})
        (state,) = unit("StateDirectory")
        self.assertIn(f"SESSIONPLANE_DATA_DIR=/var/lib/{state}", unit("Environment"))
        self.assertIn(f"SESSIONPLANE_CONFIG={config}", unit("Environment"))

    def test_nobody_is_root_and_nothing_but_the_volume_is_written(self):
        self.assertIn(f"\nUSER {USER}:{USER}\n", DOCKERFILE)
        self.assertEqual(set(re.findall(r"--chown=(\S+)", DOCKERFILE)), {f"{USER}:{USER}"})
        service = compose()["services"]["sessiond"]
        self.assertEqual((service["user"], service["read_only"], service["cap_drop"]), (f"{USER}:{USER}", True, ["ALL"]))
        context, container = pod()["securityContext"], pod()["containers"][0]["securityContext"]
        self.assertTrue(context["runAsNonRoot"])
        self.assertEqual({str(context[key]) for key in ("runAsUser", "runAsGroup", "fsGroup")}, {USER})
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertTrue(container["readOnlyRootFilesystem"])
        self.assertFalse(container["allowPrivilegeEscalation"])
        self.assertEqual(container["capabilities"], {"drop": ["ALL"]})
        (user,) = unit("User")
        self.assertEqual((unit("DynamicUser"), unit("ProtectSystem")), ([], ["strict"]))
        self.assertRegex(README, rf"(?m)^useradd --system .* {user}$")
        self.assertEqual(set(re.findall(r"sudo -u (\w+)", README)), {user})

    def test_who_stops_the_server_waits_longer_than_it_takes(self):
        graces = {
            pod()["terminationGracePeriodSeconds"],
            int(unit("TimeoutStopSec")[0]),
            {"60s": 60, "1m0s": 60}.get(compose()["services"]["sessiond"]["stop_grace_period"], 0),
        }
        self.assertEqual(graces, {60})

    def test_the_image_is_the_same_everywhere_and_of_this_version(self):
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        self.assertEqual(pod()["containers"][0]["image"], f"sessionplane:{version}")
        self.assertEqual(compose()["services"]["sessiond"]["image"], f"sessionplane:{version}")
        self.assertIn(f"ARG VERSION={version}\n", DOCKERFILE)


class Binary(unittest.TestCase):
    """What the files say of the binary is so."""

    def test_flags_commands_and_variables_are_the_binarys_own(self):
        usage = run(SESSIOND, "--help").stdout
        commands = [json.loads(words) for words in re.findall(r"^(?:ENTRYPOINT|    CMD) (\[.*\])$", DOCKERFILE, re.MULTILINE)]
        commands.append(compose()["services"]["sessiond"]["healthcheck"]["test"][1:])
        commands += [line.split() for line in unit("ExecStart")]
        self.assertEqual(len(commands), 4)
        for program, *words in commands:
            self.assertEqual(program, "/usr/bin/sessiond")
            for word in words:
                self.assertRegex(usage, rf"(?m)^ +{re.escape(word)}\b", f"{word} of {program} {words}")
        texts = [path.read_text() for path in sorted(DEPLOY.rglob("*")) if path.is_file()]
        variables = {name for text in texts for name in re.findall(r"SESSIONPLANE_[A-Z_]+", text)}
        self.assertGreaterEqual(len(variables), 2)
        clients = run(SESSIOND.with_name("sessionctl"), "--help").stdout
        help_text = re.sub(r"\s+", " ", usage + clients)
        for name in variables:
            told = (f"[env: {name}=", f"env {name}]")
            self.assertTrue(any(words in help_text for words in told), f"{name} is no variable of the binaries")

    def test_the_static_binary_starts_from_nothing_as_nobody_and_stops_in_time(self):
        binary = static_binary()
        header = run("readelf", "--program-headers", "--dynamic", binary).stdout
        self.assertNotIn("INTERP", header)
        self.assertNotIn("NEEDED", header)
        with Image(binary) as image:
            image.start()
            health = image.run("/usr/bin/sessiond", "health")
            self.assertEqual(health.returncode, 0, health.stderr + image.log())
            self.assertRegex(health.stdout, r"^127\.0\.0\.1:\d+ is SERVING$")
            data = image.folder / "var/lib/sessionplane/data"
            self.assertEqual({str(path.owner_id) for path in owners(data)}, {USER})
            self.assertEqual(data.stat().st_mode & 0o777, 0o700)
            image.check_calls(self)
            image.process.terminate()
            self.assertEqual(image.process.wait(60), 0, image.log())

    def test_no_call_of_the_system_is_outside_of_what_the_unit_allows(self):
        allowed = {name for line in unit("SystemCallFilter") for name in filter_of(line)} - {
            name for line in unit("SystemCallFilter") if line.startswith("~") for name in filter_of(line[1:])
        } | set(unit("SystemCallFilter")[-1].split())
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace"
            with Traced(trace) as server:
                server.ctl("invoke", "--new", "first", 'say "hello"')
                self.assertEqual(server.ctl("state", "first").returncode, 0)
                server.stop_traced()
            used = set(re.findall(r"^(?:\d+ +)?(\w+)\(", trace.read_text(), re.MULTILINE))
        self.assertIn("sendto", used, "it was traced")
        self.assertEqual(used - allowed - {"execve"}, set())


class ServersUser(unittest.TestCase):
    """What is in the data directory is of the server's user, who is nobody else."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="sessionplane-user-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.folder.chmod(0o755)
        # Where it was built, others may not be able to enter.
        cls.binary = Path(shutil.copy2(SESSIOND, cls.folder))
        cls.config = cls.folder / "sessiond.toml"
        principal = '[identity.principals.ci]\nkind = "service"\n'
        cls.config.write_text((DEPLOY / "systemd" / "sessiond.toml").read_text() + principal)
        with Server() as server:
            server.stop()
            cls.backup = cls.folder / "backup.jsonl"
            run(SESSIOND, "--data-dir", server.data_dir, "store", "backup", "--to", cls.backup)
        cls.backup.chmod(0o644)

    def directory(self, within: Path) -> Path:
        path = within / "data"
        path.mkdir(0o700)
        os.chown(path, int(USER), int(USER))
        self.addCleanup(shutil.rmtree, path)
        return path

    def sessiond(self, data_dir: Path, *words: object, user: str = USER):
        who = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return run(*who, self.binary, "--config", self.config, "--data-dir", data_dir, *words, check=False)

    def test_root_is_sent_to_the_servers_user_and_that_one_can_do_it(self):
        data = self.directory(self.folder)
        create = ("token", "create", "--principal", "ci")
        for words in [create, ("token", "revoke", "00000000"), ("store", "restore", self.backup), ("store", "verify"), ("store", "export", "--whole")]:
            refused = self.sessiond(data, *words, user="0")
            self.assertIn(f"sudo -u '#{USER}' sessiond {words[0]}", refused.stderr)
            self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(list(data.iterdir()), [])
        restored = self.sessiond(data, "store", "restore", self.backup)
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertNotIn("chown", restored.stderr)
        made = self.sessiond(data, *create)
        self.assertRegex(made.stdout, r"^sp_\w+$", made.stderr)
        self.assertEqual({str(path.owner_id) for path in owners(data)}, {USER})

    def test_root_is_told_that_what_it_restores_is_its_own(self):
        data = self.folder / "of-root"
        restored = self.sessiond(data, "store", "restore", self.backup, user="0")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertIn(f"chown -R USER: {data}", restored.stderr)

    def test_who_may_not_enter_is_told_so(self):
        # As systemd lays out the directory of a dynamic user, who enters it in the unit alone.
        private = self.folder / "private"
        private.mkdir(0o700)
        self.directory(private)
        link = self.folder / "link"
        link.symlink_to("private/data")
        for words in [("token", "create", "--principal", "ci"), ("token", "list"), ("store", "restore", self.backup), ()]:
            refused = self.sessiond(link, *words)
            self.assertIn("Permission denied", refused.stderr, words)
            self.assertNotEqual(refused.returncode, 0)

    def test_a_backup_replaces_no_file(self):
        data = self.directory(self.folder)
        self.assertEqual(self.sessiond(data, "store", "restore", self.backup).returncode, 0)
        refused = self.sessiond(data, "store", "backup", "--to", self.backup)
        self.assertIn(f"{self.backup} is there already", refused.stderr)


def filter_of(line: str) -> set[str]:
    """The system calls of a filter's line, its groups resolved by systemd itself."""
    found = set()
    for name in line.lstrip("~").split():
        if not name.startswith("@"):
            found.add(name)
            continue
        for member in run("systemd-analyze", "syscall-filter", name).stdout.splitlines()[1:]:
            member = member.split("#")[0].strip()
            found |= filter_of(member) if member else set()
    return found


class Traced(Server):
    """A server all of whose system calls are written down."""

    def __init__(self, trace: Path):
        self.trace = trace
        wrapper = trace.with_name("traced")
        wrapper.write_text(f'#!/bin/sh\nexec strace -f -qq -o {trace} -e signal=none {SESSIOND} "$@"\n')
        wrapper.chmod(0o755)
        super().__init__(program=wrapper)

    def stop_traced(self) -> None:
        os.kill(self.ready["pid"], 15)
        self.process.wait(60)


class Owned:
    def __init__(self, path: Path):
        self.owner_id = path.lstat().st_uid


def owners(folder: Path) -> list[Owned]:
    return [Owned(folder)] + [Owned(path) for path in folder.rglob("*")]


class Image:
    """The image as the Dockerfile lays it out, in a folder that a process takes for the root."""

    def __init__(self, binary: Path):
        self.folder = Path(tempfile.mkdtemp(prefix="sessionplane-image-"))
        self.folder.chmod(0o755)
        for folder in ["usr/bin", "etc/sessionplane/tls", "var/lib/sessionplane", "workspace"]:
            (self.folder / folder).mkdir(parents=True)
        for folder in ["var/lib/sessionplane", "workspace"]:
            os.chown(self.folder / folder, int(USER), int(USER))
        shutil.copy2(binary, self.folder / "usr/bin/sessiond")
        (self.folder / "workspace/README").write_text("A workspace.\n")
        tls = self.folder / "etc/sessionplane/tls"
        certificate(tls)
        os.chown(tls / "tls.key", 0, int(USER))
        # Ports that others may have taken are the one thing that is changed.
        config = (DEPLOY / "sessiond.toml").read_text()
        self.calls, self.health = free_port(), free_port()
        config = config.replace(":50051", f":{self.calls}").replace(":50052", f":{self.health}")
        (self.folder / "etc/sessionplane/sessiond.toml").write_text(config)

    def words(self, *words: str) -> list[str]:
        return ["chroot", f"--userspec={USER}:{USER}", "--groups=", str(self.folder), *words]

    def environment(self) -> dict[str, str]:
        image = dict(re.findall(r"(SESSIONPLANE_\w+)=(\S+)", DOCKERFILE))
        return clean_environment(**image)

    def start(self) -> None:
        (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
        with (self.folder.with_suffix(".log")).open("w") as log:
            self.process = subprocess.Popen(
                self.words(*json.loads(entry)), env=self.environment(), stdout=log, stderr=log
            )
        healthy = lambda: self.run("/usr/bin/sessiond", "health").returncode == 0  # noqa: E731
        wait_until(lambda: healthy() or self.process.poll() is not None, "it is healthy")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(*self.words(*words), check=False, env=self.environment())

    def log(self) -> str:
        return self.folder.with_suffix(".log").read_text()

    def check_calls(self, test: unittest.TestCase) -> None:
        """The port of calls takes TLS and a token, and nothing without."""
        token = (self.folder / "var/lib/sessionplane/data/owner.token").read_text().strip()
        authority = self.folder / "etc/sessionplane/tls/tls.crt"
        where = f"localhost:{self.calls}"
        words = [TOOLS / "grpcurl", "-cacert", authority, "-H", f"authorization: Bearer {token}"]
        test.assertIn("sessionplane.v1.Invoke", run(*words, where, "list").stdout)
        self.refused(test, "-cacert", authority, where, "list")
        ctl = [SESSIOND.with_name("sessionctl"), "--address", f"https://{where}"]
        ctl += ["--token-file", self.folder / "var/lib/sessionplane/data/owner.token"]
        run(*ctl, "--tls-ca", authority, "capabilities", "--agent", "demo")
        untrusted = run(*ctl, "capabilities", "--agent", "demo", check=False)
        test.assertIn("an authority that is not trusted here", untrusted.stderr)
        # A principal's token is made as deploy/README.md says, beside the server that runs.
        (command,) = set(re.findall(r"(?:-- |exec sessiond )(/usr/bin/sessiond token .*)$", README, re.MULTILINE))
        made = self.run(*command.split())
        test.assertEqual(made.returncode, 0, made.stderr)
        (token,) = set(re.findall(r"\bsp_\w+", made.stdout))
        known = ["-cacert", authority, "-H", f"authorization: Bearer {token}", where, "list"]
        listed = lambda: run(TOOLS / "grpcurl", *known, check=False).returncode == 0  # noqa: E731
        wait_until(listed, "the running server knows the new token")
        self.refused(test, "-plaintext", "-H", f"authorization: Bearer {token}", where, "list")

    @staticmethod
    def refused(test: unittest.TestCase, *words: object) -> None:
        test.assertNotEqual(run(TOOLS / "grpcurl", "-max-time", "5", *words, check=False).returncode, 0, words)

    def __enter__(self):
        return self

    def __exit__(self, *_error) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.with_suffix(".log").unlink(missing_ok=True)


def certificate(folder: Path) -> None:
    """A certificate for this host, made as deploy/README.md says."""
    (line,) = re.findall(r"^(openssl req .*?)$", README.replace("\\\n", ""), re.MULTILINE)
    run("sh", "-c", line, cwd=folder)
    (folder / "tls.key").chmod(0o640)


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
