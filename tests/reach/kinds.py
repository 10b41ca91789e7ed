"""The kinds of target of the reach table: how each is built, started, and watched.

A kind makes a Target (the victim reach.c, which keeps books) or a Program (any other, which reads what
to do from its standard input). To add one: a function here, under @kind("its name").
"""
import atexit
import os
import shutil
import subprocess
import threading
import time

SOURCE = os.path.join(os.environ.get("abs_top_srcdir") or os.getcwd(), "tests", "victims")
FLAGS = ["-g", "-O1", "-fno-builtin", "-fno-inline", "-fno-ipa-icf", "-fno-optimize-sibling-calls",
         "-fno-omit-frame-pointer"]
KINDS = []
GROUPS = []  # memory cgroups that were made
SECONDS = 120


class Lacking(Exception):
    """What it takes isn't installed."""


class Kind:
    def __init__(self, name, make, counts):
        self.name, self.make, self.counts = name, make, counts


def kind(name, counts=True):
    def add(make):
        KINDS.append(Kind(name, make, counts))
        return make
    return add


class Target:
    """The victim: words for it, what stands before it, options for heaptop."""
    keeps_books = True

    def __init__(self, path, *words, before=(), outer=(), options=(), environment=None, named=True,
                 modules=None, refused=None, refusable=None, namespace=False, shell=None,
                 sites=None):
        self.path, self.words, self.before, self.outer = path, words, before, outer
        self.options, self.environment, self.named = options, environment or {}, named
        self.sites = sites  # address ranges of the victim's site functions, where the module alone won't do
        self.modules = modules or {os.path.basename(path)}
        # a pattern for the one line that must (refused) or may, on attaching (refusable), be all there is
        self.refused, self.refusable = refused, refusable
        self.namespace, self.shell = namespace, shell

    def command(self, fd, rate):
        argv = [*self.before, self.path, f"out={fd}", f"rate={rate}", *self.words]
        return [*self.shell, *argv] if self.shell else argv

    def inner(self, leaf):
        """What heaptop stands behind to be beside the program: its namespaces."""
        return ["nsenter", "-t", str(leaf), "-p", "-m"] if self.namespace else []

    def pid(self, leaf):
        if not self.namespace:
            return leaf
        with open(f"/proc/{leaf}/status", encoding="utf-8", errors="replace") as lines:
            return [line.split()[-1] for line in lines if line.startswith("NSpid:")][0]


class Program:
    """`argv(folder)`; `hello` is written first, then it must be ready; `work` makes it end."""
    keeps_books = False
    options, outer, environment = (), (), {}

    def __init__(self, argv, hello=b"", work=b"", least=100, repeats=False, environment=None, answer="ready"):
        self.arguments, self.hello, self.script, self.least = argv, hello, work, least
        self.repeats, self.environment, self.answer = repeats, environment or {}, answer

    def argv(self, folder):
        return [a.replace("@", folder) for a in self.arguments]

    def ready(self, folder, out):
        with open(out, encoding="utf-8", errors="replace") as file:
            return self.answer in file.read()

    def work(self, folder, stdin):
        stdin.write(self.script)
        stdin.flush()


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def tool(*names):
    for name in names:
        if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return name
    raise Lacking("no " + " or ".join(names))


def library(name):
    """A shared library's path, as the loader knows it."""
    for line in run(["/sbin/ldconfig", "-p"]).splitlines():
        if line.strip().startswith(name + " "):
            return line.split(" => ")[1]
    raise Lacking("no " + name)


def archive(name):
    path = run(["gcc", f"-print-file-name={name}"]).strip()
    if path == name:
        raise Lacking("no " + name)
    return path


class Workshop:
    """Builds the victim in a kind's folder; variants that several kinds use are compiled once."""
    made, lock = {}, threading.Lock()

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, flags=(), compiler=("gcc", "-std=gnu11"), libs=(), name="reach",
              sources=("reach.c", "reach_pool.c")):
        path = self.path(name)
        tool(compiler[0])
        how = [*compiler, *FLAGS, *flags]
        what = [*(os.path.join(SOURCE, s) for s in sources), *libs, "-lm", "-pthread"]
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with self.lock:
                key = "\0".join(how + what)
                if key not in self.made:
                    self.made[key] = os.path.join(os.path.dirname(self.folder), f"build-{len(self.made)}")
                    run([*how, "-o", self.made[key], *what])
                shutil.copy(self.made[key], path)
        return path

    def cxx(self, flags=(), libs=()):
        return self.build(flags, ("g++", "-std=gnu++17", "-x", "c++"), ("-x", "none", *libs))

    def musl(self, *flags):
        return self.build(flags, ("musl-gcc", "-std=gnu11"))


