/*
 * processes.h: the members of a round as processes, and the test that starts them. The test and
 * each member exchange single letters over a socket (talk), and all share some memory.
 *
 *     processes_share ──► processes_fork ──► letters to and fro ──► processes_end
 */
#ifndef TESTS_COLL_PROCESSES_H
#define TESTS_COLL_PROCESSES_H

#include "base/err.h"

#include <sys/types.h>

#define PROCESSES_MAX         17
#define PROCESSES_CONTACT_MAX 160

/* Which host each rank pretends to be on: 0, 1, ... */
struct processes_layout {
    uint32_t size;
    uint8_t host[PROCESSES_MAX];
};

/* Writes the hosts as letters: "aabbb". */
void processes_layout_show(const struct processes_layout *layout, char text[PROCESSES_MAX + 1]);

struct processes_member {
    pid_t pid; /* 0: the process is gone */
    int talk;
};

struct processes {
    uint32_t size;
    struct processes_member members[PROCESSES_MAX];
};

/* Zeroed memory that the test shares with all processes it forks from here on. Aborts when there is
 * none. */
void *processes_share(size_t bytes);
void processes_unshare(void *share, size_t bytes);

/* Each process runs be(), ends with its result as exit code, and dies when the test dies. plainly:
 * it exits as a program does, so that leaks are reported. false: a process could not be made. */
typedef int processes_fn(uint32_t rank, int talk, void *arg);
bool processes_fork(struct processes *processes, uint32_t size, bool plainly, processes_fn *be,
                    void *arg);

/* Waits at most timeout_us for the process to end by itself. -1: it has not ended; else its wait
 * status. */
int processes_reap(struct processes *processes, uint32_t rank, int64_t timeout_us);
void processes_kill(struct processes *processes, uint32_t rank); /* kills and reaps one process */
/* kills and reaps all processes that are left */
void processes_end(struct processes *processes);

bool processes_say(int talk, char letter);

/* The next letter; 0: the other side is gone, or has sent nothing for timeout_us. */
char processes_hear(int talk, int64_t timeout_us);

#endif
