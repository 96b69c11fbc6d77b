/*
 * revoke.h: ends a round because the program wants it, which is no failure.
 */
#ifndef COLLECTIVES_REVOKE_H
#define COLLECTIVES_REVOKE_H

#include "collectives/coll.h"

/* Ends the round for all members: their calls return HVD_E_REVOKED, with the text that is written
 * to *ret_told. `why`: the program's reason. Any thread may call this function. */
void coll_revoke(struct coll *coll, struct hvd_err *ret_told, const char *why);

#endif
