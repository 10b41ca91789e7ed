"""What the benchmarks in Python share: runs of commands, rounds in turn, and lines of the table.

A line of the table, from whatever program, is

    name | command or what was run | figures | target | ok or MISSED

and everything else begins with "#". run.sh collects the lines. With HEAPTOP_QUICK=1 the rounds are
few and short and nothing is judged: a line is ok if its figures are numbers.
"""
import collections
import math
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

QUICK = bool(os.environ.get("HEAPTOP_QUICK"))
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("abs_top_builddir") or os.getcwd()
HEAPTOP = os.environ.get("HEAPTOP") or os.path.join(BUILD, "heaptop")
VICTIMS = os.path.join(BUILD, "tests/bench")

missed = 0


def say(text):
    """Whatever isn't a line of the table."""
    for part in text.splitlines():
        print("#", part, flush=True)


def line(name, what, figures, target, good):
    """One line of the table; good is ignored where nothing is judged."""
    global missed
    if re.search(r"\b(nan|inf)\b", figures) or not re.search(r"\d", figures):
        good = False
    elif QUICK:
        good = True
    missed += not good
    print(" | ".join([name, what, figures, target, "ok" if good else "MISSED"]), flush=True)


def finish():
    sys.exit(1 if missed else 0)


def scratch():
    """A folder that goes away with us."""
    return tempfile.TemporaryDirectory(prefix="heaptop-bench.")


def leave(*_):
    """On the way out every Command and folder is cleaned up; a second signal must not end that."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(143)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            line(tool, "needed here", "not found", "installed: ./bootstrap --bench", False)
            finish()


def median(values):
    return statistics.median(values) if values else math.nan


def rounds(normal):
    return 1 if QUICK else normal


def in_turn(ways, times):
    """{name: function} run one after the other, `times` times over: {name: [what it returned]}.
    What disturbs the machine for a while disturbs all of them."""
    results = collections.defaultdict(list)
    for _ in range(times):
        for name, way in ways.items():
            results[name].append(way())
    return results


# How a run of a command went: its exit code; wall and CPU (user + system) seconds of all of it,
# those it started included; seconds until `program`, if named, ended, and its own CPU seconds.
Run = collections.namedtuple("Run", "code wall cpu program_wall program_cpu")


def stat_fields(pid):
    """/proc/PID/stat from the state on: [0] state, [1] parent, [11] user, [12] system ticks."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def descendants(pid):
    """Process ids of pid and what it started."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents.setdefault(int(stat_fields(entry)[1]), []).append(int(entry))
            except (OSError, IndexError):
                pass
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def memory_kib(pid, key="VmRSS"):
    """A line of /proc/PID/status in KiB; nan once the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for text in file:
                if text.startswith(key + ":"):
                    return float(text.split()[1])
    except OSError:
        pass
    return math.nan


class Watch(threading.Thread):
    """Looks at the program inside a profiler: when it ends, and its CPU time, to 50 ms."""

    def __init__(self, pid, program, begin):
        super().__init__(daemon=True)
        self.pid, self.program, self.begin = pid, os.path.realpath(program), begin
        self.wall = self.cpu = math.nan

    def find(self):
        while os.path.exists(f"/proc/{self.pid}"):
            for pid in descendants(self.pid):
                if executable(pid) == self.program:
                    return pid
            time.sleep(0.02)
        return None

    def run(self):
        pid, tick = self.find(), os.sysconf("SC_CLK_TCK")
        while pid:
            try:
                fields = stat_fields(pid)
            except OSError:
                break
            self.wall = time.monotonic() - self.begin
            self.cpu = (int(fields[11]) + int(fields[12])) / tick
            if fields[0] == "Z":
                break
            time.sleep(0.05)


class Peak(threading.Thread):
    """The most memory a process ever had, to the last 20 ms of its life, in KiB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.kib = pid, math.nan

    def run(self):
        while True:
            kib = memory_kib(self.pid, "VmHWM")
            if math.isnan(kib):
                return
            self.kib = kib
            time.sleep(0.02)


class Tree:
    """A process and all it has started, to be ended; held by pidfd, so that a number that was
    used again in the meantime hits nobody."""

    def __init__(self, pid):
        self.fds = []
        for one in descendants(pid):
            try:
                self.fds.append(os.pidfd_open(one))
            except OSError:
                pass

    def end(self):
        """heaptop ends what it has launched when it is asked to leave; then whatever is left."""
        for i, fd in enumerate(self.fds):
            self.signal(fd, signal.SIGTERM)
            select.select([fd], [], [], 0 if i else 3)
        for fd in self.fds:
            self.signal(fd, signal.SIGKILL)
            os.close(fd)
        self.fds = []

    @staticmethod
    def signal(fd, number):
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            pass


class Command:
    """A command that has ended, with all it started, when the block it is used in does."""

    def __init__(self, argv, env=None, out=subprocess.DEVNULL):
        self.argv, self.run = argv, None
        self.errors = tempfile.TemporaryFile()
        self.begin = time.monotonic()
        self.process = subprocess.Popen(argv, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                        stdout=out, stderr=self.errors, start_new_session=True)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.run is None:
            Tree(self.pid).end()
            self.process.wait()
        self.errors.close()

    def wait(self, timeout=600):
        """Its Run; ended if it takes longer. A failure is told with the end of its messages."""
        timer = threading.Timer(timeout, lambda: Tree(self.pid).end())
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(self.pid, 0)
        wall = time.monotonic() - self.begin
        timer.cancel()
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.run = Run(code, wall, usage.ru_utime + usage.ru_stime, math.nan, math.nan)
        if code:
            self.errors.seek(0)
            say(f"exit code {code}: {' '.join(self.argv)}")
            say(self.errors.read()[-2000:].decode(errors="replace"))
        return self.run


def run(argv, program=None, timeout=600, **how):
    """Run it to its end. program: the executable to watch inside of it."""
    with Command(argv, **how) as command:
        watch = Watch(command.pid, program, command.begin) if program else None
        if watch:
            watch.start()
        result = command.wait(timeout)
        if watch:
            watch.join(1)
            result = result._replace(program_wall=watch.wall, program_cpu=watch.cpu)
        return result


def header(path):
    """The "# key: value" lines of the last frame of batch output."""
    keys = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            if text.startswith("# command: "):
                keys = {}
            if text.startswith("# "):
                key, _, value = text[2:].rstrip("\n").partition(": ")
                keys[key] = value
    return keys


def number(text):
    """nan for what isn't one."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, leave)
