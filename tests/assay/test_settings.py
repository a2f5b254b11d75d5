"""Settings of a training run: files, flags and presets are validated by one dataclass."""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo import PRESETS, GRPOConfig
from assay.settings_page import page
from assay.train_config import TrainConfig
from assay.train_settings import (
    as_file,
    build,
    defaults,
    descriptions,
    from_file,
    from_text,
    groups,
    hints,
    layered,
    refuse_unreached,
)

DOCS = Path(__file__).parents[2] / "docs"
NEEDED = {"env": "assay/Arithmetic-v1", "model": "m"}


def file(folder: Path, text: str, name: str = "run.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_page_of_the_docs_is_what_the_command_prints() -> None:
    assert (DOCS / "settings.md").read_text() == page(), (
        "run: assay presets --markdown > docs/settings.md"
    )


def test_every_setting_has_a_meaning_a_type_and_one_place() -> None:
    names = [f.name for f in fields(TrainConfig)]
    assert set(descriptions()) == set(names)
    placed = [name for chosen in groups().values() for name in chosen]
    assert sorted(placed) == sorted(names)
    for name in names:
        assert name in hints()
        assert "`~" not in descriptions()[name]
    needed = {f.name for f in fields(TrainConfig) if f.default is f.default_factory is MISSING}
    assert needed == set(NEEDED)


def test_the_learner_reads_its_own_part() -> None:
    config = TrainConfig(**NEEDED, steps=7, loss="grpo")
    assert config.learner() == GRPOConfig(steps=7, loss="grpo", eval_every=50, save_every=50)
    assert type(config.learner()) is GRPOConfig


# -- files -------------------------------------------------------------------------------------


def test_numbers_are_read_as_yaml_1_2_reads_them(tmp_path: Path) -> None:
    text = "{a: 1e-6, b: 010, c: no, d: 1:30, e: 0x10, f: .5, g: -.inf, h: ~, j: }"
    found = from_file(file(tmp_path, f"env_args: {text}"))["env_args"]
    assert found == {
        "a": 1e-6, "b": 10, "c": "no", "d": "1:30", "e": 16, "f": 0.5, "g": -math.inf, "h": None,
        "j": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learning_rte: 1", "no setting 'learning_rte'. Did you mean learning_rate?"),
        ("prest: dapo", "Did you mean preset?"),
        ("xyzzy: 1", "See: assay train --print-config"),
        ("learning_rate: '1e-6'", "must be a valid number, got '1e-6': write it without quotes"),
        ("beta: true", "beta must be a valid number, got True"),
        ("steps: 1e3", "steps must be a valid integer, got 1000.0"),
        ("steps: true", "steps must be a valid integer, got True"),
        ("mask_truncated: no", "mask_truncated must be a valid boolean, got 'no'"),
        ("mask_truncated: 1", "mask_truncated must be a valid boolean, got 1"),
        ("clip_high: high", "clip_high must be a valid number, got 'high'"),
        ("loss: ppo", "loss must be 'dapo', 'grpo', 'bnpo' or 'dr_grpo', got 'ppo'"),
        ("env: 3", "env must be a valid string, got 3"),
        ("env_args: [1]", "env_args must be an object, got [1]"),
        ("reward_weights: {a: x}", "reward_weights must be a valid number, got {'a': 'x'}"),
        ("trackers: wandb", "trackers must be a valid array, got 'wandb'"),
        ("preset: dappo", "no preset is called 'dappo'. Did you mean dapo?"),
        ("steps: 1\nsteps: 2", 'found duplicate key "steps" (line 2)'),
        ("- steps", "must hold lines 'name: value'"),
        ("steps: [", "cannot be read"),
        ("!!python/object/apply:os.system [ls]", "cannot be read"),
    ],
)
def test_the_types_in_a_file_are_validated(tmp_path: Path, text: str, words: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        from_file(path)
    assert str(path) in str(error.value)


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    says = {"steps": 5, "learning_rate": 1e-6, "preset": "dapo", "env_args": {"digits": 3}}
    toml = 'steps = 5\nlearning_rate = 1e-6\npreset = "dapo"\n[env_args]\ndigits = 3\n'
    assert from_file(file(tmp_path, toml, "run.toml")) == says
    assert from_file(file(tmp_path, json.dumps(says), "run.json")) == says
    assert from_file(file(tmp_path, "", "run.yml")) == {}
    with pytest.raises(ValueError, match="steps must be a valid integer, got datetime"):
        from_file(file(tmp_path, "steps = 2024-01-01", "date.toml"))
    with pytest.raises(ValueError, match='duplicate key "steps"'):
        from_file(file(tmp_path, '{"steps": 1, "steps": 2}', "twice.json"))
    with pytest.raises(ValueError, match=r"must end in \.yaml"):
        from_file(file(tmp_path, "", "run.ini"))
    with pytest.raises(FileNotFoundError, match="no such file"):
        from_file(tmp_path / "none.yaml")


def test_a_whole_number_is_a_number(tmp_path: Path) -> None:
    found = from_file(file(tmp_path, "learning_rate: 1\nclip_high: 2\ntrackers: [wandb]"))
    assert found == {"learning_rate": 1.0, "clip_high": 2.0, "trackers": ("wandb",)}
    assert type(found["learning_rate"]) is float


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(value=JSON)
def test_settings_printed_as_a_file_are_read_back(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    args = {"split": "no", "x": [1e-7, None], "any": value}
    values = {**NEEDED, **PRESETS["gspo"].overrides, "env_args": args}
    text = as_file(values)
    expected = {**defaults(), **values}
    assert from_file(file(tmp_path_factory.getbasetemp(), text)) == expected
    assert all(f"\n{name}: " in f"\n{text}" for name in expected)
    assert "# env:" in as_file({})  # to be filled in


# -- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("steps", "3", 3),
        ("learning_rate", "1e-6", 1e-6),
        ("beta", "-1", -1.0),
        ("clip_high", "none", None),
        ("clip_high", "0.28", 0.28),
        ("data", "None", None),
        ("model", "none", "none"),
        ("model", "1e-6", "1e-6"),
        ("model", "[a", "[a"),
        ("correction", "none", "none"),
        ("reward_weights", '{"a": 1}', {"a": 1.0}),
        ("lora_targets", "all-linear", "all-linear"),
        ("lora_targets", '["q", "v"]', ("q", "v")),
    ],
)
def test_a_text_is_read_as_its_type(name: str, text: str, value: Any) -> None:
    found = from_text("--x", name, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("steps", "3.5", "a valid integer"),
        ("steps", "x", "a valid integer"),
        ("beta", "none", "a valid number"),
        ("reward_weights", "a=1", "an object, as JSON"),
        ("reward_weights", '{"a": "x"}', "a valid number"),
        ("kl", "k4", "'k1', 'k2' or 'k3'"),
    ],
)
def test_a_text_of_another_type_is_refused(name: str, text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=f"^--x must be {rule}, got {re.escape(repr(text))}$"):
        from_text("--x", name, text)


