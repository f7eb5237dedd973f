/*
 * The work-stealing queue of work_stealing.h as it should be: each item is taken exactly once.
 *
 * heisen: clean
 */
#define BUG 0
#include "work_stealing.h"
