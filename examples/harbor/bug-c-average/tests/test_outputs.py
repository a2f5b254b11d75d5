import subprocess

import pytest


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("build") / "average"
    subprocess.run(["gcc", "-O1", "-o", made, "/app/average.c", "-lm"], check=True, timeout=60)
    return made


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("1 2", "1.50"),
        ("2000000000 2000000000 2000000000", "2000000000.00"),
        ("-3 -4", "-3.50"),
        ("", "none"),
        ("7", "7.00"),
    ],
)
def test_average(program, given, printed):
    done = subprocess.run([program], input=given, capture_output=True, text=True, timeout=20)
    assert done.stdout.strip() == printed
