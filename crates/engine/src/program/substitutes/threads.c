/* std::thread, std::condition_variable and std::call_once of libstdc++. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define WEAK __attribute__((weak, visibility("hidden")))

/* A std::thread. */
struct thread {
    pthread_t id;
};

/* What a thread runs: an object whose virtual functions are two destructors and the function of the thread. */
struct state {
    void (*const *functions)(struct state *);
};

enum { DELETING_DESTRUCTOR = 1, RUN = 2 };

extern void _ZSt20__throw_system_errori(int error) __attribute__((noreturn));

static void delete_state(struct state **owner) {
    (*owner)->functions[DELETING_DESTRUCTOR](*owner);
}

static void *run(void *argument) {
    /* An exception, such as that of pthread_exit, deletes it as well. */
    __attribute__((cleanup(delete_state))) struct state *state = argument;
    state->functions[RUN](state);
    return 0;
}

WEAK void _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    struct thread *thread, struct state **owner, void (*needed)(void)) {
    (void)needed;
    int error = pthread_create(&thread->id, 0, run, *owner);
    if (error)
        _ZSt20__throw_system_errori(error);
    *owner = 0;
}

WEAK void _ZNSt6thread4joinEv(struct thread *thread) {
    int error = thread->id ? pthread_join(thread->id, 0) : EINVAL;
    if (error)
        _ZSt20__throw_system_errori(error);
    thread->id = 0;
}

WEAK void _ZNSt6thread6detachEv(struct thread *thread) {
    int error = thread->id ? pthread_detach(thread->id) : EINVAL;
    if (error)
        _ZSt20__throw_system_errori(error);
    thread->id = 0;
}

WEAK void _ZNSt6thread6_StateD2Ev(struct state *state) {
    (void)state;
}

/* A std::condition_variable is a pthread_cond_t, and a std::unique_lock begins with the address of its mutex. */

WEAK void _ZNSt18condition_variableC1Ev(pthread_cond_t *condition) {
    memset(condition, 0, sizeof *condition);
}

WEAK void _ZNSt18condition_variableD1Ev(pthread_cond_t *condition) {
    pthread_cond_destroy(condition);
}

WEAK void _ZNSt18condition_variable10notify_oneEv(pthread_cond_t *condition) {
    pthread_cond_signal(condition);
}

WEAK void _ZNSt18condition_variable10notify_allEv(pthread_cond_t *condition) {
    pthread_cond_broadcast(condition);
}

WEAK void _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(pthread_cond_t *condition,
                                                                     pthread_mutex_t **lock) {
    pthread_cond_wait(condition, *lock);
}
