/*
 * slip.h: errors that the chaos trainer makes on purpose (--slip), to prove that a campaign finds
 * them. A slip begins with the second round, so a job without faults has none. SLIP_COMMIT is
 * always on, because it does no harm before a recovery.
 */
#ifndef TESTS_CHAOS_SLIP_H
#define TESTS_CHAOS_SLIP_H

enum slip {
    SLIP_NONE,
    SLIP_STATE,  /* the state of rank 1 differs from that of other ranks */
    SLIP_SAMPLE, /* a batch uses only one of its samples */
    SLIP_COMMIT, /* two of three commits are reported but not made */
    SLIP_MEMORY, /* each round leaves a mapped memory */
    SLIP_CHILD,  /* each round leaves a child that is never reaped */
    SLIP_BUCKET, /* not of the trainer: S3 acknowledges each other COMPLETE and has none */
    /* not of the trainer: after each fault the log has a warning that names nothing, and none of
     * the driver's own */
    SLIP_NAMELESS,
    /* not of the trainer: after each fault the log has a warning about the first host */
    SLIP_ACCUSE,
    SLIP_COUNT
};

/* The words for --slip of the chaos trainer, and of the campaign, which passes the slip on; ends in
 * NULL. */
extern const char *const slip_names[SLIP_COUNT + 1];

/* The trainer calls this when a round begins. Leaks a memory or a child, if the slip asks for
 * that. */
void slip_leave(enum slip slip);

#endif
