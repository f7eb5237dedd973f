"""Threads, locks, queues, events, a timer, a barrier and a pool; what it prints does not depend on the schedule."""
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

jobs, done = queue.Queue(maxsize=4), queue.Queue()
lock = threading.Lock()
total = 0


def work():
    global total
    while True:
        n = jobs.get()
        if n is None:
            return
        with lock:
            total += n
        done.put((n, sum(i * i for i in range(n))))


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for n in range(40):
    jobs.put(n)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
print(total, sorted(done.get() for _ in range(40)))

event = threading.Event()
timer = threading.Timer(0.05, event.set)
timer.start()
print(event.wait())
timer.join()

barrier = threading.Barrier(3)
with ThreadPoolExecutor(3) as pool:
    ranks = list(pool.map(lambda _: barrier.wait(), range(3)))
print(sorted(ranks))
