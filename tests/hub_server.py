"""A Hub on the loopback that takes uploads: the few endpoints that publishing needs, and a record of what came."""

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Keeps, by repository, the uploaded files and the tags; `refusal` is a status and text that every request gets."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.created, self.files, self.tags, self.tokens = [], {}, {}, set()
        self.refusal = None

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status >= 400:
            self.send_header("X-Error-Message", value["error"])
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def do_GET(self):
        self.respond(None)

    def do_POST(self):
        self.respond(self.body())

    def respond(self, body):
        hub = self.server
        hub.tokens.add(self.headers.get("Authorization"))
        path = self.path.partition("?")[0]
        place = re.fullmatch(r"/api/((?:dataset|space)s/[^/]+/[^/]+)/(\w+)(?:/(\w+))?", path)
        if hub.refusal:
            status, text = hub.refusal
            self.answer(status, {"error": text})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            repository = f"{asked['type']}s/{asked['organization']}/{asked['name']}"
            hub.created.append((repository, asked.get("sdk")))
            self.answer(200, {"url": f"{hub.endpoint}/{repository}"})
        elif path == "/api/validate-yaml":
            self.answer(200, {"errors": [], "warnings": []})
        elif place and place[2] == "refs":
            tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": COMMIT} for tag in hub.tags.get(place[1], {})]
            self.answer(200, {"branches": [], "converts": [], "tags": tags})
        elif place and place[2] == "preupload":
            files = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            self.answer(200, {"files": files})
        elif place and place[2] == "commit":
            operations = [json.loads(line) for line in body.splitlines()]
            hub.files[place[1]] = {op["value"]["path"]: base64.b64decode(op["value"]["content"]) for op in operations if op["key"] == "file"}
            self.answer(200, {"success": True, "commitOid": COMMIT, "commitUrl": f"{hub.endpoint}/{place[1]}/commit/{COMMIT}"})
        elif place and place[2] == "tag":
            hub.tags.setdefault(place[1], {})[json.loads(body)["tag"]] = place[3]
            self.answer(200, {})
        elif place and place[2] == "revision":
            self.answer(200, {"id": place[1].partition("/")[2], "sha": COMMIT, "siblings": [], "tags": [], "private": False})
        else:
            self.answer(404, {"error": f"no such endpoint: {path}"})
