"""Files of this machine that make up an image: its Python, Python packages, Debian packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import ImageUnavailable

if TYPE_CHECKING:
    from importlib.metadata import Distribution  # loads the modules of email

_LEFT_OUT = """
__phello__ ensurepip idlelib lib2to3 site-packages dist-packages test tests tkinter turtledemo venv
sitecustomize.py
"""
_NEVER = (  # for people, for a network that is not there, or this machine's own settings
    "/etc/",
    "/usr/include/node/",
    "/usr/lib/node_modules/",
    "/usr/share/bug/",
    "/usr/share/doc/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/locale/",
    "/usr/share/man/",
)
# They install packages or serve a network; python3 is the image's own.
_NOT_FOLLOWED = {"base-files", "ca-certificates", "debconf", "dpkg", "perl-base", "python3"}
_ALTERNATIVES = "/etc/alternatives"


@dataclass
class Tree:
    """A root file system, made of files of this machine.

    Attributes:
        files: where a file is in the image: where it is here.
        links: where a symbolic link is in the image: its target.
    """

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Add a file where it is here, with every link on the way to it."""
        while True:
            folder = self._real_folder(os.path.dirname(path))
            path = os.path.join(folder, os.path.basename(path))
            if path in self.links or path in self.files:
                return
            if not os.path.islink(path):
                break
            self.links[path] = os.readlink(path)
            path = os.path.normpath(os.path.join(folder, self.links[path]))
        if os.path.isfile(path):
            self.files[path] = path
        elif os.path.isdir(path):
            self._real_folder(path)

    def _real_folder(self, folder: str) -> str:
        """A folder's own path; the links that lead to it are added, such as /lib on Debian."""
        real = "/"
        for name in folder.strip("/").split("/"):
            path = os.path.join(real, name)
            if os.path.islink(path):
                self.links[path] = os.readlink(path)
                path = os.path.realpath(path)
            real = path
        return real


def add_python(tree: Tree) -> None:
    """This interpreter, its standard library, and what they load."""
    python = os.path.realpath(sys.executable)
    files = {python, *_standard_library(os.path.realpath(sysconfig.get_path("stdlib"))), *_locale()}
    for path in [*files, *shared_libraries([python, *filter(is_library, files)])]:
        tree.add(path)
    if "/usr/bin/python3" not in tree.files:
        tree.links["/usr/bin/python3"] = python


def _standard_library(stdlib: str) -> set[str]:
    """Sources, compiled files and extension modules. Compiled ones halve a slot's start."""
    tag = sys.implementation.cache_tag
    found = set()
    for folder, inner, names in os.walk(stdlib):
        inner[:] = [d for d in inner if d not in _LEFT_OUT.split() and not d.startswith("config-")]
        for name in names:
            wanted = name.endswith((".py", ".so", f".{tag}.pyc")) or ".so." in name
            if wanted and name not in _LEFT_OUT.split():
                found.add(os.path.join(folder, name))
    return found


def _locale() -> set[str]:
    """C.UTF-8, which programs run under: without its files setlocale fails."""
    found = os.walk("/usr/lib/locale/C.utf8")
    return {os.path.join(folder, name) for folder, _, names in found for name in names}


def is_library(path: str) -> bool:
    """A shared library, by its name."""
    return re.search(r"\.so(\.|$)", path) is not None


def shared_libraries(binaries: Iterable[str]) -> set[str]:
    """Every library that these need, by the paths under which the loader looks for them."""
    # These are our own interpreter's and packages' files: ldd runs their loader.
    listed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    found = {w for w in listed.stdout.split() if w.startswith("/") and os.path.isfile(w)}
    for folder in {os.path.dirname(path) for path in found}:
        # Loaded only when a thread is cancelled or C++ comes along, so ldd does not say.
        for name in ("libgcc_s.so.1", "libstdc++.so.6"):
            if os.path.isfile(path := os.path.join(folder, name)):
                found.add(path)
    return found


# -- Python packages ---------------------------------------------------------------------------


