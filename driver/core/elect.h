/*
 * elect.h: the election of the commit that a round begins with: the highest commit that any member
 * holds. Its holders, of any rank, serve it to the other members. A member whose checksum of this
 * commit differs from that of the majority is not a holder.
 */
#ifndef DRIVER_CORE_ELECT_H
#define DRIVER_CORE_ELECT_H

#include "driver/core/core_internal.h"

struct election {
    uint64_t commit; /* the highest commit that a member holds; 0: no member holds any commit */
    /* the checksum that most holders of the commit have */
    uint64_t checksum;
    size_t holders; /* number of members that hold `commit` with `checksum` */
};

/* Elects among the members of the round. All members must be alive. */
struct election elect(const struct core *core, const struct round *round);

/* True: a live member holds a commit of the newest round in which all members trained. These
 * members trained in step, so none that is dead was far ahead of this survivor, which restores the
 * commit from its own memory. */
bool elect_has_survivor(const struct core *core);

/* True: a connected agent has still to send the EXITED of a dead worker, which may name the newest
 * commit. The wait for it is limited; the round is looked at again when it ends. */
bool elect_awaits_end(struct core *core);

/* Returns the newest commit that only an agent keeps: the agent is connected, and no worker that
 * was a member is still in the slot of the commit. The commit `except` (0: none) is left out.
 * Returns 0 if the job could resume from no such commit, and also while elect_awaits_end is true.
 */
uint64_t elect_kept(const struct core *core, uint64_t except);

/* Returns the connected agents that keep this commit, as the sources of a ROUND that names no
 * holder. */
struct msg_source_list elect_sources(struct core *core, uint64_t commit);

/* Fills in round->holders: the members that hold the elected commit with its checksum. When no
 * member holds any commit, the oldest member becomes the only holder. */
void elect_holders(struct core *core, struct round *round, const struct election *election);

/* Notes the commits that the worker says it holds. */
void elect_note(const struct core *core, struct worker *worker, const struct msg_held_list *held);

/* False: this commit cannot have been made in this job, so the caller ignores it. */
bool elect_believes(const struct core *core, uint64_t commit);

#endif
