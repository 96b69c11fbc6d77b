/*
 * huge.h: collectives with more than 2^31 numbers, between two processes.
 */
#ifndef TESTS_COLL_HUGE_H
#define TESTS_COLL_HUGE_H

/* Returns an exit code: 0, or 1 with the reason printed. A machine with too little memory prints
 * that, and gives 0. */
int huge_run(void);

#endif
