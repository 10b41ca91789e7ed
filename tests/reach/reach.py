#!/usr/bin/env python3
"""The reach table: every kind of target (kinds.py), launched and attached, exact and sampled.

	reach.py [--tap] [REGEX]...	only the kinds whose name matches one of them

A cell says "ok" if heaptop's figures are those the program itself printed: equal under -e; under -r
within three standard errors, which the victim computes from the sizes of its blocks. Sampled cells
show the largest deviation of four figures, in standard errors. By chance one of 370 figures is beyond
three; so a cell with one that is gets a second run, whose figures are new samples, and fails if that
has one, too: a correct sampler fails in one of some 10,000 cells, one that is off by six standard
errors in all of them. Small biases show in the sum: over all cells each figure's mean deviation must
lie within four standard errors of 0 (one of 16,000 by chance).

"refused: LINE" is right where a kind says that it must be. Anything else is "FAILED why". Exit code 1: a
cell failed; with --tap a line is a kind, and a kind that lacks a tool is skipped.

Environment: HEAPTOP, abs_top_srcdir as for the other tests; REACH_OPTIONS: more options of heaptop's for each run.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from math import sqrt

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kinds  # noqa: E402

HEAPTOP = os.environ.get("HEAPTOP") or os.path.abspath("heaptop")
RATE = 1024
TIMEOUT = 60
UNSURE_MAX = 10  # runs of a cell that prove nothing, since heaptop itself says that it came too late
CELLS = [("launch", "exact"), ("launch", "sampled"), ("attach", "exact"), ("attach", "sampled")]
FOLDER = tempfile.mkdtemp(prefix="heaptop-reach.")
# batch column, the victim's name for it
FIGURES = [("alloc_blocks", "allocs"), ("alloc_bytes", "alloc_bytes"), ("free_blocks", "frees"),
           ("live_blocks", "live_blocks"), ("live_bytes", "live_bytes")]
ESTIMATES = ["alloc_blocks", "alloc_bytes", "live_blocks", "live_bytes"]


class Wrong(Exception):
    """Why a cell fails."""


class Unsure(Exception):
    """Nothing is proven: heaptop says that the machine was too busy for it."""


# ---- reading ----

def read_truth(path):
    """{site: {figure: number}}, {site: {figure: standard error}}, of all processes that wrote; sound?"""
    truth, errors, sound = {}, {}, False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if words[:1] == ["sound"]:
                sound = True
            elif words[:1] == ["broken:"]:
                raise Wrong("the program broke: " + line.strip())
            elif words[:1] == ["site"]:
                figures = truth.setdefault(words[1], {})
                for name, number in zip(words[2::2], words[3::2]):
                    figures[name] = figures.get(name, 0) + float(number)
            elif words[:1] == ["se"]:
                figures = errors.setdefault(words[1], {})
                for name, number in zip(words[2::2], words[3::2]):
                    figures[name] = sqrt(figures.get(name, 0) ** 2 + float(number) ** 2)
    if not sound or not truth:
        raise Wrong("the program did not come to its end")
    return truth, errors


def read_frame(path):
    """The last frame: {header key: text}, [{column: text}]."""
    header, rows, columns = {}, [], None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("# command: "):
                header, rows, columns = {}, [], None
            if line.startswith("# "):
                key, _, text = line[2:].partition(": ")
                header.setdefault(key, text)
            elif line and columns is None:
                columns = line.split("\t")
            elif line:
                rows.append(dict(zip(columns, line.split("\t"))))
    if not header:
        raise Wrong("no frame")
    return header, rows


def add_up(rows, column):
    return sum(float(row[column]) for row in rows)


# ---- comparing ----

def check_header(header):
    for key in ("dropped", "gap"):
        if header.get(key, "0") != "0":
            raise Unsure(f"{key}: {header[key]}")
    if header.get("lost_frees", "0") != "0":
        raise Unsure("lost_frees: " + header["lost_frees"])


def site_of(row, truth):
    """C++ shows arguments behind the name."""
    name = row["site"].partition("(")[0]
    return name if name in truth else None


def address_of(row):
    """Of a function without a name, "reach+0x401234"."""
    found = re.search(r"\+0x([0-9a-f]+)$", row["site"])
    return int(found[1], 16) if found else -1


def own_rows(target, rows, truth):
    if target.named:
        return [row for row in rows if site_of(row, truth)]
    mine = [row for row in rows if row["module"] in target.modules]
    if target.sites is None:
        return mine
    return [row for row in mine if any(low <= address_of(row) < high for low, high in target.sites)]


def compare_exact(target, truth, rows):
    mine = own_rows(target, rows, truth)
    wrong = []

    def look(name, those, figures):
        for column, key in FIGURES:
            got = add_up(those, column)
            if got != figures[key]:
                wrong.append(f"{name} {column} {got:.0f} instead of {figures[key]:.0f}")

    if target.named:
        for site, figures in truth.items():
            look(site, [row for row in mine if site_of(row, truth) == site], figures)
    total = {key: sum(f[key] for f in truth.values()) for _, key in FIGURES}
    look("total", mine, total)
    if wrong:
        raise Wrong("; ".join(wrong[:3]))


def compare_sampled(target, truth, errors, rows):
    """{figure: deviation in standard errors}; figures are rounded to whole ones, once a row."""
    mine, names = own_rows(target, rows, truth), dict(FIGURES)
    result = {}
    for column in ESTIMATES:
        want = sum(f[names[column]] for f in truth.values())
        se = sqrt(sum(f[column] ** 2 for f in errors.values()))
        off = add_up(mine, column) - want
        slack = min(abs(off), len(mine) / 2)
        result[column] = (off - (slack if off > 0 else -slack)) / se
    return result


def compare_program(target, mode, header, rows, exact):
    """What can be said of a program that keeps no books: those of heaptop must balance."""
    for what in ("blocks", "bytes"):
        got = {key: float(header[f"{key}_{what}"]) for key in ("alloc", "free", "live")}
        if abs(got["alloc"] - got["free"] - got["live"]) > (0 if mode == "exact" else 2):
            raise Wrong(f"{what} allocated {got['alloc']:.0f} - freed {got['free']:.0f} != live {got['live']:.0f}")
    for column in ("alloc_bytes", "live_bytes"):
        whole, said = add_up(rows, column), float(header[column])
        if abs(whole - said) > (0 if mode == "exact" else len(rows)):
            raise Wrong(f"the rows' {column} add up to {whole:.0f}, the header says {said:.0f}")
    if float(header["alloc_blocks"]) < target.least:
        raise Wrong(f"only {header['alloc_blocks']} allocations, at least {target.least} expected")
    if mode == "sampled" and target.repeats and exact:
        got, want = float(header["alloc_bytes"]), float(exact["alloc_bytes"])
        se = got * float(header["alloc_error_pct"]) / 100
        if se <= 0:
            return None
        return {"alloc_bytes": (got - want) / se}
    return None


# ---- running ----

def children_of(pid):
    found = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as text:
                found += map(int, text.read().split())
    except OSError:
        pass
    return found


def leaf_of(pid):
    """The process that does the work: of programs that start another the last one."""
    while True:
        below = children_of(pid)
        if not below:
            return pid
        pid = below[0]


def kill_tree(pid):
    for child in children_of(pid):
        kill_tree(child)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def until(what, condition, process, seconds=TIMEOUT):
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None and not condition():
            raise Wrong(f"{what}: it has ended with {process.returncode}")
        if time.monotonic() > end:
            raise Wrong(f"{what}: nothing within {seconds} s")
        time.sleep(0.01)


def contains(path, text):
    with open(path, encoding="utf-8", errors="replace") as file:
        return text in file.read()


def count(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().count("# command: ")


class Run:
    """One cell: the files and processes of it, which end with it."""
    all = set()

    def __init__(self, target, way, mode, folder):
        self.target, self.way, self.mode = target, way, mode
        self.folder = tempfile.mkdtemp(dir=folder)
        self.out, self.frames, self.errors = (os.path.join(self.folder, name)
                                              for name in ("out", "frames", "errors"))
        self.processes = []
        for path in (self.out, self.frames, self.errors):
            open(path, "w", encoding="ascii").close()

    def __enter__(self):
        self.all.add(self)
        return self

    def __exit__(self, *_):
        self.all.discard(self)
        for process in self.processes:
            if process.poll() is None:
                kill_tree(process.pid)
                process.wait()
            if process.stdin:
                try:
                    process.stdin.close()
                except OSError:
                    pass

    def options(self):
        how = ["-e"] if self.mode == "exact" else ["-r", str(RATE)]
        return [HEAPTOP, *os.environ.get("REACH_OPTIONS", "").split(), *how, "-b", "-x", "-d", "0.2", *self.target.options]

    def start(self, argv, out, err, stdin=subprocess.DEVNULL, fds=()):
        # each with files of its own: both may stand at different places in them
        with open(out, "ab") as o, open(err, "ab") as e:
            process = subprocess.Popen(argv, stdin=stdin, stdout=o, stderr=e, pass_fds=fds,
                                       env={**os.environ, **self.target.environment}, cwd=self.folder)
        self.processes.append(process)
        return process

    def wait(self, process, what):
        try:
            return process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{what} doesn't end") from None

    def told(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def launch(self):
        with open(self.out, "ab") as out:
            command = self.target.command(out.fileno(), RATE)
            process = self.start([*self.target.outer, *self.options(), "--", *command], self.frames,
                                 self.errors, fds=(out.fileno(),))
        code = self.wait(process, "heaptop")
        if self.target.refused and code:
            return self.refusal(code, (1, 125))
        if code:
            raise Wrong(f"heaptop left with {code}: {self.told() or 'without a word'}")
        return None

    def attach(self):
        with open(self.out, "ab") as out:
            command = self.target.command(out.fileno(), RATE)
            program = self.start([*self.target.outer, *command], os.devnull, self.errors,
                                 stdin=subprocess.PIPE, fds=(out.fileno(),))
        until("the program's start", lambda: contains(self.out, "ready"), program)
        leaf = leaf_of(program.pid)
        argv = [*self.target.inner(leaf), *self.options(), "-p", str(self.target.pid(leaf))]
        heaptop = self.start(argv, self.frames, self.errors)
        try:
            until("heaptop's first frame", lambda: contains(self.frames, "# command: "), heaptop)
        except Wrong:
            if heaptop.poll() and (self.target.refused or self.target.refusable):
                line = self.refusal(heaptop.returncode, (1,))
                program.communicate(b"\n\n", TIMEOUT)
                if program.returncode or not contains(self.out, "sound"):
                    raise Wrong("refused, but the program suffered from it") from None
                return line
            raise Wrong(f"heaptop: {self.told() or 'no frame'}") from None
        program.stdin.write(b"\n")
        program.stdin.flush()
        until("the program's work", lambda: contains(self.out, "sound"), program)
        # an end that comes before heaptop's next look hides what was missed (header: gap)
        seen = count(self.frames)
        until("heaptop's next frames", lambda: count(self.frames) > seen + 1, heaptop)
        program.stdin.close()
        code = self.wait(program, "the program")
        if code:
            raise Wrong(f"the program left with {code}")
        code = self.wait(heaptop, "heaptop")
        if code:
            raise Wrong(f"heaptop left with {code}: {self.told()}")
        return None

    def refusal(self, code, codes):
        line = self.told()
        if code not in codes or "\n" in line or not re.search(self.target.refused or self.target.refusable, line):
            raise Wrong(f"left with {code}: {line or 'without a word'}")
        return line

    def victim(self):
        """("ok", {figure: deviation}) or ("refused", line)."""
        line = self.launch() if self.way == "launch" else self.attach()
        if line:
            return "refused", line
        if self.target.refused:
            raise Wrong("should have been refused")
        truth, errors = read_truth(self.out)
        header, rows = read_frame(self.frames)
        check_header(header)
        if self.mode == "exact":
            try:
                compare_exact(self.target, truth, rows)
            except Wrong as why:
                raise Wrong(f"{why} (hooks: {header.get('hooks')}, not: {header.get('not_hooked', 'none')})") from None
            return "ok", None
        return "ok", compare_sampled(self.target, truth, errors, rows)

    def program(self, exact):
        """A program that reads what to do: {figure: deviation} or None, the header."""
        target = self.target
        inside = target.argv(self.folder)
        if self.way == "launch":
            # its standard output is not for the frames
            shell = ["sh", "-c", 'out=$1; shift; exec "$@" >>"$out"', "sh", self.out]
            process = program = self.start([*self.options(), "--", *shell, *inside], self.frames,
                                           self.errors, stdin=subprocess.PIPE)
        else:
            program = self.start(inside, self.out, self.errors, stdin=subprocess.PIPE)
        program.stdin.write(target.hello)
        program.stdin.flush()
        until("the program's start", lambda: target.ready(self.folder, self.out), program)
        if self.way == "attach":
            process = self.start([*self.options(), "-p", str(program.pid)], self.frames, self.errors)
            until("heaptop's first frame: " + self.told(), lambda: contains(self.frames, "# command: "), process)
        target.work(self.folder, program.stdin)
        program.stdin.close()
        code = self.wait(program, "the program")
        if code:
            raise Wrong(f"the program left with {code}: {self.told()}")
        if self.wait(process, "heaptop"):
            raise Wrong(f"heaptop left with {process.returncode}: {self.told()}")
        header, rows = read_frame(self.frames)
        check_header(header)
        return compare_program(target, self.mode, header, rows, exact), header


def cell(kind, way, mode, folder, memory):
    """(word for the table, why or None, deviations or None)."""
    first, unsure = None, 0
    while True:
        target = kind.make(kinds.Workshop(folder))  # anew: one may have deleted its file
        with Run(target, way, mode, folder) as run:
            try:
                if target.keeps_books:
                    verdict, said = run.victim()
                else:
                    said, header = run.program(memory.get(way))
                    verdict = "ok"
                    if mode == "exact":
                        memory[way] = header
            except Wrong as why:
                return "FAILED", "; ".join(str(why).splitlines()), first
            except Unsure as why:
                unsure += 1
                if unsure == UNSURE_MAX:
                    return "FAILED", f"{unsure} times {why}", first
                continue
        if verdict == "refused":
            return "refused", said, None
        if not said:
            return "ok", None, first
        worst = max(abs(d) for d in said.values())
        if worst <= 3:
            return f"ok {worst:.1f}", None, first or said
        if first:
            text = ", ".join(f"{name} {d:+.1f}" for name, d in said.items())
            return "FAILED", f"twice beyond 3 standard errors: {text}", first
        first = said


def row(kind, folder):
    """[(word, why, deviations)] of the four cells; None and why if the kind can't be built here."""
    folder = os.path.join(folder, re.sub(r"\W+", "-", kind.name))
    os.mkdir(folder)
    results, memory = [], {}
    try:
        for way, mode in CELLS:
            results.append(cell(kind, way, mode, folder, memory))
    except kinds.Lacking as why:
        return None, str(why)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results, None


