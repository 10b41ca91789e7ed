#!/usr/bin/env python3
"""Run time of real programs: bare, under heaptop (auto and exact), under heaptrack, in turn.

Judged is the wall time of the whole command: start of the profiler, the program, what is still to be
done after it, names included, until the snapshot is written. For redis it is the time redis-benchmark
takes, so the ratio is that of the throughputs. The lines behind "#" tell the time until
the program itself had ended, its own CPU time, and all CPU time, the profiler's included.
"""
import os
import shutil
import subprocess
import sys
import time

from bench import HEAPTOP, HERE, QUICK, Command, Run, Watch, finish, in_turn, line, median, need, \
    rounds, run, say, scratch

ROUNDS = rounds(5)
WAYS = ("bare", "auto", "exact", "heaptrack")
AUTO_MOST, STRINGS_MOST = 1.02, 1.25

SQL = """
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, words TEXT);
INSERT INTO t SELECT value, hex(value * 2654435761 % 1000003), printf('%d-%s-%x', value, 'w', value * 7)
  FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT @ROWS@) SELECT * FROM n);
CREATE INDEX by_name ON t(name, lower(words));
CREATE INDEX by_words ON t(upper(words) || name);
SELECT count(*) FROM t WHERE name >= 'A';
"""


def behind(way, folder, argv):
    return {
        "bare": [],
        "auto": [HEAPTOP, "-q", "-o", os.path.join(folder, "auto.pb.gz"), "--"],
        "exact": [HEAPTOP, "-q", "-e", "-o", os.path.join(folder, "exact.pb.gz"), "--"],
        "heaptrack": ["heaptrack", "-o", os.path.join(folder, "heaptrack")],
    }[way] + argv


def built(command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def cc1plus(folder, text="templates.cc"):
    source = os.path.join(folder, "templates.ii")
    built(["g++", "-E", os.path.join(HERE, text), "-o", source])
    program = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                             check=True).stdout.strip()
    return [program, "-quiet", "-fpreprocessed", source, "-o", "/dev/null"], {}


def python3(_):
    program = os.path.realpath(sys.executable)
    return ([program, os.path.join(HERE, "churn.py"), "5" if QUICK else "100"],
            {"PYTHONMALLOC": "malloc"})


def sqlite3(_):
    return [shutil.which("sqlite3"), ":memory:", SQL.replace("@ROWS@", "5000" if QUICK else "1200000")], {}


def strings(folder):
    program = os.path.join(folder, "strings")
    built(["g++", "-O2", "-g", "-pthread", os.path.join(HERE, "strings.cc"), "-o", program])
    return [program, "5" if QUICK else "100"], {}


PROGRAMS = {
    # name: the command and its environment, its tool, how it is called in the table
    "cc1plus": (cc1plus, "g++", "cc1plus templates.ii"),
    "python3": (python3, "python3", "PYTHONMALLOC=malloc python3 churn.py"),
    "sqlite3": (sqlite3, "sqlite3", "sqlite3 :memory: 'INSERT…; CREATE INDEX…'"),
    "strings": (strings, "g++", "strings (C++, two threads, pauses)"),
}


def redis_server(folder):
    """Debian's redis-tools has the server, too, under another name."""
    found = shutil.which("redis-server")
    if not found:
        found = os.path.join(folder, "redis-server")
        if not os.path.exists(found):
            os.symlink(shutil.which("redis-check-rdb"), found)
    return found


def redis(front, folder):
    """A server behind `front`, the beginning of a command, loaded over a socket; the Run of redis-benchmark."""
    socket = os.path.join(folder, "redis.sock")
    server = redis_server(folder)
    argv = [server, "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no",
            "--dir", folder, "--logfile", os.path.join(folder, "redis.log")]
    load = ["redis-benchmark", "-s", socket, "-q", "-n", "1000" if QUICK else "50000", "-d", "100",
            "-r", "10000", "-t", "set,get,lpush,hset"]
    with Command(front + argv) as command:
        end = time.monotonic() + 30
        while subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True,
                             check=False).stdout != b"PONG\n" and time.monotonic() < end:
            time.sleep(0.05)
        watch = Watch(command.pid, server, command.begin)
        watch.start()
        result = run(load)
        subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], capture_output=True, check=False)
        whole = command.wait(60)
        watch.join(1)
    return Run(result.code or whole.code, result.wall, whole.cpu, result.wall, watch.cpu)


def judge(name, what, results):
    failed = [way for way in WAYS if any(r.code for r in results[way])]
    wall = {way: median([r.wall for r in results[way]]) for way in WAYS}
    for figure, text in (("program_wall", "until the program had ended"), ("program_cpu", "its own CPU"),
                         ("cpu", "all CPU")):
        each = ", ".join(f"{way} {median([getattr(r, figure) for r in results[way]]):.2f}" for way in WAYS)
        say(f"{name}, {text}: {each} s")
    ratio = {way: wall[way] / wall["bare"] for way in WAYS}
    added = {way: wall[way] - wall["bare"] for way in WAYS}
    bare = f"{wall['bare']:.2f} s bare, "
    if failed:
        bare = f"FAILED: {' '.join(failed)}; nan, " + bare
    line(f"{name}.auto", f"heaptop -q -o x.pb.gz -- {what}", f"{bare}{ratio['auto']:.3f} times",
         f"<= {AUTO_MOST}", not failed and ratio["auto"] <= AUTO_MOST)
    most = f", <= {STRINGS_MOST} times" if name == "strings" else ""
    line(f"{name}.exact", f"heaptop -q -e -o x.pb.gz -- {what}",
         f"{bare}{ratio['exact']:.3f} times, heaptrack {ratio['heaptrack']:.3f} times: "
         f"{added['exact'] / added['heaptrack']:.2f} of its added time",
         f"<= 0.33 of it{most}",
         not failed and 0 < added["heaptrack"] and added["exact"] <= added["heaptrack"] / 3
         and (name != "strings" or ratio["exact"] <= STRINGS_MOST))


def main():
    chosen = sys.argv[1:] or list(PROGRAMS) + ["redis"]
    need("heaptrack")
    with scratch() as folder:
        for name in chosen:
            if name == "redis":
                need("redis-benchmark", "redis-cli")
                ways = {way: lambda way=way: redis(behind(way, folder, []), folder) for way in WAYS}
                what = "redis-server, redis-benchmark -t set,get,lpush,hset"
            else:
                command, tool, what = PROGRAMS[name]
                need(tool)
                argv, env = command(folder)
                ways = {way: lambda way=way: run(behind(way, folder, argv), program=argv[0], env=env)
                        for way in WAYS}
            judge(name, what, in_turn(ways, ROUNDS))
    finish()


if __name__ == "__main__":
    main()
