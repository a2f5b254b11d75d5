"""Harbor task folders: reading them, and telling graders apart."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from assay.envs import make
from assay.envs.harbor import HACKS, TaskError, grading_of, image_of, load_tasks, read_config
from assay.envs.harbor.carry import AgentsFault, collect, tool_paths
from assay.envs.harbor.env import GradedTests
from assay.sandbox import ExecResult, RunStatus

EXAMPLES = Path(__file__).parents[2] / "examples" / "harbor"
SHARED = {"assay/data-flatten"}  # its shell script runs the agent's program itself


def config(tmp_path: Path, text: str):
    file = tmp_path / "task.toml"
    file.write_text(text)
    return read_config(file)


class TestSchema:
    """task.toml."""

    @pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4"])
    def test_every_version_is_read(self, tmp_path, version) -> None:
        assert config(tmp_path, f'schema_version = "{version}"').schema_version == version
        assert config(tmp_path, f'version = "{version}"').schema_version == version

    def test_all_that_decides_something_is_read(self, tmp_path) -> None:
        found = config(
            tmp_path,
            """
            schema_version = "1.4"
            artifacts = ["/app/out", {source = "/app/log", exclude = ["*.tmp"]}]
            [agent]
            timeout_sec = 5
            user = 1000
            [verifier]
            user = "tester"
            env = {A = "b"}
            collect = [{command = "dump > /tmp/x", timeout_sec = 7}]
            [verifier.environment]
            docker_image = "judge"
            [environment]
            cpus = 0.5
            memory_mb = 128
            allow_internet = false
            storage = "2G"
            workdir = "/srv"
            healthcheck = {command = "true", retries = 9}
            """,
        )
        assert (found.agent.timeout_sec, found.agent.user) == (5.0, 1000)
        assert (found.verifier.user, found.verifier.separate) == ("tester", True)
        assert found.verifier.collect[0].timeout_sec == 7.0
        assert [a.source for a in found.artifacts] == ["/app/out", "/app/log"]
        assert found.artifacts[1].exclude == ("*.tmp",)
        env = found.environment
        assert (env.cpus, env.memory_mb, env.storage_mb) == (0.5, 128, 2048)
        assert (env.network_mode, env.workdir, env.healthcheck.retries) == ("no-network", "/srv", 9)
        assert found.unknown == ()

    def test_unknown_keys_are_named_and_change_nothing(self, tmp_path) -> None:
        found = config(tmp_path, "[agent]\ntimeout_secs = 3\n[colour]\nred = 1\n")
        assert found.unknown == ("agent.timeout_secs (did you mean timeout_sec?)", "colour")
        assert found.agent.timeout_sec is None

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[agent", "TOML"),
            ('schema_version = "2.0"', "schema_version must be one of 1.0"),
            ('[agent]\ntimeout_sec = "9"', "agent.timeout_sec must be float, got '9'"),
            ("[verifier]\ntimeout_sec = 0", "verifier.timeout_sec must be positive"),
            ("[verifier]\ntimeout_sec = nan", "verifier.timeout_sec must be float"),
            ("[environment]\ngpus = 1", "environment.gpus is not supported"),
            ('[environment]\nos = "windows"', "environment.os 'windows' is not supported"),
            (
                "[[environment.mcp_servers]]\nname = 'x'",
                "environment.mcp_servers[0].transport 'sse' is not supported",
            ),
            (
                "[[environment.mcp_servers]]\nname = 'x'\ntransport = 'stdio'",
                "environment.mcp_servers[0].command is missing",
            ),
            (
                "[[verifier.environment.mcp_servers]]\nname = 'x'\ntransport = 'stdio'",
                "verifier.environment.mcp_servers are for the agent only",
            ),
            ('[agent]\nallowed_hosts = ["x.org"]', "agent.allowed_hosts needs network_mode 'allow"),
            (
                '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["10.0.0.0/8"]',
                "environment.allowed_hosts cannot be held: a host is name",
            ),
            ('[verifier]\nenvironment_mode = "both"', "must be one of shared, separate"),
            ("[[verifier.collect]]\nuser = 'x'", "verifier.collect[0].command is missing"),
            ("[[verifier.collect]]\ncommand = 'x'\nservice = 'db'", "'db' is a side service"),
            ("artifacts = ['../x']", "must not contain '..'"),
            ("[[steps]]\nname = 'a'\n[[steps]]\nname = 'a'", "steps must have names that differ"),
        ],
    )
    def test_errors_name_file_key_and_remedy(self, tmp_path, text, said) -> None:
        with pytest.raises(TaskError) as caught:
            config(tmp_path, text)
        assert said in str(caught.value)
        assert str(tmp_path / "task.toml") in str(caught.value)


def folder(root: Path, toml: str, *steps: str) -> Path:
    """Write a task folder that is never run."""
    for name in ("environment", "tests", "solution", *(f"steps/{step}/tests" for step in steps)):
        (root / name).mkdir(parents=True)
    for place in ("", *(f"steps/{step}/" for step in steps)):
        (root / f"{place}instruction.md").write_text("Do it.")
    (root / "environment/Dockerfile").write_text("FROM scratch")
    (root / "tests/test.sh").write_text("all")
    (root / "solution/solve.sh").write_text("")
    (root / "task.toml").write_text(toml)
    return root


class TestNetwork:
    """Which hosts the agent and the tests may reach."""

    @pytest.mark.parametrize(
        ("toml", "agent", "tests"),
        [
            ("", "none", "none"),
            ("environment.network_mode = 'public'", "none", "none"),
            ("environment = LIST", ("a.org",), ("a.org",)),
            ("environment = LIST\nagent.network_mode = 'no-network'", "none", ("a.org",)),
            ("environment = LIST\nverifier.network_mode = 'public'", ("a.org",), "none"),
            ("agent = LIST", ("a.org",), "none"),
            ("verifier = LIST", "none", ("a.org",)),
            ("environment = LIST\nverifier.environment.cpus = 1", ("a.org",), "none"),
            ("verifier.environment = LIST", "none", ("a.org",)),
            ("environment.network_mode = 'allowlist'", (), ()),
        ],
    )
    def test_a_phase_has_its_own_or_its_environments(self, tmp_path, toml, agent, tests) -> None:
        hosts = "{ network_mode = 'allowlist', allowed_hosts = ['A.org.'] }"
        (task,) = load_tasks(folder(tmp_path, toml.replace("LIST", hosts)))
        (stage,) = task.stages
        for network, wanted in ((stage.network, agent), (stage.tests_network, tests)):
            assert (network if network == "none" else network.hosts) == wanted

    def test_steps_inherit_it_and_share_the_agents(self, tmp_path) -> None:
        toml = """
