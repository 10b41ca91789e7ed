#!/usr/bin/env python3
"""What a malloc+free pair costs under heaptop and under heaptrack, as the program itself sees it.

Sampled: added ns a pair. Exact: added ns a pair, heaptrack's over heaptop's; with as many calls as
heaptrack counts, and none dropped. heaptrack runs the ordinary way, its interpreter beside it as
heaptop's collector is: end to end, all on the same processors. Only the cost of a call is compared:
heaptrack also stops a program for up to a second at its start, while the interpreter reads
symbols and the pipe is full; that is in "with the start" and in no target.
"""
import os
import re
import subprocess

from bench import HEAPTOP, QUICK, VICTIMS, finish, header, in_turn, line, median, need, number, \
    rounds, run, say, scratch

PAIRS = os.path.join(VICTIMS, "pairs")
ROUNDS = rounds(5)
NAN = float("nan")

# Sampled: rounds of 10 ms or so, in which many samples are taken and the collector comes by.
SAMPLED_SIZE = ["-n", "20000", "-r", "10"] if QUICK else ["-n", "1000000", "-r", "60"]
# Exact: the mean over all rounds, since a program that waits for the collector does so in some of
# them only; more pairs than fit into any ring.
EXACT_SIZE = ["-n", "1000", "-r", "5"] if QUICK else ["-n", "20000", "-w", "10", "-r", "60"]

# A block that only heaptrack has: its library brings libstdc++ along, which allocates a pool for
# exceptions (72,704 bytes) when it is loaded. All else is counted by both: the start of the threads
# (calloc of ld.so), the arrays of the program, the buffer of its output.
HEAPTRACK_OWN = 1

# body, frames, threads, heaptrack's added cost over heaptop's at least
EXACT = [
    ("tight", 10, 1, 7), ("tight", 30, 1, 9), ("tight", 10, 2, 7), ("tight", 30, 2, 8),
    ("ring", 10, 1, None), ("ring", 10, 2, None),
]


def measure(prefix, options, folder, after=lambda: None):
    """Run the victim behind `prefix`: {figure: number} as it wrote them itself."""
    result = os.path.join(folder, "pairs.out")
    with open(os.path.join(folder, "batch"), "wb") as batch:
        code = run(prefix + [PAIRS] + options + ["-o", result], out=batch).code
    if code:
        return {}
    with open(result, encoding="ascii") as file:
        words = file.read().split()
    after()
    return {key: number(value) for key, value in zip(words[::2], words[1::2])}


def of(results, way, figure):
    return median([r.get(figure, NAN) for r in results[way]])


def sampled(folder):
    for body, most in (("tight", 3), ("ring", 6)):
        for threads in (1, 2):
            options = ["-b", body, "-d", "10", "-t", str(threads)] + SAMPLED_SIZE
            heaptop = [HEAPTOP, "-r", "512K", "-q", "-b", "-d", "3600", "--"]
            results = in_turn({
                "bare": lambda: measure([], options, folder),
                "sampled": lambda: measure(heaptop, options, folder),
            }, ROUNDS)
            bare, under = of(results, "bare", "median_ns"), of(results, "sampled", "median_ns")
            mean = of(results, "sampled", "mean_ns") - of(results, "bare", "mean_ns")
            line(f"sampled.{body}.{threads}", f"heaptop -r 512K -q -b -- pairs {' '.join(options)}",
                 f"{bare:.2f} ns bare, {under - bare:+.2f} ns (by the mean {mean:+.2f})",
                 f"<= +{most} ns", under - bare <= most)


class Totals:
    """Calls as each profiler counted them, run after run."""

    def __init__(self, folder):
        self.folder = folder
        self.heaptop, self.heaptrack = [], []
        self.lost = 0

    def read_heaptop(self):
        keys = header(os.path.join(self.folder, "batch"))
        self.heaptop.append(number(keys.get("alloc_blocks")))
        self.lost += sum(number(keys.get(k)) for k in ("dropped", "gap", "lost_frees", "untracked"))

    def read_heaptrack(self):
        name = next(n for n in os.listdir(self.folder) if n.startswith("heaptrack."))
        text = subprocess.run(
            ["heaptrack_print", "-p0", "-a0", "-T0", "-f", os.path.join(self.folder, name)],
            capture_output=True, text=True, check=False).stdout
        found = re.search(r"calls to allocation functions: (\d+)", text)
        self.heaptrack.append(number(found and found.group(1)))

    def line(self, name, pairs):
        apart = sorted({a - b for a, b in zip(self.heaptrack, self.heaptop)})
        line(name, "heaptrack_print's calls beside alloc_blocks of heaptop -e",
             f"{median(self.heaptrack):.0f} and {median(self.heaptop):.0f}, {pairs:.0f} of them the "
             f"loop's; apart by {', '.join(f'{a:.0f}' for a in apart)}; {self.lost:.0f} lost",
             f"apart by {HEAPTRACK_OWN}, 0 lost", apart == [HEAPTRACK_OWN] and self.lost == 0)


def ratio_of(results, figure):
    """heaptrack's added cost over heaptop's."""
    bare, ours, theirs = (of(results, way, figure) for way in ("bare", "exact", "heaptrack"))
    return (theirs - bare) / (ours - bare) if ours != bare else NAN


def exact(folder):
    for body, frames, threads, least in EXACT:
        options = ["-b", body, "-d", str(frames), "-t", str(threads)] + EXACT_SIZE
        totals = Totals(folder)
        heaptop = [HEAPTOP, "-e", "-q", "-b", "-d", "3600", "--"]
        heaptrack = ["heaptrack", "-o", os.path.join(folder, "heaptrack")]
        results = in_turn({
            "bare": lambda: measure([], options, folder),
            "exact": lambda: measure(heaptop, options, folder, totals.read_heaptop),
            "heaptrack": lambda: measure(heaptrack, options, folder, totals.read_heaptrack),
        }, ROUNDS)
        bare, ours, theirs = (of(results, way, "mean_ns") for way in ("bare", "exact", "heaptrack"))
        ratio = ratio_of(results, "mean_ns")
        name = f"{body}.{frames}.{threads}"
        line(f"exact.{name}", f"heaptop -e, heaptrack: pairs {' '.join(options)}",
             f"{bare:.1f} ns bare, heaptop {ours - bare:+.0f}, heaptrack {theirs - bare:+.0f}: "
             f"{ratio:.2f} times", f">= {least}" if least else "printed", not least or ratio >= least)
        for figure, what in (("median_ns", "median round"), ("best_ns", "best round"),
                             ("whole_ns", "with the start")):
            each = " ".join(f"{way} {of(results, way, figure):.1f}" for way in results)
            say(f"exact.{name}, {what}: {each} ns; {ratio_of(results, figure):.2f} times")
        totals.line(f"totals.{name}", of(results, "exact", "pairs"))


def main():
    need("heaptrack", "heaptrack_print")
    with scratch() as folder:
        sampled(folder)
        exact(folder)
    finish()


if __name__ == "__main__":
    main()
