#!/bin/bash
set -euo pipefail
cat > /app/backup.sh <<'EOF'
#!/bin/bash
shopt -s nullglob
mkdir -p "$2"
files=("$1"/*.txt)
if [ ${#files[@]} -gt 0 ]; then cp -- "${files[@]}" "$2"; fi
echo ${#files[@]}
EOF
