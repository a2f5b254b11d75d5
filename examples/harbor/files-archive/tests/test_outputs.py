import tarfile
from pathlib import Path

LOGS = Path("/app/logs")


def test_archive():
    with tarfile.open(LOGS / "2023.tar.gz", "r:gz") as archive:
        found = {
            m.name.removeprefix("./"): archive.extractfile(m).read() for m in archive if m.isfile()
        }
    assert found == {"2023-01-02.log": b"cold\n", "2023-08-09.log": b"hot\n"}


def test_what_is_left():
    assert sorted(p.name for p in LOGS.iterdir()) == ["2023.tar.gz", "2024-01-02.log"]
