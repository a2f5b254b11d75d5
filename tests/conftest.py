"""What all tests share."""

import contextlib
import functools
import logging
import os
import pkgutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from assay.envs import Completion, Episode, EpisodeGroup, Policy, Span, Task
from assay.sandbox import SandboxError, build_image, describe
from assay.sandbox.backends.registry import BACKENDS
from assay.verifiers import Status, Verdict

# The command line's console keeps the width that it finds when it is first imported: not that of
# whichever test happens to be the first.
os.environ.pop("COLUMNS", None)
import assay.console  # noqa: F401  # as above

# A shell without job control starts background jobs with SIGINT ignored, and children inherit it:
# then no test of Ctrl-C could work, whatever the code does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def modules() -> Callable[[str], list[ModuleType]]:
    """A function from a package's name to the package and all modules in it, imported."""
    return _modules


def _modules(name: str) -> list[ModuleType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of former places
        package = import_module(name)
        inner = pkgutil.walk_packages(getattr(package, "__path__", []), f"{name}.")
        return [package, *(import_module(module.name) for module in inner)]


_faults = {name: functools.cache(entry.fault) for name, entry in BACKENDS.items()}


def pytest_configure(config: pytest.Config) -> None:
    """Give each backend a mark for the tests that need it."""
    for name in BACKENDS:
        config.addinivalue_line("markers", f"{name}: needs this backend; skipped without it")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a backend that cannot be used here."""
    for name, find in _faults.items():
        if item.get_closest_marker(name) and (fault := find()):
            _skip_or_fail(fault) if name == "docker" else pytest.skip(fault)


def _skip_or_fail(fault: str) -> NoReturn:
    if os.environ.get("ASSAY_REQUIRE_DOCKER") == "1":
        pytest.fail(fault)
    pytest.skip(fault)


@pytest.fixture(scope="session")
def skip_or_fail() -> Callable[[str], NoReturn]:
    """Skip for want of a daemon or toolchain, or fail where the run says that there must be one."""
    return _skip_or_fail


@pytest.fixture(scope="session")
def shell_image() -> str:
    """The tag of the image that sessions and tasks start from; skips if no daemon answers."""
    try:
        build_image(description=describe("shell"))
    except SandboxError as error:
        _skip_or_fail(str(error))
    return describe("shell").tag


PLAIN = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


@pytest.fixture
def pocket() -> Callable[..., tuple[Any, Any]]:
    """A function from characters to an untrained model of them and its tokenizer.

    It is small enough to be trained within a test.
    """
    pytest.importorskip("torch")
    return _pocket


def _pocket(
    characters: str, *, added: Sequence[str] = (), template: str = PLAIN, seed: int = 0
) -> tuple[Any, Any]:
    """One token for each character and each added text; all else is unknown."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    names = ["<pad>", "<eos>", "<unk>", *characters]
    inner = Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.add_tokens(list(added))
    tokenizer.chat_template = template
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config), tokenizer


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of some 20,000 parameters, as a directory."""
    from assay.grpo import tiny_model

    folder = tmp_path_factory.mktemp("model")
    return tiny_model(folder, hidden_size=32, heads=4, intermediate_size=48)


@pytest.fixture
def model(model_dir: Path) -> Any:
    from assay.grpo import load_model

    return load_model(model_dir)[0]


@pytest.fixture(scope="session")
def tokenizer(model_dir: Path) -> Any:
    from assay.grpo import load_model

    return load_model(model_dir)[1]


class Digits:
    """Stands where an environment does: a reply that begins with a digit earns 1.

    Args:
        prompts: how many tasks a step has; they change with the step.
        none: episodes of these places in each group have no reward.
    """

    def __init__(self, prompts: int = 4, group_size: int = 4, none: tuple[int, ...] = ()) -> None:
        self.prompts, self.group_size, self.none = prompts, group_size, none
        self.groups: list[EpisodeGroup] = []

    def __call__(self, policy: Policy, step: int) -> list[EpisodeGroup]:
        """Roll out the step's tasks."""
        tasks = [Task(f"{step % 7}.{i}?", "", id=f"{step}-{i}") for i in range(self.prompts)]
        conversations = [t.messages for t in tasks for _ in range(self.group_size)]
        completions = iter(policy(conversations))
        self.groups = [
            EpisodeGroup(t, tuple(self._episode(t, next(completions), i) for i in self._places))
            for t in tasks
        ]
        return self.groups

    @property
    def _places(self) -> range:
        return range(self.group_size)

    def _episode(self, task: Task, reply: Completion, place: int) -> Episode:
        if place in self.none:
            verdict = Verdict.fault(Status.SANDBOX_ERROR, "the sandbox went away")
        elif reply.text[:1].isdigit():
            verdict = Verdict.correct()
        else:
            verdict = Verdict.wrong("no digit")
        return Episode(
            task.id,
            ({"role": "assistant", "content": reply.text},),
            verdict,
            truncated=reply.finish == "length",
            spans=(
                Span("environment", reply.prompt_ids),
                Span("model", reply.ids, reply.logprobs),
            ),
        )


@pytest.fixture
def digits() -> type[Digits]:
    return Digits


@contextlib.contextmanager
def _served_here(env: Any, limits: Any = None, tokens: Sequence[str] = ()) -> Iterator[Any]:
    import uvicorn

    from assay.service import ServiceLimits, Tokens, create_app
    from assay.service.server import configure, listen, url_of

    limits = limits or ServiceLimits()
    app = create_app(env, limits, Tokens(tokens))
    app.state.uvicorn = server = uvicorn.Server(configure(app, limits))
    listener = listen("127.0.0.1", 0, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield url_of(listener), app
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def served_here():
    """A context of an environment's server in a thread: its address, and the application."""
    return _served_here


@pytest.fixture(autouse=True, scope="module")
def sigterm_handler():
    """Restore the handler of SIGTERM after each file: Ray sets one of its own for good."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True, scope="module")
def service_loggers():
    """Restore the service's loggers after each file: ``assay serve`` sets them for its process."""
    names = ("assay.service", "assay.service.access", "uvicorn.error")
    loggers = [logging.getLogger(name) for name in names]
    before = [(each.handlers[:], each.propagate, each.level) for each in loggers]
    yield
    for each, (each.handlers[:], each.propagate, level) in zip(loggers, before, strict=True):
        each.setLevel(level)


def pytest_xdist_auto_num_workers() -> int:
    """Run two processes more than cores: many tests wait for containers, servers and limits."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: at the end one would keep a worker busy alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
