"""Several Docker daemons as one box, by unix socket, TLS and SSH."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import docker
import pytest

from assay.sandbox import ImageUnavailable, Limits, Result, RunStatus, Sandbox, SandboxUnavailable
from assay.sandbox.backends.container import check_bounds
from assay.sandbox.backends.docker import DockerBackend, connect
from assay.sandbox.backends.slot import SlotBroken
from assay.sandbox.backends.tunnel import end_tunnels

pytestmark = [
    pytest.mark.usefixtures("collected"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
]

LOCAL = "unix:///var/run/docker.sock"
NOWHERE = "unix:///nonexistent/docker.sock"


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ([], "list of one address"),
        ("unix:///a.sock", "list of one address"),
        (["/var/run/docker.sock"], "begins with none of"),
        (["http://host:2375"], "begins with none of"),
        ([7], "not a string"),
        (["unix://docker.sock"], "begins with /"),
        (["tcp://host"], "host and a port"),
        (["tcp://host:port"], "port"),
        (["tcp://host:2376/v1"], "only a host and a port"),
        (["ssh://"], "host name"),
        (["ssh://-oProxyCommand=id"], "host name"),
        (["ssh://-l@host"], "user name"),
        (["ssh://me:secret@host"], "password"),
        (["ssh://host/a b"], "the path of the daemon's socket"),
        (["ssh://host:99999"], "ort"),
        ([LOCAL, LOCAL], "twice"),
    ],
)
def test_what_is_no_address_is_named(hosts, said) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Sandbox(hosts=hosts)
    shown = repr(hosts[-1] if hosts and isinstance(hosts, list) else hosts)
    assert shown.replace("me:secret", "<redacted>") in str(caught.value)


@pytest.mark.parametrize("where", [{"hosts": [LOCAL]}, {"runtime": "runsc"}])
def test_bwrap_has_neither_hosts_nor_runtimes(where) -> None:
    with pytest.raises(ValueError, match="without a daemon"):
        Sandbox(backend="bwrap", **where)


def test_all_hosts_down_is_unavailable_and_names_each() -> None:
    other = "tcp://127.0.0.1:1"
    with (
        Sandbox(hosts=[NOWHERE, other]) as box,
        pytest.raises(SandboxUnavailable, match="none of 2 hosts") as caught,
    ):
        box.run("")
    assert NOWHERE in str(caught.value)
    assert other in str(caught.value)


def cores_of(url: str) -> int:
    """As its daemon has them, which may run on fewer than the machine."""
    with contextlib.closing(docker.DockerClient(base_url=url)) as client:
        return int(client.info()["NCPU"])


@pytest.mark.docker
def test_a_host_that_is_down_is_left_out_with_a_warning(image: str) -> None:
    with Sandbox(image, hosts=[NOWHERE, LOCAL]) as box:
        with pytest.warns(RuntimeWarning, match="1 of 2 sandbox hosts.*nonexistent"):
            result = box.run("print(1)")
        assert (result.stdout, result.host) == ("1\n", LOCAL)
        assert box.slots == cores_of(LOCAL)
        assert [r.stdout for r in box.run_many(["print(2)"] * 4)] == ["2\n"] * 4


def results_from_all(box: Sandbox, hosts: set[str]) -> list[Result]:
    """Run batches, each result right, until every host has run some."""
    programs = [f"import time; time.sleep(0.05); print({i}, 'x' * 300_000)" for i in range(20)]
    found: list[Result] = []
    deadline = time.monotonic() + 60
    while {r.host for r in found} != hosts and time.monotonic() < deadline:
        batch = box.run_many(programs)
        assert [r.stdout for r in batch] == [f"{i} {'x' * 300_000}\n" for i in range(20)]
        found += batch
    assert {r.host for r in found} == hosts
    return found


@pytest.mark.docker
def test_two_hosts_share_the_programs(image: str, second) -> None:
    with Sandbox(image, hosts=[LOCAL, second.url], slots=2) as box:
        found = results_from_all(box, {LOCAL, second.url})
        digest = box.image
        copy = pickle.loads(pickle.dumps(box))
    assert {r.image for r in found} == {digest}
    with copy:
        assert copy.run("print(1)").host in (LOCAL, second.url)


@pytest.mark.docker
def test_slots_are_the_cores_of_all_hosts_by_default(image: str, second) -> None:
    with Sandbox(image, hosts=[LOCAL, second.url]) as box:
        assert box.slots == cores_of(LOCAL) + cores_of(second.url)


@pytest.mark.docker
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_slots_of_its_own_on_the_hosts(image: str, second) -> None:
    with Sandbox(image, hosts=[LOCAL, second.url], slots=2) as box:
        box.run_many([""] * 4)
        pid = os.fork()
        if pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = 0 if box.run("print(2)").stdout == "2\n" else 2
                box.close()
            os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert box.run("print(4)").stdout == "4\n"


def small_image(name: str, url: str, content: bytes) -> str:
    """An image of one file, which only its digest is asked for."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        entry = tarfile.TarInfo("file")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    with contextlib.closing(connect(60, url)) as client:
        repository, _, tag = name.partition(":")
        client.import_image_from_data(data.getvalue(), repository=repository, tag=tag)
        return client.inspect_image(name)["Id"]


