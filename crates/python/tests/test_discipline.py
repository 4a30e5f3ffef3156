"""Disciplines in Python: packets come and go as through the core's own."""

import collections

import pytest

import simnel


class TailDrop(simnel.Discipline):
    """What `pfifo limit 20` is."""

    limit = 20

    def __init__(self):
        self.queue = collections.deque()

    def enqueue(self, packet, now):
        if len(self.queue) == self.limit:
            return False
        self.queue.append(packet)

    def dequeue(self, now):
        return self.queue.popleft() if self.queue else None


class HeadMark(TailDrop):
    """Marks what has waited for 5 ms, and drops it if it cannot be marked."""

    def dequeue(self, now):
        while self.queue:
            packet = self.queue.popleft()
            if not self.queue or now - packet.enqueued < 0.005 or packet.mark():
                return packet
            packet.drop()


class Late(TailDrop):
    """Holds each packet for 10 ms."""

    def dequeue(self, now):
        return super().dequeue(now) if self.next_event(now) <= now else None

    def next_event(self, now):
        return self.queue[0].enqueued + 0.01 if self.queue else None


class Shared(TailDrop):
    """A slip: both directions have one queue."""

    queue = collections.deque()

    def __init__(self):
        pass


def short(line, traffic, qdisc):
    return simnel.simulate(line, traffic, qdisc, duration="4s", warmup="0s")


def test_a_fifo_is_the_core_s_fifo_packet_by_packet(line):
    own, core = (short(line, None, qdisc) for qdisc in (TailDrop, "pfifo limit 20"))
    assert own.hash == core.hash and own.qdisc == ("TailDrop", "TailDrop")
    assert sum(own.flows["drops"]) == sum(core.flows["drops"]) > 0


def test_a_packet_of_the_other_direction_is_not_taken_for_its_own(line):
    with pytest.raises(simnel.Error, match="came to another object; expected .* __init__ makes"):
        short(line, simnel.bulk(2), Shared)


def test_packets_are_marked_or_dropped(line):
    for ecn in (True, False):
        run = short(line, simnel.bulk(2, ecn=ecn), HeadMark)
        marks, drops = sum(run.flows["marks"]), sum(run.flows["drops"])
        assert marks > 0 if ecn else drops > marks == 0


def test_a_discipline_says_when(line):
    run = short(line, simnel.ping(), Late)
    # Each way 10 ms and two frames on wires.
    assert 20 <= run.latency.quantile(0.5) < 21


def test_one_that_says_nothing_is_asked_again(line):
    class Silent(TailDrop):
        def dequeue(self, now):
            held = self.queue and now - self.queue[0].enqueued < 0.01
            return None if held else super().dequeue(now)

    assert 20 <= short(line, simnel.ping(), Silent).latency.quantile(0.5) < 23


def test_one_that_always_says_now_comes_to_an_end(line):
    class Hoard(TailDrop):
        def dequeue(self, now):
            return None

        def next_event(self, now):
            return now

    assert short(line, simnel.ping(), Hoard).latency.quantile(0.5) is None


def test_it_is_swept_beside_the_core_s(line):
    over = {"qdisc": ["pfifo limit 20", TailDrop]}
    table = simnel.sweep(line, over=over, repetitions=1, duration="1s", warmup="0s")
    assert table["qdisc"] == ["pfifo limit 20", "TailDrop"]
    first, second = table["groups.ping.application.added_ms.mean"]
    assert first == second


class Gone(TailDrop):
    def dequeue(self, now):
        packet = super().dequeue(now)
        if packet:
            self.queue.append(packet)
        return packet


class Twice(TailDrop):
    def enqueue(self, packet, now):
        packet.drop()
        packet.drop()


class Lost(TailDrop):
    def dequeue(self, now):
        return 7


class Divided(TailDrop):
    def enqueue(self, packet, now):
        return 1 / 0


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (Gone, simnel.Error, "not queued"),
        (Twice, simnel.Error, "not queued"),
        (Divided, ZeroDivisionError, "division"),
        (Lost, TypeError, "Packet"),
        (dict, simnel.Error, "has no enqueue"),
        (7, simnel.Error, "object of `int`"),
        (TailDrop(), simnel.Error, "expected a class"),
    ],
)
def test_faults_are_the_caller_s(line, wrong, error, said):
    with pytest.raises(error, match=said):
        short(line, simnel.ping(), wrong)


def test_ctrl_c_ends_a_run(line, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        simnel.simulate(line, qdisc=TailDrop, duration="100000s", interval="1s")
