import csv
from pathlib import Path


def test_report():
    with Path("/app/report.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "sold", "revenue"],
            ["pen", "15", "1800"],
            ["pad", "4", "1400"],
            ["ink", "1", "900"],
        ]