def distributions(wanted: Sequence[str]) -> list[Distribution]:
    """Installed distributions and all that they need, by name.

    Args:
        wanted: ``NAME`` or ``NAME==VERSION``.

    Raises:
        ImageUnavailable: some are not installed, or have another version.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    found: dict[str, Distribution] = {}
    missing: list[str] = []
    todo = [(item, True) for item in wanted]
    while todo:
        item, needed = todo.pop()
        name, _, version = item.partition("==")
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            missing += [item] if needed else []
            continue
        if version and installed.version != version:
            missing.append(item)
            continue
        found[key] = installed
        for requirement in installed.requires or ():
            what, _, marker = requirement.partition(";")
            needs = re.match(r"[\w.-]+", what.strip())
            # Markers are not read: what has one is taken where it is there.
            if needs and "extra" not in marker:
                todo.append((needs[0], not marker))
    if missing:
        names = " ".join(sorted(missing))
        raise ImageUnavailable(f"this Python lacks {names}: pip install {names}")
    return [found[key] for key in sorted(found)]


def distribution_files(distribution: Distribution) -> dict[str, str]:
    """Where its files belong in site-packages: where they are here. Its tests stay behind.

    Raises:
        ImageUnavailable: nothing says which files are its own.
    """
    if distribution.files is None:
        name = distribution.metadata["Name"]
        raise ImageUnavailable(f"{name} lists no files: pip install it into a virtual environment")
    found = {}
    for file in distribution.files:
        path = os.path.realpath(str(distribution.locate_file(file)))
        if ".." not in file.parts and "tests" not in file.parts and os.path.isfile(path):
            found[str(file)] = path
    return found


def add_distributions(tree: Tree, wanted: Sequence[str]) -> None:
    """Python packages, in the site-packages of the image's Python.

    Raises:
        ImageUnavailable: some are not installed here.
    """
    target = _site_packages()
    own: dict[str, str] = {}
    for distribution in distributions(wanted):
        for place, path in distribution_files(distribution).items():
            tree.files[os.path.join(target, place)] = path
            own[path] = place
    libraries = list(filter(is_library, own))
    for path in shared_libraries(libraries) if libraries else ():
        if os.path.realpath(path) not in own:
            tree.add(path)


def _site_packages() -> str:
    """Return the folder of packages of the base interpreter, which is the image's.

    A virtual environment does not know it: Debian's Python names it ``dist-packages``.
    """
    base = sys._base_executable  # type: ignore[attr-defined]  # typeshed lacks it
    command = [base, "-I", "-c", "import site; print(site.getsitepackages()[0])"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def package_folders(modules: Sequence[str]) -> dict[str, str]:
    """What makes these modules importable: names in a folder on the path, and where they are.

    Modules of the standard library, and those that are not installed, need and get nothing.
    """
    wanted = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    if not wanted:
        return {}
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    found: dict[str, str] = {}
    for installed in distributions([name for m in sorted(wanted) for name in owners.get(m, ())]):
        for place in distribution_files(installed):
            first = place.partition("/")[0]
            if first == "__pycache__":  # of everybody's modules
                continue
            found[first] = os.path.realpath(str(installed.locate_file(first)))
    return found


# -- Debian packages ---------------------------------------------------------------------------


def add_packages(tree: Tree, wanted: Sequence[str]) -> None:
    """Debian packages as they are installed here, with all that they depend on.

    Raises:
        ImageUnavailable: some are not installed, or this is no Debian.
    """
    if not wanted:
        return
    installed, provided = _installed()
    missing = [name for name in wanted if name not in installed and name not in provided]
    if missing:
        names = " ".join(missing)
        raise ImageUnavailable(f"this machine lacks {names}: apt-get install {names}")
    chosen: set[str] = set()
    todo = list(wanted)
    while todo:
        name = todo.pop()
        name = name if name in installed else provided[name]
        if name in chosen or name in _NOT_FOLLOWED:
            continue
        chosen.add(name)
        for choices in installed[name]:
            todo += [c for c in choices if c in installed or c in provided][:1]
    listed = _dpkg("-L", *sorted(chosen))
    for path in listed.splitlines():
        if path.startswith("/") and not path.startswith(_NEVER) and not os.path.isdir(path):
            tree.add(path)
    _add_alternatives(tree)


def _installed() -> tuple[dict[str, list[list[str]]], dict[str, str]]:
    """What each installed package depends on, as lists of choices; and who provides a name."""
    form = "${Package}\t${db:Status-Abbrev}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
    installed: dict[str, list[list[str]]] = {}
    provided: dict[str, str] = {}
    for line in _dpkg("-W", "-f", form).splitlines():
        name, status, provides, depends = line.split("\t")
        if status.startswith("ii"):
            installed[name] = [_names(choices, "|") for choices in depends.split(",")]
            provided.update(dict.fromkeys(_names(provides, ","), name))
    return installed, provided


def _names(text: str, mark: str) -> list[str]:
    """Names of packages, without versions and architectures."""
    found = [re.match(r"[a-z0-9][a-z0-9+.-]+", part.strip()) for part in text.split(mark)]
    return [match[0] for match in found if match]


def _dpkg(*arguments: str) -> str:
    command = ["dpkg-query", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        raise ImageUnavailable(
            f"system packages come from this machine's dpkg, which does not answer: {said}. "
            "On a machine that has no Debian they need a registry"
        ) from error


def _add_alternatives(tree: Tree) -> None:
    """Commands such as awk and cc, which are links that no package holds."""
    names = os.listdir(_ALTERNATIVES) if os.path.isdir(_ALTERNATIVES) else []
    for name in names:
        path = f"/usr/bin/{name}"
        if os.path.islink(path) and os.readlink(path) == f"{_ALTERNATIVES}/{name}":
            target = os.path.realpath(path)
            if target in tree.files:
                tree.links[path] = target
