/*
 * revoke.h: the end of a round by the will of the program, which is no failure.
 */
#ifndef COLLECTIVES_REVOKE_H
#define COLLECTIVES_REVOKE_H

#include "collectives/coll.h"

/* Ends the round for all members: they get HVD_E_REVOKED, with the text that is written to
 * *ret_told. Any thread may call it. */
void coll_revoke(struct coll *coll, struct hvd_err *ret_told, const char *why);

#endif
