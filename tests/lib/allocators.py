#!/usr/bin/env python3
"""Compare batch output with the lines "SITE SIZE BLOCKS LIVE" that a victim printed.

allocators.py TRUTH BATCH           every figure of every site equal
allocators.py TRUTH BATCH RATE      each of them within three standard errors of a sample of mean RATE bytes

Exit code 0: right. A block of s bytes is sampled with probability q = 1 - exp(-s / RATE) and then stands
for 1 / q: a variance of (1 - q) / q blocks.
"""
import os
import sys
from math import exp, sqrt

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from known import read_batch  # noqa: E402

COLUMNS = ["alloc_blocks", "alloc_bytes", "live_blocks", "live_bytes"]


def read_truth(path, rate):
    """{site: [[figure, its variance] for COLUMNS]}, and whether the victim ended with "ok"."""
    sites, ended = {}, False
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            ended = words == ["ok"]
            if len(words) != 4:
                continue
            size, blocks, live = map(int, words[1:])
            variance = exp(-size / rate) / (1 - exp(-size / rate)) if rate else 0
            site = sites.setdefault(words[0], [[0, 0] for _ in COLUMNS])
            for figure, n, each in zip(site, (blocks, blocks, live, live), (1, size, 1, size)):
                figure[0] += n * each
                figure[1] += n * each * each * variance
    return sites, ended


def main():
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    sites, ended = read_truth(sys.argv[1], rate)
    got = {}
    for name, row in read_batch(sys.argv[2])[1].items():
        sums = got.setdefault(name.partition("(")[0], [0] * len(COLUMNS))
        for i, column in enumerate(COLUMNS):
            sums[i] += row.get(column, 0)
    right = bool(sites) and ended
    if not ended:
        print("# the victim has not said ok")
    for site, figures in sites.items():
        row = got.get(site, [0] * len(COLUMNS))
        for column, (want, variance), is_now in zip(COLUMNS, figures, row):
            # figures are rounded to whole blocks and bytes
            if abs(is_now - want) > 3 * sqrt(variance) + (2 if rate else 0):
                print(f"# {site}: {column} {is_now:.0f} instead of {want} (standard error {sqrt(variance):.0f})")
                right = False
    for site in got:
        if site.startswith("site_") and site not in sites:
            print(f"# {site} has allocated nothing, but has a row")
            right = False
    return right


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
