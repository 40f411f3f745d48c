"""Ways out of a box other than files. Each is a Python program; whoever gets out prints "got out".

`PORT` is a TCP port that is served, `UDP` one for datagrams, `UNIX` a socket in the file system, `SUPERVISOR` a process of
the person's, `SECRET` a file of the person's.
"""

from __future__ import annotations

_PREPARED = """
import ctypes, os, socket
PORT, UDP, SUPERVISOR = (int(os.environ[name]) for name in ("PORT", "UDP", "SUPERVISOR"))
UNIX, SECRET = os.environ["UNIX"], os.environ["SECRET"]
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

_WAYS = {
    "connecting to a port": "socket.create_connection(('127.0.0.1', PORT))",
    "connecting to a port by multipath TCP": (
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(('127.0.0.1', PORT))"
    ),
    "connecting while sending": "socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', PORT))",
    "connecting while sending a message": "socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', PORT))",
    "serving a port": "socket.create_server(('127.0.0.1', 0))",
    "serving a port that was never bound": "socket.socket().listen()",
    "sending a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "sending a datagram by IPv6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "a socket to the machine's host": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "news of the kernel's": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)",
    "a socket in the file system": "socket.socket(socket.AF_UNIX).connect(UNIX)",
    "a datagram to a socket in the file system": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "system calls that no filter sees": "call(libc.syscall, 425, 4, ctypes.create_string_buffer(120))",
    "the limits of another process": (
        "import resource; resource.prlimit(SUPERVISOR, resource.RLIMIT_NOFILE, (9, 9))"
    ),
    "a signal to another process": "os.kill(SUPERVISOR, 0)",
    "a signal by a handle": "import signal; signal.pidfd_send_signal(os.pidfd_open(SUPERVISOR), 0)",
    "tracing another process": "call(libc.ptrace, 16, SUPERVISOR, 0, 0)",
    "taking a file of another process": "call(libc.syscall, 438, os.pidfd_open(SUPERVISOR), 0, 0)",
    "the memory of another process": """
with open(f"/proc/{SUPERVISOR}/maps") as maps:
    start = int(maps.readline().split("-")[0], 16)
with open(f"/proc/{SUPERVISOR}/mem", "rb") as memory:
    memory.seek(start)
    assert memory.read(4)
""",
    "the arguments of another process": "assert open(f'/proc/{SUPERVISOR}/cmdline').read()",
    "the directory of another process": "os.listdir(f'/proc/{SUPERVISOR}/cwd/')",
    "a key of the person's": "call(libc.syscall, {'x86_64': 250, 'aarch64': 219}[os.uname().machine], 0, -4, 1)",
    "shared memory by number": "call(libc.shmctl, call(libc.shmget, 0, 4096, 0o1600), 0, 0)",
    "shared memory by name": "open('/dev/shm/workbench-was-here', 'w'); os.unlink('/dev/shm/workbench-was-here')",
    "a message queue": "call(libc.mq_open, b'/workbench-was-here', 0o102, 0o600, None); libc.mq_unlink(b'/workbench-was-here')",
    "a program in memory": """
program = os.memfd_create("program")
os.write(program, open("/bin/cat", "rb").read())
if os.fork() == 0:
    os.execve(program, ["cat", SECRET], {})
assert os.wait()[1] == 0
""",
    "the project as a root": "os.chroot(os.path.dirname(SECRET)); open('/' + os.path.basename(SECRET))",
    "the machine's settings": "open('/proc/sys/kernel/core_pattern', 'a')",
    "the machine's name": "socket.sethostname(socket.gethostname())",
    "the kernel's log": "call(libc.klogctl, 3, ctypes.create_string_buffer(9), 9)",
}  # fmt: skip

WAYS = {name: f"{_PREPARED}\n{way}\nprint('got out')" for name, way in _WAYS.items()}
