"""Who does what next: workers end together, results are taken in their order, few wait, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tiers import drawn

from fedsim.learning.executors.planned_starts import planned_starts
from fedsim.learning.executors.schedule import WAITING, Schedule, Task, side_by_side

WORK = st.lists(st.integers(0, 100), min_size=1, max_size=30)
WORKERS = st.integers(1, 6)


# -- the plan ------------------------------------------------------------------------------------------------------


def end_of(work: Sequence[float], order: Sequence[int], workers: int) -> tuple[dict[int, float], float]:
    """When each task begins that is taken in that *order* by whoever is free, and when all are done."""
    ends, begun = [0.0] * workers, {}
    for task in order:
        first = min(range(workers), key=ends.__getitem__)
        begun[task] = ends[first]
        ends[first] += work[task]
    return begun, max(ends)


@drawn(200)
@given(work=WORK, workers=WORKERS)
def test_whoever_follows_the_plan_begins_nothing_later_and_ends_no_later_than_the_largest_first(
    work: list[int], workers: int
) -> None:
    starts = planned_starts(work, workers)
    begun, end = end_of(work, sorted(range(len(work)), key=lambda task: (starts[task], -work[task])), workers)
    assert all(begun[task] <= starts[task] + 1e-9 for task in range(len(work)))
    largest_first = sorted(range(len(work)), key=lambda task: -work[task])
    assert end <= end_of(work, largest_first, workers)[1] + 1e-9
    assert end >= max(sum(work) / workers, *work) - 1e-9


def test_tasks_that_take_as_long_stay_in_their_order() -> None:
    assert planned_starts([5.0] * 7, workers=3) == [0, 0, 0, 5, 5, 5, 10]


# -- the schedule --------------------------------------------------------------------------------------------------


@dataclass
class Work:
    """Lines of tasks, worked off by the clock; each of *seconds* is that of a task, in the order of lines."""

    workers: int
    lines: list[list[Task]]
    seconds: dict[Task, float]
    begun: list[Task] = field(default_factory=list)
    most_waiting: int = 0
    end_s: float = 0.0

    def do(self) -> None:
        schedule: Schedule[Task] = Schedule(self.workers)
        for line in self.lines:
            schedule.put_line(line)
        hands: list[list[Task]] = [[] for _ in range(self.workers)]
        ends_s: dict[Task, float] = {}
        free_s = [0.0] * self.workers
        done: set[Task] = set()
        while len(schedule) or any(hands):
            while found := schedule.next(hands):
                worker, task = found
                schedule.begin(task)
                self.begun.append(task)
                hands[worker].append(task)
                free_s[worker] = ends_s[task] = max(self.end_s, free_s[worker]) + self.seconds[task]
            assert any(hands), "somebody always has something to do"
            worker = min((at for at in range(self.workers) if hands[at]), key=lambda at: ends_s[hands[at][0]])
            task = hands[worker].pop(0)
            self.end_s = ends_s[task]
            done.add(task)
            for line in self.lines:
                for one in line:
                    if one in done and one.is_next:
                        schedule.take(one)
            waiting = sum(one in done and one.place > one.line.taken for line in self.lines for one in line if one.line)
            self.most_waiting = max(self.most_waiting, waiting)
        assert all(line[0].line is not None and line[0].line.taken == len(line) for line in self.lines)


def work_of(workers: int, *lines: Sequence[float], seconds: Sequence[float] | None = None) -> Work:
    tasks = [[Task(work=work) for work in line] for line in lines]
    every = [task for line in tasks for task in line]
    took = seconds or [task.work for task in every]
    return Work(workers, tasks, dict(zip(every, took, strict=True)))


@drawn(200)
@given(
    workers=WORKERS, lines=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=8), max_size=9), data=st.data()
)
def test_all_is_done_once_and_few_results_wait_however_long_things_take(
    workers: int, lines: list[list[int]], data: st.DataObject
) -> None:
    """Also when tasks do not take as long as was thought, and when the largest of a line are not the first."""
    number = sum(map(len, lines))
    work = work_of(workers, *lines, seconds=data.draw(st.lists(st.floats(0, 9), min_size=number, max_size=number)))
    work.do()
    assert len(work.begun) == len(set(work.begun)) == number
    assert work.most_waiting <= WAITING * workers


def test_the_large_ones_of_both_sums_come_first() -> None:
    work = work_of(2, [10, 6, 3, 1], [8, 7, 4, 2])
    work.do()
    assert [task.work for task in work.begun] == [10, 8, 7, 6, 4, 3, 2, 1]
    assert work.end_s == 21, "41 units by two"


def test_a_plan_may_be_better_than_the_largest_first() -> None:
    work = work_of(2, [3, 2, 2], [3, 2])
    work.do()
    assert work.end_s == 6, "7 if both of the large ones begin at once"


def test_a_sum_that_waits_for_its_first_term_does_not_fill_the_memory() -> None:
    """Of a line whose first task takes for ever as many others begin as may wait, and then those of another line."""
    work = work_of(2, [9.0] * 8, [5.0] * 8, seconds=[100.0, *[1.0] * 7, *[2.0] * 8])
    work.do()
    assert work.most_waiting >= WAITING * 2 - 1, "the last one is done when it is too late"
    lines = [work.lines.index(line) for task in work.begun for line in work.lines if task in line]
    assert lines[: 2 + WAITING * 2] == [0] * (1 + WAITING * 2) + [1]
    assert work.end_s == 102, "the other worker could do all but the last three meanwhile"


def test_few_lines_are_half_done_at_a_time() -> None:
    assert [side_by_side(workers) for workers in (1, 2, 3, 4, 5)] == [2, 2, 4, 4, 6]
    work = work_of(2, *[[number, 1.0] for number in range(1, 9)])
    work.do()
    order = [work.lines.index(line) for task in work.begun for line in work.lines if task in line]
    assert [at // 2 for at in order] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_what_is_in_no_line_comes_first_and_in_its_order() -> None:
    schedule: Schedule[Task] = Schedule(1)
    line, alone = [Task(work=5.0)], [Task(), Task(), Task()]
    schedule.put_line(line)
    for task in alone:
        schedule.put(task)
    hands: list[list[Task]] = [[]]
    order = []
    while found := schedule.next(hands):
        schedule.begin(found[1])
        order.append(found[1])
    assert order == [*alone, *line]


def test_a_task_waits_behind_another_only_while_all_others_have_enough_to_do() -> None:
    schedule: Schedule[Task] = Schedule(2)
    schedule.put_line([Task(work=work) for work in (9.0, 8.0, 7.0, 3.0)])
    hands: list[list[Task]] = [[], []]
    for expected in ((0, 9.0), (1, 8.0)):
        worker, task = schedule.next(hands) or (None, Task())
        assert (worker, task.work) == expected
        schedule.begin(task)
        hands[expected[0]].append(task)
    assert schedule.next(hands) is None, "behind the 8, the 7 could end last: 3 is less than 15"
    schedule.put_line([Task(work=2.0) for _ in range(7)])
    found = schedule.next(hands)
    assert found is not None
    assert (found[0], found[1].work) == (1, 7.0), "behind the smaller one"
    hands[1].append(found[1])
    schedule.begin(found[1])
    assert len(hands[1]) == 2
