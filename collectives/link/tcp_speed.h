/*
 * tcp_speed.h: tells whether encryption is cheap for bytes to a host (--data-security auto). This
 * process measures two times: how much longer the encryption of 1 MiB takes than its
 * authentication, and how long the kernel took to carry 1 MiB to that host in an earlier round.
 */
#ifndef COLLECTIVES_LINK_TCP_SPEED_H
#define COLLECTIVES_LINK_TCP_SPEED_H

#include "base/err.h"

struct tcp_speed;

int speed_create(struct tcp_speed **ret_speed) MUST_CHECK; /* HVD_E_NOMEM */
void speed_free(struct tcp_speed *speed);                  /* NULL is allowed */

/* Notes how fast this connection was, at the end of its round; any thread may call this function. A
 * connection that has carried less than 8 MiB is not noted, because the buffers of the kernel may
 * hold as much. The first note also measures the ciphers: it encrypts and decrypts, or
 * authenticates, 10 MiB in all, which takes some milliseconds. */
void speed_note(struct tcp_speed *speed, int fd);

/* Returns true if encryption is cheap (security.h) compared with a transfer to the peer of this
 * connection. Returns false also when nothing has been measured yet, and for a `speed` of NULL. Any
 * thread may call this function. */
bool speed_affords(struct tcp_speed *speed, int fd);

#endif