agent = { network_mode = "allowlist", allowed_hosts = ["a.org"] }
verifier = { network_mode = "allowlist", allowed_hosts = ["b.org"] }
[[steps]]
name = "one"
[[steps]]
name = "two"
verifier.network_mode = "no-network"
"""
        (task,) = load_tasks(folder(tmp_path / "a", toml, "one", "two"))
        assert [stage.network.hosts for stage in task.stages] == [("a.org",)] * 2
        assert task.stages[0].tests_network.hosts == ("b.org",)
        assert task.stages[1].tests_network == "none"
        differs = f"{toml}agent.network_mode = 'no-network'\n"
        with pytest.raises(TaskError, match=r"steps\.two\.agent\.network_mode differs"):
            load_tasks(folder(tmp_path / "b", differs, "one", "two"))

    @pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "10.0.0.7", "169.254.169.254"])
    def test_addresses_of_this_machine_need_leave(self, tmp_path, monkeypatch, host) -> None:
        toml = f"agent = {{ network_mode = 'allowlist', allowed_hosts = ['a.org', '{host}'] }}"
        rule = rf"agent\.allowed_hosts names an address .*'{host}'.*ASSAY_HARBOR_LOCAL_HOSTS=1"
        with pytest.raises(TaskError, match=rule):
            load_tasks(folder(tmp_path, toml))
        monkeypatch.setenv("ASSAY_HARBOR_LOCAL_HOSTS", "1")
        (task,) = load_tasks(tmp_path)
        assert task.stages[0].network.hosts == ("a.org", host)


class TestSteps:
    """What steps take over from their task."""

    TOML = """
