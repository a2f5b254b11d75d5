"""Other packages' environments: found when asked for, and a broken one costs only itself."""

import json
import subprocess
import sys
import warnings

import gymnasium as gym
import pytest

from assay.envs import PluginWarning, UnknownEnvironment, make, plugins, specs
from assay.envs.plugins import installed

MODULE = """
from assay.envs import Task, environment

@environment("{id}", rubric=lambda reply, gold: reply == gold)
def say(rng):
    "Say {what}."
    return Task(f"Say {{rng.integers(10**6)}}", reference="{what}")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package where Python finds installed ones: its module, and its metadata."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(package, text, *entries, version="1.0"):
        (tmp_path / f"{package}.py").write_text(text)
        info = tmp_path / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        lines = [f"{name} = {package}" for name in entries]
        (info / "entry_points.txt").write_text("\n".join(["[assay.envs]", *lines]) + "\n")

    return put


def of(namespace):
    return next(plugin for plugin in plugins() if plugin.namespace == namespace)


def test_a_plugin_is_imported_when_one_of_its_ids_is_asked_for(install) -> None:
    install("plug_lazy", MODULE.format(id="lazy/Say-v0", what="it"), "lazy")
    install("plug_other", MODULE.format(id="other/Say-v0", what="it"), "other")
    assert {"lazy", "other"} <= {plugin.namespace for plugin in installed()}
    assert not {"plug_lazy", "plug_other"} & set(sys.modules)
    assert make("lazy/Say-v0").task(0).reference == "it"
    assert "plug_lazy" in sys.modules
    assert "plug_other" not in sys.modules
    assert gym.make("lazy/Say-v0").reset(seed=0)[0].startswith("Say ")
    assert gym.make_vec("lazy/Say-v0", num_envs=4, group_size=2).group_size == 2


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("absent", "import no_such_module", "No module named 'no_such_module' (PATH, line 8)"),
        ("exits", "raise SystemExit('bye')", "SystemExit: bye (PATH, line 8)"),
        ("syntax", "def f(:", "(plug_broken_syntax.py, line 8)"),
        ("raises", "\n\n1 / 0", "ZeroDivisionError: division by zero (PATH, line 10)"),
    ],
)
def test_a_broken_plugin_is_named_and_the_others_stand(
    install, tmp_path, kind, text, words
) -> None:
    name, good = f"broken_{kind}", f"good_{kind}"  # a plug-in is tried once in a process
    before = MODULE.format(id=f"{name}/Say-v0", what="it")
    install(f"plug_{name}", before + text, name)
    install(f"plug_{good}", MODULE.format(id=f"{good}/Say-v0", what="it"), good)
    with pytest.warns(PluginWarning, match=f"plug-in '{name}' of plug_{name} 1.0"):
        ids = [spec.id for spec in specs()]
    assert f"{good}/Say-v0" in ids
    assert f"{name}/Say-v0" not in ids  # half of a plug-in is none
    assert f"{name}/Say-v0" not in gym.registry
    assert words.replace("PATH", str(tmp_path / f"plug_{name}.py")) in of(name).faults[0]
    with pytest.raises(UnknownEnvironment, match=f"plug-in '{name}' .* cannot be imported"):
        make(f"{name}/Say-v0")


def test_a_package_that_fails_after_its_parts_leaves_nothing(install, tmp_path) -> None:
    install("plug_parts", "", "parts")
    (tmp_path / "plug_parts.py").unlink()
    (tmp_path / "plug_parts").mkdir()
    (tmp_path / "plug_parts" / "__init__.py").write_text("from . import tasks\n1 / 0\n")
    text = MODULE.format(id="parts/Say-v0", what="it")
    (tmp_path / "plug_parts" / "tasks.py").write_text(text)
    with (
        pytest.warns(PluginWarning, match="division by zero"),
        pytest.raises(UnknownEnvironment, match=r"'parts/Say-v0'.*cannot be imported"),
    ):
        make("parts/Say-v0")


def test_of_two_plugins_with_one_id_the_first_stands(install) -> None:
    install("plug_twice_a", MODULE.format(id="twice/Say-v0", what="first"), "twice")
    other = MODULE.format(id="twice/Say-v0", what="second")
    install("plug_twice_b", other + MODULE.format(id="twice/More-v0", what="more"), "twice")
    with pytest.warns(PluginWarning, match=r"plug_twice_b .* registered already, by plug_twice_a"):
        env = make("twice/Say-v0")
    assert env.task(0).reference == "first"
    assert make("twice/More-v0").task(0).reference == "more"
    faults = [plugin.faults for plugin in plugins() if plugin.namespace == "twice"]
    assert faults[0] == ()
    assert "choose another name" in faults[1][0]


def test_ids_under_another_name_than_the_plugins_are_told(install) -> None:
    install("plug_stray", MODULE.format(id="astray/Say-v0", what="it"), "stray")
    with pytest.warns(PluginWarning, match="its ids under 'astray' are found only after a listing"):
        specs()
    assert make("astray/Say-v0").task(0).reference == "it"


def test_an_unknown_id_says_that_plugins_may_have_it(install) -> None:
    install("plug_unopened", MODULE.format(id="unopened/Say-v0", what="it"), "unopened")
    with pytest.raises(UnknownEnvironment, match=r"Plug-ins have more, under .*unopened"):
        make("unopende/Say-v0")


def test_a_plugin_that_asks_for_a_listing_while_it_is_imported_is_no_loop(install) -> None:
    text = "import assay.envs\nassay.envs.specs()\n" + MODULE.format(id="loop/Say-v0", what="it")
    install("plug_loop", text, "loop")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make("loop/Say-v0").name == "loop/Say-v0"


def test_gymnasium_finds_plugins_by_either_module(install, tmp_path) -> None:
    install("plug_gym", MODULE.format(id="ingym/Say-v0", what="it"), "ingym")
    code = """
import json, sys
import gymnasium
import assay
before = [m for m in sys.modules if m.startswith("plug_")]
question = gymnasium.make(sys.argv[1]).reset(seed=0)[0]
print(json.dumps([before, question]))
"""
    told = []
    for id_ in ("plug_gym:ingym/Say-v0", "assay.plugins:ingym/Say-v0"):
        done = subprocess.run(
            [sys.executable, "-c", code, id_],
            capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60,
            env={"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert told[0][0] == []  # import assay imports no plug-in


def test_an_import_that_was_interrupted_is_tried_again(install, monkeypatch) -> None:
    install(
        "plug_slow",
        "import builtins\nif builtins.interrupted.pop('now', None): raise KeyboardInterrupt\n"
        + MODULE.format(id="slow/Say-v0", what="it"),
        "slow",
    )
    monkeypatch.setattr("builtins.interrupted", {"now": True}, raising=False)
    with pytest.raises(KeyboardInterrupt):
        make("slow/Say-v0")
    assert make("slow/Say-v0").task(0).reference == "it"
