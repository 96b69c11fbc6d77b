/*
 * nccl_team.h: the members of a communicator as threads of a test, each with a device of the
 * stand-in (fake_gpu.h), a stream and some memory.
 */
#ifndef TESTS_LIB_NCCL_TEAM_H
#define TESTS_LIB_NCCL_TEAM_H

#include "gpu/device.h"
#include "gpu/nccl.h"
#include "tests/lib/test.h"

#include <pthread.h>

#define TEAM_MAX   4
#define TEAM_BYTES (1U << 20)

struct team_member {
    const struct nccl *nccl;
    const struct cuda *cuda;
    const struct gpu_device *device;
    int rank, size;
    struct CUstream_st *stream;
    struct ncclComm *comm; /* NULL: the member has aborted it */
    char *in, *out;        /* device memory, TEAM_BYTES each */
    /* in and out at addresses that the host can use */
    char *in_seen, *out_seen;
    const char *wrong; /* the condition that did not hold; NULL: none */
    int wrong_line;
    void *arg;
    struct nccl_id id;
    bool unmade; /* true: the member makes the communicator itself */
};

typedef void team_fn(struct team_member *member);

/* The condition must hold on this member; otherwise its act ends here. */
#define TEAM_CHECK(member, condition)        \
    do {                                     \
        if (!(condition)) {                  \
            (member)->wrong = #condition;    \
            (member)->wrong_line = __LINE__; \
            return;                          \
        }                                    \
    } while (0)

/* Runs act on every member with a communicator that is ready. Then frees everything, and checks
 * that nothing is left. */
void team_run(struct test *t, int size, team_fn *act, void *arg);
/* the communicator is not made before act */
void team_run_unmade(struct test *t, int size, team_fn *act, void *arg);

/* A test case that is one run of a team. */
#define TEAM_CASE(name, size, act)    \
    TEST_FLAGS(name, TEST_NO_TORTURE) \
    {                                 \
        team_run(t, size, act, NULL); \
    }

int team_init(struct team_member *member); /* calls ncclCommInitRankConfig */
/* the state of the communicator, as soon as it is not "in progress" */
int team_settled(struct team_member *member);
/* Waits until the call that has returned this code has ended, on the host and in the stream. 0, or
 * a code. */
int team_ended(struct team_member *member, int code);
int team_abort(struct team_member *member);

/* Waits until all members are here (a barrier). */
void team_meet(struct team_member *member);

#endif
