"""`windlass` on the path of a page's shell, and `python3 FILE`: hands all it was given to the test, which forks it.

Started without site packages, so that it takes 20 ms: a page has a dozen commands, and Python with our libraries loads
for half a second.
"""

import os
import socket
import sys

link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(os.environ["DOCS_SOCKET"])
variables = [f"{name}={value}" for name, value in os.environ.items()]
packet = "\0".join([os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *variables])
socket.send_fds(link, [packet.encode()], [0, 1, 2])
answer = link.recv(64)  # a shell that kills us closes this, and the test ends what it forked
code = int(answer or b"1")
os._exit(code if code >= 0 else 128 - code)
