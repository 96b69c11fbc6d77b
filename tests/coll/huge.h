/*
 * huge.h: collectives of more numbers than fit into 31 bits, between two processes.
 */
#ifndef TESTS_COLL_HUGE_H
#define TESTS_COLL_HUGE_H

/* What an exit code is: 0, or 1 with the reason printed. Without the memory for it, it says so: 0.
 */
int huge_run(void);

#endif
