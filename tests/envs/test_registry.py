"""Ids: made here and in Gymnasium, and errors that help."""

import importlib
import json
import pickle
import subprocess
import sys

import gymnasium as gym
import pytest

from assay.envs import (
    EnvSpec,
    RetiredEnvironment,
    Task,
    TextEnv,
    TRLSpec,
    UnknownEnvironment,
    environment,
    make,
    register,
    retire,
    spec,
    specs,
)
from assay.envs.puzzles import PUZZLES


@environment("tests/Echo-v0", rubric=lambda reply, gold: reply == gold)
def echo(rng):
    """Say a number again."""
    n = str(rng.integers(10**6))
    return Task(f"Say {n}", reference=n)


@pytest.mark.parametrize(
    ("id_", "words"),
    [
        ("assay/GMS8K-v1", "Did you mean assay/GSM8K-v1"),
        ("assay/GSM8K-v7", "Did you mean assay/GSM8K-v1"),
        ("arithmetics", "assay/Arithmetic-v1"),
        ("zzz/qqqqqqqqqqqq-v0", "`assay list` lists them"),
        *[(id_, "an id is text") for id_ in (None, 5, b"assay/Arithmetic-v1")],
    ],
)
def test_an_unknown_id_names_the_nearest(id_, words) -> None:
    with pytest.raises(UnknownEnvironment, match=words):
        make(id_)


@pytest.mark.parametrize(
    ("id_", "words"),
    [
        ("NoNamespace-v0", "must look like"),
        ("a/b", "must look like"),
        ("a.b/c-v0", "must look like"),  # Gymnasium's own rule
        ("a/b-v01", "without leading zeros"),
        ("a/b c-v0", "must look like"),
        ("tests/Echo-v0", "already"),
    ],
)
def test_ids_that_cannot_be_registered(id_, words) -> None:
    with pytest.raises(ValueError, match=words):
        register(id_, "nowhere:Nothing")


@pytest.mark.parametrize(
    "value", [{1: "a"}, (1, 2), {3}, b"x", float("nan"), object(), lambda: 0, [{"deep": (1,)}]]
)
def test_arguments_that_are_not_json_are_refused_by_name(value) -> None:
    with pytest.raises(ValueError, match=r"kwargs\['rows'\] must be plain JSON .* Give a path"):
        register("tests/NotJson-v0", "nowhere:Nothing", kwargs={"digits": 1, "rows": value})
    with pytest.raises(UnknownEnvironment):
        spec("tests/NotJson-v0")


def test_an_id_that_gymnasium_has_is_not_taken_from_it() -> None:
    gym.register("tests/Theirs-v0", entry_point="their.module:Env")
    with pytest.raises(ValueError, match=r"taken in Gymnasium, by their\.module:Env"):
        register("tests/Theirs-v0", "nowhere:Nothing")
    with pytest.raises(ValueError, match="taken in Gymnasium"):
        retire("tests/Theirs-v0", "tests/Echo-v0", "It is not ours.")


CELLS = """
from assay.envs import Task, environment, make

@environment("cell/A-v0", rubric=lambda reply, gold: True)
def first(rng):
    return Task("?", "1")

@environment("cell/A-v0", rubric=lambda reply, gold: True)
def NAME(rng):
    return Task("?", "2")

print(make("cell/A-v0").task(0).reference)
"""


@pytest.mark.parametrize("name", ["first", "second"])
@pytest.mark.parametrize("file", [True, False])
def test_a_cell_run_again_registers_anew(name, file, tmp_path) -> None:
    code = CELLS.replace("NAME", name)
    (tmp_path / "script.py").write_text(code)
    given = [tmp_path / "script.py"] if file else ["-c", code]
    done = subprocess.run(
        [sys.executable, *given], capture_output=True, text=True, check=False, timeout=60
    )
    if file:
        told = "cell/A-v0 is registered already, by __main__: choose another name"
        assert told in done.stderr
    else:
        assert done.stdout == "2\n", done.stderr


