/*
 * etcd_server.h: a real etcd of one or three servers for a test, on addresses that only this
 * process uses. The servers die with the process.
 */
#ifndef TESTS_LIB_ETCD_SERVER_H
#define TESTS_LIB_ETCD_SERVER_H

#include "base/base.h"

#include <sys/types.h>

#define ETCD_SERVERS_MAX 3

/* Whether the program etcd is installed. */
bool etcd_server_found(void);

/* Starts `count` servers with their data below `folder`. `option`: one more word of their command
 * lines; NULL: none. The servers answer later: the first call of a store waits for them. */
bool etcd_server_start(const char *folder, unsigned count, const char *option);
/* Starts a server again that was killed. */
bool etcd_server_again(unsigned number);
/* After SIGKILL the server has ended, after SIGSTOP it has stopped. */
void etcd_server_signal(unsigned number, int signal);
void etcd_server_stop(void);

/* "etcd://127.64.48.57:2379,127.64.48.57:2389/tests" */
const char *etcd_server_url(void);

#endif
