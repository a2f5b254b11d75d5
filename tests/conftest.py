"""What all tests share."""

import functools
import logging
import os
import pkgutil
import signal
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import pytest

from assay.sandbox import SandboxError, build_image, describe
from assay.sandbox.backends.registry import BACKENDS

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: at the end one would keep a worker busy alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