def test_a_reloaded_module_registers_anew(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    head, _, rest = CELLS.partition("@")
    file = tmp_path / "reloaded_tasks.py"
    file.write_text(head + "@" + rest.partition("@")[0])
    module = importlib.import_module("reloaded_tasks")
    file.write_text("# Its lines are others now.\n" + file.read_text().replace('"1"', '"2!"'))
    importlib.reload(module)
    assert make("cell/A-v0").task(0).reference == "2!"


class TestVersions:
    """What an id pays for never changes, so an id may go."""

    def test_a_retired_id_names_its_successor_and_why(self) -> None:
        register("tests/Echo-v3", "tests.nowhere:Echo")
        retire("tests/Old-v0", "tests/Echo-v3", "It paid for silence.")
        told = "tests/Old-v0 is retired: It paid for silence. Take tests/Echo-v3 instead"
        with pytest.raises(RetiredEnvironment, match=told):
            make("tests/Old-v0")
        with pytest.raises(RetiredEnvironment, match=told):
            gym.make("tests/Old-v0")
        with pytest.raises(ValueError, match="An id never comes back"):
            register("tests/Old-v0", "nowhere:Nothing")
        assert "tests/Old-v0" not in [s.id for s in specs()]
        with pytest.raises(RetiredEnvironment, match=told):  # no version of it is left
            spec("tests/Old")

    def test_an_id_that_is_registered_cannot_be_retired(self) -> None:
        with pytest.raises(ValueError, match="take away what registers it"):
            retire("tests/Echo-v0", "tests/Echo-v1", "why")
        with pytest.raises(ValueError, match="its own successor"):
            retire("tests/Gone-v0", "tests/Gone-v0", "why")

    def test_an_id_without_a_version_is_the_latest_with_a_warning(self) -> None:
        for version in (2, 10):
            register(f"tests/Many-v{version}", "assay.envs.arithmetic:Arithmetic")
        with pytest.warns(
            UserWarning, match="'tests/Many' has no version, so it is tests/Many-v10"
        ):
            env = make("tests/Many")
        assert env.name == "tests/Many-v10"


class TestRecords:
    """How to make an environment, as JSON."""

    def test_every_record_goes_to_json_and_back(self) -> None:
        for found in specs():
            row = json.loads(json.dumps(found.to_json()))
            assert EnvSpec.from_json(row) == found

    def test_a_record_makes_the_environment_with_its_arguments(self) -> None:
        entry = "assay.envs.arithmetic:Arithmetic"
        register("tests/Long-v0", entry, kwargs={"digits": 9}, needs="patience", summary="sums")
        found = spec("tests/Long-v0")
        assert make(found).task(0).metadata["digits"] == 9
        assert make(found, digits=8).task(0) == make("tests/Long-v0", digits=8).task(0)
        assert make(EnvSpec("never/Registered-v0", entry, {"digits": 7})).name == (
            "never/Registered-v0"
        )
        assert make(spec("tests/Echo-v0")).task(0) == make("tests/Echo-v0").task(0)

    def test_records_that_are_none_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"Give a callable to register\(\) instead"):
            EnvSpec("tests/Call-v0", TextEnv)
        with pytest.raises(ValueError, match="unexpected keyword argument 'colour'"):
            EnvSpec.from_json({**spec("tests/Echo-v0").to_json(), "colour": 1})
        with pytest.raises(UnknownEnvironment, match="registers no environment 'tests/Never-v0'"):
            make("json:tests/Never-v0")

    def test_what_a_script_registered_cannot_go_to_another_process(self) -> None:
        record = EnvSpec("me/Mine-v0", "__main__:me/Mine-v0", module="__main__")
        with pytest.raises(ValueError, match="put it into a module of its own and import that"):
            record.to_json()
        with pytest.raises(UnknownEnvironment, match="not known in this one: put it into a module"):
            make(record)


MODULE = """
from assay import Exact, Task, environment, register_rows

@environment("elsewhere/Say-v0", rubric=Exact())
def say(rng):
    n = str(rng.integers(10**6))
    return Task(f"Say {n}", n)

register_rows(
    "elsewhere/Rows-v0", {"train": [{"q": "2", "a": "3"}]},
    prompt="After {q}?", reference="a", rubric=Exact(),
)
"""


