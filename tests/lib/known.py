#!/usr/bin/env python3
"""Compare batch output with the table the victim "known" printed.

known.py exact TRUTH BATCH        every figure of every site equal; prints "ok NAME" / "no NAME"
known.py sampled TRUTH BATCH...   estimates of many runs against the truth and its standard errors

Exit code 0: right.
"""
import sys
from math import sqrt

# batch column, its name in the victim's table
FIGURES = [
    ("alloc_blocks", "allocs"),
    ("alloc_bytes", "alloc_bytes"),
    ("free_blocks", "frees"),
    ("live_blocks", "live_blocks"),
    ("live_bytes", "live_bytes"),
    ("peak_bytes", "peak_bytes"),
]
ESTIMATES = ["alloc_blocks", "alloc_bytes", "live_blocks", "live_bytes"]


def read_truth(path):
    """{site: {key: number}}, {site: {key: standard error}}; the site "total" is their sum."""
    truth, errors = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if not words or words[0] not in ("site", "se", "total"):
                continue
            if words[0] == "total":
                words.insert(1, "total")
            pairs = zip(words[2::2], map(float, words[3::2]))
            (errors if words[0] == "se" else truth)[words[1]] = dict(pairs)
    return truth, errors


def read_batch(path):
    """The last frame: {header key: text}, {function: {column: sum over its rows}}."""
    header, rows, columns = {}, {}, None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("# command: "):
                header, rows, columns = {}, {}, None
            if line.startswith("# "):
                key, _, text = line[2:].partition(": ")
                header[key] = text
            elif not line:
                continue
            elif columns is None:
                columns = line.split("\t")
            else:
                cells = dict(zip(columns, line.split("\t")))
                row = rows.setdefault(cells.get("site", ""), {})
                for column, cell in cells.items():
                    try:
                        row[column] = row.get(column, 0) + float(cell)
                    except ValueError:
                        pass
    return header, rows


def exact(truth_path, batch_path):
    truth, _ = read_truth(truth_path)
    header, rows = read_batch(batch_path)
    right = bool(truth)

    def verdict(good, name):
        nonlocal right
        right = right and good
        print("ok" if good else "no", name)

    total = truth.pop("total")
    for site, figures in truth.items():
        row = rows.get(site)
        wrong = ["has no row"] if row is None else [
            f"{column} {row.get(column)} instead of {figures[key]:.0f}"
            for column, key in FIGURES if row.get(column) != figures[key]]
        verdict(not wrong, f"{site}: every figure equal")
        for text in wrong:
            print(f"#   {site}: {text}")
    for column, key in FIGURES:
        got = sum(rows.get(site, {}).get(column, 0) for site in truth)
        verdict(got == total[key], f"the sites' {column} add up to {total[key]:.0f}")
        if got != total[key]:
            print(f"#   got {got:.0f}")
        whole = sum(row.get(column, 0) for row in rows.values())
        said = float(header.get(column, "nan"))
        verdict(whole == said, f"all rows' {column} add up to the header's")
        if whole != said:
            print(f"#   {whole:.0f}, header {said:.0f}")
    return right


def sampled(truth_path, batch_paths):
    truth, errors = read_truth(truth_path)
    runs = [read_batch(path)[1] for path in batch_paths]
    right = bool(runs) and bool(errors)
    names = {column: key for column, key in FIGURES}
    for site in truth:
        for column in ESTIMATES:
            want, se = truth[site][names[column]], errors[site][column]
            members = [s for s in truth if s != "total"] if site == "total" else [site]
            got = [sum(run.get(s, {}).get(column, 0) for s in members) for run in runs]
            # figures are rounded to whole blocks and bytes, once a row
            slack = len(members)
            outside = sum(abs(g - want) > 3 * se + slack for g in got)
            mean = sum(got) / len(got)
            good = outside <= 1
            if site == "total":
                good = good and abs(mean - want) <= 3 * se / sqrt(len(got)) + slack
            if not good or site == "total":
                print(f"# {site} {column}: {outside} of {len(got)} beyond 3 standard errors, "
                      f"mean {mean:.0f}, truth {want:.0f}, standard error {se:.0f}")
            right = right and good
    return right


def main():
    if sys.argv[1] == "exact":
        return exact(sys.argv[2], sys.argv[3])
    return sampled(sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
