"""Compares batch frames of the auto rate with what tests/victims/phases.c says is true.

	auto.py FOLDER FRAMES

FOLDER is the victim's; FRAMES the file heaptop -b writes to while this runs. At each checkpoint the
victim stands still until told to go on; so once no more events come in, a frame must agree with the
truth. Prints "ok NAME" or "no NAME" and "# ..." lines. Exit code 1: something is wrong; 2: samples were
dropped, or heaptop didn't get to run while the program was quiet and the agent raised the rate by itself, as may
happen on a busy machine, and nothing is proven.

Estimates may be 4 standard errors off, which heaptop's own frames tell. By chance that happens to one
of 16,000 comparisons. A run makes 6 of them: one in 2,600 fails without a reason. Everything else must be
equal.

The error is itself estimated from the samples, too small where there are too few of them: of 42 expected
22 is more than 4 of its own errors off, and comes once in 2,500 times. Square roots of such counts have
the same error everywhere (Anscombe 1948) and come near to a normal distribution from a dozen on, so
roots are compared; where errors are small that is the same.
"""
import os
import sys
import time

TIMEOUT = 60
ERRORS = 4
FRAMES_APART = 0.2  # seconds, the -d that heaptop is run with
# After a storm: its cost, just within the budget, is in the mean that the rate goes by. With what events may be
# said to cost on a busy machine, 15 us and more, the first of a quiet phase would take that over the budget for a moment.
FORGOTTEN = 3


class Gone(Exception):
    pass


class Frames:
    """The frames of a file that grows: each {header key: text}, {site: {column: number}}."""

    def __init__(self, path):
        self.path, self.offset, self.frames = path, 0, []

    def read(self):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        whole = text.rfind("\n\n", self.offset)
        if whole < 0:
            return self.frames
        for part in text[self.offset:whole].split("\n\n"):
            if "# command: " in part:
                self.frames.append(self.parse(part[part.index("# command: "):]))
        self.offset = whole + 2
        return self.frames

    @staticmethod
    def parse(text):
        header, rows, columns = {}, {}, None
        for line in text.split("\n"):
            if line.startswith("# "):
                key, _, value = line[2:].partition(": ")
                header[key] = value
            elif columns is None:
                columns = line.split("\t")
            else:
                cells = dict(zip(columns, line.split("\t")))
                # a site may have several rows; their columns but se_pct are added up, se in squares
                row = rows.setdefault(cells["site"], {"se2": 0})
                for column, cell in cells.items():
                    try:
                        row[column] = row.get(column, 0) + float(cell)
                    except ValueError:
                        pass
                row["se2"] += (float(cells["se_pct"]) / 100 * float(cells["live_bytes"])) ** 2
        return header, rows

    def wait(self, what, wanted):
        """The first frame from now on that `wanted` is true of; it gets the one before, too."""
        end, seen = time.monotonic() + TIMEOUT, len(self.read())
        while time.monotonic() < end:
            frames = self.read()
            for i in range(max(seen, 1), len(frames)):
                if wanted(frames[i], frames[i - 1]):
                    return frames[i]
            seen = max(seen, len(frames))
            time.sleep(0.02)
        raise Gone("no frame in which " + what)

    def settled(self):
        """No events between two frames."""
        start = len(self.read())
        return self.wait("nothing happens", lambda new, old: len(self.frames) > start + 1
                         and new[0]["events"] == old[0]["events"])


