"""A hand-written MCP server that misbehaves as it is told. It imports next to nothing, so that it starts in a moment.

    python plain_server.py DIRECTORY [OPTION...]

What happens to it is written to files in DIRECTORY. Options for its start: `silent`, `exit=CODE`, `refuse`,
`once` (only the first start succeeds), `tools=FILE` (a JSON list), `pages` (its list of tools never ends). A call does
what its tool is called.
"""

import json
import os
import sys
import time

directory = sys.argv[1]
options = dict(option.partition("=")[::2] for option in sys.argv[2:])
SCHEMA = {"type": "object"}
NAMES = ["big", "boom", "deaf", "deep", "die", "echo", "flood", "grow", "half", "nonsense", "surrogate", "wait"]
tools = [{"name": name, "inputSchema": SCHEMA} for name in NAMES]


def note(name, text=""):
    with open(os.path.join(directory, name), "a") as file:
        file.write(text + "\n")


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(number, name, arguments):
    if name == "echo":
        send(id=number, result=text(json.dumps(arguments)))
    elif name == "die":
        print("died of", os.environ.get("A_KEY", "nothing"), *sys.argv[2:], file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "wait":
        note("waiting", str(number))
    elif name == "big":
        os.write(1, b'{"jsonrpc": "2.0", "result": "' + b"x" * 1024 * 1024)
        for _ in range(100):
            os.write(1, b"x" * 1024 * 1024)
    elif name == "deaf":
        os.close(0)
        send(id=number, result=text("what?"))
        with open(os.path.join(directory, "gate")) as gate:
            gate.read()
        os._exit(7)
    elif name == "half":
        os.write(1, b'{"jsonrpc": "2.0", "id"')
        os._exit(0)
    elif name == "deep":
        os.write(1, b'{"jsonrpc": "2.0", "id": %d, "result": ' % number + b"[" * 500_000 + b"]" * 500_000 + b"}\n")
    elif name == "nonsense":
        send(id=number, result={"content": "no list"})
    elif name == "surrogate":
        send(id=number, result=text("half \ud83d here"))
    elif name == "boom":
        send(id=number, error={"code": -32000, "message": "boom with " + os.environ.get("A_KEY", "")})
    elif name == "grow":
        tools.append({"name": "grown", "inputSchema": SCHEMA})
        send(method="notifications/tools/list_changed")
        send(id=number, result=text("done"))
    elif name == "flood":
        while True:
            send(id="again", method="ping")


def answer(message):
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        if "refuse" in options:
            send(id=number, error={"code": -32000, "message": f"The key {os.environ['A_KEY']} is too old"})
        version = params["protocolVersion"]
        info = {"name": "plain", "version": "1"}
        send(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        more = {"nextCursor": "again"} if "pages" in options else {}
        send(id=number, result={"tools": tools, **more})
    elif method == "tools/call":
        call(number, params["name"], params.get("arguments") or {})
    elif method == "notifications/cancelled":
        note("cancelled", str(params["requestId"]))


note("pid", str(os.getpid()))
with open(os.path.join(directory, "pid")) as file:
    starts = len(file.readlines())
if "tools" in options:
    with open(options["tools"]) as file:
        tools = json.load(file)
if "silent" in options:
    time.sleep(600)
if "exit" in options or ("once" in options and starts > 1):
    sys.exit(int(options.get("exit", 7)))
for line in sys.stdin:
    answer(json.loads(line))
note("goodbye")
