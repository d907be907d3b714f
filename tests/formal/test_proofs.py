"""The proofs, and what must not pass: the quick tasks here, all of them nightly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from formal import mutation, registry
from formal.sby import find_tools, run
from formal.task import Mutant, Task

QUICK = [task for task in registry.TASKS.values() if task.quick]
LONG = [task for task in registry.TASKS.values() if not task.quick]

FIRST = {}
"""For each file that quick tasks prove, one mutant."""
for mutant in registry.MUTANTS:
    if registry.TASKS[mutant.task].quick:
        FIRST.setdefault((mutant.path, mutant.task), mutant)


def prove(task: Task, folder: Path) -> None:
    """Prove a task and reach its cover statements."""
    tools = find_tools()
    text = task.build().rtlil()
    for mode, depth in ((task.mode, task.depth), ("cover", task.cover)):
        result = run(tools, text, folder / mode, mode=mode, depth=depth, timeout=2 * task.timeout)
        assert result.status == "pass", f"{task.name} {mode} {depth}: {result}"


def kill(mutant: Mutant, folder: Path) -> None:
    """A task finds what is wrong with the mutant."""
    result = mutation.try_one(find_tools(), mutant, folder)
    assert result.status == "fail", f"{mutant.task}: {mutant.name}: {result}"
    assert result.detail, f"{mutant.task}: {mutant.name}: no property is named"


@pytest.mark.formal
@pytest.mark.parametrize("task", QUICK, ids=lambda task: task.name)
def test_quick_task(task, tmp_path):
    prove(task, tmp_path)


@pytest.mark.formal
@pytest.mark.parametrize("mutant", FIRST.values(), ids=lambda m: f"{m.task}-{m.path}")
def test_one_mutant_of_each_file_is_killed(mutant, tmp_path):
    kill(mutant, tmp_path)


@pytest.mark.slow
@pytest.mark.formal
@pytest.mark.parametrize("task", LONG, ids=lambda task: task.name)
def test_long_task(task, tmp_path):
    prove(task, tmp_path)


@pytest.mark.slow
@pytest.mark.formal
@pytest.mark.parametrize("mutant", registry.MUTANTS, ids=lambda m: f"{m.task}-{m.name}")
def test_mutant_is_killed(mutant, tmp_path):
    kill(mutant, tmp_path)


@pytest.mark.parametrize("mutant", registry.MUTANTS, ids=lambda m: f"{m.task}-{m.name}")
def test_mutant_changes_its_file(mutant):
    source = (mutation.ROOT / mutant.path).read_text()
    broken = mutation.broken(mutant)
    assert broken != source
    compile(broken, mutant.path, "exec")


def test_every_proved_file_has_three_mutants():
    count = Counter(mutant.path for mutant in registry.MUTANTS)
    assert min(count.values()) >= 3, count


def test_every_task_is_of_one_group_and_has_covers():
    assert len({task.name for task in registry.TASKS.values()}) == sum(
        len(group.TASKS) for group in registry.GROUPS.values()
    )
    for mutant in registry.MUTANTS:
        assert mutant.task in registry.TASKS, mutant.name
    names = [(mutant.task, mutant.name) for mutant in registry.MUTANTS]
    assert len(set(names)) == len(names)
    for task in QUICK:
        assert "cell $check" in (text := task.build().rtlil())
        assert 'parameter \\FLAVOR "cover"' in text, f"{task.name} covers nothing"
