#!/usr/bin/env python3
"""What each probe costs, in one run: none, the agent, uprobes by each way, all sampling at the same rate.

pairs: added ns a malloc+free pair in a loop that does nothing else; for uprobes that is their whole
cost, since each call is one, sampled or not. cc1plus: run time of a compiler on templates. redis: the
time of redis-benchmark, so the ratio is that of the throughputs.

A pair's CPU time is judged, of the best run, for whoever else is at work on the machine adds to wall time;
and by the cost of a system call in the same run: what a trap takes depends on the machine by far more
than on us, and the target is for one where a getppid takes 216 ns. There is no target for programs under
uprobes: they pay for what they allocate.
"""
from bench import HEAPTOP, QUICK, finish, in_turn, line, median, need, rounds, run, scratch
from pairs import measure, of
from programs import cc1plus, redis

ROUNDS = rounds(5)
RATE = ["-r", "512K", "-q", "-b", "-d", "3600", "--"]
WAYS = {
    "none": [],
    "agent": [HEAPTOP] + RATE,
    "uprobe": [HEAPTOP, "--probe=uprobe"] + RATE,
    "uprobe-multi": [HEAPTOP, "--probe=uprobe-multi"] + RATE,
    "uprobe-hits": [HEAPTOP, "--probe=uprobe-hits"] + RATE,
}
PAIRS_SIZE = ["-n", "1000", "-r", "5"] if QUICK else ["-n", "10000", "-r", "30"]
UPROBE_MOST, DOOR = 2300, 216


def pairs(folder):
    for threads in (1, 2):
        options = ["-b", "tight", "-t", str(threads)] + PAIRS_SIZE
        ways = {way: lambda front=front: measure(front, options, folder) for way, front in WAYS.items()}
        ways["door"] = lambda: measure([], ["-b", "door", "-t", str(threads)] + PAIRS_SIZE, folder)
        results = in_turn(ways, ROUNDS)
        best = {way: min([r.get("cpu_ns", float("nan")) for r in results[way]]) for way in results}
        middle = {way: of(results, way, "median_ns") for way in WAYS}
        added = {way: best[way] - best["none"] for way in WAYS}
        most = UPROBE_MOST * max(1, best["door"] / DOOR)
        for way in list(WAYS)[1:]:
            target, good = "printed", True
            if way == "uprobe" and threads == 1:
                target, good = f"<= +{most:.0f} ns where a getppid takes {best['door']:.0f}", added[way] <= most
            elif way in ("uprobe-multi", "uprobe-hits"):
                target, good = "more than uprobe", added[way] > added["uprobe"]
            line(f"probe.pairs.{threads}.{way}", f"{' '.join(WAYS[way][1:])} pairs {' '.join(options)}",
                 f"{best['none']:.1f} ns bare, {added[way]:+.0f} ns of CPU ({middle[way] - middle['none']:+.0f} of "
                 f"wall time), {added[way] / added['agent']:.0f} times the agent's", target, good)


def program(name, what, results):
    """One line a way; results: {way: [Run]}."""
    wall = {way: median([r.wall for r in results[way]]) for way in WAYS}
    for way in list(WAYS)[1:]:
        failed = [w for w in ("none", way) if any(r.code for r in results[w])]
        line(f"probe.{name}.{way}", f"{' '.join(WAYS[way][1:])} {what}",
             (f"FAILED: {' '.join(failed)}, nan; " if failed else "") +
             f"{wall['none']:.2f} s bare, {wall[way] / wall['none']:.3f} times",
             "less than uprobe" if way == "agent" else "printed",
             not failed and (way != "agent" or wall[way] < wall["uprobe"]))


def main():
    need("g++", "redis-benchmark", "redis-cli")
    with scratch() as folder:
        pairs(folder)
        source = "strings.cc" if QUICK else "templates.cc"
        argv, env = cc1plus(folder, source)
        program("cc1plus", f"cc1plus {source}",
                in_turn({way: lambda front=front: run(front + argv, program=argv[0], env=env)
                         for way, front in WAYS.items()}, rounds(3)))
        program("redis", "redis-server, redis-benchmark -t set,get,lpush,hset",
                in_turn({way: lambda front=front: redis(front, folder) for way, front in WAYS.items()}, rounds(3)))
    finish()


if __name__ == "__main__":
    main()
