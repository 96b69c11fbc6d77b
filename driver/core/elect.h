/*
 * elect.h: which commit wins. The highest that any member holds, and its holders serve it: never
 * "rank 0". Holders whose checksums differ from those of the most are not holders.
 */
#ifndef DRIVER_CORE_ELECT_H
#define DRIVER_CORE_ELECT_H

#include "driver/core/state.h"

struct election {
    uint64_t commit; /* 0: nobody holds any */
    uint64_t checksum;
    size_t holders;
};

/* Among the members of the round, which are all alive. */
struct election elect(const struct core *core, const struct round *round);

/* The newest commit that an agent keeps, though nobody who is in the round has it: of a slot whose
 * worker is gone, or leaves. 0: none that the job could resume from. */
uint64_t elect_kept(const struct core *core);

/* Where this commit is kept, for a ROUND that names no holder. */
struct msg_source_list elect_sources(struct core *core, uint64_t commit);

/* Fills in the round's holders: the winners; when nobody holds any, its oldest member. */
void elect_holders(struct core *core, struct round *round, const struct election *election);

/* Takes over what the worker says it holds. */
void elect_note(const struct core *core, struct worker *worker, const struct msg_held_list *held);

/* False for a commit that cannot have been made in this job. */
bool elect_believes(const struct core *core, uint64_t commit);

#endif
