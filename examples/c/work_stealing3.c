/*
 * The work-stealing queue of work_stealing.h with the third bug: a thief that gives way releases the lock before it
 * moves the head back, so that to have the lock does not mean any more that no thief is on its way.
 *
 * Two preemptions are needed. The victim is preempted after it has moved the tail over the last item, so that the
 * thief gives way. The thief is preempted before it moves the head back: so the victim finds the head moved both
 * times, and takes a queue for empty that is not.
 *
 * heisen: bug=assertion preemptions=2 class=atomicity-violation
 */
#define BUG 3
#include "work_stealing.h"
