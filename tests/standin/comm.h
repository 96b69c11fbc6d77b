/*
 * comm.h: a communicator of the stand-in of NCCL, among its own files.
 *
 * It has a thread, which does what calls only begin: it meets the others, launches what was asked
 * for, and waits for the end of what was revoked. Until that is done the communicator is "in
 * progress", and no other call may be made on it.
 */
#ifndef TESTS_STANDIN_COMM_H
#define TESTS_STANDIN_COMM_H

#include "gpu/nccl.h"
#include "tests/standin/driver.h"
#include "tests/standin/meeting.h"
#include "tests/standin/numbers.h"

#include <pthread.h>
#include <stdatomic.h>

/* The entry points, as in inside.h. */
#define ENTRY(name, symbol, parameters) STANDIN_EXPORT int nc_##name parameters __asm__(symbol);
#ifdef STANDIN_OLD_NCCL
#define LACKED(name, symbol, parameters)
NCCL_CALLS(ENTRY, LACKED)
#else
NCCL_CALLS(ENTRY, ENTRY)
#endif
#undef ENTRY
STANDIN_EXPORT const char *nc_result_text(int code) __asm__("ncclGetErrorString");
STANDIN_EXPORT const char *nc_last_error(struct ncclComm *comm) __asm__("ncclGetLastError");

#define COMM_OPS_MAX 16 /* made by ncclRedOpCreatePreMulSum */
#define COMM_OP_BASE 16 /* their numbers begin here */

struct kernel; /* kernel.h */

enum job { JOB_NONE, JOB_JOIN, JOB_LAUNCH };

struct ncclComm {
    struct ncclComm *next; /* of all of this process */
    int rank, size;
    struct CUctx_st *context;
    struct meeting *meeting;
    struct nccl_id id;
    struct ncclComm *parent;     /* of one that is made by shrinking */
    int parent_first;            /* that one's member who makes the id */
    unsigned losses;             /* of the device, when it was made */
    atomic_int inside;           /* threads in a call */
    _Atomic int64_t break_at_us; /* by revoke or abort: from then on what waits ends */

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t news;
    pthread_t thread;
    enum job job;
    bool revoking, ending;
    int state;               /* NCCL_IN_PROGRESS, NCCL_OK, or what has happened to it */
    bool ready;              /* it has been */
    bool revoked;            /* for ever */
    struct kernel *kernel;   /* to be launched */
    unsigned running;        /* kernels that are queued or run */
    unsigned children;       /* that find each other by it */
    enum standin_what fault; /* in joining */
    int64_t slow_us;
    struct {
        bool taken;
        int type;
        struct reduction reduction;
    } ops[COMM_OPS_MAX];

    bool connected;         /* of its thread */
    uint64_t pieces, calls; /* of the stream's thread, which runs one kernel after the other */
};

/* ---- calls.c --------------------------------------------------------------------------------- */

/* A call on it begins, and ends; or misuse. abort: it may be another thread than that of the
 * device.
 */
void comm_enter(struct ncclComm *comm, bool abort, const char *call);
void comm_leave(struct ncclComm *comm, bool abort);
/* The same for a device: one thread makes all calls of NCCL for it, but for aborts. */
void device_enter(const struct CUctx_st *context, const char *call);
void device_leave(const struct CUctx_st *context);
int comm_note(int code, const char *text); /* for ncclGetLastError; returns the code */

/* ---- comm.c ---------------------------------------------------------------------------------- */

bool comm_is_known(const struct ncclComm *comm);
/* 0, or what a call that wants it ready returns. */
int comm_ready(struct ncclComm *comm, const char *call);
void comm_launch(struct kernel *kernel); /* given; the communicator is in progress then */
void comm_abort_all(struct ncclComm **comms, size_t count);
/* Ends what runs of it, and waits until it has ended. */
void comm_quiet(struct ncclComm *comm);
/* One that finds its members by their old communicator; first makes the new id. */
struct ncclComm *comm_make_child(struct ncclComm *parent, int first, int size, int rank,
                                 const struct nccl_config *config);

bool comm_is_broken(const struct ncclComm *comm);
bool comm_is_lost(const struct ncclComm *comm); /* with its device */
/* Until this is over, or until it is broken; true: it is broken. */
bool comm_delay(struct ncclComm *comm, int64_t us);
#define COMM_EVER INT64_C(1000000000000)

#endif
