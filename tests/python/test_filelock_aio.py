"""AsyncFileLock and AsyncReadWriteLock: tasks, executors, cancellation."""
import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BOUND

import holdfast
from holdfast.filelock import AsyncFileLock, AsyncReadWriteLock, BaseAsyncFileLock, FileLock, ReadWriteLock, Timeout


def run(main):
    return asyncio.run(asyncio.wait_for(main, BOUND))


async def until(what):
    while not what():
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("options", [{}, {"run_in_executor": False}, {"run_in_executor": False, "thread_local": True}])
def test_tasks_and_threads_exclude_each_other(options):
    async def main():
        lock = AsyncFileLock("a.lock", poll_interval=0.005, **options)
        async with lock as held:
            assert held is lock and lock.is_locked
            with pytest.raises(Timeout):
                await AsyncFileLock("a.lock").acquire(timeout=0.02)
            with pytest.raises(Timeout):
                await AsyncFileLock("a.lock", blocking=False).acquire()
            with pytest.raises(Timeout):
                await asyncio.get_running_loop().run_in_executor(None, lambda: FileLock("a.lock").acquire(timeout=0))
            async with await lock.acquire():
                assert lock.lock_counter == 2
        assert not lock.is_locked
        with FileLock("a.lock", timeout=0), pytest.raises(Timeout):
            await lock.acquire(timeout=0)
        await lock.acquire()
        await lock.acquire()
        await lock.release(force=True)
        await lock.release()
        assert lock.lock_counter == 0

    run(main())


def test_each_attempt_runs_in_the_executor_that_was_given():
    seen = []

    async def main():
        with ThreadPoolExecutor(1, thread_name_prefix="mine") as executor:
            lock = AsyncFileLock("a.lock", executor=executor, on_acquired=lambda fd: seen.append(threading.current_thread().name))
            assert lock.executor is executor and lock.run_in_executor and lock.loop is None
            async with lock:
                pass
            async with AsyncFileLock("a.lock", run_in_executor=False, on_acquired=lambda fd: seen.append(threading.current_thread().name)):
                pass

    run(main())
    assert [name.split("_")[0] for name in seen] == ["mine", "MainThread"]
    with pytest.raises(ValueError, match="run_in_executor is not supported when thread_local is True"):
        AsyncFileLock("a.lock", thread_local=True)


def test_a_task_that_has_the_lock_by_another_object_would_wait_without_end():
    async def main():
        async with AsyncFileLock("a.lock"):
            with pytest.raises(RuntimeError, match="Deadlock.*BaseAsyncFileLock instance in this task"):
                await AsyncFileLock("./a.lock").acquire()
            other = asyncio.create_task(AsyncFileLock("a.lock", poll_interval=0.005).acquire())  # another task waits its turn
            await asyncio.sleep(0.02)
            assert not other.done()
        await (await other).lock.release()
        one, two = (AsyncFileLock("a.lock", is_singleton=True) for _ in range(2))
        async with one, two:
            assert one is two and one.lock_counter == 2

    run(main())


def test_a_cancelled_task_has_no_lock(log):
    async def main():
        async with AsyncFileLock("a.lock"):
            waiter = AsyncFileLock("a.lock", poll_interval=0.005)
            task = asyncio.create_task(waiter.acquire())
            await until(lambda: any("not acquired" in message for message in log.messages))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(Timeout):
                await waiter.acquire(timeout=5, cancel_check=lambda: True)
        for turn in range(30):  # at every step of an acquisition
            lock = AsyncFileLock("a.lock")
            task = asyncio.create_task(lock.acquire())
            for _ in range(turn % 6):
                await asyncio.sleep(0)
            task.cancel()
            if (await asyncio.gather(task, return_exceptions=True))[0].__class__ is not asyncio.CancelledError:
                await lock.release()
            assert not lock.is_locked
        FileLock("a.lock", timeout=0).acquire().lock.release()

    run(main())


@pytest.fixture
def log(caplog):
    caplog.set_level("DEBUG")
    return caplog


def test_the_messages_are_those_of_the_package(log, tmp_path):
    path = str(tmp_path / "a.lock")

    async def main():
        lock = AsyncFileLock(path)
        async with lock:
            pass
        return id(lock)

    number = run(main())
    assert [r.getMessage() for r in log.records if r.name == "filelock"] == [
        f"Attempting to acquire lock {number} on {path}", f"Lock {number} acquired on {path}",
        f"Attempting to release lock {number} on {path}", f"Lock {number} released on {path}"]


