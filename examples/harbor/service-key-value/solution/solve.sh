#!/bin/bash
set -euo pipefail
cat > /app/server.py <<'EOF'
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORE = {}


class Handler(BaseHTTPRequestHandler):
    def reply(self, code, body=b""):
        self.send_response(code)
        if code != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        STORE[self.path] = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.reply(204)

    def do_GET(self):
        found = STORE.get(self.path)
        self.reply(404) if found is None else self.reply(200, found)

    def do_DELETE(self):
        self.reply(404 if STORE.pop(self.path, None) is None else 204)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
EOF
