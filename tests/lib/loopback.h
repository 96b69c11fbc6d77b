/*
 * loopback.h: a loopback address at which only this process listens. Linux routes all of
 * 127.0.0.0/8 to the machine itself.
 *
 * Agents and floods of other tests dial 127.0.0.1 for a while after their job has ended, and the
 * kernel may have given the port to a listener of this process. At an address of its own this
 * listener gets no such connection.
 */
#ifndef TESTS_LIB_LOOPBACK_H
#define TESTS_LIB_LOOPBACK_H

/* Returns for example "127.64.48.57". No two processes that live have the same address; a process
 * that is forked has another address than its parent. The text is valid until the thread calls the
 * function again. */
const char *loopback_own(void);

#endif
