"""A file that records every write and flush in order, as the disk of a loop device.

``python -m reliability.block_replay.recording_file IMAGE LOG`` mounts over IMAGE a file system of one file
(FUSE, by the kernel's protocol), which reads and writes IMAGE, and writes LOG. It prints ``ready``. Requests
are served one after the other, so all writes before a flush precede it in the log.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from pathlib import Path
from typing import Final

from reliability.block_replay.write_log import WriteLog

_IN: Final = struct.Struct("=IIQQIIIHH")
_OUT: Final = struct.Struct("=IiQ")
_TRANSFER: Final = struct.Struct("=QQI")
"""The head of a read or write: file, offset, size."""
_WRITE_HEAD: Final = 40
_ATTRIBUTES: Final = struct.Struct("=QQQQQQIIIIIIIIII")
_VALID_SECONDS: Final = struct.pack("=QII", 3600, 0, 0)
_INIT: Final = struct.Struct("=IIIIHHIIHHI28x")
_PROTOCOL: Final = (7, 38)
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_PAGES: Final = 256
_MAX_DATA: Final = _PAGES * 4096
_FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE = 2, 3, 4, 14, 15, 16
_STATFS, _RELEASE, _FSYNC, _INIT_CALL, _INTERRUPT, _DESTROY, _BATCH_FORGET = 17, 18, 20, 26, 36, 38, 42
_UNANSWERED: Final = (_FORGET, _BATCH_FORGET, _INTERRUPT)


class RecordingFile:
    """The file system.

    - ``image``: the descriptor of the image to read and write.
    - ``log``: records the writes.
    """

    def __init__(self, image: int, log: WriteLog) -> None:
        self._image = image
        self._log = log

    def serve(self, device: int) -> None:
        """Answer the kernel's requests at ``device`` until it is unmounted. Raises OSError."""
        while True:
            try:
                request = os.read(device, _MAX_DATA + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            _, call, unique, *_ = _IN.unpack_from(request)
            if call in _UNANSWERED:
                continue
            body = self._answer(call, memoryview(request)[_IN.size :])
            status, data = (-body, b"") if isinstance(body, int) else (0, body)
            os.write(device, _OUT.pack(_OUT.size + len(data), status, unique) + data)

    def _answer(self, call: int, body: memoryview) -> bytes | int:
        """Return the body of the answer, or an error number."""
        if call == _INIT_CALL:
            flags = _BIG_WRITES | _MAX_PAGES
            return _INIT.pack(*_PROTOCOL, _MAX_DATA, flags, 16, 12, _MAX_DATA, 1, _PAGES, 0, 0)
        if call in (_GETATTR, _SETATTR):
            return _VALID_SECONDS + self._attributes()
        if call == _OPEN:
            return struct.pack("=QII", 0, 0, 0)
        if call == _READ:
            _, offset, size = _TRANSFER.unpack_from(body)
            return os.pread(self._image, size, offset)
        if call == _WRITE:
            _, offset, size = _TRANSFER.unpack_from(body)
            data = bytes(body[_WRITE_HEAD : _WRITE_HEAD + size])
            os.pwrite(self._image, data, offset)
            self._log.add_write(offset, data)
            return struct.pack("=II", size, 0)
        if call == _FSYNC:
            self._log.add_flush()
            return b""
        if call == _STATFS:
            return struct.pack("=QQQQQIIII24x", 0, 0, 0, 1, 0, 4096, 255, 4096, 0)
        return b"" if call in (_RELEASE, _DESTROY) else errno.ENOSYS

    def _attributes(self) -> bytes:
        size = os.fstat(self._image).st_size
        mode = stat.S_IFREG | 0o600
        return _ATTRIBUTES.pack(1, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def main(image: Path, log: Path) -> None:
    """Mount the file system, and serve it until it is unmounted. Raises OSError."""
    disk = os.open(image, os.O_RDWR)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"recording", os.fsencode(image), b"fuse.recording", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    RecordingFile(disk, WriteLog(log)).serve(device)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
