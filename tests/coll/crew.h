/*
 * crew.h: the members of a round as processes of their own, and the test that started them. Between
 * the test and each of them is a line for single letters (talk), and memory that all share.
 *
 *     crew_share ──► crew_fork ──► letters to and fro ──► crew_end
 */
#ifndef TESTS_COLL_CREW_H
#define TESTS_COLL_CREW_H

#include "base/err.h"

#include <sys/types.h>

#define CREW_MAX         17
#define CREW_CONTACT_MAX 160

/* Which host each rank pretends to be on: 0, 1, ... */
struct crew_layout {
    uint32_t size;
    uint8_t host[CREW_MAX];
};

/* "aabbb" */
void crew_layout_show(const struct crew_layout *layout, char text[CREW_MAX + 1]);

struct crew_member {
    pid_t pid; /* 0: it is not there any more */
    int talk;
};

struct crew {
    uint32_t size;
    struct crew_member members[CREW_MAX];
};

/* Memory for the test and all that it forks from here on; zeroed. Aborts when there is none. */
void *crew_share(size_t bytes);
void crew_unshare(void *share, size_t bytes);

/* Each runs be, and ends with what it returns; plainly: as a program does (leaks are looked for).
 * It dies with the test. false: no process can be had. */
typedef int crew_fn(uint32_t rank, int talk, void *arg);
bool crew_fork(struct crew *crew, uint32_t size, bool plainly, crew_fn *be, void *arg);

/* Waits for its end by itself, at most so long. -1: it has not ended; else a wait status. */
int crew_reap(struct crew *crew, uint32_t rank, int64_t timeout_us);
void crew_kill(struct crew *crew, uint32_t rank); /* and reaps */
void crew_end(struct crew *crew);                 /* kills and reaps whoever is left */

bool crew_say(int talk, char letter);

/* The next letter; 0: the other side is gone, or has said nothing for so long. */
char crew_hear(int talk, int64_t timeout_us);

#endif
