"""Carry what an agent wrote into a fresh container of the same image.

Paths of tools are never carried: the tests' programs, libraries, profiles and settings are the
image's. What is carried belongs to the agent's user there.
"""

from __future__ import annotations

import copy
import fnmatch
import io
import itertools
import posixpath
import re
import shlex
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...sandbox import Session

TESTS_ONLY = ("/tests", "/solution", "/logs", "/assay")
"""Folders that are not the agent's: nothing in them is carried, and no link may lead there."""

AGENTS_HOME = "/tmp/assay-home"  # noqa: S108  # in the container
"""The home of the agent's programs while the tests run."""

_TOOLS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/boot", "/dev"),
    *("/proc", "/sys", "/run", "/var/lib/dpkg", "/var/lib/apt", "/var/spool/cron", "/.dockerenv"),
)
STARTUP = frozenset(
    (
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".bash_aliases"),
        *(".zshrc", ".zshenv", ".inputrc", ".local", ".config", ".pydistutils.cfg", ".pythonrc.py"),
        *(".curlrc", ".wgetrc", ".jq", ".pip", ".cache/pip"),
    )
)
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # theirs is what is in them
_RUN = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/etc")
"""What the image's programs need: no folder that has one of them is carried as an artifact."""
# %z has the whole time: a file may change in the second in which the image was built.
_LIST = """find / /tmp -xdev \\( {pruned} \\) -prune -o \\
    -exec stat -c '%z %s %f\t%n' {{}} + 2>/dev/null"""
_ENTRY = re.compile(rb"[\d:.+ -]+ \d+ [\da-f]+")
_MOST_FILES = 200_000
_LAST_TIME = 1 << 33
_LONGEST_NAME = 4096
_MOST_PATHS = 20
_LONGEST_HEADER = 1 << 15  # of a name and a link's target, and what else tar says of a file
_NAMES_OF_NEXT = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MANY_DIGITS = re.compile(rb"\d{256}")  # the parts of a path are shorter
_PACK = """rm -rf /.assay-carry
case $(tar --version 2> /dev/null) in
*GNU*) tar --null -cf /.assay-carry --no-recursion -C / -T /.assay-list ;;
*) tr '\\0' '\\n' < /.assay-list > /.assay-names
    tar -cf /.assay-carry --no-recursion -C / -T /.assay-names ;;
esac"""


class AgentsFault(Exception):
    """The agent left its container in a state that cannot be graded: it earns nothing."""


