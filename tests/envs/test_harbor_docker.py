"""Harbor tasks in real containers: trials, grading that cannot be forged, the environment."""

import functools
import os
import shutil
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from assay.envs.harbor import (
    HACKS,
    CommandAgent,
    HarborEnv,
    HarborTask,
    ScriptedAgent,
    TaskError,
    check_task,
    load_tasks,
    nop,
    oracle,
    read_task,
    run_trial,
)
from assay.envs.harbor.carry import listing
from assay.envs.tools import BadTool
from assay.envs.tools.calls import written_call
from assay.sandbox import SandboxError

EXAMPLES = Path(__file__).parents[2] / "examples" / "harbor"
TASKS = {task.folder.name: task for task in load_tasks(EXAMPLES)}

PYTEST = """#!/bin/bash
python3 -m pytest -q /tests/test_outputs.py
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture
def task(tmp_path):
    """A function that writes a task folder and loads it."""

    def make(test_sh: str, *, toml: str = "", tests: str = "", docker: str = "") -> HarborTask:
        folder = tmp_path / "task"
        for name in ("environment", "tests", "solution"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "task.toml").write_text(f'schema_version = "1.4"\n{toml}')
        (folder / "instruction.md").write_text("Write 42 to `/app/answer`.")
        (folder / "environment" / "Dockerfile").write_text(
            f"FROM assay-shell:latest\nWORKDIR /app\n{docker}"
        )
        (folder / "tests" / "test.sh").write_text(test_sh)
        if tests:
            (folder / "tests" / "test_outputs.py").write_text(tests)
        (folder / "solution" / "solve.sh").write_text("#!/bin/sh\necho 42 > /app/answer\n")
        return HarborTask.load(folder)

    return make


def reward_of(script: str) -> str:
    return f"#!/bin/bash\n{script}\n"


QUICK = {"bug-durations", "git-merge-conflict"}


class TestOurTasks:
    """The folders of examples/harbor."""

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
            for name in sorted(TASKS)
        ],
    )
    def test_the_oracle_earns_all_and_doing_nothing_nothing(self, box, name) -> None:
        solved = run_trial(TASKS[name], oracle, box)
        assert solved.reward == 1.0, solved.graded.log
        idle = run_trial(TASKS[name], nop, box)
        assert idle.reward == 0.0, idle.graded
        assert idle.graded.fault == ""


PUBLISHED = {hack.name for hack in HACKS if hack.pattern}
NAMED = {hack.name for hack in HACKS if "$PATHS" in hack.script}
"""Those that write what the instruction names."""
PAYLOADS = {hack.name for hack in HACKS if "payload" in hack.script}
"""Those that put code of theirs in modules and programs."""
TRIED = {
    "bug-pagination": {hack.name for hack in HACKS} - PUBLISHED,  # modules that tests import
    "text-mask-emails": NAMED | PAYLOADS,  # a program that tests start
    "text-top-words": NAMED | PUBLISHED,  # a file, and a shell that looks at it
}


class TestHacks:
    """Agents that solve nothing."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("task", "hack"),
        [
            pytest.param(TASKS[task], hack, id=f"{task}-{hack.name}")
            for task, names in TRIED.items()
            for hack in HACKS
            if hack.name in names
        ],
    )
    def test_no_attack_is_paid(self, box, task, hack) -> None:
        """All on one kind of task, and on others those whose way is another there."""
        trial = run_trial(task, hack, box)
        assert (trial.reward, trial.graded.grading) == (0.0, "separate"), trial

    @pytest.mark.slow
    @pytest.mark.parametrize("hack", [h for h in HACKS if h.pattern], ids=lambda hack: hack.name)
    def test_no_published_pattern_is_paid(self, box, hack) -> None:
        assert run_trial(TASKS["bug-durations"], hack, box).reward == 0.0

    def test_attacks_beside_a_solution_do_not_spoil_it(self, box) -> None:
        """A start-up file or tool that the agent leaves is not the tests'; its work counts."""
        task = TASKS["bug-pagination"]
        solve = (task.folder / "solution" / "solve.sh").read_text().split("\n", 2)[2]
        conftest = "def pytest_collection_modifyitems(items): items.clear()"
        extra = f"echo '{conftest}' > /app/conftest.py; echo 'exit 1' > /root/.bashrc"
        broken = (
            "printf '#!/bin/dash\\nexit 1\\n' > /usr/local/bin/cat; chmod 755 /usr/local/bin/cat"
        )
        agent = CommandAgent(f"{solve}\n{extra}\n{broken}")
        assert run_trial(task, agent, box).reward == 1.0

    @pytest.mark.slow
    def test_an_imported_module_cannot_end_or_read_the_tests(self, box, task) -> None:
        made = task(
            PYTEST,
            tests="import sys\nsys.path.insert(0, '/app')\n"
            "def test_a():\n    secret = 'zq' + '17'\n    import answer\n"
            "    assert answer.find() == secret\n",
        )
        steal = (
            "import gc, os, sys\ndef find():\n    f = sys._getframe()\n    while f:\n"
            "        if 'secret' in f.f_locals: return f.f_locals['secret']\n        f = f.f_back\n"
            "    return str(os.getuid())\n"
        )
        ending = "import os\ndef find(): os._exit(0)\n"
        right = "def find(): return 'zq17'\n"
        for source, reward in ((steal, 0.0), (ending, 0.0), (right, 1.0)):
            agent = CommandAgent(f"cat > /app/answer.py <<'X'\n{source}X\n")
            trial = run_trial(made, agent, box)
            assert trial.reward == reward, (source, trial.graded.log)

    @pytest.mark.slow
    def test_a_program_of_the_agents_reads_no_tests_and_leads_to_none(self, box, task) -> None:
        """It runs as another user, and a link that it makes to the tests is not followed."""
        made = task(
            PYTEST,
            tests="import subprocess\nfrom pathlib import Path\n"
            "WANTED = 'kept in the tests'\n"
            "def test_a():\n    subprocess.run(['sh', '/app/answer'])\n"
            "    assert WANTED in Path('/app/out').read_text()\n",
        )
        for line in (
            "cat /tests/test_outputs.py > /app/out",
            "ln -sf /tests/test_outputs.py /app/out",
            "cp /proc/$PPID/environ /app/out; echo 1 > /logs/verifier/reward.txt; kill -9 $PPID",
        ):
            trial = run_trial(made, CommandAgent(f"echo '{line}' > /app/answer"), box)
            assert trial.reward == 0.0, (line, trial.graded.log)
        honest = CommandAgent("echo \"echo 'kept in the tests' > /app/out\" > /app/answer")
        assert run_trial(made, honest, box).reward == 1.0


