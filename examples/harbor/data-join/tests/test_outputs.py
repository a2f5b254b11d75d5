from pathlib import Path


def test_joined():
    lines = Path("/app/joined.csv").read_text().replace("\r\n", "\n").splitlines()
    assert lines[:3] == ["order,customer,total", "101,Ada,19.50", "102,unknown,3.00"]
    assert lines[3] == "103,Ada,0.25"
    assert lines[4] in ("104,Bo,12.34", "104,Bo,12.35")
    assert len(lines) == 5
