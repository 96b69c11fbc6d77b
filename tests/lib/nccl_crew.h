/*
 * nccl_crew.h: the members of a communicator as threads of a test, each with a device of the
 * stand-in (fake_gpu.h), a stream and some memory.
 */
#ifndef TESTS_LIB_NCCL_CREW_H
#define TESTS_LIB_NCCL_CREW_H

#include "gpu/device.h"
#include "gpu/nccl.h"
#include "tests/lib/test.h"

#include <pthread.h>

#define CREW_MAX   4
#define CREW_BYTES (1U << 20)

struct crew_member {
    const struct nccl *nccl;
    const struct cuda *cuda;
    const struct gpu_device *device;
    int rank, size;
    struct CUstream_st *stream;
    struct ncclComm *comm; /* the member may abort it, and say so by NULL */
    char *in, *out;        /* device memory, of CREW_BYTES each */
    char *in_seen, *out_seen;
    const char *wrong; /* what did not hold */
    int wrong_line;
    void *arg;
    pthread_t thread;
    struct nccl_id id;
    bool unmade; /* the member makes the communicator itself */
};

typedef void crew_fn(struct crew_member *member);

/* What must hold of one; it returns otherwise. */
#define CREW_CHECK(member, condition)        \
    do {                                     \
        if (!(condition)) {                  \
            (member)->wrong = #condition;    \
            (member)->wrong_line = __LINE__; \
            return;                          \
        }                                    \
    } while (0)

/* Runs play on every member, with a communicator that is ready; then all is given back, and
 * counted.
 */
void crew_run(struct test *t, int size, crew_fn *play, void *arg);
void crew_run_unmade(struct test *t, int size, crew_fn *play, void *arg); /* without one */

int crew_init(struct crew_member *member);    /* as ncclCommInitRankConfig */
int crew_settled(struct crew_member *member); /* the state once it is not in progress any more */
/* What the call has given, then its end on the host and in the stream; 0, or what went wrong. */
int crew_ended(struct crew_member *member, int code);
int crew_abort(struct crew_member *member);

/* All members of this process wait for each other here. */
void crew_meet(struct crew_member *member);

#endif