class TestWithoutTheGuard:
    """Tests that Harbor runs in the agent's tree, with its code in their own process."""

    @pytest.mark.parametrize(
        "run",
        [
            "cp /tests/test_outputs.py /app; cd /app; python3 -m pytest -q test_outputs.py",
            "cd /app && PYTHONPATH=/app python3 -m pytest -q /tests/test_outputs.py",
        ],
    )
    def test_they_pay_the_solution_and_are_shared(self, box, task, run) -> None:
        tests = (
            "from answer import Base\nclass Derived(Base):\n    pass\n"
            "def test_a(capsys):\n    print(Derived().value)\n"
            "    assert capsys.readouterr().out == '42\\n'\n"
        )
        made = task(PYTEST.replace("python3 -m pytest -q /tests/test_outputs.py", run), tests=tests)
        made = replace(made, guard=False)
        for value, reward in ((42, 1.0), (41, 0.0)):
            source = f"class Base:\n    value = {value}\n"
            trial = run_trial(made, CommandAgent(f"printf '{source}' > answer.py"), box)
            assert (trial.reward, trial.graded.grading) == (reward, "shared"), trial.graded.log


BAD_REWARDS = (
    "touch /logs/verifier/reward.txt",
    "echo nan > /logs/verifier/reward.txt",
    "echo passed > /logs/verifier/reward.txt",
    "echo NaN > /logs/verifier/reward.json",
    """echo '{"reward": "1"}' > /logs/verifier/reward.json""",
    """echo '{"reward": true}' > /logs/verifier/reward.json""",
    "echo '{}' > /logs/verifier/reward.json",
    "printf '1%0400d' 0 > /logs/verifier/reward.json",
    "mkdir /logs/verifier/reward.txt",
)


