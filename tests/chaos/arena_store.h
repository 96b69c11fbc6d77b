/*
 * arena_store.h: the etcd of an arena whose job is kept there (--store etcd): three real servers on
 * loopback addresses of this process, with their data in the arena's folder. One etcd runs at a
 * time.
 */
#ifndef TESTS_CHAOS_ARENA_STORE_H
#define TESTS_CHAOS_ARENA_STORE_H

#include "base/err.h"

#define ARENA_STORE_SERVERS 3

/* Starts the servers with their data in this folder, which is made. HVD_E_UNSUPPORTED: the program
 * etcd is not installed. */
int arena_store_open(const char *folder, struct hvd_err *err) MUST_CHECK;
void arena_store_close(void);

/* "etcd://127.64.48.57:2379,.../tests" */
const char *arena_store_url(void);

/* The number of the server that leads; a negative error: no server says so. */
int arena_store_leader(struct hvd_err *err) MUST_CHECK;

void arena_store_signal(unsigned number, int signal);
int arena_store_again(unsigned number, struct hvd_err *err) MUST_CHECK;

/* Puts keys beside those of the job until the database is full; arena_store_drain removes them, and
 * ends the alarm. */
int arena_store_fill(struct hvd_err *err) MUST_CHECK;
int arena_store_drain(struct hvd_err *err) MUST_CHECK;

#endif
