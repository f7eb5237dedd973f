/*
 * The work-stealing queue of work_stealing.h with the second bug: pop() does not take the lock when it tries again, so
 * a thief may still be about to give way. Both then give way, and the victim takes a queue for empty that is not.
 *
 * Two preemptions are needed. The thief is preempted after it has moved the head over the last item. The victim then
 * pops all it can, and is itself preempted in its second try, after it has seen that head and before it moves the tail
 * back: so the thief sees that tail.
 *
 * heisen: bug=assertion preemptions=2 class=atomicity-violation
 */
#define BUG 2
#include "work_stealing.h"
