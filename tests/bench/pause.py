#!/usr/bin/env python3
"""How long a program stands still while heaptop gets in, as heaptop -v tells: the longer of
its two stops. Medians."""
import os
import re
import subprocess
import tempfile

from bench import BUILD, HEAPTOP, QUICK, Command, finish, line, median, rounds

CROWD = os.path.join(BUILD, "tests/victims/victim_crowd")
# threads, mappings, how; most ms
CROWDS = [(64, 0, "busy", 10), (1000, 5000, "idle", 60)]
STOOD = re.compile(r"stood still for ([\d.]+) ms, and for ([\d.]+) ms")


def pause(pid):
    done = subprocess.run([HEAPTOP, "-v", "-b", "-n", "1", "-d", "0.1", "-p", str(pid)],
                          capture_output=True, text=True, timeout=120, check=False)
    found = STOOD.search(done.stderr)
    return max(map(float, found.groups())) if found else float("nan")


def main():
    for threads, mappings, how, most in CROWDS:
        if QUICK:
            threads //= 10
        argv = [CROWD, str(threads), str(mappings), how]
        with tempfile.TemporaryFile() as out, Command(argv, out=out) as command:
            while os.fstat(out.fileno()).st_size == 0 and command.process.poll() is None:
                pass
            values = sorted(pause(command.pid) for _ in range(rounds(15)))
        middle = median(values)
        line(f"pause.{threads}", f"heaptop -v -p of {' '.join(argv[1:])}",
             f"{middle:.2f} ms (median), {values[-1]:.2f} ms (most)", f"<= {most} ms", middle <= most)
    finish()


main()
