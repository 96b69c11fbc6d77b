/*
 * world_bug.h: bugs that a test plants between the cores and the world, to prove that the checks
 * find them.
 */
#ifndef TESTS_WORLD_WORLD_BUG_H
#define TESTS_WORLD_WORLD_BUG_H

enum world_bug {
    BUG_NONE,
    BUG_STALE_EXIT,
    BUG_LOST_NOTIFICATION,
    BUG_WRONG_ROOT,
    BUG_LAUNCH_ON_BARRED,
    BUG_VISIBLE_BEFORE_DURABLE,
    BUG_LIE_BELIEVED,
    BUG_EARLY_MANIFEST,   /* an agent says SAVED before its file is durable */
    BUG_MIXED_COMMITS,    /* an agent writes the newest commit instead of the one that it holds */
    BUG_FORGOTTEN_HOLDER, /* a driver does not hear which commits agents keep */
    /* These are planted in worlds whose store is etcd. */
    BUG_ETCD_UNFENCED,          /* a write does not compare the owner */
    BUG_ETCD_VISIBLE,           /* a message leaves before its record is in etcd */
    BUG_ETCD_LEASE_FROM_ANSWER, /* a lease is counted from the answer, not from the request */
    BUG_ETCD_UNSURE_FAILED,     /* a write without an answer is taken for one that has failed */
    BUG_ETCD_UNSURE_DONE,       /* a write without an answer is taken for one that is durable */
    BUG_ETCD_EARLY_CLAIM,       /* a standby does not wait until the lease is over */
    BUG_ETCD_REPLAY_FORGETS,    /* the first record after a compaction is not read */
    BUG_COUNT
};

#endif
