#!/usr/bin/env python3
"""Does heaptop grow worse than linearly? Run time and memory against the number of different stacks,
of live blocks, of threads; exact mode, in which heaptop knows each of them.

The time is that of the whole command less that of one with next to nothing to do (start and end, as
measured in the same rounds), its memory the most it ever had less that of such a one. Ten times as
many may take twelve times as much of either, and a quarter of a second or 16 MiB more: what comes with the
first of anything is no part of how it grows. All of the program's calls must have been counted. heaptop's
own ceilings (heap/heap.h), which the largest steps come near: 2^19 stacks, beyond which idle ones are
merged, and 10 M live blocks.
"""
import collections
import os

from bench import HEAPTOP, QUICK, VICTIMS, Command, Peak, finish, header, in_turn, line, median, number, \
    rounds, run, say, scratch

GROWTH = os.path.join(VICTIMS, "growth")
NAN = float("nan")
TIMES, SECONDS, KIB = 12, 0.25, 16384

STEPS = {
    # name: the option, and how many
    "traces": ("-n", [1000, 10000, 100000, 1000000]),
    "blocks": ("-l", [1000, 10000, 100000, 1000000, 10000000]),
    "threads": ("-t", [1, 10, 100, 1000]),
}


Under = collections.namedtuple("Under", "wall own kib calls gap")


def under_heaptop(options, folder):
    """Wall seconds, the victim's own, the most KiB heaptop ever had; the calls heaptop counted and how
    often the agent found that it was late."""
    own, batch = os.path.join(folder, "own"), os.path.join(folder, "batch")
    argv = [HEAPTOP, "-e", "-q", "-b", "-d", "3600", "--", GROWTH] + options + ["-o", own]
    with open(batch, "wb") as out, Command(argv, out=out) as command:
        peak = Peak(command.pid)
        peak.start()
        result = command.wait(600)
        peak.join(1)
    if result.code:
        return Under(NAN, NAN, NAN, NAN, NAN)
    keys = header(batch)
    with open(own, encoding="ascii") as file:
        return Under(result.wall, float(file.read().split()[1]), peak.kib,
                     number(keys.get("alloc_blocks")), number(keys.get("gap")))


def grow(name, option, sizes, folder):
    if QUICK:
        sizes = sizes[:3]
    ways = {0: lambda: under_heaptop(["-n", "1"], folder)}
    bare, calls = {}, {}
    for n in sizes:
        each = {"traces": 4, "blocks": 1, "threads": 1000}[name]
        calls[n] = n * each
        options = [option, str(n), "-k", str(each)]
        ways[n] = lambda options=options: under_heaptop(options, folder)
        bare[n] = lambda options=options: run([GROWTH] + options).wall
    bares = in_turn(bare, rounds(5))
    # the largest take long, and little else in a run of that length is noise
    results = in_turn({n: w for n, w in ways.items() if n < 1000000}, rounds(5))
    results |= in_turn({n: w for n, w in ways.items() if n >= 1000000}, rounds(3))

    wall = {n: median([r.wall for r in got]) for n, got in results.items()}
    kib = {n: median([r.kib for r in got]) for n, got in results.items()}
    say(f"{name}: heaptop with next to nothing to do: {wall[0]:.3f} s, {kib[0] / 1024:.1f} MiB")
    before = None
    for n in sizes:
        seconds, memory = wall[n] - wall[0], kib[n] - kib[0]
        own = median([r.own for r in results[n]])
        # what wasn't recorded costs nothing: such a run says nothing about growth
        counted = min(r.calls for r in results[n])
        target, good = f"{calls[n]} calls", counted >= calls[n]
        if before is not None:
            most = TIMES * max(wall[before] - wall[0], 0) + SECONDS
            most_kib = TIMES * max(kib[before] - kib[0], 0) + KIB
            target = f"<= {most:.2f} s, {most_kib / 1024:.0f} MiB, {target}"
            good = good and seconds <= most and memory <= most_kib
        line(f"growth.{name}.{n}", f"heaptop -e -q -b -- growth {option} {n}",
             f"{seconds:+.3f} s ({1e9 * seconds / n:.0f} ns each), {wall[n] / median(bares[n]):.1f} times bare, "
             f"the program's own {own:.3f} s; {memory / 1024:+.0f} MiB ({1024 * memory / n:.0f} bytes each); "
             f"{counted:.0f} calls",
             target, good)
        if not counted >= calls[n]:
            say(f"growth.{name}.{n}: not all calls were counted; gap {max(r.gap for r in results[n]):.0f}")
        before = n


def main():
    with scratch() as folder:
        for name, (option, sizes) in STEPS.items():
            grow(name, option, sizes, folder)
    finish()


main()
