"""An image as Docker loads it: the same files give the same bytes, and so the same digest."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tarfile
from collections.abc import Iterator, Mapping
from io import BufferedRandom, BytesIO

from .host_files import Tree

_EMPTY = ("dev", "etc", "proc", "sys", "tmp")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_CREATED = "1970-01-01T00:00:00Z"
_CHUNK = 1 << 20

File = BufferedRandom | BytesIO


def write_layer(tree: Tree, file: File) -> None:
    """Write a root file system as a tar archive."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in _EMPTY:
            _add_folder(tar, name, 0o1777 if name == "tmp" else 0o755)
        paths = {*tree.files, *tree.links, *tree.scripts}
        above = {p for path in (*paths, *tree.folders) for p in _parents(path)}
        for folder in sorted({*above, *tree.folders}):
            if folder.lstrip("/") not in _EMPTY:
                _add_folder(tar, folder.lstrip("/"), tree.folders.get(folder, 0o755))
        for path in sorted(paths):
            if path in tree.links:
                _add_link(tar, path, tree.links[path])
            elif path in tree.scripts:
                _add_script(tar, path, tree.scripts[path].encode())
            else:
                _add_file(tar, path, tree.files[path])


def archive(layer: File, tag: str, labels: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a layer as an image, in the form of ``docker save``, piece by piece."""
    layer.seek(0)
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
    size = layer.seek(0, os.SEEK_END)
    machine = platform.machine()
    config = json.dumps(
        {
            "architecture": _MACHINES.get(machine, machine),
            "os": "linux",
            "created": _CREATED,
            "config": {"Labels": dict(sorted(labels.items()))},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    yield _header("layer.tar", size)
    layer.seek(0)
    while piece := layer.read(_CHUNK):
        yield piece
    yield _padding(size)
    for file, content in ((name, config), ("manifest.json", manifest)):
        yield _header(file, len(content)) + content + _padding(len(content))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int) -> bytes:
    info = _entry(name, tarfile.REGTYPE, 0o644)
    info.size = size
    return info.tobuf()


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _parents(path: str) -> list[str]:
    """Return the folders that lead to a file, without the root."""
    found = []
    while (path := os.path.dirname(path)) != "/":
        found.append(path)
    return found


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = mode
    return info


def _add_folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    tar.addfile(_entry(name, tarfile.DIRTYPE, mode))


def _add_link(tar: tarfile.TarFile, path: str, target: str) -> None:
    info = _entry(path.lstrip("/"), tarfile.SYMTYPE, 0o777)
    info.linkname = target
    tar.addfile(info)


def _add_file(tar: tarfile.TarFile, path: str, source: str) -> None:
    """Add a file with its time: compiled files name their source's."""
    status = os.stat(source)
    info = _entry(path.lstrip("/"), tarfile.REGTYPE, 0o755 if status.st_mode & 0o111 else 0o644)
    info.size = status.st_size
    info.mtime = int(status.st_mtime)
    with open(source, "rb") as file:
        tar.addfile(info, file)


def _add_script(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    info = _entry(path.lstrip("/"), tarfile.REGTYPE, 0o755)
    info.size = len(content)
    tar.addfile(info, BytesIO(content))