# ---- executables ----

@kind("glibc, position-independent")
def _(w):
    return Target(w.build())


@kind("glibc, at a fixed address")
def _(w):
    return Target(w.build(["-no-pie", "-fno-pie"]))


@kind("glibc, static")
def _(w):
    return Target(w.build(["-static"]))


@kind("glibc, static, position-independent")
def _(w):
    return Target(w.build(["-static-pie", "-fPIE"]))


@kind("musl, dynamic")
def _(w):
    return Target(w.musl())


@kind("musl, static")
def _(w):
    return Target(w.musl("-static"))


@kind("musl, static, position-independent")
def _(w):
    return Target(w.musl("-static-pie", "-fPIE"))


@kind("stripped, dynamic")
def _(w):
    return Target(w.build(["-s"]), named=False)


@kind("stripped, static: refused")
def _(w):
    return Target(w.build(["-s", "-static"]), refused="no allocator found")


@kind("stripped, static, addresses given")
def _(w):
    full = w.build(["-static", "-no-pie", "-fno-pie"], name="full")
    path = w.path("reach")
    if not os.path.exists(path):
        run([tool("strip"), "-o", path, full])
    at = {line.split()[2]: line.split()[0] for line in run(["nm", full]).splitlines() if len(line.split()) == 3}
    options = [f"--alloc=0x{at['malloc']}(size=1)", f"--alloc=0x{at['calloc']}(count=1,size=2)",
               f"--realloc=0x{at['realloc']}(ptr=1,size=2)", f"--free=0x{at['free']}(ptr=1)",
               f"--alloc=0x{at['posix_memalign']}(out=1,align=2,size=3)"]
    # what the C library allocates at its start is in the same module
    sites = [(int(words[0], 16), int(words[0], 16) + int(words[1], 16))
             for words in map(str.split, run(["nm", "-S", full]).splitlines())
             if len(words) == 4 and words[3].startswith("site_")]
    return Target(path, options=options, named=False, sites=sites)


@kind("prelinked: linked at an address of its own")
def _(w):
    return Target(w.build(["-pie", "-fPIE", "-Wl,-Ttext-segment=0x3a00000000"]))


@kind("more than 100 MB of code")
def _(w):
    path = w.path("huge.s")
    if not os.path.exists(path):
        with open(path, "w", encoding="ascii") as file:
            file.write("\t.text\n")
            for i in range(50000):
                file.write(f"\t.globl huge_{i}\n\t.type huge_{i}, @function\nhuge_{i}:\n"
                           f"\t.skip 2200, 0x90\n\tret\n\t.size huge_{i}, . - huge_{i}\n")
    return Target(w.build([path]))


@kind("CET, full relro, immediate binding")
def _(w):
    return Target(w.build(["-fcf-protection=full", "-Wl,-z,now,-z,relro", "-D_FORTIFY_SOURCE=2"]))


# ---- files and containers ----

@kind("a space in the path")
def _(w):
    return Target(w.build(name="with a space/reach it"))


@kind("a newline in the path")
def _(w):
    return Target(w.build(name="with a\nnewline/reach\nit"))


def fresh(w, *more):
    """A copy that the victim may destroy."""
    path = w.path("doomed")
    if os.path.exists(path):
        os.unlink(path)
    shutil.copy(w.build(more), path)
    return path


@kind("deleted from disk")
def _(w):
    return Target(fresh(w), "unlink")


@kind("replaced on disk")
def _(w):
    other = w.path("other")
    shutil.copy(w.build(["-O2", "-DOTHER", "-static"], name="another"), other)
    return Target(fresh(w), f"replace={other}")


def root(w):
    """A folder with the victim and its libraries, to be somebody's root."""
    top, path = w.path("root"), w.build()
    if not os.path.exists(top):
        os.makedirs(top + "/proc")
        for line in run(["ldd", path]).splitlines():
            for word in line.split():
                if word.startswith("/"):
                    os.makedirs(top + os.path.dirname(word), exist_ok=True)
                    shutil.copy(word, top + word)
        shutil.copy(path, top + "/reach")
    return top


@kind("another root, in a mount namespace of its own")
def _(w):
    return Target("/reach", before=[tool("unshare"), "-m", tool("chroot"), root(w)])


@kind("another PID namespace")
def _(w):
    return Target(w.build(), before=[tool("unshare"), "-pf", "--kill-child", "--mount-proc"])