class TestRewards:
    """What a grader writes, read strictly."""

    @pytest.mark.parametrize(
        ("script", "reward", "fault"),
        [
            ("echo 0.25 > /logs/verifier/reward.txt", 0.25, ""),
            ("echo 0 > /logs/verifier/reward.txt; exit 3", 0.0, ""),
            ("""echo '{"reward": 0.5, "speed": 7}' > /logs/verifier/reward.json""", 0.5, ""),
            ("""echo '{"a": 1, "b": 0}' > /logs/verifier/reward.json""", 0.5, ""),
            ("echo 0.5 > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt", 0.5, ""),
            ("true", None, "no_reward"),
            *(pytest.param(s, None, "bad_reward", marks=pytest.mark.slow) for s in BAD_REWARDS),
        ],
    )
    def test_a_number_is_a_reward_and_all_else_a_fault(
        self, box, task, script, reward, fault
    ) -> None:
        trial = run_trial(task(reward_of(script)), nop, box)
        assert (trial.reward, trial.graded.fault) == (reward, fault)
        if fault:
            assert trial.graded.verdict.status == "verifier_error"

    @pytest.mark.slow
    @pytest.mark.parametrize("work", ["rm -rf /app", "echo 42 > /app/answer; touch /app/stop"])
    def test_files_that_leave_the_tests_without_a_reward_earn_nothing(
        self, box, task, work
    ) -> None:
        """The agent knows that it fails, and would rather have no score."""
        script = (
            "set -e\nr=0\n[ ! -e /app/stop ] || exit 3\n[ ! -f /app/answer ] || "
            "r=$(($(cat /app/answer) / 42))\necho $r > /logs/verifier/reward.txt"
        )
        made = task(reward_of(script))
        trial = run_trial(made, CommandAgent(work), box)
        assert (trial.reward, trial.graded.verdict.status) == (0.0, "broke_sandbox"), trial
        assert "broke the grader" in trial.graded.verdict.reason
        assert run_trial(made, CommandAgent("echo 42 > /app/answer"), box).reward == 1.0
        script = "[ -e /app/answer ] && exit 1; exit 2"  # never a reward: the task's own fault
        assert run_trial(task(reward_of(script)), CommandAgent(work), box).reward is None

    def test_an_agent_that_breaks_the_next_steps_healthcheck_earns_nothing(self, box, task) -> None:
        made = task(reward_of("echo 0 > /logs/verifier/reward.txt"))
        for name in ("one", "two"):
            (made.folder / "steps" / name).mkdir(parents=True)
            (made.folder / "steps" / name / "instruction.md").write_text("Go on.")
            shutil.copytree(made.folder / "tests", made.folder / "steps" / name / "tests")
        (made.folder / "task.toml").write_text(
            'schema_version = "1.4"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'
            'healthcheck = {command = "[ ! -e /app/x ]", retries = 1}\n'
        )
        made = HarborTask.load(made.folder)
        trial = run_trial(made, CommandAgent("touch /app/x"), box)
        assert (trial.reward, trial.graded.fault) == (0.0, ""), trial
        assert trial.steps["two"].verdict.status == "broke_sandbox"

    @pytest.mark.slow
    def test_tests_that_do_not_end_are_a_timeout_of_the_policy(self, box, task) -> None:
        trial = run_trial(task(reward_of("sleep 30"), toml="[verifier]\ntimeout_sec = 1"), nop, box)
        assert (trial.reward, trial.graded.verdict.status) == (0.0, "timeout")

    def test_faults_of_infrastructure_are_none(self, box, task) -> None:
        made = task(reward_of("true"), toml='[environment]\ndocker_image = "no-such-image:1"')
        trial = run_trial(made, nop, box)
        assert (trial.reward, trial.graded.verdict.status) == (None, "sandbox_error")
        for docker in ("RUN false\n", "INT x\n"):
            trial = run_trial(task(reward_of("true"), docker=docker), nop, box)
            assert (trial.reward, trial.graded.fault) == (None, "bad_task")
        check = 'healthcheck = {command = "false", retries = 1}'
        trial = run_trial(task(reward_of("true"), toml=f"[environment]\n{check}"), nop, box)
        assert (trial.reward, trial.graded.fault) == (None, "unhealthy")


