"""The program of a worker process, started by `map(fn, workers=n)`. Not for import.

Descriptor 3 is the socket to the parent, which sends the import path before the package or any of
the user's modules is imported.
"""

import os
import pickle
import signal
import socket
import sys

SOCKET = 3
SETUP_AT = 64  # see kPrefaceBytes in bindings/wire.h


def read_setup(descriptor: int) -> bytes:
    size = int.from_bytes(os.pread(descriptor, 8, SETUP_AT), sys.byteorder)
    parts, at = [], SETUP_AT + 8
    while size > 0:
        part = os.pread(descriptor, size, at)
        parts.append(part)
        at, size = at + len(part), size - len(part)
    return b"".join(parts)


def main() -> None:
    # The parent handles Ctrl-C and ends us. A signal that came while it was blocked is dropped.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = socket.socket(fileno=SOCKET)
    parent.set_inheritable(False)
    _, descriptors, _, _ = socket.recv_fds(parent, 1, 5)
    if len(descriptors) != 5:
        return  # the parent is gone
    parent_id = os.getppid()
    setup_descriptor, *memories = descriptors
    setup = pickle.loads(read_setup(setup_descriptor))
    os.close(setup_descriptor)
    sys.path[:] = setup["path"]
    sys.argv[:] = setup["argv"]
    from penstock import _native
    _native.follow_parent(SOCKET, parent_id)
    try:
        function = pickle.loads(setup["function"])
    except BaseException as error:
        _native.cannot_serve(SOCKET, memories[2], f"{type(error).__name__}: {error}")
        return
    del setup["function"]
    _native.serve(SOCKET, memories, function, setup["keyed"], setup["random"], setup["title"])


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: its modules must not be importable by name
    main()