class Run:
    def __init__(self, folder, frames):
        self.folder, self.frames, self.right, self.starved = folder, Frames(frames), True, False
        self.alloc_before = (0, 0, 0)      # estimate, truth, variance at the last checkpoint

    def verdict(self, good, name, *why):
        self.right = self.right and good
        print("ok" if good else "no", name)
        if not good:
            print("#  ", *why)

    def truth(self, number):
        path = os.path.join(self.folder, f"truth.{number}")
        end = time.monotonic() + TIMEOUT
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise Gone(f"no checkpoint {number}")
            time.sleep(0.01)
        ret = {}
        with open(path, encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] == "total":
                    words.insert(1, "total")
                ret[words[1]] = {k: int(v) for k, v in zip(words[2::2], words[3::2])}
        return ret

    def go(self, number):
        with open(os.path.join(self.folder, f"go.{number}"), "w", encoding="ascii"):
            pass

    def exact(self, when, frame, truth, site):
        row = frame[1].get(site, {})
        got = {"allocs": row.get("alloc_blocks"), "alloc_bytes": row.get("alloc_bytes"),
               "live_blocks": row.get("live_blocks"), "live_bytes": row.get("live_bytes")}
        self.verdict(got == truth[site], f"{when}: {site} is exact", got, "instead of", truth[site])

    def estimate(self, when, got, want, se):
        if se > 0:
            off = 2 * abs(max(got, 0) ** 0.5 - want ** 0.5) * max(got, 0) ** 0.5 / se
        else:
            off = 0 if got == want else float("inf")
        self.verdict(not off > ERRORS, f"{when} within {ERRORS} standard errors",
                     f"{got:.0f}, truth {want}, standard error {se:.0f}: {off:.1f}")
        print(f"# {when}: {off:.2f} standard errors of {100 * se / max(want, 1):.2f}%")

    def live(self, when, frame, truth):
        got = float(frame[0]["live_bytes"])
        # the error is told in hundredths of a percent
        se = (float(frame[0]["live_error_pct"]) + 0.005) / 100 * got
        self.estimate(f"{when}: live bytes", got, truth["total"]["live_bytes"], se)

    def site(self, when, frame, truth, site):
        row = frame[1].get(site, {"live_bytes": 0, "se2": 0})
        se = row["se2"] ** 0.5 + 0.00005 * row["live_bytes"]
        self.estimate(f"{when}: {site}", row["live_bytes"], truth[site]["live_bytes"], se)

    def allocated(self, when, frame, truth):
        """What came since the last checkpoint: a jump at a change of the rate would be in it."""
        got, want = float(frame[0]["alloc_bytes"]), truth["total"]["alloc_bytes"]
        error = (float(frame[0]["alloc_error_pct"]) + 0.005) / 100 * got
        before, truth_before, variance = self.alloc_before
        self.alloc_before = got, want, error ** 2
        # variances add up; the rounding above is far below what is new
        se = max(error ** 2 - variance, 0) ** 0.5
        self.estimate(f"{when}: bytes allocated since", got - before, want - truth_before, se)

    def standing_still(self, when, frame):
        """While the program does nothing the rate comes down, and no figure moves."""
        start = len(self.frames.read()) - 1
        self.frames.wait("the rate is exact", lambda new, old: int(new[0]["rate"]) <= 1)
        until = float(self.frames.frames[-1][0]["time_s"]) + FORGOTTEN
        self.frames.wait("the storm is forgotten", lambda new, old: float(new[0]["time_s"]) >= until)
        frames = self.frames.frames[start:]
        keys = "live_bytes", "live_blocks", "alloc_bytes", "alloc_blocks", "free_bytes", "peak_bytes"
        moved = [key for key in keys for f in frames if f[0][key] != frame[0][key]]
        self.verdict(not moved, f"{when}: nothing moves while the rate comes down to exact", *moved)

    def storm(self, number, churn, keep, exact_sites):
        when = f"storm {number}"
        truth = self.truth(number)
        frame = self.frames.settled()
        rates = {int(f[0]["rate"]) for f in self.frames.frames}
        self.verdict(max(rates) > 1 and frame[0]["mode"] == "sampled", f"{when}: the rate has gone up", rates)
        self.live(when, frame, truth)
        self.site(when, frame, truth, keep)
        self.allocated(when, frame, truth)
        row = frame[1].get(churn, {})
        self.verdict(row.get("live_bytes") == 0 and row.get("live_blocks") == 0,
                     f"{when}: nothing is left of {churn}", row)
        for site in exact_sites:
            self.exact(when, frame, truth, site)
        self.standing_still(when, frame)
        self.go(number)

    def quiet(self, number, site, exact_sites=()):
        when, start = f"quiet {number}", max(len(self.frames.read()) - 1, 0)
        truth = self.truth(number)
        frame = self.frames.settled()
        frames = [f[0] for f in self.frames.frames[start:]]
        if any(int(f["rate"]) > 1 for f in frames):
            times = [float(f["time_s"]) for f in frames]
            self.starved |= any(new - old > 2 * FRAMES_APART for old, new in zip(times, times[1:]))
        right, self.right = self.right, True
        self.verdict(int(frame[0]["rate"]) <= 1 and frame[0]["mode"] == "exact", f"{when}: every call is recorded")
        for name in (site, *exact_sites):
            self.exact(when, frame, truth, name)
        got, want = float(frame[0]["alloc_bytes"]), truth["total"]["alloc_bytes"]
        before, truth_before, _ = self.alloc_before
        self.verdict(got - before == want - truth_before, f"{when}: what came is exact", got - before,
                     want - truth_before)
        if not self.right:
            print("#  ", *("{time_s} s: {events} events at {rate}, overhead {overhead_pct}%;".format(**f) for f in frames))
        self.right = self.right and right
        self.alloc_before = got, want, self.alloc_before[2]
        self.go(number)

    def everything_freed(self, number):
        truth = self.truth(number)
        frame = self.frames.settled()
        left = {site: row for site, row in frame[1].items() if row["live_bytes"] or row["live_blocks"]}
        self.verdict(truth["total"]["live_bytes"] == 0 and not left and frame[0]["live_bytes"] == "0"
                     and frame[0]["live_blocks"] == "0", "everything freed: no site holds anything", left)
        self.verdict(frame[0]["lost_frees"] == "0" and frame[0]["untracked"] == "0", "no free was missed",
                     frame[0]["lost_frees"], frame[0]["untracked"])
        self.go(number)

    def always(self):
        totals = [int(f[0]["alloc_bytes"]) for f in self.frames.read()]
        self.verdict(totals == sorted(totals), "the bytes allocated never become fewer", totals)
        known = [f[0]["overhead_pct"] for f in self.frames.frames if float(f[0]["overhead_pct"]) > 0]
        self.verdict(bool(known), "the overhead is told")

    def dropped(self):
        return any(f[0]["dropped"] != "0" or f[0]["gap"] != "0" for f in self.frames.read())

    def all(self):
        self.truth(0)
        self.go(0)
        self.quiet(1, "site_quiet_keep")
        self.storm(2, "site_storm_churn", "site_storm_keep", ["site_quiet_keep"])
        self.quiet(3, "site_quiet_again", ["site_quiet_keep"])
        self.storm(4, "site_second_churn", "site_second_keep", ["site_quiet_keep", "site_quiet_again"])
        self.everything_freed(5)
        self.always()


def main():
    run = Run(sys.argv[1], sys.argv[2])
    try:
        run.all()
    except Gone as gone:
        run.verdict(False, str(gone))
    if run.dropped() or run.starved:
        return 2
    return 0 if run.right else 1


if __name__ == "__main__":
    sys.exit(main())
