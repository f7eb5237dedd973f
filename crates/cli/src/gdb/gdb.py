"""Heisen's commands for gdb.

Read by gdb when `heisen replay --gdb` starts it. The program runs a schedule on kernel threads that pass a baton: one
of them runs, all others wait. The runtime in it stops at the function heisen_gdb_stop, where a breakpoint is, when it
has come to what the last command asked for. Going back is starting anew: the execution is killed, Heisen begins another
one, and that is attached to.

The commands write and read the program's memory. They call no function in it and write none of its registers: after a
call gdb writes back all registers, which gdb 13 cannot do on processors with AMX.
"""

import bisect
import contextlib
import json
import os
import struct
import time

import gdb
from gdb.unwinder import Unwinder, register_unwinder

SESSION = json.load(open(os.environ.pop("HEISEN_SESSION")))
WANTS = SESSION["wants"]
OPS = dict(SESSION["ops"])
NAMES = dict(SESSION["threads"])
NEVER = 0xFFFFFFFF
FAILING = WANTS[SESSION["failing"]] | WANTS["end"]

# What the last attempt attached to, and the breakpoint in it.
process = None
breakpoint = None
# The signal of gdb's last stop.
signal = None


class Debugger:
    """The runtime's struct `Debugger`: what it is asked, and where its records are."""

    # Attached, until, wants; reason and the thread that the last switch left; three words that are the runtime's own.
    HEAD = struct.Struct("<8I")
    MAP = [
        *("alarm", "step", "current", "count", "enabled", "late", "signalled", "threads", "size"),
        *("op", "object", "pc", "start", "begun", "ended", "control", "kernel_id"),
        *("end", "end_code", "diverged", "diverged_step"),
    ]

    def __init__(self):
        self.address = address("heisen_gdb")
        head = memory(self.address, self.HEAD.size)
        words = struct.unpack(f"<{len(self.MAP)}Q", memory(self.address + self.HEAD.size, 8 * len(self.MAP)))
        self.reason, self.left = self.HEAD.unpack(head)[3:5]
        self.map = dict(zip(self.MAP, words))

    def ask(self, until, wants):
        """Says where to stop next: at a step, and at what `wants` names."""
        inferior = gdb.selected_inferior()
        inferior.write_memory(self.address, struct.pack("<3I", 1, until, wants))
        if self.map["alarm"]:  # Else the execution has not begun, and looks at all this when it does.
            inferior.write_memory(self.map["alarm"], struct.pack("<I", 0))


