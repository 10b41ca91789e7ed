#!/usr/bin/env python3
"""What heaptop itself takes: processor time while it watches a quiet program at a refresh of one
second, in batch (bench_screen has the same on a terminal); and its memory while a compiler runs
again and again, and redis under load, for HEAPTOP_BENCH_MINUTES (10) minutes, both at once.
"""
import os
import subprocess
import time

from bench import HEAPTOP, HERE, QUICK, VICTIMS, Command, descendants, executable, finish, line, \
    median, memory_kib, need, rounds, say, scratch
from programs import redis_server

NAN = float("nan")
GROWTH = os.path.join(VICTIMS, "growth")
# 2,000 stacks, 50,000 live blocks, then a few hundred allocations a second
QUIET = [GROWTH, "-n", "2000", "-l", "50000", "-q"]
SECONDS = 1 if QUICK else 20
CPU_MOST = 1.0		# percent of one processor
MINUTES = float(os.environ.get("HEAPTOP_BENCH_MINUTES") or (0.05 if QUICK else 10))
BOUND = 1.2		# the end over half-time


def cpu_seconds(pid):
    """Of all its threads, from the scheduler: ns, where /proc/PID/stat has ticks of 10 ms."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def find(command, program, seconds=20):
    """The process below the command that runs `program`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for pid in descendants(command.pid):
            if executable(pid) == os.path.realpath(program):
                return pid
        time.sleep(0.05)
    return None


def quiet_cpu(argv):
    """Percent of a processor that heaptop takes once it has settled, and its resident KiB."""
    with Command(argv) as command:
        pid = find(command, HEAPTOP)
        if not pid:
            return NAN, NAN
        time.sleep(1 if QUICK else 5)
        begin, cpu = time.monotonic(), cpu_seconds(pid)
        time.sleep(SECONDS)
        return 100 * (cpu_seconds(pid) - cpu) / (time.monotonic() - begin), memory_kib(pid)


def quiet():
    got = [quiet_cpu([HEAPTOP, "-q", "-b", "-d", "1", "--"] + QUIET) for _ in range(rounds(3))]
    cpu, kib = median([g[0] for g in got]), median([g[1] for g in got])
    line("quiet.batch", f"heaptop -q -b -d 1 -- growth {' '.join(QUIET[1:])}",
         f"{cpu:.2f} % of a processor, {kib / 1024:.1f} MiB", f"<= {CPU_MOST} %", cpu <= CPU_MOST)


class Series:
    """Resident MiB of one heaptop over time."""

    def __init__(self, name, what, pid):
        self.name, self.what, self.pid, self.mib = name, what, pid, []

    def sample(self):
        self.mib.append(memory_kib(self.pid) / 1024 if self.pid else NAN)

    def judge(self):
        half = self.mib[len(self.mib) // 2]
        say(f"{self.name}, MiB: {' '.join(f'{m:.0f}' for m in self.mib)}")
        line(self.name, self.what,
             f"{self.mib[0]:.1f} MiB at first, {half:.1f} after {MINUTES / 2:g} minutes, "
             f"{self.mib[-1]:.1f} after {MINUTES:g}", f"end <= {BOUND} x half-time",
             self.mib[-1] <= BOUND * half)


def memory(folder):
    again = os.path.join(folder, "again.so")
    source = os.path.join(folder, "templates.ii")
    for argv in (["gcc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", os.path.join(HERE, "again.c"), "-o", again],
                 ["g++", "-E", os.path.join(HERE, "templates.cc"), "-o", source]):
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    program = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                             check=True).stdout.strip()
    # a program that is launched is followed when it executes another: env, then the same one again
    compiler = ["env", f"LD_PRELOAD={again}", f"AGAIN_UNTIL={int(time.time() + MINUTES * 60 + 60)}",
                program, "-quiet", "-fpreprocessed", source, "-o", "/dev/null"]
    socket = os.path.join(folder, "redis.sock")
    server = [redis_server(folder), "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder,
              "--logfile", os.path.join(folder, "redis.log"), "--maxmemory", "100mb",
              "--maxmemory-policy", "allkeys-random"]
    load = ["redis-benchmark", "-s", socket, "-q", "-l", "-d", "200", "-r", "200000", "-t",
            "set,get,lpush,lpop,sadd,hset"]
    options = ["-q", "-b", "-d", "1", "--"]
    with Command([HEAPTOP] + options + compiler) as compiling, Command([HEAPTOP] + options + server) as serving:
        series = [
            Series("memory.cc1plus", "heaptop -q -b -d 1 -- cc1plus templates.ii, again and again",
                   find(compiling, HEAPTOP)),
            Series("memory.redis", f"heaptop -q -b -d 1 -- redis-server, {' '.join(load[:1] + load[4:])}",
                   find(serving, HEAPTOP))]
        time.sleep(0.5 if QUICK else 10)
        with Command(load):
            end = time.monotonic() + MINUTES * 60
            while True:
                for one in series:
                    one.sample()
                if time.monotonic() >= end:
                    break
                time.sleep(1 if QUICK else 10)
    for one in series:
        one.judge()


def main():
    quiet()
    need("gcc", "g++", "redis-benchmark")
    with scratch() as folder:
        memory(folder)
    finish()


main()
