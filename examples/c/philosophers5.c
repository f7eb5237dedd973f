/*
 * Five dining philosophers, see philosophers.c. There are more schedules to search, but the deadlock still needs just
 * one preemption, between the two forks of one philosopher.
 *
 * heisen: bug=deadlock preemptions=1 class=deadlock
 */
#define N 5
#include "philosophers.c"
