/* Signals: masks, pending signals, handlers, and what they do to calls that wait. */
#include "cases.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <linux/futex.h>

static volatile sig_atomic_t hits, order[16], seen_code, seen_value;
static volatile pid_t seen_pid;
static pthread_t taker;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t gate, ready;

static void count(int signal)
{
    order[hits++ % 16] = signal;
    taker = pthread_self();
}

static void tell(int signal, siginfo_t *info, void *context)
{
    assert(info->si_signo == signal && context != NULL);
    seen_code = info->si_code;
    seen_pid = info->si_pid;
    seen_value = info->si_value.sival_int;
    order[hits++] = signal;
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    assert(sigaction(signal, &action, NULL) == 0);
}

static void handle_info(int signal, int flags)
{
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | flags};
    assert(sigaction(signal, &action, NULL) == 0);
}

static sigset_t set_of(int a, int b)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, a);
    if (b)
        sigaddset(&set, b);
    return set;
}

static void block(int signal)
{
    sigset_t set = set_of(signal, 0);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static void unblock(int signal)
{
    sigset_t set = set_of(signal, 0);
    assert(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static int is_blocked(int signal)
{
    sigset_t set;
    assert(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
    return sigismember(&set, signal);
}

static int is_pending(int signal)
{
    sigset_t set;
    assert(sigpending(&set) == 0);
    return sigismember(&set, signal);
}

/* ---- handlers ---- */

static void raise_runs_the_handler(void)
{
    handle(SIGUSR1, count, 0);
    errno = 17;
    assert(raise(SIGUSR1) == 0 && hits == 1 && errno == 17);
    assert(kill(getpid(), SIGUSR1) == 0 && hits == 2);
    assert(pthread_kill(pthread_self(), SIGUSR1) == 0 && hits == 3);
    assert(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && hits == 4);
    assert(syscall(SYS_tkill, gettid(), SIGUSR1) == 0 && hits == 5);
    assert(tgkill(getpid(), gettid(), SIGUSR1) == 0 && hits == 6);
    assert(syscall(SYS_kill, getpid(), SIGUSR1) == 0 && hits == 7);
}

static void information(void)
{
    union sigval value = {.sival_int = 42};
    handle_info(SIGUSR1, 0);
    assert(kill(getpid(), SIGUSR1) == 0 && seen_code == SI_USER && seen_pid == getpid());
    assert(raise(SIGUSR1) == 0 && seen_code == SI_TKILL && seen_pid == getpid());
    assert(sigqueue(getpid(), SIGUSR1, value) == 0 && seen_code == SI_QUEUE && seen_value == 42);
    value.sival_int = 43;
    assert(pthread_sigqueue(pthread_self(), SIGUSR1, value) == 0 && seen_code == SI_QUEUE && seen_value == 43);
    assert(seen_pid == getpid() && hits == 4);
}

static void is_blocked_inside(int signal)
{
    assert(is_blocked(signal) && is_blocked(SIGUSR2) && !is_blocked(SIGTERM));
    if (hits++ == 0) {
        raise(signal);
        raise(SIGUSR2);
        assert(hits == 1 && is_pending(signal) && is_pending(SIGUSR2));
    }
}

static void the_mask_of_a_handler(void)
{
    struct sigaction action = {.sa_handler = is_blocked_inside};
    sigaddset(&action.sa_mask, SIGUSR2);
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    handle(SIGUSR2, count, 0);
    raise(SIGUSR1);
    /* Itself once more and the other one afterwards. */
    assert(hits == 3 && !is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
}

static void nests(int signal)
{
    assert(!is_blocked(signal));
    if (++hits < 3)
        raise(signal);
}

static void handlers_that_are_not_deferred(void)
{
    handle(SIGUSR1, nests, SA_NODEFER);
    raise(SIGUSR1);
    assert(hits == 3);
}

static void handlers_that_run_once(void)
{
    struct sigaction now;
    handle(SIGUSR1, count, SA_RESETHAND);
    raise(SIGUSR1);
    assert(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    assert(sysv_signal(SIGUSR2, count) == SIG_DFL);
    raise(SIGUSR2);
    assert(hits == 2 && sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

static char room[64 << 10];

static void is_on_other_stack(int signal)
{
    char local;
    stack_t now;
    assert(room <= &local && &local < room + sizeof room);
    assert(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_ONSTACK);
    assert(sigaltstack(&now, NULL) == -1 && errno == EPERM);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    count(signal);
}

static void is_on_own_stack(int signal)
{
    char local;
    assert(!(room <= &local && &local < room + sizeof room));
    count(signal);
}

static void *runs_on_other_stack(void *arg)
{
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    handle(SIGUSR1, is_on_other_stack, SA_ONSTACK);
    handle(SIGUSR2, is_on_own_stack, 0);
    assert(sigaltstack(&stack, NULL) == 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    assert(hits == 2);
    return arg;
}

static void other_stacks(void)
{
    join(start(runs_on_other_stack, NULL));
    /* It was the thread's, not ours. */
    handle(SIGUSR1, is_on_own_stack, SA_ONSTACK);
    raise(SIGUSR1);
    assert(hits == 3);
}

static void old_actions(void)
{
    struct sigaction now;
    assert(signal(SIGUSR1, count) == SIG_DFL && signal(SIGUSR1, SIG_IGN) == count);
    assert(raise(SIGUSR1) == 0 && hits == 0);
    assert(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    assert(signal(SIGUSR1, count) == SIG_DFL);
    assert(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == count && now.sa_flags & SA_RESTART);
    assert(siginterrupt(SIGUSR1, 1) == 0);
    assert(sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART));
    assert(sigset(SIGUSR1, SIG_HOLD) == count && is_blocked(SIGUSR1));
    raise(SIGUSR1);
    assert(hits == 0 && sigset(SIGUSR1, count) == SIG_HOLD && hits == 1);
}

static void ignored_by_default(void)
{
    raise(SIGCHLD);
    raise(SIGURG);
    raise(SIGWINCH);
    raise(SIGCONT);
    handle(SIGCHLD, count, 0);
    raise(SIGCHLD);
    assert(hits == 1);
}

static void bad_arguments(void)
{
    struct sigaction action = {.sa_handler = count}, now;
    sigset_t set = set_of(SIGUSR1, 0);
    assert(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
    assert(sigaction(SIGSTOP, &action, NULL) == -1 && sigaction(SIGKILL, NULL, &now) == 0);
    assert(sigaction(0, &action, NULL) == -1 && sigaction(65, &action, NULL) == -1);
    assert(sigaction(32, &action, NULL) == -1 && errno == EINVAL);
    assert(signal(SIGKILL, count) == SIG_ERR && signal(99, count) == SIG_ERR);
    assert(raise(-1) == -1 && errno == EINVAL);
    assert(pthread_kill(pthread_self(), 65) == EINVAL && pthread_kill(pthread_self(), 0) == 0);
    assert(kill(getpid(), 65) == -1 && errno == EINVAL && kill(getpid(), 0) == 0);
    assert(pthread_sigmask(7, &set, NULL) == EINVAL);
    assert(sigprocmask(7, &set, NULL) == -1 && errno == EINVAL);
    sigfillset(&set);
    assert(sigprocmask(SIG_SETMASK, &set, NULL) == 0 && !is_blocked(SIGKILL) && !is_blocked(SIGSTOP));
    assert(is_blocked(SIGTERM) && is_blocked(SIGRTMIN) && is_blocked(SIGRTMAX));
}

/* ---- masks and pending signals ---- */

static void blocked_until_unblocked(void)
{
    handle(SIGUSR1, count, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    assert(hits == 0 && is_pending(SIGUSR1) && !is_pending(SIGUSR2));
    unblock(SIGUSR1);
    /* One for the thread, one for the process. */
    assert(hits == 2 && !is_pending(SIGUSR1));
}

static void ignoring_discards(void)
{
    handle(SIGUSR1, count, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    assert(!is_pending(SIGUSR1));
    handle(SIGUSR1, count, 0);
    unblock(SIGUSR1);
    assert(hits == 0);
}

static void queued_signals(void)
{
    int real = SIGRTMIN + 1;
    handle_info(real, 0);
    block(real);
    for (int i = 0; i < 5; i++)
        assert(sigqueue(getpid(), real, (union sigval){.sival_int = i}) == 0);
    unblock(real);
    assert(hits == 5 && seen_value == 4);
}

static void several_at_once(void)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2);
    handle(SIGUSR1, count, 0);
    handle(SIGUSR2, count, 0);
    assert(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    assert(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    /* Linux puts the frame of the second on top of that of the first. */
    assert(hits == 2 && order[0] == SIGUSR2 && order[1] == SIGUSR1);
}

static void *has_its_own_mask(void *arg)
{
    assert(is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
    unblock(SIGUSR1);
    block(SIGUSR2);
    sem_post(&gate);
    assert(!is_pending(SIGUSR1));
    return arg;
}

static void masks_are_inherited(void)
{
    sem_init(&gate, 0, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    assert(is_pending(SIGUSR1));
    pthread_t t = start(has_its_own_mask, NULL);
    sem_wait(&gate);
    assert(is_blocked(SIGUSR1) && !is_blocked(SIGUSR2) && is_pending(SIGUSR1));
    join(t);
}

static void *blocks_by_attribute(void *arg)
{
    assert(is_blocked(SIGUSR2) && !is_blocked(SIGUSR1));
    return arg;
}

static void masks_by_attribute(void)
{
    pthread_attr_t attributes;
    pthread_t t;
    sigset_t set = set_of(SIGUSR2, 0);
    block(SIGUSR1);
    assert(pthread_attr_init(&attributes) == 0 && pthread_attr_setsigmask_np(&attributes, &set) == 0);
    assert(pthread_create(&t, &attributes, blocks_by_attribute, NULL) == 0);
    join(t);
}

/* ---- who takes a signal ---- */

static void *waits_at_gate(void *arg)
{
    while (sem_wait(&gate) != 0)
        assert(errno == EINTR);
    return arg;
}

static void *unblocks_and_waits(void *arg)
{
    unblock(SIGUSR1);
    sem_post(&ready);
    return waits_at_gate(arg);
}

static void to_the_thread_that_does_not_block(void)
{
    sem_init(&gate, 0, 0);
    sem_init(&ready, 0, 0);
    handle(SIGUSR1, count, 0);
    block(SIGUSR1);
    pthread_t a = start(waits_at_gate, NULL), b = start(unblocks_and_waits, NULL);
    sem_wait(&ready);
    kill(getpid(), SIGUSR1);
    sem_post(&gate);
    sem_post(&gate);
    join(a);
    join(b);
    assert(hits == 1 && pthread_equal(taker, b));
}

static void to_one_thread(void)
{
    sem_init(&gate, 0, 0);
    handle(SIGUSR1, count, 0);
    pthread_t a = start(waits_at_gate, NULL);
    assert(pthread_kill(a, SIGUSR1) == 0);
    sem_post(&gate);
    join(a);
    assert(hits == 1 && pthread_equal(taker, a));
}

static volatile pid_t id_of_other;

static void *tells_its_id(void *arg)
{
    id_of_other = gettid();
    sem_post(&ready);
    return waits_at_gate(arg);
}

static void to_one_thread_by_id(void)
{
    sem_init(&gate, 0, 0);
    sem_init(&ready, 0, 0);
    handle(SIGUSR1, count, 0);
    pthread_t a = start(tells_its_id, NULL);
    sem_wait(&ready);
    assert(tgkill(getpid(), id_of_other, SIGUSR1) == 0);
    sem_post(&gate);
    join(a);
    assert(hits == 1 && pthread_equal(taker, a));
}

static void *ends(void *arg)
{
    return arg;
}

static void to_a_thread_that_has_ended(void)
{
    handle(SIGUSR1, count, 0);
    pthread_t a = start(ends, NULL);
    int error = pthread_kill(a, SIGUSR1);
    assert(error == 0 || error == ESRCH);
    join(a);
    assert(hits <= 1);
}

/* ---- calls that wait ---- */

static volatile int done;

static void *kills_main_until_done(void *arg)
{
    while (!done) {
        pthread_kill(*(pthread_t *)arg, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

static void interrupted_by(int (*wait)(void), int flags, int result)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, count, flags);
    pthread_t t = start(kills_main_until_done, &self);
    errno = 0;
    int got = wait();
    done = 1;
    assert(hits >= 1);
    assert(got == result && (result == 0 || errno == EINTR));
    join(t);
}

/* Each waits until a handler has run, whenever that is. */
static int sleeps_long(void)
{
    struct timespec t = {100, 0}, left = {0, 0};
    while (!hits)
        if (nanosleep(&t, &left) == -1) {
            assert(left.tv_sec <= 100 && (left.tv_sec > 0 || left.tv_nsec > 0));
            return -1;
        }
    errno = EINTR;
    return -1;
}

static void sleep_is_interrupted(void)
{
    interrupted_by(sleeps_long, 0, -1);
}

static void sleep_is_never_restarted(void)
{
    interrupted_by(sleeps_long, SA_RESTART, -1);
}

static int sleep_tells_the_rest(void)
{
    while (!hits) {
        unsigned left = sleep(100);
        assert(left <= 100);
    }
    return 0;
}

static void sleep_by_seconds(void)
{
    interrupted_by(sleep_tells_the_rest, SA_RESTART, 0);
}

static int waits_for_gate(void)
{
    int result = 0;
    while (!hits && (result = sem_wait(&gate)) == 0)
        ;
    if (hits && result == 0)
        errno = EINTR, result = -1;
    return result;
}

static void semaphore_is_interrupted(void)
{
    sem_init(&gate, 0, 0);
    interrupted_by(waits_for_gate, 0, -1);
}

static int waits_for_gate_with_limit(void)
{
    struct timespec t = from_now(CLOCK_REALTIME, 100000);
    int result = 0;
    while (!hits && ((result = sem_timedwait(&gate, &t)) == 0 || errno == ETIMEDOUT))
        t.tv_sec += 100000;
    return hits ? (errno = EINTR, -1) : result;
}

static void timed_semaphore_is_interrupted(void)
{
    sem_init(&gate, 0, 0);
    interrupted_by(waits_for_gate_with_limit, SA_RESTART, -1);
}

static void posts_gate(int signal)
{
    count(signal);
    sem_post(&gate);
}

static void *kills_main_once(void *arg)
{
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

static void semaphore_is_restarted(void)
{
    pthread_t self = pthread_self();
    sem_init(&gate, 0, 0);
    handle(SIGUSR1, posts_gate, SA_RESTART);
    pthread_t t = start(kills_main_once, &self);
    assert(sem_wait(&gate) == 0 && hits == 1);
    join(t);
}

static int word;

static int waits_for_word(void)
{
    long result = 0;
    while (!hits && (result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0)) == 0)
        ;
    return hits ? (errno = EINTR, -1) : (int)result;
}

static void futex_is_interrupted(void)
{
    interrupted_by(waits_for_word, 0, -1);
}

static void changes_word(int signal)
{
    word = 1;
    count(signal);
}

static void futex_is_restarted(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, changes_word, SA_RESTART);
    pthread_t t = start(kills_main_once, &self);
    long result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
    assert(result == -1 && errno == EAGAIN && hits == 1);
    join(t);
}

static void *holds(void *arg)
{
    pthread_mutex_lock(&m);
    sem_post(&ready);
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    sched_yield();
    pthread_mutex_unlock(&m);
    return NULL;
}

static void a_lock_goes_on_waiting(void)
{
    pthread_t self = pthread_self();
    sem_init(&ready, 0, 0);
    handle(SIGUSR1, count, 0);
    pthread_t t = start(holds, &self);
    while (sem_wait(&ready) != 0)
        assert(errno == EINTR);
    assert(pthread_mutex_lock(&m) == 0);
    join(t);
    assert(hits == 1);
    pthread_mutex_unlock(&m);
}

static int condition;

static void *kills_then_signals(void *arg)
{
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    pthread_mutex_lock(&m);
    condition = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return NULL;
}

/* A handler that locks, whose thread waits on a condition variable: it must not miss a wake-up. */
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;

static void locks(int signal)
{
    pthread_mutex_lock(&inner);
    count(signal);
    pthread_mutex_unlock(&inner);
    sched_yield();
}

static void a_condition_goes_on_waiting(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, locks, SA_RESTART);
    pthread_t t = start(kills_then_signals, &self);
    pthread_mutex_lock(&m);
    while (!condition)
        assert(pthread_cond_wait(&c, &m) == 0);
    pthread_mutex_unlock(&m);
    join(t);
    assert(hits == 1);
}

static pthread_barrier_t barrier;

static void *kills_then_meets(void *arg)
{
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void a_barrier_goes_on_waiting(void)
{
    pthread_t self = pthread_self();
    pthread_barrier_init(&barrier, NULL, 2);
    handle(SIGUSR1, locks, 0);
    pthread_t t = start(kills_then_meets, &self);
    int result = pthread_barrier_wait(&barrier);
    assert(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    join(t);
    assert(hits == 1);
}

static void a_join_goes_on_waiting(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, locks, 0);
    pthread_t t = start(kills_main_once, &self);
    join(t);
    assert(hits == 1);
}

/* ---- waiting for signals ---- */

static void *sends_two(void *arg)
{
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    return arg;
}

static void sigwait_takes(void)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2);
    int a, b;
    assert(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    pthread_t t = start(sends_two, NULL);
    assert(sigwait(&set, &a) == 0 && sigwait(&set, &b) == 0);
    assert(a + b == SIGUSR1 + SIGUSR2);
    join(t);
}

static void *waits_for_a_signal(void *arg)
{
    sigset_t set = set_of(SIGUSR1, 0);
    int got;
    assert(sigwait(&set, &got) == 0 && got == SIGUSR1);
    return arg;
}

static void sigwait_in_another_thread(void)
{
    block(SIGUSR1);
    pthread_t t = start(waits_for_a_signal, NULL);
    kill(getpid(), SIGUSR1);
    join(t);
    t = start(waits_for_a_signal, NULL);
    pthread_kill(t, SIGUSR1);
    join(t);
}

static void sigwaitinfo_tells(void)
{
    sigset_t set = set_of(SIGRTMIN, 0);
    siginfo_t info;
    block(SIGRTMIN);
    assert(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 9}) == 0);
    assert(sigwaitinfo(&set, &info) == SIGRTMIN && info.si_code == SI_QUEUE && info.si_value.sival_int == 9);
    struct timespec none = {0, 0}, second = {1, 0}, bad = {0, -1};
    assert(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
    assert(sigtimedwait(&set, &info, &second) == -1 && errno == EAGAIN);
    assert(sigtimedwait(&set, &info, &bad) == -1 && errno == EINVAL);
    raise(SIGRTMIN);
    assert(sigtimedwait(&set, NULL, NULL) == SIGRTMIN);
}

static int waits_for_others(void)
{
    sigset_t set = set_of(SIGUSR2, 0);
    int result = 0;
    if (!hits)
        result = sigwaitinfo(&set, NULL);
    return hits ? (errno = EINTR, -1) : result;
}

static void sigwaitinfo_is_interrupted(void)
{
    block(SIGUSR2);
    interrupted_by(waits_for_others, SA_RESTART, -1);
}

static void sigsuspend_misses_nothing(void)
{
    pthread_t self = pthread_self();
    sigset_t none;
    sigemptyset(&none);
    handle(SIGUSR1, count, SA_RESTART);
    block(SIGUSR1);
    pthread_t t = start(kills_main_once, &self);
    while (!hits)
        assert(sigsuspend(&none) == -1 && errno == EINTR);
    assert(hits == 1 && is_blocked(SIGUSR1));
    join(t);
}

static int pauses(void)
{
    return hits ? (errno = EINTR, -1) : pause();
}

static void pause_is_interrupted(void)
{
    interrupted_by(pauses, SA_RESTART, -1);
}

/* ---- ways out of a handler ---- */

static sigjmp_buf back;

static void jumps(int signal)
{
    count(signal);
    siglongjmp(back, signal);
}

static void jumps_out_of_handlers(void)
{
    handle(SIGUSR1, jumps, 0);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0) {
            raise(SIGUSR1);
            assert(0);
        }
    assert(hits == 3 && !is_blocked(SIGUSR1));
    if (sigsetjmp(back, 0) == 0)
        raise(SIGUSR1);
    assert(hits == 4 && is_blocked(SIGUSR1));
}

static void jumps_out_of_a_wait(void)
{
    pthread_t self = pthread_self();
    handle(SIGUSR1, jumps, 0);
    block(SIGUSR1);
    pthread_t t = start(kills_main_once, &self);
    if (sigsetjmp(back, 1) == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigsuspend(&none);
        assert(0);
    }
    assert(hits == 1 && is_blocked(SIGUSR1));
    join(t);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

static int cleaned;

static void cleans(void *arg)
{
    (void)arg;
    cleaned++;
}

static void leaves(int signal)
{
    count(signal);
    pthread_exit((void *)7);
}

static void *waits_for_ever(void *arg)
{
    pthread_cleanup_push(cleans, NULL);
    sem_post(&ready);
    while (sem_wait(&gate) != 0)
        ;
    pthread_cleanup_pop(0);
    return arg;
}

static void threads_end_in_handlers(void)
{
    sem_init(&gate, 0, 0);
    sem_init(&ready, 0, 0);
    handle(SIGUSR1, leaves, 0);
    pthread_t t = start(waits_for_ever, NULL);
    sem_wait(&ready);
    pthread_kill(t, SIGUSR1);
    assert(join(t) == (void *)7 && hits == 1 && cleaned == 1);
}

static void changes_the_mask(int signal, siginfo_t *info, void *context)
{
    (void)info;
    count(signal);
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGUSR2);
}

static void the_context_has_the_mask(void)
{
    struct sigaction action = {.sa_sigaction = changes_the_mask, .sa_flags = SA_SIGINFO};
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    assert(hits == 1 && is_blocked(SIGUSR2) && !is_blocked(SIGUSR1));
}

static void aborts(int signal)
{
    count(signal);
    siglongjmp(back, 1);
}

static void abort_runs_the_handler(void)
{
    handle(SIGABRT, aborts, 0);
    if (sigsetjmp(back, 1) == 0)
        abort();
    assert(hits == 1);
}

/* ---- deadly ---- */

static void killed(void)
{
    raise(SIGTERM);
}

static void killed_by_a_fault(void)
{
    raise(SIGSEGV);
}

static void killed_when_unblocked(void)
{
    block(SIGHUP);
    raise(SIGHUP);
    unblock(SIGHUP);
}

static void waits_for_nothing(void)
{
    pause();
}

CASES(CASE(raise_runs_the_handler), CASE(information), CASE(the_mask_of_a_handler),
      CASE(handlers_that_are_not_deferred), CASE(handlers_that_run_once), CASE(other_stacks), CASE(old_actions),
      CASE(ignored_by_default), CASE(bad_arguments), CASE(blocked_until_unblocked), CASE(ignoring_discards),
      CASE(queued_signals), CASE(several_at_once), CASE(masks_are_inherited), CASE(masks_by_attribute),
      CASE(to_the_thread_that_does_not_block), CASE(to_one_thread), CASE(to_one_thread_by_id),
      CASE(to_a_thread_that_has_ended), CASE(sleep_is_interrupted), CASE(sleep_is_never_restarted),
      CASE(sleep_by_seconds), CASE(semaphore_is_interrupted), CASE(timed_semaphore_is_interrupted),
      CASE(semaphore_is_restarted), CASE(futex_is_interrupted), CASE(futex_is_restarted),
      CASE(a_lock_goes_on_waiting), CASE(a_condition_goes_on_waiting), CASE(a_barrier_goes_on_waiting),
      CASE(a_join_goes_on_waiting), CASE(sigwait_takes), CASE(sigwait_in_another_thread), CASE(sigwaitinfo_tells),
      CASE(sigwaitinfo_is_interrupted), CASE(sigsuspend_misses_nothing), CASE(pause_is_interrupted),
      CASE(jumps_out_of_handlers), CASE(jumps_out_of_a_wait), CASE(threads_end_in_handlers),
      CASE(the_context_has_the_mask), CASE(abort_runs_the_handler), CASE(killed), CASE(killed_by_a_fault),
      CASE(killed_when_unblocked), CASE(waits_for_nothing))
