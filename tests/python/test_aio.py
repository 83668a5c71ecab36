"""asyncio: tasks are contenders, and a cancelled wait leaves nothing behind."""
import asyncio
import random
import threading

import pytest
from conftest import BOUND, wait_until, waiters

import holdfast
import holdfast.aio


def test_tasks_are_contenders_L1():
    inside, most = 0, 0

    async def work(lock):
        nonlocal inside, most
        async with lock:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async def main():
        lock = holdfast.aio.lock("x", wait=BOUND)
        await asyncio.gather(*(work(lock) for _ in range(30)))
        assert not lock.held()

    asyncio.run(main())
    assert most == 1


def test_a_cancelled_wait_leaves_the_queue(holder):
    other = holder()

    async def main():
        task = asyncio.ensure_future(holdfast.aio.lock("x").acquire())
        await asyncio.get_running_loop().run_in_executor(None, wait_until, lambda: waiters() == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert waiters() == 0
        with pytest.raises(holdfast.Timeout):
            async with holdfast.aio.lock("x", wait=0.05):
                pass

    asyncio.run(main())
    other.tell()


def test_a_storm_of_cancels_leaves_no_lock_and_no_waiter():
    async def work(lock, got):
        async with lock:
            got.append(1)
            await asyncio.sleep(0)

    async def main():
        got, chance = [], random.Random(160)
        for _ in range(15):
            lock = holdfast.aio.lock("x", wait=BOUND)
            tasks = [asyncio.ensure_future(work(lock, got)) for _ in range(12)]
            for task in tasks:
                await asyncio.sleep(chance.random() * 0.003)
                if chance.random() < 0.7:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not [t for t in tasks if not t.cancelled() and t.exception()]
        return got

    assert asyncio.run(main())
    assert waiters() == 0 and holdfast.look("x").holders == ()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "holdfast-aio"])


def test_waiting_for_a_session():
    async def main():
        session = holdfast.run("s", ["sleep", "600"])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(holdfast.aio.wait(session), 0.1)
        session.stop(0)
        assert (await holdfast.aio.wait(session)).outcome is holdfast.Outcome.STOPPED

    asyncio.run(main())