def test_a_subclass_may_attempt_in_coroutines_and_with_is_refused():
    calls = []

    class Mine(BaseAsyncFileLock):
        async def _acquire(self):
            calls.append("acquire")
            self._context.lock_file_fd = 0

        async def _release(self):
            calls.append("release")
            self._context.lock_file_fd = None

    async def main():
        async with Mine("a"):
            pass
        with pytest.raises(NotImplementedError, match="async with"), Mine("a"):
            pass

    run(main())
    assert calls == ["acquire", "release"]


def test_a_lock_that_is_dropped_is_free():
    async def main():
        lock = AsyncFileLock("a.lock")
        await lock.acquire()
        del lock

    run(main())
    FileLock("a.lock").acquire(timeout=BOUND).lock.release()


def test_the_place_of_a_task_belongs_to_the_process_and_not_to_the_thread_of_an_attempt():
    async def main():
        with ThreadPoolExecutor(1) as executor:
            lock = AsyncFileLock("a.lock", executor=executor)
            await lock.acquire()
        holders = [info.holders for info in holdfast.locks(kind=holdfast.Kind.FILE)]
        assert [holder.thread for holder in holders[0]] == [0] and holders[0][0].liveness is holdfast.Liveness.ALIVE
        lock.executor = None
        await lock.release()

    run(main())


# -- readers and writers ----------------------------------------------------------------


def test_tasks_share_a_read_lock_and_a_waiting_writer_goes_before_new_readers():
    order = []

    async def reader(lock, number, go):
        async with lock.read_lock():
            order.append(f"r{number}")
            await go.wait()

    async def writer(lock):
        async with lock.write_lock():
            order.append("w")

    async def main():
        lock, go = AsyncReadWriteLock("rw.db"), asyncio.Event()
        first = [asyncio.create_task(reader(lock, number, go)) for number in range(2)]
        await until(lambda: len(order) == 2)
        late = [asyncio.create_task(writer(AsyncReadWriteLock("rw.db"))), asyncio.create_task(reader(lock, 9, go))]
        await until(lambda: len(lock._tasks.waiting) == 2)
        go.set()
        await asyncio.gather(*first, *late)
        assert sorted(order[:2]) == ["r0", "r1"] and order[2:] == ["w", "r9"]
        async with await lock.acquire_write():
            async with lock.write_lock():
                with pytest.raises(RuntimeError, match="downgrade not allowed"):
                    await lock.acquire_read()
        with pytest.raises(RuntimeError, match="not held"):
            await lock.release()
        await lock.release(force=True)
        await lock.close()

    run(main())


def test_a_task_waits_for_other_processes_and_gives_up_in_time(script):
    other = script("from holdfast.filelock import ReadWriteLock\nwith ReadWriteLock('rw.db').write_lock():\n print('held')\n sys.stdin.readline()")
    assert other.line() == "held"

    async def main():
        lock = AsyncReadWriteLock("rw.db", timeout=0.02)
        assert (lock.timeout, lock.blocking, lock.lock_file, lock.loop) == (0.02, True, "rw.db", None)
        with pytest.raises(Timeout):
            await lock.acquire_read()
        with pytest.raises(Timeout):
            await lock.acquire_write(blocking=False)
        task = asyncio.create_task(lock.acquire_write(timeout=-1))
        await until(lambda: lock._tasks.changing)
        with pytest.raises(Timeout):
            await lock.acquire_read(timeout=0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other.tell()
        async with await lock.acquire_write(timeout=-1):
            with pytest.raises(Timeout):
                ReadWriteLock("rw.db", is_singleton=False).acquire_read(timeout=0)
        ReadWriteLock("rw.db", is_singleton=False).acquire_write(timeout=0).lock.release()
        await lock.close()

    run(main())
    assert other.end()[0] == 0


def test_a_writer_that_is_cancelled_lets_the_readers_behind_it_in():
    async def main():
        lock = AsyncReadWriteLock("rw.db")
        async with lock.read_lock():
            writer = asyncio.create_task(lock.acquire_write())
            await until(lambda: len(lock._tasks.waiting) == 1)
            reader = asyncio.create_task(lock.acquire_read())
            await until(lambda: len(lock._tasks.waiting) == 2)
            writer.cancel()
            await reader
        await asyncio.gather(writer, return_exceptions=True)

    run(main())
