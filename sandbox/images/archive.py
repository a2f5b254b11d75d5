"""An image as Docker loads it: the same files give the same bytes, and so the same digest."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tarfile
from collections.abc import Iterator, Mapping
from io import BufferedRandom, BytesIO
from pathlib import PurePosixPath

from .host_files import Tree

_EMPTY = ("dev", "etc", "proc", "sys", "tmp")
_CREATED = "1970-01-01T00:00:00Z"
_CHUNK = 1 << 20

File = BufferedRandom | BytesIO


def write_layer(tree: Tree, file: File) -> None:
    """Write a root file system as a tar archive."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in _EMPTY:
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755))
        paths = {*tree.files, *tree.links, *tree.scripts}
        inner = (*paths, *tree.folders)
        above = {str(parent) for path in inner for parent in PurePosixPath(path).parents} - {"/"}
        for folder in sorted({*above, *tree.folders}):
            if folder.lstrip("/") not in _EMPTY:
                tar.addfile(_entry(folder, tarfile.DIRTYPE, tree.folders.get(folder, 0o755)))
        for path in sorted(paths):
            if path in tree.links:
                tar.addfile(_entry(path, tarfile.SYMTYPE, 0o777, link=tree.links[path]))
            elif path in tree.scripts:
                content = tree.scripts[path].encode()
                tar.addfile(_entry(path, tarfile.REGTYPE, 0o755, len(content)), BytesIO(content))
            else:
                _add_file(tar, path, tree.files[path])


def archive(layer: File, tag: str, labels: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a layer as an image, in the form of ``docker save``, piece by piece."""
    layer.seek(0)
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
    size = layer.seek(0, os.SEEK_END)
    config = json.dumps(
        {
            "architecture": docker_machine(),
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


def docker_machine() -> str:
    """Return Docker's name for this machine."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _header(name: str, size: int) -> bytes:
    return _entry(name, tarfile.REGTYPE, 0o644, size).tobuf()


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _entry(path: str, kind: bytes, mode: int, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(path.lstrip("/"))
    info.type, info.mode, info.size, info.linkname = kind, mode, size, link
    return info


def _add_file(tar: tarfile.TarFile, path: str, source: str) -> None:
    """Add a file with its time: compiled files name their source's."""
    status = os.stat(source)
    mode = 0o755 if status.st_mode & 0o111 else 0o644
    info = _entry(path, tarfile.REGTYPE, mode, status.st_size)
    info.mtime = int(status.st_mtime)
    with open(source, "rb") as file:
        tar.addfile(info, file)
