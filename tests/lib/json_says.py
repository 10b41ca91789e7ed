"""json_says.py FILE [BATCH [later]]: is the JSON file valid and does it agree with itself, and with a batch frame of the
same snapshot (later: of the same state, but another moment, so that rates differ)? Prints what is wrong; exit code 1 then."""
import json
import sys

wrong = []


def once(pairs):
    keys = [k for k, _ in pairs]
    for key in set(keys):
        if keys.count(key) > 1:
            wrong.append("key %r comes twice" % key)
    return dict(pairs)


def refuse(name):
    raise ValueError("%s is no JSON" % name)


with open(sys.argv[1], "rb") as f:
    raw = f.read()
text = raw.decode("utf-8", "strict")
doc = json.loads(text, object_pairs_hook=once, parse_constant=refuse)


def check(what, got, wanted):
    if got != wanted:
        wrong.append("%s: %r, wanted %r" % (what, got, wanted))


check("format", (doc["format"], doc["version"]), ("heaptop", 1))
if any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text):
    wrong.append("control characters stand in it as they are")
summed = ["live_bytes", "alloc_bytes", "free_bytes", "peak_bytes", "samples"]
for column in summed:
    for rows in "sites", "stacks":
        check("%s of %s" % (column, rows), sum(r[column] for r in doc[rows]), doc[column])
for stack in doc["stacks"]:
    if not stack["frames"] or not all(isinstance(f, str) for f in stack["frames"]):
        wrong.append("frames: %r" % stack["frames"])
# each element in a line of its own
elements = sum(len(doc[a]) for a in ("sites", "stacks", "threads", "graph", "not_hooked"))
check("lines that are an element", sum(line.startswith("{") and len(line) > 1 for line in text.split("\n")), elements)

if len(sys.argv) > 2:
    with open(sys.argv[2], encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    head = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
    rest = [line.split("\t") for line in lines if line and not line.startswith("# ")]
    arrays = ("threads", "not_hooked", "sites")
    for key, value in head:
        if key in doc and key not in arrays + (("time_s", "overhead_pct") if len(sys.argv) > 3 else ()):
            got = doc[key]
            same = got == value if isinstance(got, str) else abs(float(got) - float(value)) < 1e-9
            if not same:
                wrong.append("%s: %r, batch has %r" % (key, got, value))
    columns, rows = rest[0], rest[1:]
    check("sites", len(doc["sites"]), len(rows))
    for site, row in zip(doc["sites"], rows):
        for column, value in zip(columns, row):
            got = site[column]
            if got is None and value == "":
                continue
            if len(sys.argv) > 3 and column in ("alloc_bps", "alloc_cps", "age_p50_s"):
                continue
            if isinstance(got, str):
                continue  # names are judged by their figures: batch replaces control bytes in them otherwise
            if got is None or value == "" or abs(float(got) - float(value)) > 1e-9:
                wrong.append("%s of %.60r: %r, batch has %r" % (column, site["site"], got, value))
for line in wrong[:20]:
    print(line)
sys.exit(1 if wrong else 0)