@pytest.mark.docker
def test_hosts_with_different_images_are_refused(second) -> None:
    name = "assay-tests-differ:1"
    digests = [small_image(name, LOCAL, b"1"), small_image(name, second.url, b"2")]
    try:
        with (
            Sandbox(name, hosts=[LOCAL, second.url]) as box,
            pytest.raises(ImageUnavailable, match=r"docker -H .* save .* load") as caught,
        ):
            box.run("")
        assert all(digest in str(caught.value) for digest in digests)
        # The same files, put together at another time, are the same image.
        small_image(name, second.url, b"1")
        with Sandbox(name, hosts=[LOCAL, second.url], slots=1) as box:
            assert box.image
    finally:
        with contextlib.closing(connect()) as client:
            client.remove_image(name, force=True)


@pytest.mark.docker
def test_a_host_without_the_image_is_refused_with_the_command(second) -> None:
    name = "assay-tests-one-side:1"
    small_image(name, LOCAL, b"1")
    try:
        with (
            Sandbox(name, hosts=[LOCAL, second.url]) as box,
            pytest.raises(ImageUnavailable, match=f"docker save {name} | docker -H {second.url}"),
        ):
            box.run("")
    finally:
        with contextlib.closing(connect()) as client:
            client.remove_image(name, force=True)


# -- who is to blame ---------------------------------------------------------------------------


def slots_on(url: str) -> list[str]:
    with contextlib.closing(connect(60, url)) as client:
        found = client.containers(filters={"label": "assay.sandbox=1"})
    mine = f"{os.getpid()}-"
    return [c["Id"] for c in found if c["Labels"]["assay.sandbox.pid"].startswith(mine)]


@pytest.mark.docker
def test_a_program_whose_containers_are_killed_is_not_to_blame(image: str, second) -> None:
    killed: set[object] = set()

    def kill() -> None:
        """Kill the container under the program, four times in a row."""
        with contextlib.closing(connect(60, second.url)) as client:
            while len(killed) < 4 and not stop.wait(0.02):
                under_it = set(box._pool._lent) - killed if box._pool else set()
                if under_it:
                    time.sleep(0.2)  # let it start
                    for found in slots_on(second.url):
                        client.kill(found)
                    killed.update(under_it)

    stop = threading.Event()
    with Sandbox(image, hosts=[second.url], slots=1) as box:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            result = box.run("import time; time.sleep(1); print(1)")
        finally:
            stop.set()
            killer.join()
    assert len(killed) == 4
    assert (result.status, result.stdout, result.attempts) == (RunStatus.OK, "1\n", 5)


@pytest.mark.docker
def test_a_program_on_a_lost_host_runs_on_another(image: str, second) -> None:
    with Sandbox(image, hosts=[second.url, LOCAL], slots=1) as box:
        assert box.run("").host == second.url
        stopper = threading.Timer(0.5, second.stop)
        stopper.start()
        result = box.run("import time; time.sleep(2); print(1)")
        stopper.join()
    assert (result.status, result.stdout, result.host) == (RunStatus.OK, "1\n", LOCAL)
    assert result.attempts == 2


