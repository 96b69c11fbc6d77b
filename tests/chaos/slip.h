/*
 * slip.h: what an apprentice does wrong on purpose (--slip), so that it is seen whether a campaign
 * finds it. In peace nothing is wrong: each begins with the second round, but for SLIP_COMMIT,
 * which does no harm before.
 */
#ifndef TESTS_CHAOS_SLIP_H
#define TESTS_CHAOS_SLIP_H

enum slip {
    SLIP_NONE,
    SLIP_STATE,  /* rank 1 has another state than the others */
    SLIP_SAMPLE, /* one sample instead of all of a batch */
    SLIP_COMMIT, /* what is said to be committed is not, two times of three */
    SLIP_MEMORY, /* a mapped memory is left with each round, */
    SLIP_CHILD,  /* or a child that nobody waits for */
    SLIP_COUNT
};

/* For --slip of the apprentice, and of the campaign that passes it on; ends in NULL. */
extern const char *const slip_names[SLIP_COUNT + 1];

/* A round begins: what is left behind with it. */
void slip_leave(enum slip slip);

#endif
