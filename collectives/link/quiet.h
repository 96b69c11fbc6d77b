/*
 * quiet.h: a write to a peer that is gone kills nobody, though it is Gloo's and not ours.
 */
#ifndef COLLECTIVES_LINK_QUIET_H
#define COLLECTIVES_LINK_QUIET_H

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For a thread of the program that is about to write to a peer: no SIGPIPE of ours gets through in
 * between. */
struct quiet_pipe {
    bool blocked_here; /* it was not blocked before */
};
void quiet_pipe_begin(struct quiet_pipe *quiet);
void quiet_pipe_end(struct quiet_pipe *quiet);

#ifdef __cplusplus
}
#endif
#endif