@pytest.mark.docker
def test_a_host_that_comes_back_is_used_again(
    image: str, second, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.sandbox.backends.hosts.PATIENCE_S", 1.0)  # of each of three starts
    with Sandbox(image, hosts=[second.url], slots=1) as box:
        box.run("")
        second.stop()
        with pytest.raises(SandboxUnavailable, match="cannot reach Docker"):
            box.run("")
        second.start()
        box._pool._open_until = 0.0  # the pause is over
        assert box.run("print(1)").stdout == "1\n"


# -- runtimes ----------------------------------------------------------------------------------


@pytest.mark.docker
def test_an_unknown_runtime_is_refused_with_those_there_are(image: str) -> None:
    with (
        Sandbox(image, runtime="runsc-tests") as box,
        pytest.raises(SandboxUnavailable, match=r"no runtime 'runsc-tests', only .*runc"),
    ):
        box.run("")


@pytest.mark.docker
def test_a_runtime_may_be_named_by_the_environment(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX_RUNTIME", "runc")
    with Sandbox(image, slots=1) as box:
        assert box.run("print(1)").stdout == "1\n"
        slot = slots_on(LOCAL)[-1]
        with contextlib.closing(connect()) as client:
            assert client.inspect_container(slot)["HostConfig"]["Runtime"] == "runc"
    monkeypatch.setenv("ASSAY_SANDBOX_RUNTIME", "runsc-tests")
    with Sandbox(image) as box, pytest.raises(SandboxUnavailable, match="runsc-tests"):
        box.run("")
    # No quiet change to weaker isolation, though bubblewrap may be there.
    with Sandbox() as box, pytest.raises(SandboxUnavailable, match="runsc-tests"):
        box.run("")


@pytest.mark.docker
def test_a_daemon_that_refuses_is_quoted(image: str) -> None:
    backend = DockerBackend(image, Limits())
    backend.runtime = "gone-since"
    try:
        with pytest.raises(SlotBroken, match=r"container: .*[Uu]nknown.*gone-since") as caught:
            backend.start()
    finally:
        backend.close()
    assert "http" not in str(caught.value)  # its words only


def test_a_limit_that_the_daemon_drops_is_refused() -> None:
    check_bounds(["Your kernel does not support swap limit. Memory limited without swap."])
    dropped = "Your kernel does not support memory limit capabilities. Limitation discarded."
    with pytest.raises(SlotBroken, match="Limitation discarded"):
        check_bounds([dropped])


# -- TLS ---------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority, and one certificate for the daemon and its client."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("tls")
    ext = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
    (folder / "ext").write_text(ext)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca-key.pem -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout key.pem -out request.pem",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 "
        "-extfile ext -out cert.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.docker
def test_tcp_with_certificates(
    image: str, start_daemon, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"cacert": "ca", "cert": "cert", "key": "key"}
    options = [f"--tls{name}={certificates}/{file}.pem" for name, file in files.items()]
    url = f"tcp://127.0.0.1:{free_port()}"
    start_daemon("-H", url, "--tlsverify", *options)
    with Sandbox(image, hosts=[url]) as box, pytest.raises(SandboxUnavailable, match="HTTP"):
        box.run("")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(certificates))
    with Sandbox(image, hosts=[url, LOCAL], slots=2) as box:
        results_from_all(box, {url, LOCAL})
        stopped = box.run("while True: pass", limits=Limits(cpu_s=0.2))
    assert stopped.status is RunStatus.TIMEOUT


# -- SSH ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, skip_or_fail):
    """An SSH server of our own, and in PATH an ssh that knows it; the address of this machine."""
    if os.geteuid() or shutil.which("sshd") is None or shutil.which("ssh") is None:
        skip_or_fail("SSH needs root and sshd: apt-get install openssh-server")
    folder, port = tmp_path_factory.mktemp("ssh"), free_port()
    for key in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(command, check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nUsePAM no\nStrictModes no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\nSubsystem sftp none\n"
    )
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "config").write_text(
        f"Host *\nIdentityFile {folder}/user\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {folder}/known\nGlobalKnownHostsFile none\n"
    )
    (folder / "bin").mkdir()
    own = folder / "bin" / "ssh"
    own.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    own.chmod(0o755)
    log = (folder / "log").open("w")
    server = subprocess.Popen(
        [str(shutil.which("sshd")), "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log
    )
    path, tmp = os.environ["PATH"], tmp_path_factory.mktemp("t")
    os.environ["PATH"] = f"{folder}/bin:{path}"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.05)
    yield f"ssh://root@127.0.0.1:{port}"
    os.environ["PATH"] = path
    server.terminate()
    server.wait()
    log.close()
    shutil.rmtree(tmp)


