/*
 * world_bug.h: bugs that are planted between the cores and the world: will it notice them?
 */
#ifndef TESTS_LIB_WORLD_BUG_H
#define TESTS_LIB_WORLD_BUG_H

enum world_bug {
    BUG_NONE,
    BUG_STALE_EXIT,
    BUG_LOST_NOTIFICATION,
    BUG_WRONG_ROOT,
    BUG_LAUNCH_ON_BARRED,
    BUG_VISIBLE_BEFORE_DURABLE,
    BUG_COUNT
};

#endif
