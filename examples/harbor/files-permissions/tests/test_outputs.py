from pathlib import Path

MODES = {
    "run": 0o755,
    "tools/clean": 0o755,
    "server.key": 0o600,
    "tools/backup.key": 0o600,
    "readme.txt": 0o644,
}


def test_modes():
    folder = Path("/app/deploy")
    assert {name: (folder / name).stat().st_mode & 0o777 for name in MODES} == MODES


def test_contents():
    assert (Path("/app/deploy") / "server.key").read_text() == "secret\n"