@dataclass(frozen=True)
class Carried:
    """What the agent changed.

    Attributes:
        members: files, folders and links for a tar archive, with the bytes of files. Hidden
            files of its home are below :data:`AGENTS_HOME` too, start-up files nowhere else.
        deleted: paths of the image that are gone.
        paths: folders that it has added to those of Python's modules.
    """

    members: tuple[tuple[tarfile.TarInfo, bytes], ...] = ()
    deleted: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def tool_paths(search_path: str, python: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the folders that are never carried: the system's, the image's PATH, its Python's."""
    found = {*_TOOLS, *map(posixpath.normpath, python)}
    for folder in filter(None, search_path.split(":")):
        folder = posixpath.normpath(folder)
        parent, name = posixpath.split(folder)
        found.add(parent if name in ("bin", "sbin") and parent != "/" else folder)
    return tuple(sorted(path for path in found if path.startswith("/") and path != "/"))


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a normalized path is one of the folders or below one."""
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def normal(path: str) -> str:
    """Return an absolute path without ``.``, ``..`` and slashes too many: normpath keeps ``//``."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


def listing(session: Session, tools: Iterable[str]) -> dict[str, str]:
    """Return the times, sizes and modes of all files outside the tools' folders, by path."""
    pruned = " -o ".join(f"-path {shlex.quote(p)}" for p in (*tools, *TESTS_ONLY, "/logs"))
    done = session.exec(_LIST.format(pruned=pruned), timeout_s=120.0, user=0, cwd="/")
    if done.timed_out or done.stdout_truncated:
        raise AgentsFault("its files are too many to list")
    found, path = dict[str, str](), ""
    for line in done.stdout.split(b"\n")[:-1]:
        entry, _, name = line.partition(b"\t")
        if _ENTRY.fullmatch(entry):
            path = normal(name.decode("utf-8", "surrogateescape"))
            found[path] = entry.decode("ascii")
        elif path:  # a name may hold the end of a line
            said = found.pop(path)
            path += "\n" + line.decode("utf-8", "surrogateescape")
            found[path] = said
    return found


def collect(
    session: Session,
    clean: dict[str, str],
    tools: tuple[str, ...],
    *,
    search: Sequence[str] = (),
    also: Mapping[str, Sequence[str]] = {},
    changes: bool = True,
    home: str = "/root",
    python: Sequence[str] = (),
    limit_mib: float = 512.0,
) -> Carried:
    """Return what an agent changed, whose processes are dead.

    Its own ``find`` and ``tar`` are asked, which can only tell what it could have written.

    Args:
        session: the agent's.
        clean: :func:`listing` of a fresh container of the image.
        tools: folders to leave out.
        search: the folders of the image's PATH.
        also: files and folders that the task declares: they are taken from tools' folders too. Each
            with the patterns of what to leave out of it, as for ``tar --exclude``. Not from tools'
            folders if it has programs, libraries or settings that the image needs.
        changes: take all changes; else only what is declared.
        home: its start-up files are for the agent's programs only.
        python: folders of the image's Python.
        limit_mib: of all files together.

    Raises:
        AgentsFault: the files cannot be read, or are too large.
    """
    found = listing(session, tools)
    wanted = [p for p, entry in found.items() if clean.get(p) != entry] if changes else []
    # A link of the image that is another thing now goes first: tar would write through it.
    links = {p for p, entry in clean.items() if _is_link(entry)}
    deleted = [p for p in clean if p not in found or (p in links and found[p] != clean[p])]
    deleted = deleted if changes else []
    sources = {normal(path): patterns for path, patterns in also.items()}
    needed = (*_RUN, *tools, *search)
    declared = [path for path in sources if not any(is_below(run, [path]) for run in needed)]
    for source, patterns in sources.items():
        words = f"find {shlex.quote(source)} -xdev -print0 2>/dev/null"
        below = session.exec(words, timeout_s=60.0, user=0, cwd="/")
        paths = below.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        wanted += [path for path in paths if not _is_excluded(path, source, patterns)]

    def may(path: str) -> bool:
        if path in ("/", *TEMPORARY) or any(
            is_below(kept, [path]) for kept in (*tools, *TESTS_ONLY)
        ):
            return False  # whoever owns what a tool's folder lies in can replace that
        artifact = is_below(path, ("/logs/artifacts",)) or is_below(path, declared)
        refused = is_below(path, tools) and not artifact
        closed = is_below(path, TESTS_ONLY) and not is_below(path, ("/logs/artifacts",))
        return not (refused or closed)

    names = [p for p in dict.fromkeys(map(normal, wanted)) if may(p)]
    deleted = [p for p in filter(may, deleted) if not _startup_below(p, home)]
    added = _added_paths(session, python, may) if changes else ()
    if not names:
        return Carried((), tuple(deleted), added)
    listed = "\0".join(f".{path}" for path in names).encode("utf-8", "surrogateescape")
    try:
        session.put("/.assay-list", listed, user=0)
        session.exec(_PACK, timeout_s=120.0, user=0, cwd="/")
        data = session.get("/.assay-carry", limit_mib=limit_mib, user=0)
    except OSError as error:
        raise AgentsFault(f"its files cannot be read: {error}") from error
    try:
        limit = int(limit_mib * (1 << 20))
        members = tuple(_members(data, may, links - set(deleted), home, limit))
    except Exception as error:  # a forged archive may raise anything, RecursionError too
        raise AgentsFault(f"its files cannot be read: {error!r:.200}") from error
    return Carried(members, tuple(deleted), added)


def _added_paths(
    session: Session, python: Sequence[str], may: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the agent's folders that ``.pth`` files name, as an editable install does."""
    files = " ".join(f"{shlex.quote(folder)}/*.pth" for folder in python)
    said = session.exec(f"cat {files} 2>/dev/null", timeout_s=60.0, user=0, cwd="/").stdout
    lines = said[:_LONGEST_HEADER].decode("utf-8", "replace").split("\n")
    named = [normal(line) for line in map(str.strip, lines) if line[:1] == "/" and ":" not in line]
    return tuple(dict.fromkeys(path for path in named if may(path)))[:_MOST_PATHS]


def _startup_below(path: str, home: str) -> str:
    """Return the path of a start-up file below its folder; empty for another file."""
    parent, name = posixpath.split(path)
    if name in STARTUP and is_below(parent, (home,)):
        return path.removeprefix(home)
    return path.removeprefix(home) if any(is_below(path, (f"{home}/{n}",)) for n in STARTUP) else ""


def _is_excluded(path: str, source: str, patterns: Sequence[str]) -> bool:
    """Return whether a part of a path below its source fits a pattern, as tar sees it."""
    parts = posixpath.relpath(path, source).split("/")
    pieces = ["/".join(parts[i:j]) for j in range(1, len(parts) + 1) for i in range(j)]
    return any(fnmatch.fnmatchcase(piece, p.rstrip("/")) for piece in pieces for p in patterns)


def _is_link(entry: str) -> bool:
    return entry.rpartition(" ")[2].startswith("a")  # the mode in hexadecimal: 0xa000 is a link


def _members(
    data: bytes, may: Callable[[str], bool], kept: set[str], home: str, limit: int
) -> Iterable[tuple[tarfile.TarInfo, bytes]]:
    """Read an archive that the agent may have forged: plain files, folders and harmless links.

    Args:
        data: the archive.
        may: whether a path may be carried.
        kept: links of the image, which lead where the image wants.
        home: whose start-up files are put elsewhere.
        limit: bytes of all files together.

    Raises:
        Exception: it is not what tar writes.
    """
    found: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    firsts: dict[str, tarfile.TarInfo] = {}
    size = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", tarinfo=_Bounded) as archive:
        for number, member in enumerate(archive):
            if max(len(member.name), len(member.linkname)) > _LONGEST_NAME:
                raise ValueError("a name is too long")
            path = normal(member.name)
            if "\0" in path + member.linkname:  # the clean image's tar would end the name there
                raise ValueError("a name holds a zero byte")
            if number > _MOST_FILES or member.issparse() or member.size > len(data):
                raise ValueError("they are too many, or larger than what came of them")
            if not may(path) or path.startswith("/.assay") or path in kept:
                continue
            # A hard link is what came first; a search for it would read all members again.
            member = firsts[normal(member.linkname)] if member.islnk() else member
            firsts[path] = member
            made = tarfile.TarInfo(path.lstrip("/"))
            made.mode = member.mode & 0o777
            made.mtime = member.mtime if 0 <= member.mtime < _LAST_TIME else 0  # it may be nan
            content = b""
            if member.isdir():
                made.type = tarfile.DIRTYPE
            elif member.issym():
                made.type, made.linkname = tarfile.SYMTYPE, member.linkname
                target = normal(posixpath.join(posixpath.dirname(path), made.linkname))
                names = [n for n in made.linkname.split("/") if n not in ("", ".")]
                if ".." in itertools.dropwhile("..".__eq__, names):
                    made.linkname = target  # what is before the .. may be a link, to elsewhere
                if target == "/" or is_below(target, (*TESTS_ONLY, "/proc", "/dev")):
                    continue
            elif member.isreg():
                if (size := size + member.size) > limit:
                    raise ValueError("they are larger than the limit, each hard link as a file")
                source = archive.extractfile(member)
                content = source.read() if source else b""
                made.size = len(content)
            else:
                continue
            found[path] = made, content
    links = kept | {path for path, (made, _) in found.items() if made.issym()}
    for path in sorted(found):  # no file goes through a link, and folders come first
        above = posixpath.dirname(path)
        while above != "/" and above not in links:
            above = posixpath.dirname(above)
        if above == "/":
            made, content = found[path]
            if not _startup_below(path, home):
                yield made, content
            if path.startswith(f"{home}/."):
                again = copy.copy(made)
                again.name = (AGENTS_HOME + path.removeprefix(home)).lstrip("/")
                yield again, content


class _Bounded(tarfile.TarInfo):
    """A header that costs its reader no more than it is long."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        """Read what follows a header.

        Raises:
            ValueError: no file is so, but a reader could go round in it, or through it for hours.
        """
        if self.size < 0 or self.type == tarfile.GNUTYPE_SPARSE:
            raise ValueError("a size is negative, or a file has holes")
        if self.type in _NAMES_OF_NEXT:
            if self.size > _LONGEST_HEADER:
                raise ValueError("a name is too long")
            source: Any = archive.fileobj
            position = source.tell()
            header = source.read(self.size)
            source.seek(position)
            if _MANY_DIGITS.search(header):
                raise ValueError("a number is too long")
        return super()._proc_member(archive)  # type: ignore[misc]
