/*
 * comm.h: a communicator of the stand-in of NCCL. Private to the files of that stand-in.
 *
 * A communicator has a thread, which does what the calls only begin: it connects to the other
 * members, launches the operations, and waits for the end of what was revoked. Until the thread is
 * done the communicator is "in progress", and no other call may be made on it.
 */
#ifndef TESTS_STANDIN_COMM_H
#define TESTS_STANDIN_COMM_H

#include "gpu/nccl.h"
#include "tests/standin/driver.h"
#include "tests/standin/meeting.h"
#include "tests/standin/numbers.h"

#include <pthread.h>
#include <stdatomic.h>

/* The entry points, declared as in driver_internal.h. */
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

#define COMM_OPS_MAX 16 /* the most operators that ncclRedOpCreatePreMulSum makes */
#define COMM_OP_BASE 16 /* the number of the first such operator */

struct kernel; /* kernel.h */

enum job { JOB_NONE, JOB_JOIN, JOB_LAUNCH };

struct ncclComm {
    struct ncclComm *next; /* in the list of all communicators of this process */
    int rank, size;
    struct CUctx_st *context;
    struct meeting *meeting;
    struct nccl_id id;
    struct ncclComm *parent;     /* for one that was made by shrinking */
    int parent_first;            /* the parent's member that makes the id */
    unsigned losses;             /* losses of the device when the communicator was made */
    atomic_int inside;           /* threads that are in a call on it */
    _Atomic int64_t break_at_us; /* set by revoke or abort: from this time on every wait ends */

    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t news;
    pthread_t thread;
    enum job job;
    bool revoking, ending;
    int state;             /* NCCL_IN_PROGRESS, NCCL_OK, or the error that it has */
    bool ready;            /* true: it was ready at some time */
    bool revoked;          /* never false again */
    struct kernel *kernel; /* the next kernel to be launched */
    unsigned running;      /* kernels that are queued or run */
    /* children made so far; the number by which the members of a child find each other */
    unsigned children;
    enum standin_what fault; /* the fault that happens while it joins */
    int64_t slow_us;
    struct {
        bool taken;
        int type;
        struct reduction reduction;
    } ops[COMM_OPS_MAX];

    bool connected; /* used only by its own thread */
    /* used only by the stream's thread, which runs one kernel after the other */
    uint64_t pieces, calls;
};

/* ---- calls.c --------------------------------------------------------------------------------- */

/* Begin and end a call on the communicator, and end the process on misuse. abort: an abort may come
 * from another thread than the device's. */
void comm_enter(struct ncclComm *comm, bool abort, const char *call);
void comm_leave(struct ncclComm *comm, bool abort);
/* The same for a device: one thread makes all calls of NCCL for a device, except aborts. */
void device_enter(const struct CUctx_st *context, const char *call);
void device_leave(const struct CUctx_st *context);
/* keeps the text for ncclGetLastError; returns the code */
int comm_note(int code, const char *text);

/* ---- comm.c ---------------------------------------------------------------------------------- */

bool comm_is_known(const struct ncclComm *comm);
/* 0, or the code that a call returns which needs a ready communicator. */
int comm_ready(struct ncclComm *comm, const char *call);
/* the kernel is given away; the communicator is then in progress */
void comm_launch(struct kernel *kernel);
void comm_abort_all(struct ncclComm **comms, size_t count);
/* Ends the communicator's running work, and waits until it has ended. */
void comm_quiet(struct ncclComm *comm);
/* Makes a communicator whose members find each other by their old one. `first` is the old rank of
 * the member that makes the new id. */
struct ncclComm *comm_make_child(struct ncclComm *parent, int first, int size, int rank,
                                 const struct nccl_config *config);

bool comm_is_broken(const struct ncclComm *comm);
bool comm_is_lost(const struct ncclComm *comm); /* true: its device is lost */
/* Waits this long, or until the communicator is broken; true: it is broken. */
bool comm_delay(struct ncclComm *comm, int64_t us);
#define COMM_EVER INT64_C(1000000000000)

#endif
