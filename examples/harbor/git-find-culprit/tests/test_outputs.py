import subprocess
from pathlib import Path


def test_culprit():
    command = ["git", "-c", "safe.directory=*", "-C", "/app", "log", "--format=%H %s", "main"]
    log = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    by_subject = {line[41:]: line[:40] for line in log.splitlines()}
    assert Path("/app/culprit.txt").read_text().strip() == by_subject["Simplify"]
