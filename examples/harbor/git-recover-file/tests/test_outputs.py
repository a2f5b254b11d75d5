import subprocess


def git(*words):
    command = ["git", "-c", "safe.directory=*", "-C", "/app", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


def test_the_file_is_committed():
    assert git("show", "main:config/limits.ini") == "[limits]\nrate = 25\nburst = 40\n"


def test_nothing_else_changed():
    assert git("show", "main:a.txt") == "two\n"
    assert git("ls-tree", "-r", "--name-only", "main").split() == ["a.txt", "config/limits.ini"]


def test_history_goes_on():
    subjects = git("log", "--reverse", "--format=%s", "main").splitlines()
    assert subjects[:4] == ["Add limits", "Raise the rate", "Tidy up", "Count on"]
    assert len(subjects) > 4
