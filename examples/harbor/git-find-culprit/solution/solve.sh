#!/bin/bash
set -euo pipefail
cd /app
for commit in $(git rev-list --reverse main); do
    if [ "$(git show "$commit:total.sh" | sh)" != 10 ]; then
        echo "$commit" > culprit.txt
        break
    fi
done
