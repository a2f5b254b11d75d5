import json
from pathlib import Path


def test_rows():
    assert json.loads(Path("/app/people.json").read_text("utf-8")) == [
        {"name": "Okafor, Ada", "city": "Lagos", "age": 36},
        {"name": "Bo", "city": "São Paulo", "age": None},
        {"name": 'Cy "Ace" Li', "city": "Wuhan", "age": 61},
    ]
