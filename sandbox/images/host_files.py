"""Files of this machine that make up an image: its Python, Python packages, Debian packages."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ImageUnavailable

if TYPE_CHECKING:
    from importlib.metadata import Distribution  # loads the modules of email

_LEFT_OUT = """
__phello__ ensurepip idlelib lib2to3 site-packages dist-packages test tests tkinter turtledemo venv
_tkinter sitecustomize localtime posix right
"""
# C.UTF-8, which programs run under, and time zones. Neither tells the zone of this machine.
_DATA = ("/usr/lib/locale/C.utf8", "/usr/share/zoneinfo")
_OF_PROGRAMS = ("/tmp/", "/dev/", "/proc/", "/sys/")  # noqa: S108 - the sandbox's own
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
        folders: empty folders of the image, with their modes.
        scripts: commands of the image: their text.
    """

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)

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
        """Return a folder's own path; add the links that lead to it, such as /lib on Debian."""
        real = "/"
        for name in folder.strip("/").split("/"):
            path = os.path.join(real, name)
            if os.path.islink(path):
                self.links[path] = os.readlink(path)
                path = os.path.realpath(path)
            real = path
        return real


def add_python(tree: Tree) -> None:
    """Add this interpreter, its standard library, data and locale, and what they load."""
    for folder in python_folders():
        for path in _files(folder)[0]:
            tree.add(path)
    add_interpreter(tree)


def add_interpreter(tree: Tree) -> None:
    """Add this interpreter, and the libraries that it and its standard library load.

    Raises:
        ImageUnavailable: it lies where programs have a file system of their own.
    """
    python = os.path.realpath(sys.executable)
    stdlib = python_folders()[0]
    for path in (python, stdlib):
        if path.startswith(_OF_PROGRAMS):
            raise ImageUnavailable(
                f"programs cannot be shown {path}, since /{path.split('/')[1]} is their own: "
                "run this under a Python that is installed elsewhere"
            )
    tree.add(python)
    add_libraries(tree, [python, *filter(is_library, _files(stdlib)[0])])
    if "/usr/bin/python3" not in tree.files:
        tree.links["/usr/bin/python3"] = python


def python_folders() -> list[str]:
    """Return the standard library's folder, then those of its data that this machine has."""
    return [os.path.realpath(sysconfig.get_path("stdlib")), *filter(os.path.isdir, _DATA)]


def left_out() -> list[str]:
    """Return the folders of the standard library that are not shown, site-packages first of all."""
    return _files(python_folders()[0])[1]


@functools.cache
def _files(folder: str) -> tuple[list[str], list[str]]:
    """List what programs see of a folder of Python's, and the folders in it that they do not."""
    tag = sys.implementation.cache_tag  # compiled files halve a slot's start
    seen, unseen = [], []
    for above, inner, names in os.walk(folder):
        hidden = [d for d in inner if d in _LEFT_OUT.split() or d.startswith("config-")]
        unseen += [os.path.join(above, name) for name in hidden]
        inner[:] = [name for name in inner if name not in hidden]
        for name in names:
            wanted = name.endswith((".py", ".so", f".{tag}.pyc")) or ".so." in name
            if (wanted or folder in _DATA) and name.partition(".")[0] not in _LEFT_OUT.split():
                seen.append(os.path.join(above, name))
    return seen, unseen


def libraries_of(folder: str) -> list[str]:
    """List the shared libraries in a folder; of a file, itself if it is one."""
    files = [os.path.join(above, name) for above, _, names in os.walk(folder) for name in names]
    return list(filter(is_library, files or [folder]))


def is_library(path: str) -> bool:
    """Return whether a file is a shared library, by its name."""
    return re.search(r"\.so(\.|$)", path) is not None


def add_libraries(tree: Tree, binaries: Sequence[str]) -> None:
    """Add every shared library that these need, except those among them.

    The loader finds here what a cache or a variable of this machine names; a sandbox has neither,
    so what is not beside the C library gets a link there.
    """
    own = {os.path.realpath(path) for path in binaries}
    found = sorted(shared_libraries(binaries))
    standard = next((os.path.dirname(path) for path in found if "/libc.so" in path), None)
    for path in found:
        if os.path.realpath(path) in own:
            continue
        tree.add(path)
        if standard and not os.path.lexists(link := f"{standard}/{os.path.basename(path)}"):
            tree.links[os.path.join(os.path.realpath(standard), os.path.basename(link))] = path


