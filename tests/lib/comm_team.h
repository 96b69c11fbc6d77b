/*
 * comm_team.h: members of one communicator in this process: each is a thread with an NCCL thread
 * (nccl_thread.h) and a device of the stand-in.
 */
#ifndef TESTS_LIB_COMM_TEAM_H
#define TESTS_LIB_COMM_TEAM_H

#include "collectives/nccl/nccl_thread.h"
#include "tests/lib/test.h"
#include "tests/lib/threads.h"

#include <stdatomic.h>

#define COMM_TEAM_MAX     4
#define COMM_TEAM_LONG_US (100 * INT64_C(1000000)) /* longer than any operation of a test takes */

struct comm_team;
typedef void comm_act_fn(struct comm_team *team, uint32_t rank);

struct comm_team {
    uint32_t size;
    const struct cuda *cuda;
    const struct gpu_device *devices[COMM_TEAM_MAX];
    struct nccl_thread *threads[COMM_TEAM_MAX];
    struct comm *comms[COMM_TEAM_MAX];
    int rc[COMM_TEAM_MAX];
    struct hvd_err err[COMM_TEAM_MAX];
    bool away[COMM_TEAM_MAX]; /* true: this member does not act */
    comm_act_fn *act;
    const void *arg; /* an argument for the acts */
    struct threads acting;
    atomic_uint stuck[COMM_TEAM_MAX]; /* how often each member was told that its device is stuck */
};

/* From this call on the stand-ins are loaded, without faults. bound_us is the time limit of a
 * revoke and of an abort (0: COMM_TEAM_LONG_US). team->size is 0 while nothing is open. */
int comm_team_open(struct comm_team *team, uint32_t size, int64_t bound_us);
void comm_team_close(struct comm_team *team); /* frees its communicators too */
/* uses an NCCL without revoke; call it before the first open */
void comm_team_use_old(void);

/* Both start a communicator of all members; comm_team_make also waits until each member is ready.
 */
int comm_team_begin(struct comm_team *team);
int comm_team_make(struct comm_team *team);
void comm_team_part(struct comm_team *team);
void comm_team_revoke(struct comm_team *team);

/* Each member that is not away runs act, and stores its result in rc. A member that fails revokes
 * the communicators of all members, as a round does. */
void comm_team_start(struct comm_team *team, comm_act_fn *act);
/* false: some members still act */
bool comm_team_await_until(struct comm_team *team, int64_t until_us);
void comm_team_await(struct comm_team *team);
void comm_team_run(struct comm_team *team, comm_act_fn *act);

/* Copies to and from memory of a member's device (fake_gpu_alloc). */
int comm_team_put(struct comm_team *team, uint32_t rank, void *to, const void *from, size_t bytes);
int comm_team_get(struct comm_team *team, uint32_t rank, void *to, const void *from, size_t bytes);

#endif
