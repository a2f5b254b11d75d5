#!/bin/bash
set -euo pipefail
cd /app
git merge -q feature || true
printf 'def greet(name):\n    return f"Hello, {name}!"\n' > greet.py
git add . && git commit -qm 'Merge feature'