class TestSemantics:
    """Users, hooks, artifacts, deletions, modes."""

    def test_what_the_agent_changed_deleted_and_allowed_is_seen(self, box, task) -> None:
        script = (
            "[ ! -e /app/gone ] && [ -x /srv/run ] && [ $(cat /data/x) = new ] && "
            '[ "$(readlink /app/link)" = /srv/run ] && echo 1 > /logs/verifier/reward.txt'
        )
        made = task(reward_of(script), docker="RUN touch /app/gone && mkdir /data\n")
        agent = CommandAgent(
            "rm /app/gone; echo new > /data/x; mkdir /srv; touch /srv/run; chmod 755 /srv/run; "
            "ln -s /srv/run /app/link"
        )
        assert run_trial(made, agent, box).reward == 1.0

    def test_a_change_within_a_second_is_seen(self, box) -> None:
        with box.session() as session:
            session.exec("printf 1 > /tmp/answer")
            before = listing(session, ())
            session.exec("printf 2 > /tmp/answer")
            assert listing(session, ())["/tmp/answer"] != before["/tmp/answer"]

    def test_start_up_files_of_the_tests_commands_are_not_carried(self, box, task) -> None:
        names = "/root/.curlrc /root/.wgetrc /root/.jq /root/.pip/pip.conf /root/.bashrc"
        script = f"for f in {names}; do [ ! -e $f ] || exit 1; done\n[ -e /root/kept ]\n"
        made = task(reward_of(script + "echo $((1 - $?)) > /logs/verifier/reward.txt"))
        agent = CommandAgent(f"mkdir /root/.pip; touch /root/kept {names}")
        assert run_trial(made, agent, box).reward == 1.0

    def test_separate_verifiers_get_artifacts_and_no_more(self, box, task) -> None:
        script = (
            "[ -f /app/out/a ] && [ ! -e /app/other ] && [ -f /logs/artifacts/b ] && "
            "[ $(cat /app/hooked) = 7 ] && echo 1 > /logs/verifier/reward.txt"
        )
        toml = (
            'artifacts = ["out", "/app/hooked"]\n[verifier]\nenvironment_mode = "separate"\n'
            '[[verifier.collect]]\ncommand = "echo 7 > /app/hooked"\n'
        )
        agent = CommandAgent("mkdir out; touch out/a other /logs/artifacts/b")
        assert run_trial(task(reward_of(script), toml=toml), agent, box).reward == 1.0

    @pytest.mark.slow
    def test_a_verifier_has_its_own_image_and_healthcheck(self, box, task) -> None:
        toml = (
            'artifacts = [{ source = "/app", exclude = ["*.log", "cache"] }]\n'
            '[verifier]\nenvironment_mode = "separate"\n'
            "[verifier.environment]\nworkdir = '/tools'\n[verifier.environment.healthcheck]\n"
            "command = 'test -e /tools/HEALTH'\nretries = 1\ninterval_sec = 0.1\n"
        )
        script = reward_of(
            "cat /tools/mark /app/answer; pwd; ls /app/run.log /app/cache 2>/dev/null\n"
            "echo 1 > /logs/verifier/reward.txt"
        )
        made = task(script, toml=toml.replace("HEALTH", "mark"))
        dockerfile = "FROM assay-shell:latest\nRUN mkdir /tools && echo tools > /tools/mark\n"
        (made.folder / "tests/Dockerfile").write_text(dockerfile)
        work = "echo 42 > /app/answer; touch /app/run.log; mkdir /app/cache; touch /app/cache/x"
        trial = run_trial(made, CommandAgent(work), box)
        assert (trial.reward, trial.graded.log) == (1.0, "tools\n42\n/tools\n")
        sick = task(script, toml=toml.replace("HEALTH", "none"))
        trial = run_trial(sick, nop, box)
        assert (trial.reward, trial.graded.fault) == (None, "unhealthy")
        assert "the verifier's container" in trial.graded.verdict.reason

    @pytest.mark.slow
    def test_a_build_has_a_time_limit(self, box, task) -> None:
        toml = "[environment]\nbuild_timeout_sec = 1.5\n"
        trial = run_trial(task("", toml=toml, docker=f"RUN sleep 30; : {os.getpid()}\n"), nop, box)
        assert (trial.reward, trial.graded.fault) == (None, "bad_task")
        assert "its build does not end in 1.5 s" in trial.graded.verdict.reason

    @pytest.mark.slow
    def test_a_step_has_files_and_a_set_up_of_its_own(self, box, task) -> None:
        toml = "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n"
        script = "cat /app/$(cat /app/which) > /logs/verifier/reward.txt"
        made = task(reward_of(script), toml="")
        for name, reward in (("one", 0.5), ("two", 1)):
            folder = made.folder / "steps" / name
            (folder / "workdir/data").mkdir(parents=True)
            (folder / "instruction.md").write_text("Do it.")
            (folder / f"workdir/data/{name}").write_text(str(reward))
            (folder / "workdir/setup.sh").write_text(f"cp data/{name} . && echo {name} > which")
        (made.folder / "task.toml").write_text(toml)
        trial = run_trial(HarborTask.load(made.folder), nop, box)
        assert trial.reward == 0.75, trial
        env = HarborEnv(made.folder, sandbox=box)
        env.reset(seed=0)
        env.step(written_call("bash", {"command": "true"}))
        env.step(written_call("submit", {}))
        assert env.step("done")[1] == 0.75
        (made.folder / "steps/one/workdir/setup.sh").write_text("exit 3")
        trial = run_trial(HarborTask.load(made.folder), nop, box)
        assert (trial.reward, trial.graded.fault) == (None, "unhealthy")

    @pytest.mark.slow
    def test_users_of_the_agent_and_the_tests(self, box, task) -> None:
        found = "[ $(id -u)$A = 33b ] && grep -q 1000 /app/who"
        script = f"{found} && echo 1 > /logs/verifier/reward.txt"
        toml = "[agent]\nuser = 1000\n[verifier]\nuser = 33\nenv = {A = '${ASSAY_UNSET_:-b}'}"
        made = task(reward_of(script), toml=toml, docker="RUN chmod 777 /app\n")
        assert run_trial(made, CommandAgent("id -u > /app/who"), box).reward == 1.0

    def test_a_scripted_agent_keeps_its_shell_and_sees_results(self, box, task) -> None:
        def policy(instruction, results):
            assert "42" in instruction
            lines = ["cd /app; A=42", "echo $A"]
            if len(results) < 2:
                return lines[len(results)]
            return f"echo {results[1].text.strip()} > answer" if len(results) == 2 else None

        made = task(reward_of("echo $(($(cat /app/answer) / 42)) > /logs/verifier/reward.txt"))
        assert run_trial(made, ScriptedAgent(policy), box).reward == 1.0


