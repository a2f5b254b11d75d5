#!/bin/bash
mkdir -p /logs/verifier
cd /app
score=1
check() {
    [ "$(echo "$1" | timeout 10 ./flatten | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), sort_keys=True))')" = "$2" ] || score=0
}
check '{"a": {"b": [1, 2]}, "c": null}' '{"a.b.0": 1, "a.b.1": 2, "c": null}'
check '{"x": [], "y": {"z": {}}}' '{"x": [], "y.z": {}}'
check '{"q": [[true], "w"]}' '{"q.0.0": true, "q.1": "w"}'
echo $score > /logs/verifier/reward.txt