def tunnels() -> list[int]:
    """The process number of each ssh that forwards a Docker socket."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"ssh") and any(b"assay-ssh-" in word for word in words):
                found.append(int(path.parent.name))
    return found


def folders() -> set[Path]:
    return set(Path(os.environ.get("TMPDIR", "/tmp")).glob("assay-ssh-*"))


@pytest.fixture
def nothing_left():
    """Whatever the test does, no tunnel and no folder of one is left."""
    processes, files = set(tunnels()), folders()
    yield
    end_tunnels()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (set(tunnels()) - processes or folders() - files):
        time.sleep(0.1)
    assert set(tunnels()) <= processes
    assert folders() <= files


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_left")
def test_a_host_behind_ssh(image: str, sshd: str, second) -> None:
    remote = f"{sshd}{second.root}/docker.sock"
    with Sandbox(image, hosts=[sshd, remote], slots=2) as box:
        results_from_all(box, {sshd, remote})


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_left")
def test_docker_host_may_be_behind_ssh(
    image: str, sshd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", sshd)
    with Sandbox(image, slots=1) as box:
        assert box.run("print(1)").stdout == "1\n"


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_left")
def test_an_ssh_that_dies_is_started_again(image: str, sshd: str) -> None:
    before = set(tunnels())
    with Sandbox(image, hosts=[sshd], slots=1) as box:
        box.run("")
        (own,) = set(tunnels()) - before
        killer = threading.Timer(0.5, os.kill, [own, signal.SIGKILL])
        killer.start()
        result = box.run("import time; time.sleep(1.5); print(1)")
        killer.join()
        assert own not in tunnels()
    assert (result.status, result.stdout, result.attempts) == (RunStatus.OK, "1\n", 2)


@pytest.mark.usefixtures("nothing_left")
def test_what_ssh_says_is_shown(sshd: str) -> None:
    stranger = sshd.replace("root@", "nobody@")
    with (
        Sandbox(hosts=[stranger]) as box,
        pytest.raises(SandboxUnavailable, match=r"ssh said: .*Permission denied"),
    ):
        box.run("")
    with (
        Sandbox(hosts=[f"{sshd}/nonexistent.sock"]) as box,
        pytest.raises(SandboxUnavailable, match="ssh gets there: start Docker"),
    ):
        box.run("")


CLIENT = """
import sys
from assay.sandbox import Sandbox
box = Sandbox(sys.argv[1], hosts=sys.argv[2:], slots=2)
box.run("")
print("ready", flush=True)
box.run_many(["while True: pass"] * 2)
"""


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_left")
def test_a_killed_client_leaves_nothing_on_hosts_behind_ssh(image: str, sshd: str) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, image, sshd], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    time.sleep(0.5)
    client.kill()
    client.wait()
    client.stdout.close()
    deadline = time.monotonic() + 20
    left = ["unknown"]
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        with contextlib.closing(connect()) as own:
            found = own.containers(all=True, filters={"label": "assay.sandbox=1"})
        pid = f"{client.pid}-"
        left = [c["Id"] for c in found if c["Labels"]["assay.sandbox.pid"].startswith(pid)]
    assert left == []
