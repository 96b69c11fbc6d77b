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
    BUG_COUNT
};

#endif
