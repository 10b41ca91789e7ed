#!/usr/bin/env python3
"""Compare the text of a process with its files: textcmp.py PID.

Every executable, file-backed, unwritable mapping must hold its file's bytes. Prints what differs,
and "island at ADDRESS" for each executable mapping of the profiler's that is still there (which
alone is no difference). Exit code 0: identical, 1: not, 2: couldn't look.
"""
import re
import sys

MAGIC = b"\x01heaptop"
CHUNK = 1 << 20


def mappings(pid):
    with open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            # 7f1c00000000-7f1c00021000 r-xp 00000000 00:00 0    /usr/lib/libc.so.6
            m = re.match(rb"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ (\d+) *(.*)\n", line)
            if m:
                start, end, offset = (int(m[i], 16) for i in (1, 2, 4))
                yield start, end, m[3].decode(), offset, int(m[5]), m[6]


def main():
    pid = int(sys.argv[1])
    wrong = compared = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for start, end, prot, offset, inode, path in mappings(pid):
            if prot[2] != "x":
                continue
            if inode == 0 and not path:
                mem.seek(start)
                if mem.read(8) == MAGIC:
                    print(f"island at {start:#x}")
            if inode == 0 or prot[1] == "w":
                continue
            try:
                file = open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb")
            except OSError:
                file = open(path.decode(), "rb")
            with file:
                file.seek(offset)
                mem.seek(start)
                at = start
                while at < end:
                    want = file.read(min(CHUNK, end - at))
                    if not want:
                        break
                    got = mem.read(len(want))
                    compared += len(got)
                    if got != want:
                        first = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
                        print(f"{path.decode()} differs at {at + first:#x}: "
                              f"{got[first:first + 16].hex()}, not {want[first:first + 16].hex()}")
                        wrong += 1
                    at += len(want)
    if not compared:
        print(f"nothing to compare in process {pid}")
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error)
        sys.exit(2)
