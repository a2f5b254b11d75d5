#!/bin/bash
set -euo pipefail
cat > /app/serve.py <<'EOF'
import socketserver
import sys


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
EOF