# -- layers ------------------------------------------------------------------------------------


def test_flags_go_before_the_file_and_the_file_before_the_preset() -> None:
    values, given_now = layered(
        stored={"seed": 3, "steps": 9, "env_args": {"digits": 1}},
        preset=None,
        file={"preset": "dapo", "clip_high": 0.3, "steps": 5, "env_args": {"split": "train"}},
        flags={"steps": 7, "env_args": {"digits": 2}},
    )
    assert values["clip_high"] == 0.3
    assert values["mask_truncated"] is True
    assert (values["steps"], values["seed"]) == (7, 3)
    assert values["env_args"] == {"digits": 2, "split": "train"}
    assert "preset" not in values
    assert "seed" not in given_now
    assert {"steps", "clip_high", "minibatches"} <= given_now


def test_a_default_that_is_written_down_is_not_asked_for() -> None:
    """A file of --print-config holds all defaults, and gives the same run as no file."""
    values, given_now = layered(stored={}, preset=None, file=defaults(), flags={"steps": 1})
    assert given_now == {"steps"}
    refuse_unreached(build({**values, **NEEDED}), given_now)


def test_a_preset_given_as_a_flag_takes_the_place_of_the_files() -> None:
    values, _ = layered(stored={}, preset="gspo", file={"preset": "dapo"}, flags={})
    assert values == PRESETS["gspo"].overrides


def test_what_is_missing_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"env is not set: .*Give it as the first argument, or"):
        build({"model": "m"})
    with pytest.raises(ValueError, match=r"model is not set: .*Give it with --model, or in a"):
        build({"env": "e"})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"curriculum_target": 0.3}, "has no effect with curriculum='uniform'.*target_rate"),
        ({"curriculum": "easy_to_hard", "curriculum_floor": 0.1}, "target_rate or prioritised"),
        ({"curriculum": "hard"}, "curriculum must be one of"),
        ({"curriculum": "easy_to_hard", "curriculum_start": 0.0}, r"in \(0, 1\], got 0.0"),
        ({"curriculum": "target_rate", "curriculum_target": 1.0}, r"in \(0, 1\), got 1.0"),
        ({"held_out_data": "a", "eval_every": 0}, "nothing is evaluated"),
        ({"eval_samples": 4, "eval_every": 0}, "eval_samples=4 has no effect with eval_every=0"),
        (
            {"held_out": 0},
            r"held_out must be at least 1 \(for no evaluation set eval_every to 0\), got 0",
        ),
        ({"env_args": {"data": "x"}}, "give it as data"),
        ({"levels": {"level": (1, 2)}, "env_args": {"level": 1}}, "give one of them"),
        ({"lora_alpha": 8.0}, "lora_alpha=8.0 has no effect with lora_rank=0"),
        ({"lora_rank": -1}, "lora_rank must be at least 0, got -1"),
        ({"lora_rank": 4, "lora_alpha": 0.0}, "alpha must be above 0"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"group_size": 1}, "group_size must be at least 2"),
        ({"learning_rate": math.nan}, "learning_rate must be finite, got nan"),
        ({"learning_rate": 3e4}, "at most 1, got 30000.0: AdamW"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0: .* teach nothing"),
        ({"keep_best": True, "eval_every": 0}, "keep_best needs evaluations"),
    ],
)
def test_what_is_certainly_wrong_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build({**NEEDED, **values})


def test_what_would_never_be_reached_is_refused_where_it_was_asked_for() -> None:
    config = build({**NEEDED, "steps": 5})
    refuse_unreached(config, {"steps"})  # the defaults, 10 and 50, are nobody's wish
    with pytest.raises(ValueError, match=r"warmup_steps=10 is more than steps=5"):
        refuse_unreached(config, {"warmup_steps"})
    with pytest.raises(ValueError, match=r"save_every=50 is more than steps=5"):
        refuse_unreached(config, {"save_every"})
    config = build({**NEEDED, "steps": 99, "eval_every": 50, "early_stop": 2})  # at 50 and at 99
    refuse_unreached(config, {"early_stop"})
    config = build({**NEEDED, "steps": 99, "eval_every": 50, "early_stop": 3})
    with pytest.raises(ValueError, match=r"early_stop=3 can end no run of 2 evaluations"):
        refuse_unreached(config, {"early_stop"})