[agent]
timeout_sec = 7.0
[verifier]
user = 5
env = { A = "task", B = "task" }
collect = [{ command = "first" }]
[verifier.environment]
docker_image = "graders:1"
[[steps]]
name = "one"
[[steps]]
name = "two"
agent = { timeout_sec = 9.0 }
[steps.verifier]
environment_mode = "shared"
env = { B = "step" }
collect = [{ command = "second" }]
[[steps]]
name = "three"
[steps.verifier.environment]
docker_image = "graders:3"
allow_internet = false
"""

    def test_steps_inherit(self, tmp_path) -> None:
        root = folder(tmp_path / "task", self.TOML, "one", "two", "three")
        (root / "tests/data").write_text("all")
        (root / "steps/two/tests/test.sh").write_text("two")
        (task,) = load_tasks(root)
        one, two, three = task.stages
        assert task.config.unknown == ()
        assert [stage.agent_s for stage in task.stages] == [7.0, 9.0, 7.0]
        assert [stage.verifier.separate for stage in task.stages] == [True, False, True]
        images = [
            s.verifier.environment and s.verifier.environment.docker_image for s in task.stages
        ]
        assert images == ["graders:1", None, "graders:3"]
        assert two.verifier.env == {"A": "task", "B": "step"}
        assert [hook.command for hook in two.verifier.collect] == ["first", "second"]
        assert (one.verifier.user, one.solution) == (5, root / "solution")
        assert one.test_files["test.sh"].read_text() == "all"
        assert two.test_files["test.sh"].read_text() == "two"
        assert set(two.test_files) == {"test.sh", "data"}
        assert [image_of(task, stage) for stage in (one, three)] == ["graders:1", "graders:3"]

    def test_side_services_of_a_verifier_are_refused(self, tmp_path) -> None:
        folder(tmp_path, "")
        (tmp_path / "environment/docker-compose.yml").write_text("")  # no name of Harbor's
        (tmp_path / "tests/docker-compose.yaml").write_text("")
        assert load_tasks(tmp_path)
        (tmp_path / "task.toml").write_text('[verifier]\nenvironment_mode = "separate"')
        with pytest.raises(TaskError, match=r"tests/docker-compose\.yaml: side services"):
            load_tasks(tmp_path)


class TestFolders:
    """A folder of task folders."""

    def test_ours_are_read(self) -> None:
        tasks = {task.id: task for task in load_tasks(EXAMPLES)}
        assert len(tasks) >= 20
        for task in tasks.values():
            assert task.config.unknown == ()
            assert all(stage.solution and stage.instruction for stage in task.stages)
            shared = {grading_of(stage.test_files) for stage in task.stages} == {"shared"}
            assert shared == (task.id in SHARED)
        assert [s.name for s in tasks["assay/service-two-steps"].stages] == ["echo", "count"]

    def test_all_faults_of_a_folder_are_named(self, tmp_path) -> None:
        for name in ("a", "b", "c"):
            (tmp_path / name / "environment").mkdir(parents=True)
            (tmp_path / name / "task.toml").write_text("")
            (tmp_path / name / "instruction.md").write_text("Do it.")
        (tmp_path / "b" / "environment" / "docker-compose.yaml").write_text("")
        (tmp_path / "c" / "environment" / "Dockerfile").write_text("FROM scratch")
        with pytest.raises(TaskError) as caught:
            load_tasks(tmp_path)
        lines = str(caught.value).splitlines()
        assert "neither environment/Dockerfile nor" in lines[0]
        assert "side services of docker-compose are not supported" in lines[1]
        assert "has no test.sh" in lines[2]
        with pytest.raises(TaskError, match="holds no task folder"):
            load_tasks(tmp_path / "a" / "environment")


@pytest.mark.parametrize(
    ("script", "grading"),
    [
        ('[ "$(cat /app/x)" = 1 ] && echo 1 > /logs/verifier/reward.txt', "separate"),
        ("cd /app\nif grep -q 'a b' out.txt; then echo 1; else echo 0; fi", "separate"),
        ("python3 -m pytest /tests/test_a.py -rA", "separate"),
        ("uvx -p 3.13 -w pytest==8.4.1 pytest --ctrf /logs/verifier/c.json /tests", "separate"),
        ("python3 - <<'EOF'\nprint(open('/app/x').read())\nEOF", "separate"),
        ("python3 /tests/grade.py", "separate"),
        ("python3 -u -B /tests/grade.py", "separate"),
        ("python3 -u /app/grade.py", "shared"),
        ("pytest /tests 2>&1 && echo 1 > /logs/verifier/reward.txt", "separate"),
        ("pytest /tests || exit 1", "separate"),
        ("pytest /tests 2>&1 | tee out; grep -q passed out", "shared"),
        ("pytest /tests > out", "shared"),
        ("python3 /tests/grade.py > /logs/verifier/reward.txt", "shared"),
        ("n=$(python3 /tests/grade.py)", "shared"),
        ("python3 /app/main.py", "shared"),
        ("./run.sh", "shared"),
        ("/app/run", "shared"),
        ("source /app/env.sh", "shared"),
        ("timeout -k 5 -s KILL 300s python3 -W ignore -X dev -m pytest /tests", "separate"),
        ("timeout 5 sh /app/x", "shared"),
        ("timeout 5", "separate"),
        ("uv init && uv add pytest==8.4.1 && uv run pytest /tests", "separate"),
        ("uv run /app/x", "shared"),
        ("python3 -m pip install pytest", "separate"),
        ('D="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\npytest "$D/test_a.py"', "separate"),
        ("mkdir -p /logs/verifier\npytest /tests 2>&1 | tee /logs/verifier/out.txt", "separate"),
        ("pytest /tests --ctrf /logs/verifier/ctrf.json > /logs/verifier/out 2>&1", "separate"),
        ("pytest /tests > /logs/verifier/out; cat /logs/verifier/out", "shared"),
        ("pytest /tests > /logs/verifier/out; cd /logs; grep passed verifier/out", "shared"),
        ("pytest /tests | tee /logs/verifier/out | grep passed", "shared"),
        ("pytest /tests > /logs/verifier/reward.txt", "shared"),
        ("curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh\npytest /tests", "separate"),
        ("source $HOME/.local/bin/env || true\npytest /tests", "separate"),
        ("curl -LsSf https://astral.sh.x.org/uv/install.sh | sh", "shared"),
        ("curl -LsSf https://astral.sh/uv/install.sh | sh; sh /app/x", "shared"),
        ("source $HOME/.local/bin/env $(cat /app/x)", "shared"),
        ('. "$HOME/.local/bin/env"', "separate"),
        ('x="$(bash /app/x.sh)"', "shared"),
        ("x=`/app/x`", "shared"),
        ("git -C /app log", "shared"),
        ("PATH=/app/bin:$PATH\ncat x", "shared"),
        ("python3 -c 'exec(open(\"/app/x.py\").read())'", "shared"),
        ("awk -f /app/x.awk", "shared"),
        ("cat 'unclosed", "shared"),
        ('eval "$(cat /app/x)"', "shared"),
        ("make -C /app test", "shared"),
        # What else runs, or lets an agent's text say what is run.
        ("pip install -q pytest==8.4.1 'requests[socks]'", "separate"),
        ("pip install .", "shared"),
        ("pip install -e /app", "shared"),
        ("pip install -r /app/requirements.txt", "shared"),
        ("pip install /app/a.whl", "shared"),
        ("python3 -m pip install .", "shared"),
        ("trap 'bash /app/x' EXIT", "shared"),
        ("awk '{ print NF }' /app/x", "separate"),
        ("awk '{ system($0) }' /app/x", "shared"),
        ("awk '{ print | \"sh\" }' /app/x", "shared"),
        ('awk "{ print $X }" /app/y', "separate"),
        ('X=$(cat /app/x); awk "{ print $X }" /app/y', "shared"),
        ("sed -n '1p' /app/x", "separate"),
        ("sed 's/a b/c/g; $d' /app/x", "separate"),
        ("sed '1e sh /app/x' /app/y", "shared"),
        ("sed 's/.*/&/e' /app/y", "shared"),
        ('sed "s/x/$(cat /app/x)/" /app/y', "shared"),
        ("n=3; [[ $n -eq 3 ]]", "separate"),
        ('n="$(cat /app/x)"; [ "$n" -eq 3 ]', "separate"),
        ('n="$(cat /app/x)"; [[ $n == 3 ]]', "separate"),
        ('n="$(cat /app/x)"; [[ $n -eq 3 ]]', "shared"),
        ('n="$(cat /app/x)"; [[ n -eq 3 ]]', "shared"),
        ('[[ "$(cat /app/x)" -gt 3 ]]', "shared"),
        ('n="$(cat /app/x)"; m=$n; echo $((m + 1))', "shared"),
        ("echo $(($(cat /app/x) + 1))", "shared"),
        ("n=1; echo $((n + 1))", "separate"),
        ("read n < /app/x; echo $((n))", "shared"),
        ("while read -r n; do echo $((n)); done < /app/x", "shared"),
        ("read n < /app/x; ((n > 1))", "shared"),
        ("let n=1", "shared"),
        ("n=1; echo ${a[$n]}", "shared"),
        ("echo ${x:$n:2} ${x:n}", "shared"),
        ("echo ${x:0:2} ${x:-no}", "separate"),
        ("echo ${!x}", "shared"),
        ("echo ${x@P}", "shared"),
        ("declare -i n", "shared"),
        ("declare -n n=x", "shared"),
        ('n="$(cat /app/x)"; export "$n"', "shared"),
        ("export $(cat /app/env)", "shared"),
        ("export X=1; readonly Y=2", "separate"),
        ("read PATH < /app/x; cat y", "shared"),
        ("for LD_PRELOAD in /app/x; do cat y; done", "shared"),
        ('printf -v x "%s" 1', "shared"),
        ('n="$(cat /app/x)"; unset "$n"', "shared"),
        ('test -v "$x"', "shared"),
        # Words that the agent's text is split into are options, and one of them runs what it names.
        ("[ $(cat /app/x) = 1 ] && echo 1", "shared"),
        ("x=$(cat /app/x); if [ $x = 1 ]; then echo 1; fi", "shared"),
        ("x=$(cat /app/x); [[ $x = 1 ]]", "separate"),
        ("x=1; [ $x = 1 ] && [ $? -eq 0 ]", "separate"),
        ("n=$(wc -l < /app/x); [ $n -eq 3 ] && [ $(sort /app/x | wc -l) -eq 3 ]", "separate"),
        ("n=$(wc -l /app/x); [ $n -eq 3 ]", "shared"),
        ('x="$(cat /app/x)"; printf "$x" y', "shared"),
        ('x="$(cat /app/x)"; printf "%s" "$x"', "separate"),
        # A program for jq reads files.
        ("jq -f /app/x.jq /tests/a.json", "shared"),
        ("jq . /tests/a.json --from-file /app/x.jq", "shared"),
        ('f="$(cat /app/x)"; jq "$f" /tests/a.json', "shared"),
        ("jq 'include \"x\"; f' /tests/a.json", "shared"),
        ("f=$(cat /app/x); jq -r --arg x \"$f\" '.a == $x' /app/y.json", "separate"),
        (". /app/env.sh", "shared"),
        ("$(< /app/command)", "shared"),
        ("find /app -exec {} \\;", "shared"),
        ("cat /app/x | xargs rm", "shared"),
        ("node /app/x.js", "shared"),
        ("cd /app; npm test", "shared"),
        ("PS4='$(bash /app/x)'; set -x; true", "shared"),
        ("HOME=/app; jq . x", "shared"),
        ("sort --compress-program=/app/x y", "shared"),
        ("while read -r line; do ((n+=line)); done < /app/x", "shared"),
        ("x=$(cat /app/x); if ((x==5)); then echo 1; fi", "shared"),
        ("x=$(wc -l < /app/x); if ((x==5)); then echo 1; fi", "separate"),
        ("curl -K /app/x", "shared"),
        ("cd /app; sort *", "shared"),
        ("sort /app/*", "separate"),
        ('f="$(cat /app/x)"; echo 1 > "$f"', "shared"),
        ("rm -rf $(cat /app/x)", "shared"),
        ("cat <<X\n$(bash /app/x)\nX", "shared"),
        ("cat <<'X'\n$(bash /app/x)\nX", "separate"),
        ("python3 - <<X\nprint('$(cat /app/x)')\nX", "shared"),
        ("python3 - <<X\nprint('1')\nX", "separate"),
        ("python3 - <<X\nprint(`cat /app/x`)\nX", "shared"),
        ("python3 < /app/x.py", "shared"),
        ("cat /app/x.py | python3", "shared"),
        ("cat /app/x.py |\n  python3 -", "shared"),
        ('x="$(cat /app/x)"; python3 -c "print($x)"', "shared"),
        ('D=/tests; pytest "$D/test_a.py" -p no:cacheprovider', "separate"),
        ("pytest $(cat /app/list) /tests", "shared"),
        ("pytest -c /app/pytest.ini /tests", "shared"),
        ("pytest -p plugin /tests", "shared"),
        ("pytest @/app/options /tests", "shared"),
        ("python3 -m unittest discover -s /tests", "separate"),
        ("cd /app; python3 -m unittest", "shared"),
        ("python3 -m unittest discover -s /app/tests", "shared"),
        ("pytest --doctest-glob='*.md' /app", "shared"),
        ("python3 -c 'import yaml; yaml.load(open(\"/app/x\"), yaml.Loader)'", "shared"),
        ("python3 -c 'import yaml; yaml.safe_load(open(\"/app/x\"))'", "separate"),
        ("python3 -c 'import logging.config as c; c.fileConfig(\"/app/x\")'", "shared"),
        ("python3 -c 'import sympy; sympy.sympify(open(\"/app/x\").read())'", "shared"),
        ("python3 -c 'import jinja2; jinja2.Template(open(\"/app/x\").read())'", "shared"),
    ],
)
def test_a_grader_that_may_run_the_agents_code_is_shared(tmp_path, script, grading) -> None:
    (tmp_path / "test.sh").write_text(f"#!/bin/bash\n{script}\n")
    assert grading_of({"test.sh": tmp_path / "test.sh"}) == grading


def test_tests_that_run_text_as_code_are_shared(tmp_path) -> None:
    (tmp_path / "test.sh").write_text("pytest /tests/test_a.py\n")
    test = tmp_path / "test_a.py"
    test.write_text(
        "def test_a():\n    # exec is not called here\n    assert open('/app/x').read()\n"
    )
    files = {"test.sh": tmp_path / "test.sh", "test_a.py": test}
    assert grading_of(files) == "separate"
    assert grading_of(files, root=False) == "shared"
    test.write_text("def test_a():\n    exec(open('/app/x.py').read())\n")
    assert grading_of(files) == "shared"


def test_tests_that_import_all_names_of_the_agents_module_are_shared(tmp_path) -> None:
    (tmp_path / "test.sh").write_text("pytest /tests/test_a.py\n")
    files = {name: tmp_path / name for name in ("test.sh", "test_a.py", "helpers.py")}
    files["helpers.py"].write_text("def near(a, b):\n    return abs(a - b) < 1e-6\n")
    rest = "def test_a():\n    assert all(near(f(x), x) for x in range(9))\n"
    files["test_a.py"].write_text(f"from math import *\nfrom helpers import *\n{rest}")
    assert grading_of(files) == "separate"
    files["test_a.py"].write_text(f"from helpers import *\nfrom answer import *\n{rest}")
    assert grading_of(files) == "shared"


def test_folders_of_tools_are_those_of_the_path_and_of_python() -> None:
    found = tool_paths("/opt/venv/bin:/srv/tools:/usr/bin", ["/root/.pyenv/versions/3"])
    assert {"/opt/venv", "/srv/tools", "/usr", "/root/.pyenv/versions/3", "/etc"} <= set(found)
    assert "/" not in found


def forged(*members: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            archive.addfile(member)
    return stream.getvalue()


class Forger:
    """A session whose tar is the agent's: it sends what it likes."""

    def __init__(self, data: bytes, files: str = "0 1 81a4\t/app/x\n") -> None:
        self.data, self.files = data, files

    def exec(self, *_: object, **__: object) -> ExecResult:
        return ExecResult(RunStatus.OK, 0, self.files.encode())

    def put(self, *_: object, **__: object) -> None:
        pass

    def get(self, *_: object, **__: object) -> bytes:
        return self.data