class At:
    """Where the execution is, wherever gdb stopped it."""

    def __init__(self):
        alive()
        debugger = Debugger()
        self.map = debugger.map
        if not self.map["alarm"]:
            raise gdb.GdbError("the execution has not begun; continue with: heisen finish, or heisen step N")
        self.reason, self.left = debugger.reason, debugger.left
        self.step, self.thread, self.count = self.word("step"), self.word("current", "<H"), self.word("count", "<Q")
        self.end, self.end_code = self.word("end"), self.word("end_code")
        self.diverged, self.diverged_step = self.word("diverged"), self.word("diverged_step")
        size = -(-self.count // 64) * 8
        bits = lambda name: int.from_bytes(memory(self.map[name], size), "little")
        self.enabled, self.late = bits("enabled"), bits("late") & ~bits("signalled")

    def word(self, name, form="<I"):
        return struct.unpack(form, memory(self.map[name], struct.calcsize(form)))[0]


class Thread:
    """One of Heisen's threads, as the scheduler's record has it."""

    def __init__(self, at, number):
        size = at.map["size"]
        record = memory(at.map["threads"] + number * size, size)
        field = lambda name, form="<Q": struct.unpack_from(form, record, at.map[name])[0]
        self.number = number
        self.op = field("op", "<B")
        self.object, self.pc, self.start = field("object"), field("pc"), field("start")
        self.handle = field("control")
        self.id_at = self.handle + at.map["kernel_id"]
        if field("ended", "<B"):
            self.state = "ended"
        elif not field("begun", "<B"):
            self.state = "new"
        elif at.late >> number & 1:
            self.state = "waits with a time-out"
        else:
            self.state = "ready" if at.enabled >> number & 1 else "blocked"

    def name(self):
        name = "main" if self.number == 0 else NAMES.get(self.number) or function_at(self.start)
        return f"T{self.number} ({name})" if name else f"T{self.number}"

    def about(self):
        """What it is about to do, on what, and where that was called."""
        op = OPS.get(self.op, "start")
        words = f"{op}({symbol(self.object)})" if self.object and op != "assert" else op
        place = place_of(self.start if op == "start" else self.pc - 1)
        return f"{words}  at {place}" if place else words

    def can_run(self):
        return self.state not in ("blocked", "ended")

    def lwp(self):
        """The id of its kernel thread; of one that has ended the memory that it was in may be gone."""
        return 0 if self.state == "ended" else struct.unpack("<I", memory(self.id_at, 4))[0]

    def of_gdb(self):
        """The same thread for gdb; none if it has ended."""
        lwp = self.lwp()
        return next((t for t in gdb.selected_inferior().threads() if t.ptid[1] == lwp), None)


def memory(at, size):
    return bytes(gdb.selected_inferior().read_memory(at, size))


@contextlib.contextmanager
def setting(name, value):
    """Another setting of gdb's for a while; as it is where this gdb does not know it."""
    try:
        before = gdb.parameter(name)
        gdb.execute(f"set {name} {value}", to_string=True)
    except (gdb.error, RuntimeError):
        yield
        return
    try:
        yield
    finally:
        before = {True: "on", False: "off"}.get(before, before)
        gdb.execute(f"set {name} {before}", to_string=True)


def address(name):
    with setting("language", "c"):
        try:
            return int(gdb.parse_and_eval(f"(unsigned long) &{name}"))
        except gdb.error as error:
            raise gdb.error(f"gdb cannot find Heisen's runtime in the program: {error}")


def symbol(at):
    """What is at an address: a variable, with the index in an array, or a function, or a thread."""
    words = gdb.execute(f"info symbol {at}", to_string=True)
    if " in section " not in words:
        thread = next((t for t in threads(At()) if t.handle == at), None)
        return f"T{thread.number}" if thread else f"{at:#x}"
    name, _, offset = words.split(" in section ")[0].partition(" + ")
    found = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    if found is not None and found.type.code == gdb.TYPE_CODE_ARRAY:
        size = found.type.target().sizeof
        name, offset = f"{name}[{int(offset or 0) // size}]", int(offset or 0) % size
    return f"{name}+{offset}" if offset else name


def function_at(pc):
    block = gdb.block_for_pc(pc)
    while block is not None and block.function is None:
        block = block.superblock
    return block.function.name if block is not None else ""


def place_of(pc):
    found = gdb.find_pc_line(pc) if pc > 0 else None
    if found is None or found.symtab is None:
        return ""
    return f"{found.symtab.filename}:{found.line}"


def threads(at):
    return [Thread(at, number) for number in range(at.count)]


def alive():
    if not gdb.selected_inferior().pid:
        raise gdb.GdbError("no execution runs; start one with: heisen finish, or heisen step N")


def in_runtime(frame):
    return gdb.solib_name(frame.pc()) == SESSION["runtime"]


def own_frame():
    """The innermost frame outside of the runtime, and the one it called; the latter is none if we are not in there."""
    frame, inner = gdb.newest_frame(), None
    while frame is not None and in_runtime(frame):
        frame, inner = frame.older(), frame
    return frame, inner


def shown_frame():
    """The frame to look at: the innermost whose source is the user's own, else the innermost outside of the runtime."""
    first, _ = own_frame()
    frame = first
    while frame is not None:
        symtab = frame.find_sal().symtab
        if symtab is not None:
            path = symtab.fullname()
            if os.path.exists(path) and not path.startswith("/usr/") and not in_runtime(frame):
                return frame
        frame = frame.older()
    return first


class Frames:
    """Leaves the runtime's frames out of backtraces; `bt -no-filters` shows them."""

    def __init__(self):
        self.name, self.priority, self.enabled = "heisen", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        skipped, any_shown = [], False
        for frame in frames:
            if in_runtime(frame.inferior_frame()):
                skipped.append(frame)
            else:
                any_shown = True
                yield frame
        if not any_shown:
            yield from skipped


class Moved(Unwinder):
    """Leads from a patched instruction, which was moved, to where the program has it."""

    STARTS = [start for start, _, _ in SESSION["moved"]]

    def __init__(self):
        super().__init__("heisen-moved")

    def __call__(self, pending):
        pc = int(pending.read_register("rip"))
        number = bisect.bisect(self.STARTS, pc) - 1
        if number < 0 or pc >= SESSION["moved_end"]:
            return None
        _, instruction, lower = SESSION["moved"][number]
        if not instruction:
            return None
        stack = pending.read_register("rsp")
        info = pending.create_unwind_info(Frame(stack, pending.read_register("rip")))
        info.add_saved_register("rsp", stack + lower)
        # To gdb this is a call, and it looks up the line of what is before the address that one returns to.
        info.add_saved_register("rip", gdb.Value(instruction + 1))
        kept = ["rbp", "rbx", "rax", "rcx", "rdx"] + [f"r{number}" for number in range(8, 16)]
        for name in kept + ([] if lower else ["rdi", "rsi"]):
            info.add_saved_register(name, pending.read_register(name))
        return info


class Frame:
    """What gdb tells frames apart by."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Stop(gdb.Breakpoint):
    """The runtime has come to where it was asked to stop."""

    def __init__(self):
        super().__init__(f"*{address('heisen_gdb_stop')}", internal=True)
        self.silent = True


def attach():
    """Attaches to the execution that waits for it, which is not the last one."""
    global process, breakpoint
    gdb.execute("set confirm off", to_string=True)
    if gdb.selected_inferior().pid:
        gdb.execute("kill", to_string=True)
    if breakpoint is not None:
        breakpoint.delete()
    until = time.monotonic() + 30
    while True:
        try:
            found = open(SESSION["process"]).read()
        except OSError:
            found = ""
        if found and found != process:
            break
        if time.monotonic() > until:
            raise gdb.error("Heisen has not begun an execution")
        time.sleep(0.01)
    process = found
    try:
        with setting("suppress-cli-notifications", "on"):
            gdb.execute(f"attach {process.split()[1]}", to_string=True)
    except gdb.error as error:
        raise gdb.error(f"gdb cannot attach to the program: {error}")
    breakpoint = Stop()


def go(until, wants):
    """Lets the execution run to a step or to what is wanted, and shows where it came to."""
    if gdb.selected_inferior().pid:
        select_running()
    else:
        attach()
    Debugger().ask(until, wants | FAILING)
    gdb.execute("continue", to_string=True)
    show()


def remember_signal(event):
    """A signal at which gdb stops is the failing event of a crash, unless the user has sent it."""
    global signal
    signal = event.stop_signal if isinstance(event, gdb.SignalEvent) else None


def select_running():
    """Selects the thread that has the baton. An execution that gdb attached to before it began has only one."""
    if not Debugger().map["alarm"]:
        return
    at = At()
    running = Thread(at, at.thread).of_gdb()
    if running is not None:
        running.switch()


def stopped_by_us():
    return gdb.selected_inferior().pid and gdb.newest_frame().name() == "heisen_gdb_stop"


def running_words(at, thread):
    """What the thread that runs is doing: it is just before its operation where the runtime stops for a step."""
    before = WANTS["step"] | WANTS["switch"] | WANTS["preempt"]
    deadlock = not thread.can_run()
    if deadlock or stopped_by_us() and at.reason & before:
        return f"about to {thread.about()}"
    return f"after {thread.about()}"


def failing_words():
    return f"the failing event, {SESSION['outcome']}"


def ending_words(at):
    """Whether this is where the schedule leads to."""
    as_recorded = not at.reason & WANTS["end"] or at.end in SESSION["ends"]
    if as_recorded and SESSION["outcome"]:
        return failing_words()
    return f"the end, exit status {at.end_code}" if at.end == SESSION["exit"] else "the end"


def show():
    """Tells where the execution is, and selects the frame of the program's own."""
    if not gdb.selected_inferior().pid:
        print("the execution has ended; heisen step N restarts it")
        return
    at = At()
    thread = Thread(at, at.thread)
    why = ""
    if not stopped_by_us():
        crashed = signal not in (None, "SIGINT", "SIGTRAP", "SIGSTOP", "0")
        why = failing_words() if crashed and SESSION["crash"] else "stopped by gdb"
    elif at.reason & FAILING:
        why = ending_words(at)
    elif at.reason & WANTS["preempt"]:
        why = f"{Thread(at, at.left).name()} was preempted"
    elif at.reason & WANTS["switch"]:
        why = f"switched from {Thread(at, at.left).name()}"
    if at.diverged:
        print(f"the execution diverged from the schedule at step {at.diverged_step}")
    print(f"step {at.step}: {thread.name()} {running_words(at, thread)}" + (f"  [{why}]" if why else ""))
    frame = shown_frame()
    if frame is not None:
        frame.select()
        gdb.execute("frame")


def returns_of(frame):
    """The instructions by which the function of a frame returns."""
    block = gdb.block_for_pc(frame.pc())
    while block is not None and (block.function is None or not block.superblock.is_static):
        block = block.superblock
    if block is None:
        return []
    code = frame.architecture().disassemble(block.start, block.end - 1)
    return [instruction["addr"] for instruction in code if instruction["asm"].startswith("ret")]


def leave_runtime():
    """Lets the selected thread run until it is about to return to the program: from there, gdb's next and step show the
    line they come to, even if the call was the last thing in its own. A thread that is new runs to its function."""
    frame, inner = own_frame()
    thread = gdb.selected_thread()
    Debugger().ask(NEVER, FAILING)
    if frame is None:
        at = At()
        places = [Thread(at, at.thread).start]
    else:
        places = returns_of(inner) or [frame.pc()]
    stops = [gdb.Breakpoint(f"*{place}", internal=True) for place in places]
    for stop in stops:
        stop.thread, stop.silent = thread.num, True
    gdb.execute("continue", to_string=True)
    there = gdb.selected_inferior().pid and gdb.selected_thread() == thread and gdb.newest_frame().pc() in places
    for stop in stops:
        stop.delete()
    if not there:
        raise gdb.GdbError("the thread has not returned; heisen where shows the execution")


class Heisen(gdb.Command):
    """Move through the execution of a schedule, and list its threads.

heisen threads    list the threads: what each is about to do, and its kernel thread
heisen step N     go to scheduling point N, before its operation; going back restarts the execution
heisen next       go to the next scheduling point
heisen switch     go to the next switch, in the thread that runs then
heisen preempt    go to the next preemption, in the thread that runs then
heisen finish     go to the failing event
heisen begin      restart the execution, and go to the failing event
heisen where      show where the execution is

One thread runs at a time. The commands next, step and finish of gdb follow the thread in which they begin."""

    def __init__(self):
        super().__init__("heisen", gdb.COMMAND_RUNNING, prefix=True)

    def invoke(self, argument, _terminal):
        if argument:
            raise gdb.GdbError(f"heisen has no command {argument.split()[0]!r}; help heisen lists them")
        gdb.execute("help heisen")


def command(name, help_text, kind=gdb.COMMAND_RUNNING):
    def define(function):
        class Defined(gdb.Command):
            __doc__ = help_text

            def __init__(self):
                super().__init__(f"heisen {name}", kind)

            def invoke(self, argument, _terminal):
                with failures_told():
                    function(argument.strip())

        Defined()
        return function

    return define


def note_failure(error):
    """Heisen shows this when gdb has ended, and exits with a status of its own."""
    with open(SESSION["failure"], "w") as file:
        file.write(str(error))


@contextlib.contextmanager
def failures_told():
    """What gdb could not do is one message, and the session counts as failed."""
    try:
        yield
    except gdb.error as error:
        note_failure(error)
        raise gdb.GdbError(str(error))


def no_argument(argument):
    if argument:
        raise gdb.GdbError(f"this command takes no argument; leave out {argument!r}")


def main():
    Heisen()
    Frames()
    if SESSION["moved"]:
        register_unwinder(None, Moved())
    # So that step goes over the functions that Heisen has taken the place of.
    for files in ["crates/runtime/src/*", "crates/runtime/src/*/*"]:
        gdb.execute(f"skip -gfi {files}", to_string=True)

    @command("threads", "List Heisen's threads: what each is about to do, and its kernel thread.", gdb.COMMAND_STATUS)
    def list_threads(argument):
        no_argument(argument)
        at = At()
        for thread in threads(at):
            mark = "*" if thread.number == at.thread else " "
            if thread.state == "ended":
                print(f"{mark} {thread.name():<20} ended")
                continue
            state = thread.state
            words = f"about to {thread.about()}"
            if thread.number == at.thread:
                words = running_words(at, thread)
                state = "runs" if thread.can_run() else state
            print(f"{mark} {thread.name():<20} LWP {thread.lwp():<8} {state}, {words}")

    @command("where", "Show where the execution is.", gdb.COMMAND_STATUS)
    def where(argument):
        no_argument(argument)
        alive()
        show()

    @command("step", "Go to a scheduling point, given by its number, before its operation is done.")
    def step(argument):
        if not argument.isdigit() or not 0 < int(argument) < NEVER:
            raise gdb.GdbError("name a step, such as: heisen step 12")
        wanted = int(argument)
        if gdb.selected_inferior().pid and At().step >= wanted:
            attach()
        go(wanted, 0)

    @command("next", "Go to the next scheduling point.")
    def next_step(argument):
        no_argument(argument)
        go((At().step if gdb.selected_inferior().pid else 0) + 1, 0)

    @command("switch", "Go to the next switch; the thread that runs then is selected.")
    def switch(argument):
        no_argument(argument)
        go(NEVER, WANTS["switch"])

    @command("preempt", "Go to the next preemption; the thread that runs then is selected.")
    def preempt(argument):
        no_argument(argument)
        go(NEVER, WANTS["preempt"])

    @command("finish", "Go to the failing event.")
    def finish(argument):
        no_argument(argument)
        go(NEVER, 0)

    @command("leave", "Return from Heisen's runtime to the program; next and step do this first.")
    def leave(argument):
        no_argument(argument)
        if gdb.selected_inferior().pid and in_runtime(gdb.newest_frame()):
            leave_runtime()

    @command("begin", "Restart the execution and go to the failing event; use this instead of gdb's run and start.")
    def begin(argument):
        no_argument(argument)
        attach()
        go(NEVER, 0)

    @command("refuse", "Explain why gdb's run and start do not work here.")
    def refuse(argument):
        raise gdb.GdbError("Heisen starts the program; use: heisen begin, or heisen step N")

    for hooked in ["run", "start", "starti"]:
        gdb.execute(f"define hook-{hooked}\nheisen refuse\nend")
    for hooked in ["next", "step"]:
        gdb.execute(f"define hook-{hooked}\nheisen leave\nend")
    gdb.events.stop.connect(remember_signal)
    if hasattr(gdb.events, "gdb_exiting"):
        gdb.events.gdb_exiting.connect(lambda _: kill())
    try:
        go(NEVER, 0)
    except (gdb.error, gdb.GdbError) as error:
        # Without this nothing else works.
        note_failure(error)
        gdb.execute("quit 1")


def kill():
    """Nothing shall run on when gdb has gone."""
    if gdb.selected_inferior().pid:
        gdb.execute("kill", to_string=True)


main()
