import subprocess


def backup(source, target):
    command = ["bash", "/app/backup.sh", source, target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.strip()


def test_names_with_blanks(tmp_path):
    source, target = tmp_path / "my notes", tmp_path / "a b" / "c"
    source.mkdir()
    (source / "one two.txt").write_text("1")
    (source / "plain.txt").write_text("2")
    (source / "other.md").write_text("3")
    assert backup(source, target) == "2"
    assert {p.name: p.read_text() for p in target.iterdir()} == {
        "one two.txt": "1",
        "plain.txt": "2",
    }


def test_nothing_to_copy(tmp_path):
    (tmp_path / "empty").mkdir()
    assert backup(tmp_path / "empty", tmp_path / "out") == "0"
