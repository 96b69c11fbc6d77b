/*
 * channel.h: sends and receives between two members of a round. A channel leads from one member to
 * another member. Both of them open it, and it carries the messages of the first to the second, one
 * after another.
 *
 *     coll_open_channel ──► coll_transfer, again and again          freed with its round
 *
 * One thread at a time may use a channel. Several threads may use several channels, beside the
 * thread that makes the operations of the round (coll_run): a transfer waits for nothing but the
 * member at the other end.
 */
#ifndef COLLECTIVES_CHANNEL_H
#define COLLECTIVES_CHANNEL_H

#include "collectives/coll.h"

struct coll_channel;

/* Opens this member's end of the channel to (`sends` is true) or from (`sends` is false) the member
 * with rank `peer`. Waits for no member. A member opens each channel once in a round. HVD_E_LIMIT:
 * the member has opened LIMIT_CHANNELS channels. After any failure the round has ended. */
int coll_open_channel(struct coll *coll, uint32_t peer, bool sends,
                      struct coll_channel **ret_channel, struct hvd_err *err) MUST_CHECK;

/* Sends call->count numbers from call->in, or receives so many into call->out. Returns when the
 * receiver has the message, or is sure to get it; so it waits until the other member makes its
 * transfer too. HVD_E_MISMATCH: the transfer of that member has another count, type or tag. Other
 * codes: as coll_run. */
int coll_transfer(struct coll_channel *channel, const struct coll_call *call,
                  struct hvd_err *err) MUST_CHECK;

/* As coll_wait_look, but describes a transfer in progress, and the member for which it waits. */
void coll_transfer_look(struct coll *coll, struct coll_wait *ret_wait);

#endif