def test_an_archive_that_the_agent_forged_ends_nothing() -> None:
    sparse = tarfile.TarInfo("app/x")
    sparse.pax_headers = {"GNU.sparse.size": str(1 << 50), "GNU.sparse.numblocks": "0"}
    sparse.pax_headers |= {"GNU.sparse.map": f"{1 << 50},0"}
    long = tarfile.TarInfo("././@LongLink")
    long.type = tarfile.GNUTYPE_LONGNAME
    for data in (forged(sparse), long.tobuf(tarfile.GNU_FORMAT) * 5000, b"x" * 5000):
        with pytest.raises(AgentsFault):
            collect(Forger(data), {}, ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "/usr/bin/cat",
        "//usr/bin/cat",
        "app/../usr/bin/cat",
        "tests/x",
        "//tests/x",
        "root",
        "/",
        "tmp",
    ],
)
def test_no_name_leads_to_a_tool_or_to_what_holds_one(name) -> None:
    tools = tool_paths("/usr/bin", ["/root/.pyenv/versions/3"])
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, "/app/mine"
    carried = collect(Forger(forged(member)), {"/root": "0 9 41ed"}, tools)  # type: ignore[arg-type]
    assert (carried.members, carried.deleted) == ((), ())


@pytest.mark.parametrize(
    ("target", "led"),
    [
        ("/tests/x", None),
        ("//tests/x", None),
        ("../tests/x", None),
        ("d/../../tests/x", None),
        ("d/../tests/x", "/app/tests/x"),  # where d leads is not known
        ("../srv/x", "../srv/x"),
        ("./x", "./x"),
        ("/proc/self/root/tests", None),
        ("/", None),
    ],
)
def test_links_lead_where_they_say_and_not_to_the_tests(target, led) -> None:
    member = tarfile.TarInfo("app/x")
    member.type, member.linkname = tarfile.SYMTYPE, target
    carried = collect(Forger(forged(member)), {}, ())  # type: ignore[arg-type]
    assert [made.linkname for made, _ in carried.members] == ([led] if led else [])