class Greeting(BaseHTTPRequestHandler):
    """Says where it is."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello from {self.server.server_port}".encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ports(monkeypatch):
    """Two servers of this machine, which tasks may list."""
    monkeypatch.setenv("ASSAY_HARBOR_LOCAL_HOSTS", "1")
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Greeting) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [server.server_port for server in servers]
    for server in servers:
        server.shutdown()
        server.server_close()


NOTES = """
import json, os, sys
notes = []
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"}}
    elif m["method"] == "tools/list":
        found = {"tools": [{"name": sys.argv[1], "description": "Note.", "inputSchema": SCHEMA}]}
    elif m["method"] == "tools/call":
        notes.append(m["params"]["arguments"]["text"])
        open("/app/notes", "w").write(" ".join(notes))
        said = f"{' '.join(notes)} by {os.getuid()}"
        found = {"content": [{"type": "text", "text": said}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": found}), flush=True)
"""


@pytest.fixture
def served(task):
    """A function that makes a task with an MCP server which keeps notes."""

    def make(tool: str = "note", source: str = NOTES) -> HarborTask:
        made = task(
            reward_of("echo $(grep -cx 'a b' /app/notes) > /logs/verifier/reward.txt"),
            toml="agent.user = 1000\n[[environment.mcp_servers]]\nname = 'notes'\n"
            f"transport = 'stdio'\ncommand = 'python3'\nargs = ['/srv/notes.py', '{tool}']",
            docker="RUN chmod 777 /app\nCOPY notes.py /srv/\n",
        )
        (made.folder / "environment" / "notes.py").write_text(source)
        return made

    return make


class TestServers:
    """The tools of a task's MCP server."""

    @pytest.mark.slow
    def test_the_policy_has_its_tools_beside_the_others(self, box, served) -> None:
        env = HarborEnv(served().folder, sandbox=box)
        assert [*env.tools][-2:] == ["submit", "note"]
        env.reset(seed=0)
        note = functools.partial(call, env, "note")
        assert note(text="a")[0] == "a by 1000"
        assert "needs the argument 'text'" in note()[0]
        assert note(text="b")[0] == "a b by 1000"
        clone = env.clone()
        assert call(env, "submit")[1] == 1.0
        env.restore(clone)
        assert call(env, "bash", command="cat /app/notes")[0].startswith("a b\n")
        assert note(text="c")[0] == "c by 1000"  # a server of the clone's own
        assert call(env, "submit")[1] == 0.0

    def test_a_policy_that_ends_it_keeps_its_score(self, box, served) -> None:
        env = HarborEnv(served().folder, sandbox=box)
        env.reset(seed=0)
        said, *_ = call(env, "bash", command="kill $(ps -o pid= -C python3)")
        assert "exit code 0" in said
        answers = [call(env, "note", text="a")[0] for _ in range(2)]
        assert "a by 1000" in answers  # the first may be that the server ended
        call(env, "bash", command="kill $(ps -o pid= -C python3); echo 'a b' > /app/notes")
        assert call(env, "submit")[1] == 1.0

    @pytest.mark.slow
    def test_each_step_has_a_server_of_its_own_user(self, box, served) -> None:
        folder = served().folder
        steps = "\n[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\nagent.user = 1001\n"
        (folder / "task.toml").write_text((folder / "task.toml").read_text() + steps)
        for name in ("one", "two"):
            (folder / "steps" / name).mkdir(parents=True)
            (folder / "steps" / name / "instruction.md").write_text(f"Step {name}.")
        env = HarborEnv(folder, sandbox=box)
        env.reset(seed=0)
        assert call(env, "note", text="a b")[0] == "a b by 1000"
        assert "Step two." in call(env, "submit")[0]
        call(env, "bash", command="rm /app/notes")
        assert call(env, "note", text="c")[0] == "c by 1001"
        assert call(env, "submit")[1] == 0.5

    @pytest.mark.slow
    def test_a_server_that_does_not_start_is_no_score(self, box, served) -> None:
        env = HarborEnv(served().folder, sandbox=box)
        served(source="raise SystemExit(1)")  # the same task with another image
        env.reset(seed=0)
        *_, info = call(env, "bash", command="true")
        assert info["status"] == "sandbox_error"
        with pytest.raises(SandboxError, match="does not start"):
            HarborEnv(served(source="raise SystemExit(1)").folder, sandbox=box)

    def test_tools_of_one_name_and_tasks_with_other_servers_are_refused(
        self, box, served, tmp_path
    ) -> None:
        with pytest.raises(BadTool, match="two tools are called 'bash'"):
            HarborEnv(served("bash").folder, sandbox=box)
        shutil.copytree(EXAMPLES / "text-top-words", tmp_path / "words")
        with pytest.raises(TaskError, match=r"mcp_servers differ from those of .*/task,"):
            HarborEnv(tmp_path, sandbox=box)


def call(env, tool, **arguments):
    return env.step(written_call(tool, arguments))


class TestNetwork:
    """What a task's allowlist opens, and for whom."""

    FETCH = (
        "no_proxy= python3 -c 'import sys, urllib.request as u; "
        "print(u.urlopen(sys.argv[1]).read().decode())' http://127.0.0.1:"
    )

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("toml", "agent", "tests"),
        [
            ("environment = LIST", 1, 1),
            ("agent = LIST", 1, 0),
            ("verifier = LIST", 0, 1),
            ("environment.network_mode = 'public'", 0, 0),
        ],
    )
    def test_only_hosts_of_the_list_are_reached(self, box, task, ports, toml, agent, tests) -> None:
        port, other = ports
        hosts = f"{{ network_mode = 'allowlist', allowed_hosts = ['127.0.0.1:{port}'] }}"
        count = (
            f"{self.FETCH}{port} > /tmp/said 2>&1\n"
            "for file in /app/answer /tmp/said; do grep -c hello $file; done | xargs "
            """printf '{"agent": %d, "tests": %d}' > /logs/verifier/reward.json"""
        )
        made = task(reward_of(count), toml=toml.replace("LIST", hosts))
        work = f"for port in {port} {other}; do {self.FETCH}$port; done > /app/answer 2>&1; true"
        trial = run_trial(made, CommandAgent(work), box)
        assert trial.graded.rewards == {"agent": agent, "tests": tests}, trial.graded.log
        _, found = read_task(made.folder)
        wanted = [("the agent", agent), ("the tests", tests)]
        notes = tuple(f"{who} may reach 127.0.0.1:{port}" for who, may in wanted if may)
        assert found.notes == notes

    @pytest.mark.slow
    def test_the_environments_tools_reach_them_and_so_does_a_clone(self, box, task, ports) -> None:
        port, other = ports
        hosts = f"network_mode = 'allowlist'\nallowed_hosts = ['127.0.0.1:{port}']"
        made = task(reward_of("echo 1 > /logs/verifier/reward.txt"), toml=f"[agent]\n{hosts}")
        env = HarborEnv(made.folder, sandbox=box)
        env.reset(seed=0)

        def fetch(port: int) -> str:
            return env.step(written_call("bash", {"command": f"{self.FETCH}{port}"}))[0]

        for _ in range(2):
            assert f"hello from {port}" in fetch(port)
            assert "403" in fetch(other)
            env.restore(env.clone())


class TestCheck:
    """assay harbor check."""

    @pytest.mark.slow
    def test_a_sound_task_has_no_findings(self, box) -> None:
        found = check_task(TASKS["files-duplicates"], box)
        assert found.findings == ()
        assert len(found.trials) == 7

    @pytest.mark.slow
    def test_broken_tasks_are_named(self, box, task) -> None:
        weak = task(reward_of("if [ -e /app/answer ]; then echo 1; fi > /logs/verifier/reward.txt"))
        hack = next(hack for hack in HACKS if hack.name == "empty-files")
        found = " ".join(check_task(weak, box, repeat=1, hacks=[hack]).findings)
        assert "hack empty-files earns 1 and solves nothing" in found
        assert "nop 1 has no score" in found
        free = task(reward_of("echo 1 > /logs/verifier/reward.txt"))
        assert "doing nothing earns 1" in check_task(free, box, repeat=1).findings


class TestEnvironment:
    """assay/Harbor-v0."""

    SOLVE = "printf 'the 6\\nfox 5\\na 4\\nhen 4\\nand 2\\n' > /app/top.txt"

    def test_gymnasium_plays_it(self, box) -> None:
        env = HarborEnv(EXAMPLES / "text-top-words", sandbox=box)
        env.reset(seed=0)
        said, reward, *_ = env.step(written_call("bash", {"command": "cd /app; ls; nothing"}))
        assert "story.txt" in said
        assert "[exit code 127]" in said
        said, *_ = env.step(written_call("bash", {"command": "pwd"}))
        assert "/app\n" in said
        said, *_ = env.step(written_call("write_file", {"path": "/app/top.txt", "content": "x"}))
        env.step(written_call("edit", {"path": "/app/top.txt", "old": "x", "new": "the 6"}))
        said, *_ = env.step(written_call("read_file", {"path": "/app/top.txt"}))
        assert "the 6" in said
        env.step(written_call("bash", {"command": self.SOLVE}))
        _, reward, done, _, info = env.step(written_call("submit", {}))
        assert (reward, done, info["status"]) == (1.0, True, "correct")

    @pytest.mark.slow
    def test_a_reply_without_a_call_is_graded_as_it_stands(self, box) -> None:
        env = HarborEnv(EXAMPLES / "text-top-words", sandbox=box)
        env.reset(seed=0)
        env.step(written_call("bash", {"command": self.SOLVE}))
        assert env.step("I am done.")[1] == 1.0
        env.reset(seed=0)
        assert env.step('{"score": 1.0}')[1] == 0.0

    @pytest.mark.slow
    def test_a_clone_has_its_own_container(self, box) -> None:
        env = HarborEnv(EXAMPLES / "text-top-words", sandbox=box)
        env.reset(seed=0)
        env.step(written_call("bash", {"command": "touch /app/before"}))
        clone = env.clone()
        env.step(written_call("bash", {"command": self.SOLVE}))
        assert env.step(written_call("submit", {}))[1] == 1.0
        env.restore(clone)
        said, *_ = env.step(written_call("bash", {"command": "ls /app"}))
        assert "before" in said
        assert "top.txt" not in said
        assert env.step(written_call("submit", {}))[1] == 0.0

    @pytest.mark.slow
    def test_steps_follow_each_other(self, box) -> None:
        env = HarborEnv(EXAMPLES / "service-two-steps", sandbox=box)
        env.reset(seed=0)
        for step in ("echo", "count"):
            folder = EXAMPLES / "service-two-steps" / "steps" / step
            solve = (folder / "solution" / "solve.sh").read_text()
            env.step(written_call("bash", {"command": f"({solve}\n)"}))
            said, reward, done, _, _ = env.step(written_call("submit", {}))
            if step == "echo":
                assert "Extend `/app/serve.py`" in said
                assert not done
        assert (reward, done) == (1.0, True)
