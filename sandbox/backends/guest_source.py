"""The guest's source, as the one argument that ``python3 -c`` gets."""

from __future__ import annotations

import binascii
import functools
import importlib.resources
import json
import random
import zlib
from typing import Any

from .. import guest

_MODULES = (  # each after those that it imports
    "fork_hooks",
    "wire",
    "child",
    "arrays",
    "values",
    "exceptions",
    "remote",
    "copies",
    "library",
    "channel",
    "candidate",
    "pytest_stub",
    "suite",
    "cases",
    "tester",
    "clock",
    "process_tree",
    "cleanup",
    "commands",
    "streams",
    "kernel_memory",
    "supervisor",
)
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""The guest's environment, beside its PATH."""

_LARGEST_ARGUMENT = 128 * 1024 - 1  # bytes: Linux's MAX_ARG_STRLEN, its final zero left out

# The files are modules of a package there too, so their relative imports work unchanged.
_LOADER = """\
import binascii, json, sys, types, zlib
SOURCES = json.loads(zlib.decompress(binascii.a2b_base64(PACKED)))
package = types.ModuleType("_assay")
package.__path__ = []
sys.modules["_assay"] = package
for name, text in SOURCES:
    module = types.ModuleType("_assay." + name)
    module.__package__ = "_assay"
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(text, "<assay " + name + ">", "exec", dont_inherit=True), module.__dict__)
    if name == "fork_hooks":
        module.keep_hooks()
sys.modules["_assay.supervisor"].main()
"""


@functools.cache
def guest_source() -> str:
    """Return the program that becomes process 1 of a slot.

    It is read through importlib, so it is found in a wheel and in a zip file as well.
    """
    folder = importlib.resources.files(guest)
    sources = [(name, (folder / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    packed = binascii.b2a_base64(zlib.compress(json.dumps(sources).encode(), 9), newline=False)
    source = f"PACKED = {packed.decode()!r}\n{_LOADER}"
    if len(source.encode()) > _LARGEST_ARGUMENT:
        raise ValueError(f"the guest is {len(source)} bytes, more than one argument may hold")
    return source


def foreign_uid() -> int:
    """Return a first user id far from real users, and from those of other slots.

    RLIMIT_NPROC counts by user.
    """
    return (1 << 20) + (random.randrange(1 << 18) << 12)  # noqa: S311 - no secret


def guest_command(python: str, config: dict[str, Any]) -> list[str]:
    """Return the command line of a slot.

    ``-I`` would ignore PYTHONHASHSEED, and sets of strings would then iterate differently from
    slot to slot. The environment is ours, so nothing else is lost by leaving it out.
    """
    return [python, "-s", "-S", "-u", "-c", guest_source(), json.dumps(config)]
