/*
 * The work-stealing queue of work_stealing.h with the first bug: pop() looks at the head before it moves the tail.
 * Both ends must be moved before the other is looked at, else neither thread need see the other.
 *
 * One preemption is enough, after that look, when one item is left: the thief takes it and ends, and the victim, which
 * knows nothing of it, takes it, too.
 *
 * heisen: bug=assertion preemptions=1 class=atomicity-violation
 */
#define BUG 1
#include "work_stealing.h"