@pytest.mark.parametrize("id_", ["elsewhere/Say-v0", "elsewhere/Rows-v0"])
def test_another_process_imports_what_registers_an_id(id_, tmp_path, monkeypatch) -> None:
    (tmp_path / "elsewhere_tasks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    env = make(f"elsewhere_tasks:{id_}")
    assert env.name == id_
    (reward,) = TRLSpec(id_, size=1).reward_funcs
    given = {
        "record": json.dumps(spec(id_).to_json()),
        "gym": gym.spec(id_).to_json(),
        "pickles": pickle.dumps([TRLSpec(id_, size=1), reward, env]).hex(),
    }
    (tmp_path / "child.py").write_text(CHILD)
    done = subprocess.run(
        [sys.executable, "child.py"], input=json.dumps(given), capture_output=True, text=True,
        check=False, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    task = env.task(0)
    assert json.loads(done.stdout) == [id_, [1.0, 0.0], *[task.text] * 4]


CHILD = """
import json, pickle, sys
import gymnasium
from assay.envs import EnvSpec, make
given = json.load(sys.stdin)
record = EnvSpec.from_json(json.loads(given["record"]))
texts = [make(record).task(0).text]
spec, reward, env = pickle.loads(bytes.fromhex(given["pickles"]))
texts.append(env.task(0).text)
texts.append(gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(given["gym"]))
             .unwrapped.task(0).text)
texts.append(spec.reward_funcs[0].env.task(0).text)
known = env.task(0).reference
print(json.dumps([spec.env_id, reward(completions=[known, "?"], assay_task=[0, 0]), *texts]))
"""


def by_name(**options):
    return make("tests/Echo-v0", **options)


def test_an_entry_point_may_take_any_argument() -> None:
    register("tests/AnyName-v0", by_name, kwargs={"seed": 1})
    assert make("tests/AnyName-v0", split="test").task(0).id == "test-1-0"
    with pytest.raises(ValueError, match="tests/Echo-v0 takes no 'nosuch'"):
        make("tests/AnyName-v0", nosuch=1)
    with pytest.raises(ValueError, match="takes no 'dta'; it takes split, seed"):
        make("tests/Echo-v0", dta="x")


def test_what_makes_no_environment_is_refused() -> None:
    register("tests/Misfit-v0", lambda split="train": by_name(), kwargs={"nosuch": 1})
    with pytest.raises(ValueError, match="tests/Misfit-v0 takes no 'nosuch'; it takes split"):
        make("tests/Misfit-v0")
    register("tests/Nothing-v0", lambda: None)
    with pytest.raises(TypeError, match=r"tests/Nothing-v0.* must return a TextEnv, got None"):
        make("tests/Nothing-v0")


@pytest.mark.parametrize(
    "field", [{"kwargs": None}, {"kwargs": [1]}, {"kwargs": {1: 2}}, {"needs": 5}, {"module": 7}]
)
def test_a_record_with_a_field_of_another_kind_is_refused(field) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        EnvSpec.from_json({"id": "tests/Any-v0", "entry_point": "a:b", **field})


def test_a_retired_id_with_a_substitute_makes_it_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="since then. Take assay/Arithmetic-v1"):
        env = make("assay/Arithmetic-v0", digits=3)
    assert env.name == "assay/Arithmetic-v1"
    with pytest.warns(DeprecationWarning, match="Countdown") as caught:  # of Gymnasium as well
        question, _ = gym.make("assay/Countdown-v0").reset(seed=3)
    assert any("Take assay/Countdown-v1" in str(warning.message) for warning in caught)
    assert question == gym.make("assay/Countdown-v1").reset(seed=3)[0]


def test_each_puzzle_of_the_folder_is_registered_by_what_its_docstring_says(modules) -> None:
    found = {
        kind.__name__: (module.__name__.rpartition(".")[2], kind.__doc__.partition("\n")[0][:-1])
        for module in modules("assay.envs.puzzles")
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, TextEnv)
        and kind.__module__ == module.__name__
    }
    assert found == PUZZLES