def test_a_forged_name_or_time_ends_nothing() -> None:
    member = tarfile.TarInfo("x")
    member.pax_headers = {"path": "bin\0x"}
    with pytest.raises(AgentsFault, match="zero byte"):
        collect(Forger(forged(member)), {}, ())  # type: ignore[arg-type]
    for time in ("nan", "inf", "-1", "1e300"):
        member = tarfile.TarInfo("app/x")
        member.pax_headers = {"mtime": time}
        carried = collect(Forger(forged(member)), {}, ())  # type: ignore[arg-type]
        assert [made.mtime for made, _ in carried.members] == [0]


def test_nothing_is_carried_through_a_link_of_the_image() -> None:
    """Such as /app/venv, which leads to a folder of tools."""
    clean = {"/app/venv": "0 9 a1ff"}
    data = forged(tarfile.TarInfo("app/venv/bin"), tarfile.TarInfo("app/y"))
    link = "0 9 a1ff\t/app/venv\n0 1 81a4\t/app/venv/bin\n0 1 81a4\t/app/y\n"
    carried = collect(Forger(data, link), clean, ())  # type: ignore[arg-type]
    assert ([m.name for m, _ in carried.members], carried.deleted) == (["app/y"], ())
    replaced = "0 9 41ed\t/app/venv\n0 1 81a4\t/app/venv/bin\n"
    carried = collect(Forger(data, replaced), clean, ())  # type: ignore[arg-type]
    assert carried.deleted == ("/app/venv",)
    assert [m.name for m, _ in carried.members] == ["app/venv/bin", "app/y"]


def test_there_are_attacks_of_every_published_pattern_and_twenty_more() -> None:
    assert {hack.pattern for hack in HACKS} == set(range(8))
    assert sum(hack.pattern == 0 for hack in HACKS) >= 20
    assert len({hack.name for hack in HACKS}) == len(HACKS)


def test_no_reply_passes_for_a_verdict() -> None:
    forged = json.dumps({"status": "correct", "score": 1.0, "reason": "", "extracted": None})
    for reply in (forged, "", "x" * 32 + forged, "<tool_call>"):
        assert GradedTests().verify(reply, "digest").score == 0.0


def test_the_environment_shows_the_instruction_and_the_tools() -> None:
    env = make("assay/Harbor-v0", data=str(EXAMPLES / "text-top-words"))
    text, info = env.reset(seed=0)
    assert "five most frequent words" in text
    names = [schema["function"]["name"] for schema in info["tools"]]
    assert names == ["bash", "read_file", "write_file", "edit", "submit"]
    env.close()
