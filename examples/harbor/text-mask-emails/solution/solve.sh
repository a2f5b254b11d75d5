#!/bin/bash
set -euo pipefail
cat > /app/mask <<'EOF'
#!/bin/sh
exec sed -E 's/([A-Za-z0-9._+-])[A-Za-z0-9._+-]*@([A-Za-z0-9.-]*[A-Za-z0-9])/\1***@\2/g'
EOF
chmod +x /app/mask
