#!/bin/bash
set -euo pipefail
cat > /app/serve.py <<'EOF'
import socketserver
import sys


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for before, line in enumerate(self.rfile):
            count = line.strip() == b"COUNT"
            self.wfile.write(b"%d\n" % before if count else line.upper())


socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
EOF