@kind("heaptop inside such a container, too")
def _(w):
    tool("nsenter")
    # its first process stays until the others have gone, since it takes them with it
    init = ["sh", "-c", '"$@"; code=$?; set -- /proc/[0-9]*; '
            'while [ $# -gt 1 ]; do sleep 0.1; set -- /proc/[0-9]*; done; exit $code', "sh"]
    return Target(w.build(), outer=[tool("unshare"), "-pf", "--kill-child", "--mount-proc", *init],
                  namespace=True)


@kind("a user namespace")
def _(w):
    return Target(w.build(), before=[tool("unshare"), "--user", "--map-root-user"])


@kind("another user")
def _(w):
    return Target(w.build(), before=[tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"])


@kind("RLIMIT_AS of 1 GB")
def _(w):
    return Target(w.build(), before=[tool("prlimit"), "--as=1073741824"])


CGROUPS = "/sys/fs/cgroup"


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def leave_group(path):
    """Its last process may take a moment to be gone."""
    for _ in range(100):
        try:
            os.rmdir(path)
            return
        except OSError:
            time.sleep(0.05)


def memory_group(limit):
    """A memory cgroup with a limit, removed at the end; either version of them. Its folder."""
    first = os.path.join(CGROUPS, "memory")
    top, name = (first, "memory.limit_in_bytes") if os.path.isdir(first) else (CGROUPS, "memory.max")
    path = os.path.join(top, f"heaptop-reach-{os.getpid()}-{len(GROUPS)}")
    try:
        if top == CGROUPS:
            write(os.path.join(top, "cgroup.subtree_control"), "+memory")
        os.mkdir(path)
        GROUPS.append(path)
        atexit.register(leave_group, path)
        write(os.path.join(path, name), str(limit))
    except OSError as error:
        raise Lacking(f"a memory cgroup that may be made ({error})") from error
    return path


@kind("a memory cgroup of 64 MB")
def _(w):
    enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
    return Target(w.build(), before=["sh", "-c", enter, memory_group(64 << 20)])


# ---- allocators ----

def preloaded(w, name):
    path = library(name)
    return Target(w.build(), before=["env", f"LD_PRELOAD={path}"])


@kind("jemalloc, preloaded")
def _(w):
    return preloaded(w, "libjemalloc.so.2")


@kind("tcmalloc, preloaded")
def _(w):
    return preloaded(w, "libtcmalloc_minimal.so.4")


@kind("mimalloc, preloaded")
def _(w):
    return preloaded(w, "libmimalloc.so.2")


@kind("jemalloc, linked in")
def _(w):
    return Target(w.cxx(libs=[archive("libjemalloc.a"), "-ldl"]))


@kind("tcmalloc, linked in")
def _(w):
    return Target(w.cxx(libs=[archive("libtcmalloc_minimal.a")]))


@kind("mimalloc, linked as a library")
def _(w):
    archive("libmimalloc.so")
    return Target(w.cxx(libs=["-Wl,--no-as-needed", "-lmimalloc"]))


@kind("jemalloc, names with _rjem_")
def _(w):
    plain, renamed = archive("libjemalloc_pic.a"), w.path("rjem.a")
    if not os.path.exists(renamed):
        names = {line.split()[2] for line in run(["nm", "-g", "--defined-only", plain]).splitlines()
                 if len(line.split()) == 3}
        with open(w.path("names"), "w", encoding="ascii") as file:
            file.writelines(f"{name} _rjem_{name}\n" for name in sorted(names))
        run([tool("objcopy"), f"--redefine-syms={w.path('names')}", plain, renamed])
    return Target(w.build(["-DPREFIX=_rjem_"], libs=[renamed, "-ldl", "-lstdc++"]))


@kind("an allocator that is loaded later")
def _(w):
    plugin = w.build(["-DPLUGIN", "-shared", "-fPIC"], sources=["reach_pool.c"], name="libpool.so")
    return Target(w.build(), f"dlopen={plugin}")


@kind("an allocator of its own, named by the user")
def _(w):
    return Target(w.build(), "pool", options=["--alloc=pool_get(size=1)", "--free=pool_put(ptr=1)"])


@kind("C++, operator new over malloc")
def _(w):
    return Target(w.cxx())


@kind("C++, operator new of its own")
def _(w):
    return Target(w.cxx(["-DOWN_NEW"]))


@kind("C++, exceptions")
def _(w):
    return Target(w.cxx(), "throw")


# ---- processes ----

@kind("a shell script that execs it")
def _(w):
    return Target(w.build(), shell=["sh", "-c", 'cd /; exec "$@"', "sh"])


@kind("a shell script that runs it")
def _(w):
    return Target(w.build(), shell=["sh", "-c", '"$@"; exit $?', "sh"])


@kind("a forked child")
def _(w):
    return Target(w.build(), "fork")


@kind("a child by posix_spawn")
def _(w):
    return Target(w.build(), "spawn")


@kind("1,000 threads")
def _(w):
    return Target(w.build(), "threads=1000", "steps=40")


@kind("5,000 short threads")
def _(w):
    return Target(w.build(), "churn=5000", "steps=10")


@kind("one thread")
def _(w):
    return Target(w.build(), "threads=1", "steps=16000")


@kind("coroutines")
def _(w):
    return Target(w.build(), "coro")


@kind("signal handlers on a stack of their own")
def _(w):
    return Target(w.build(), "altstack")


@kind("code written at run time")
def _(w):
    return Target(w.build(), "jit", named=False, modules={"reach", "[anon]", ""})


@kind("code without CFI")
def _(w):
    return Target(w.build(), "bare", named=False)


@kind("seccomp: what it doesn't need is death")
def _(w):
    return Target(w.build(), "seccomp", refusable="seccomp filter")


@kind("mostly realloc")
def _(w):
    return Target(w.build(), "realloc")


@kind("memory exhausted (RLIMIT_AS)")
def _(w):
    return Target(w.build(), "exhaust", "threads=1", "steps=16000")


@kind("4,000 mappings and 64 GB reserved")
def _(w):
    return Target(w.build(), "maps")


# ---- programs: heaptop's books must balance; what repeats must be the same sampled ----

PYTHON = """
import json, sys
print("ready", flush=True)
sys.stdin.readline()
keep = [json.dumps([{"key%d" % (i * k): list(range(i % 50))} for i in range(300)]) for k in range(20)]
print(sum(map(len, keep)))
"""


@kind("python3", counts=False)
def _(_):
    return Program([tool("python3"), "-c", PYTHON], work=b"\n", repeats=True, least=5000,
                   environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})


@kind("sqlite3", counts=False)
def _(_):
    return Program([tool("sqlite3"), ":memory:"], hello=b".print ready\n", least=1000, repeats=True, work=b"""
create table t(a, b); create index x on t(b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) from n;
select count(*), sum(length(b)), max(b) from t;
""")


@kind("git", counts=False)
def _(w):
    top = w.path("repository")
    git = [tool("git"), "-C", top, "-c", "user.name=A", "-c", "user.email=a@example.org"]
    if not os.path.exists(top):
        os.mkdir(top)
        run([*git, "init", "-q"])
        for i in range(200):
            with open(os.path.join(top, f"file{i}"), "w", encoding="ascii") as file:
                file.writelines(f"line {i * k}\n" for k in range(100))
        run([*git, "add", "."])
        run([*git, "commit", "-q", "-m", "all"])
    names = run([*git, "ls-files", "-s"]).split()[1::4]
    return Program([*git, "cat-file", "--batch"], hello=b"HEAD\n", answer="commit", repeats=True, least=200,
                   environment={"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
                   work="".join(name + "\n" for name in names).encode())


@kind("node", counts=False)
def _(_):
    return Program([tool("node"), "-e", """
console.log("ready");
process.stdin.once("data", () => {
  const s = [];
  for (let i = 0; i < 5000; i++) s.push(Buffer.alloc(9000 + i % 7, i & 255).toString("hex").length);
  console.log(s.length);
  process.exit(0);
});"""], work=b"\n", least=500)


class Redis(Program):
    def ready(self, folder, out):
        return subprocess.run(["redis-cli", "-s", folder + "/sock", "ping"], capture_output=True,
                              check=False).stdout == b"PONG\n"

    def work(self, folder, stdin):
        run(["redis-benchmark", "-s", folder + "/sock", "-q", "-n", "2000", "-c", "5", "-r", "1000",
             "-t", "set,lpush,hset"])
        subprocess.run(["redis-cli", "-s", folder + "/sock", "shutdown", "nosave"], capture_output=True, check=False)


@kind("redis", counts=False)
def _(w):
    # Debian's tools package has the server under another name; it goes by its first argument
    server = w.path("redis-server")
    tool("redis-benchmark")
    if not os.path.exists(server):
        os.symlink(shutil.which(tool("redis-server", "redis-check-rdb")), server)
    return Redis([server, "--port", "0", "--unixsocket", "@/sock", "--save", "", "--appendonly", "no"], least=1000)