def stop(*_):
    """Told to end: nothing that was started stays."""
    for one in list(Run.all):
        for process in one.processes:
            if process.poll() is None:
                kill_tree(process.pid)
    shutil.rmtree(FOLDER, ignore_errors=True)
    os._exit(1)


def main():
    args = sys.argv[1:]
    tap = "--tap" in args
    wanted = [re.compile(a) for a in args if a != "--tap"]
    chosen = [k for k in kinds.KINDS if not wanted or any(w.search(k.name) for w in wanted)]
    width = max([len(k.name) for k in chosen] + [len("kind of target")]) + 2
    os.chmod(FOLDER, 0o755)  # one of the kinds is another user's
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, stop)
    failed, deviations, count, started = 0, {}, 0, time.monotonic()

    def show(name, words):
        print(name.ljust(width) + "".join(word.ljust(16) for word in words).rstrip(), flush=True)

    def result(good, name, skip=None):
        nonlocal count
        count += 1
        print(f"{'ok' if good else 'not ok'} {count} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)

    if not tap:
        show("kind of target", [f"{way} {mode}" for way, mode in CELLS])
    # two at a time for each processor, as most of a cell is waiting; shown in their order
    pool = ThreadPoolExecutor(2 * (os.cpu_count() or 1))
    for kind, (results, lacking) in zip(chosen, pool.map(lambda k: row(k, FOLDER), chosen)):
        if results is None:
            failed += 0 if tap else 1
            result(True, kind.name, lacking) if tap else show(kind.name, ["can't be tried: " + lacking])
            continue
        words = [word for word, _, _ in results]
        bad = words.count("FAILED")
        failed += bad
        if tap:
            whys = "; ".join(why for word, why, _ in results if word == "FAILED")
            result(not bad, f"{kind.name}: {', '.join(words)}" + (f": {whys}".replace("#", "") if bad else ""))
        else:
            show(kind.name, words)
        told = set()
        for (way, mode), (word, why, found) in zip(CELLS, results):
            if why and (word, why) not in told:
                print(f"{'#' if tap else ' '}   {way}, {mode}: {word}{': ' if word == 'refused' else ' '}{why}",
                      flush=True)
                told.add((word, why))
            if kind.counts and word.startswith("ok"):
                for name, d in (found or {}).items():
                    deviations.setdefault(name, []).append(d)
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, those in deviations.items():
        mean, bound = sum(those) / len(those), 4 / sqrt(len(those))
        text = f"{name}: mean deviation of {len(those)} sampled cells {mean:+.2f} standard errors, within {bound:.2f}"
        good = abs(mean) <= bound
        failed += not good
        if tap:
            result(good, text)
        else:
            print(f"{'ok' if good else 'FAILED'} {text}")
    if tap:
        print(f"1..{count}")
    print(f"# {len(chosen)} kinds, {failed} failed, {time.monotonic() - started:.0f} s")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
