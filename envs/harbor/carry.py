"""Carry what an agent wrote into a fresh container of the same image.

Paths of tools are never carried: the tests' programs, libraries, profiles and settings are the
image's. What is carried belongs to the agent's user there.
"""

from __future__ import annotations

import fnmatch
import io
import itertools
import posixpath
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...sandbox import Session

TESTS_ONLY = ("/tests", "/solution", "/logs", "/assay")
"""Folders that are not the agent's: nothing in them is carried, and no link may lead there."""

_TOOLS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/boot", "/dev"),
    *("/proc", "/sys", "/run", "/var/lib/dpkg", "/var/lib/apt", "/var/spool/cron", "/.dockerenv"),
)
_STARTUP = frozenset(
    (
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".bash_aliases"),
        *(".zshrc", ".zshenv", ".inputrc", ".local", ".config", ".pydistutils.cfg", ".pythonrc.py"),
        *(".curlrc", ".wgetrc", ".jq", ".pip"),
    )
)
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # theirs is what is in them
_RUN = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/etc")
"""What the image's programs need: no folder that has one of them is carried as an artifact."""
# %z has the whole time: a file may change in the second in which the image was built.
_LIST = """find / /tmp -xdev \\( {pruned} \\) -prune -o \\
    -exec stat -c '%z %s %f\t%n' {{}} + 2>/dev/null"""
_MOST_FILES = 200_000
_LAST_TIME = 1 << 33
_PACK = "rm -rf /.assay-carry; tar -cf /.assay-carry --no-recursion -C / -T /.assay-list"


class AgentsFault(Exception):
    """The agent left its container in a state that cannot be graded: it earns nothing."""


@dataclass(frozen=True)
class Carried:
    """What the agent changed.

    Attributes:
        members: files, folders and links for a tar archive, with the bytes of files.
        deleted: paths of the image that are gone.
    """

    members: tuple[tuple[tarfile.TarInfo, bytes], ...] = ()
    deleted: tuple[str, ...] = ()


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
    pruned = " -o ".join(f"-path {_quoted(p)}" for p in (*tools, *TESTS_ONLY, "/logs"))
    done = session.exec(_LIST.format(pruned=pruned), timeout_s=120.0, user=0, cwd="/")
    if done.timed_out or done.stdout_truncated:
        raise AgentsFault("its files are too many to list")
    found = {}
    for line in done.stdout.split(b"\n"):
        entry, separator, name = line.partition(b"\t")
        if separator:
            path = normal(name.decode("utf-8", "surrogateescape"))
            found[path] = entry.decode("ascii", "replace")
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
        home: its start-up files are left out.
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
        words = f"find {_quoted(source)} -xdev 2>/dev/null"
        below = session.exec(words, timeout_s=60.0, user=0, cwd="/")
        paths = below.stdout.decode("utf-8", "surrogateescape").splitlines()
        wanted += [path for path in paths if not _is_excluded(path, source, patterns)]

    def may(path: str) -> bool:
        if path in ("/", *_TEMPORARY) or any(
            is_below(kept, [path]) for kept in (*tools, *TESTS_ONLY)
        ):
            return False  # whoever owns what a tool's folder lies in can replace that
        artifact = is_below(path, ("/logs/artifacts",)) or is_below(path, declared)
        parent, name = posixpath.split(path)
        refused = is_below(path, tools) and not artifact
        startup = name in _STARTUP or any(is_below(path, (f"{home}/{n}",)) for n in _STARTUP)
        closed = is_below(path, TESTS_ONLY) and not is_below(path, ("/logs/artifacts",))
        return not (refused or closed or (startup and is_below(parent, (home,))))

    names = [p for p in dict.fromkeys(map(normal, wanted)) if may(p)]
    deleted = list(filter(may, deleted))
    if not names:
        return Carried((), tuple(deleted))
    listed = "\n".join(f".{path}" for path in names).encode("utf-8", "surrogateescape")
    try:
        session.put("/.assay-list", listed, user=0)
        session.exec(_PACK, timeout_s=120.0, user=0, cwd="/")
        data = session.get("/.assay-carry", limit_mib=limit_mib, user=0)
    except OSError as error:
        raise AgentsFault(f"its files cannot be read: {error}") from error
    try:
        members = tuple(_members(data, may, links - set(deleted)))
    except Exception as error:  # a forged archive may raise anything, RecursionError too
        raise AgentsFault(f"its files cannot be read: {error!r:.200}") from error
    return Carried(members, tuple(deleted))


def _is_excluded(path: str, source: str, patterns: Sequence[str]) -> bool:
    """Return whether a part of a path below its source fits a pattern, as tar sees it."""
    parts = posixpath.relpath(path, source).split("/")
    pieces = ["/".join(parts[i:j]) for j in range(1, len(parts) + 1) for i in range(j)]
    return any(fnmatch.fnmatchcase(piece, p.rstrip("/")) for piece in pieces for p in patterns)


def _is_link(entry: str) -> bool:
    return entry.rpartition(" ")[2].startswith("a")  # the mode in hexadecimal: 0xa000 is a link


def _members(
    data: bytes, may: Callable[[str], bool], kept: set[str]
) -> Iterable[tuple[tarfile.TarInfo, bytes]]:
    """Read an archive that the agent may have forged: plain files, folders and harmless links.

    Args:
        data: the archive.
        may: whether a path may be carried.
        kept: links of the image, which lead where the image wants.

    Raises:
        Exception: it is not what tar writes.
    """
    found: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            path = normal(member.name)
            if "\0" in path + member.linkname:  # the clean image's tar would end the name there
                raise ValueError("a name holds a zero byte")
            if len(found) > _MOST_FILES or member.issparse() or member.size > len(data):
                raise ValueError("they are too many, or larger than what came of them")
            if not may(path) or path.startswith("/.assay"):
                continue
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
            elif member.isreg() or member.islnk():
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
            yield found[path]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
