import subprocess
import sys

sys.path.insert(0, "/app")


def git(*words):
    command = ["git", "-c", "safe.directory=*", "-C", "/app", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


def test_greeting():
    from greet import greet

    assert greet("Ada") == "Hello, Ada!"
    assert greet("Bo") == "Hello, Bo!"


def test_merge():
    assert git("merge-base", "main", "feature") == git("rev-parse", "feature")
    assert len(git("log", "-1", "--format=%P", "main").split()) == 2
    assert git("show", "main:notes.txt") == "names\n"
    assert git("show", "main:greet.py").count("<<<<") == 0