def shared_libraries(binaries: Sequence[str]) -> set[str]:
    """Return every library that these need, by the paths under which the loader looks for them."""
    found: set[str] = set()
    for start in range(0, len(binaries), 200):  # an environment variable holds 128 KiB
        # What ldd does, for all of them at one time: the loader names what it would load, and
        # ends. These are our own interpreter's and packages' files.
        preload = " ".join(binaries[start : start + 200])
        listed = subprocess.run(
            [os.path.realpath(sys.executable), "-c", ""],
            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": preload},
            capture_output=True,
            text=True,
            check=False,
        )
        found |= {w for w in listed.stdout.split() if w.startswith("/") and os.path.isfile(w)}
    found = {os.path.normpath(path) for path in found}
    for folder in {os.path.dirname(path) for path in found}:
        # Loaded only when a thread is cancelled or C++ comes along, so the loader does not say.
        for name in ("libgcc_s.so.1", "libstdc++.so.6"):
            if os.path.isfile(path := os.path.join(folder, name)):
                found.add(path)
    return found


# -- Python packages ---------------------------------------------------------------------------


def distributions(wanted: Sequence[str]) -> list[Distribution]:
    """Return installed distributions and all that they need, by name.

    Args:
        wanted: ``NAME`` or ``NAME==VERSION``.

    Raises:
        ImageUnavailable: some are not installed, or have another version; or this package is
            among them.
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
        if key == "assay":
            raise ImageUnavailable(
                "programs cannot be shown assay, which holds the answers to its own tasks: leave "
                f"it, and what needs it, out of {' '.join(wanted)}"
            )
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
    """Map files of a distribution in site-packages to those here, without its tests.

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
    """Add Python packages, in the site-packages of the image's Python.

    Raises:
        ImageUnavailable: some are not installed here.
    """
    target = _site_packages()
    libraries = []
    for distribution in distributions(wanted):
        for place, path in distribution_files(distribution).items():
            tree.files[os.path.join(target, place)] = path
            libraries += [path] if is_library(path) else []
    add_libraries(tree, libraries)


def _site_packages() -> str:
    """Return the folder of packages of the base interpreter, which is the image's.

    A virtual environment does not know it: Debian's Python names it ``dist-packages``.
    """
    base = sys._base_executable  # type: ignore[attr-defined]  # typeshed lacks it
    command = [base, "-I", "-c", "import site; print(site.getsitepackages()[0])"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def package_folders(modules: Sequence[str]) -> dict[str, str]:
    """Map names in a folder on the path to what makes these modules importable.

    Modules of the standard library, and those that are not installed, need and get nothing.
    Of a namespace package only the parts of the modules' own distributions are among them.
    """
    wanted = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    if not wanted:
        return {}
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    found: dict[str, str] = {}
    for installed in distributions([name for m in sorted(wanted) for name in owners.get(m, ())]):
        for place in distribution_files(installed):
            first, *inner = place.split("/")
            if first == "__pycache__":  # of everybody's modules
                continue
            folder = str(installed.locate_file(first))
            if inner and "." not in first and not os.path.isfile(f"{folder}/__init__.py"):
                first, folder = f"{first}/{inner[0]}", f"{folder}/{inner[0]}"
            found[first] = os.path.realpath(folder)
    return found


# -- Debian packages ---------------------------------------------------------------------------


def add_packages(tree: Tree, wanted: Sequence[str]) -> None:
    """Add Debian packages as they are installed here, with all that they depend on.

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
    if "base-passwd" in chosen:
        _add_system(tree)


def _installed() -> tuple[dict[str, list[list[str]]], dict[str, str]]:
    """Return what each installed package depends on, as lists of choices, and name providers."""
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
    """Return names of packages, without versions and architectures."""
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
    """Add commands such as awk and cc, which are links that no package holds."""
    names = os.listdir(_ALTERNATIVES) if os.path.isdir(_ALTERNATIVES) else []
    for name in names:
        path = f"/usr/bin/{name}"
        if os.path.islink(path) and os.readlink(path) == f"{_ALTERNATIVES}/{name}":
            target = os.path.realpath(path)
            if target in tree.files:
                tree.links[path] = target


def _add_system(tree: Tree) -> None:
    """Add users, their folders, and the commands that people expect of a system's Python."""
    for name in ("passwd", "group"):
        tree.files[f"/etc/{name}"] = f"/usr/share/base-passwd/{name}.master"
    tree.folders |= {"/home": 0o755, "/root": 0o755, "/run": 0o755, "/var/tmp": 0o1777}  # noqa: S108
    tree.links.setdefault("/usr/bin/python", "python3")
    tree.scripts["/usr/local/bin/pytest"] = '#!/bin/sh\nexec python3 -m pytest "$@"\n'
