"""Memory that fails where a test wants it, in a kernel that can do so."""

import os

SETTINGS = "/sys/kernel/debug/failslab/"
IS_THERE = os.path.exists(SETTINGS)
# Open all the time: to open it would take memory, too.
CONTROL = os.open("/proc/thread-self/fail-nth", os.O_RDWR) if IS_THERE else None


def allow(probability=0, interval=1):
    """Those that wait for memory can fail; of tasks that ask for it one in `interval` does, at 100 %."""
    if not IS_THERE:
        return
    settings = {"ignore-gfp-wait": "N", "task-filter": "Y", "times": -1, "verbose": 0,
                "interval": interval, "probability": probability}
    for name, value in settings.items():
        with open(SETTINGS + name, "w") as control:
            control.write(str(value))


def ask_for_it():
    """Lets memory of this process fail as `allow` said."""
    if IS_THERE:
        with open("/proc/self/make-it-fail", "w") as control:
            control.write("1")


def failing(nth):
    """Makes the `nth` allocation of this thread from now on fail; none with 0."""
    if IS_THERE:
        os.pwrite(CONTROL, str(nth).encode(), 0)


def still_to_fail():
    """Allocations until the one that fails; 0 if it has failed."""
    return int(os.pread(CONTROL, 20, 0))
