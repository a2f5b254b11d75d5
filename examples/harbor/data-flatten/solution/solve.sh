#!/bin/bash
set -euo pipefail
cat > /app/flatten <<'EOF'
#!/usr/bin/env python3
import json, sys

def walk(value, path):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not value or not isinstance(value, (dict, list)):
        yield path, value
        return
    for key, item in items:
        yield from walk(item, f"{path}.{key}" if path else str(key))

json.dump(dict(walk(json.load(sys.stdin), "")), sys.stdout)
EOF
chmod +x /app/flatten
