#!/usr/bin/env python3
"""Compare what victim_family's processes said of themselves with heaptop's batch frames.

    family.py each TRUTH FRAMES    every process's own frame (--process=all) has its figures
    family.py sum TRUTH FRAMES     the last frame has the sum of them

TRUTH may hold other lines; FRAMES ends with one frame a process, the last of each pid counts.
Prints "ok N" with the number of processes compared, or what differs and exits with 1.
"""
import sys

KEYS = ("allocs", "alloc_bytes", "frees", "live_blocks", "live_bytes")
COLUMNS = ("alloc_blocks", "alloc_bytes", "free_blocks", "live_blocks", "live_bytes")


def truth(path):
    said = {}
    for line in open(path, errors="replace"):
        words = line.split()
        if len(words) == 12 and words[0] == "pid":
            said[int(words[1])] = {k: int(words[words.index(k) + 1]) for k in KEYS}
    return said


def frames(path):
    found, pid, columns = [], None, None
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        if line.startswith("# command: "):
            found.append([None, dict.fromkeys(KEYS, 0)])
            columns = None
        elif line.startswith("# pid: "):
            found[-1][0] = int(line.split()[2])
        elif found and line and not line.startswith("#"):
            cells = line.split("\t")
            if columns is None and "site" in cells:
                columns = cells
            elif columns and cells[columns.index("site")] == "site_block":
                for key, column in zip(KEYS, COLUMNS):
                    found[-1][1][key] += int(cells[columns.index(column)])
    return found


def main():
    how, said, seen = sys.argv[1], truth(sys.argv[2]), frames(sys.argv[3])
    wrong = []
    if how == "sum":
        want = {k: sum(s[k] for s in said.values()) for k in KEYS}
        if not seen or seen[-1][1] != want:
            wrong.append("sum: %s, wanted %s" % (seen[-1][1] if seen else None, want))
    else:
        got = {pid: figures for pid, figures in seen}
        for pid, want in said.items():
            if got.get(pid) != want:
                wrong.append("pid %d: %s, wanted %s" % (pid, got.get(pid), want))
    if not said:
        wrong.append("nothing was said")
    print("\n".join(wrong) if wrong else "ok %d" % len(said))
    return bool(wrong)


sys.exit(main())
