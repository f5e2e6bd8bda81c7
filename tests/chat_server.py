"""A chat server on the loopback that speaks the OpenAI API and answers from a script."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from harness.prompt import answer_text
from rdod_metric.tables import read_cases

ROOT = Path(__file__).resolve().parents[1]


class Reply(NamedTuple):
    """What the server does on one request."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    finish_reason: str = "stop"
    body: bytes | None = None  # sent as it is, in place of a chat completion


class Request(NamedTuple):
    case: str
    body: dict[str, Any]
    authorization: str


def gold_replies(path: Path = ROOT / "data/test.csv") -> dict[str, tuple[str, Reply]]:
    """Return, for every case of a labelled file, its task and the reply that is wholly right."""
    cases, problems = read_cases(path)
    assert not problems
    return {case.scenario.scenario_id: (case.scenario.task, Reply(answer_text(case.gold.state))) for case in cases}


class ChatServer:
    """Serves /v1/chat/completions while the `with` block lasts.

    A request is known by its case: the one whose task stands in the last message. It gets the case's
    replies in turn, and the last one again and again. The cases are those of the labelled files `paths`, by
    default the test split; a case without a script gets the answer that is right.
    """

    def __init__(self, script: Mapping[str, Sequence[Reply]], *paths: Path) -> None:
        known = {name: case for path in paths or (ROOT / "data/test.csv",) for name, case in gold_replies(path).items()}
        self.tasks = {task: name for name, (task, _) in known.items()}
        self.replies = {name: list(script.get(name, [reply])) for name, (_, reply) in known.items()}
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.busy = self.peak = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = server.next_reply(self.path, body, self.headers.get("Authorization", ""))
                with server.lock:
                    server.busy += 1
                    server.peak = max(server.peak, server.busy)
                time.sleep(reply.delay)
                with server.lock:
                    server.busy -= 1
                content = reply.body if reply.body is not None else json.dumps(server.completion(reply, body)).encode()
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:  # the client gave up waiting, which is what a slow reply is for
                    self.close_connection = True

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def next_reply(self, path: str, body: dict[str, Any], authorization: str) -> Reply:
        last = body["messages"][-1]["content"]
        text = last if isinstance(last, str) else "".join(part.get("text", "") for part in last)
        names = [name for task, name in self.tasks.items() if f"\nTask: {task}\n" in text.rpartition("### Case")[2]]
        if path != "/v1/chat/completions" or len(names) != 1:
            return Reply(status=404, body=b'{"error": {"message": "no such page or case"}}')
        with self.lock:
            self.requests.append(Request(names[0], body, authorization))
            replies = self.replies[names[0]]
            return replies.pop(0) if len(replies) > 1 else replies[0]

    def completion(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        if reply.status >= 400:
            return {"error": {"message": reply.text or "scripted failure", "type": "scripted", "code": None}}
        prompt, answer = (len(json.dumps(body["messages"])) // 4, len(reply.text) // 4)
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": reply.finish_reason}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
        }

    def asked(self) -> dict[str, int]:
        """Return how often each case was asked for."""
        counts: dict[str, int] = defaultdict(int)
        with self.lock:
            for request in self.requests:
                counts[request.case] += 1
        return dict(counts)

    def __enter__(self) -> "ChatServer":
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.shutdown()
        self.server.server_close()
