/*
 * standin.h: a CUDA driver and NCCL for machines without a GPU: two shared libraries with the entry
 * points that gpu/cuda.h and gpu/nccl.h name, found by the same dlopen path (HVD_CUDA_LIBRARY,
 * HVD_NCCL_LIBRARY). Never installed.
 *
 * What it is honest about, because bugs hide there:
 *   - device memory lies at addresses that the host must not touch: reading or writing it faults.
 *     The stand-in works on a second mapping of the same pages (standin_memory). It holds garbage
 *     until it is written, and after an operation that was broken off.
 *   - a stream is a thread that does one thing after the other, some time after it was queued;
 *     events and waits are real; the NULL stream waits for all blocking streams, and they for it.
 *   - what waits in the driver waits here: giving memory back (or unpinning it) until all that was
 *     queued is done; a copy from or to memory that is not pinned until that is.
 *   - a collective is a kernel that occupies its stream until every member has come, or for ever:
 *     nothing tells it that a peer has died. Revoke and abort end it, and nothing else.
 *   - what a member has brought to a collective is in its own buffers, and sent by its own threads:
 *     when it revokes or aborts its communicator before another has taken it, that one's kernel
 *     waits for ever, though the member's own has ended long ago.
 *   - communicators are non-blocking: a call has returned before its kernel is in the stream. The
 *     first collective is "in progress" until all members make theirs (connections are made then).
 *   - two members on one device are refused, unless NCCL_HOSTID tells them apart.
 *   - misuse is told: two threads in one communicator, or in calls for one device (but an abort); a
 *     call on one that is in progress; a stream that is used while one is launched in it; a group
 *     that is not ended; members that call for different things; host memory where the device's is
 *     wanted; memory that was freed. The process ends with a message, as a test is to fail there.
 * It is no model of speed, and what it promises about NCCL is read from NCCL's documents.
 *
 * Environment, read when the library is first used:
 *   HVD_STANDIN_DEVICES    how many there are (1); CUDA_VISIBLE_DEVICES is heeded
 *   HVD_STANDIN_HOST       the machine that they are in; devices of two have different UUIDs
 *   HVD_STANDIN_MEMORY_MB  of each device (256)
 *   HVD_STANDIN_NCCL       the version that it says it is, as a number (22809). The library
 *                          standin_nccl_old has no revoke, and no shrink (22105)
 *   HVD_STANDIN_FAULTS     faults, separated by blanks: see below
 */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <stddef.h>

struct CUstream_st;

/*
 * A fault is CALL[#N][@RANK]:WHAT[=VALUE]: at the N-th (from 1; otherwise at every) such call of
 * this process since the fault is there, on the member that has this rank in its communicator
 * (otherwise on all).
 *
 *   init:slow=MS       the communicator is ready so much later than it could be
 *   init:error         it fails, on this member alone: the others wait
 *   init:die           the process is killed in it
 *   init:hang          it is never ready
 *   collective:slow=MS the kernel begins so much later
 *   collective:late=MS it takes so much later what the others have brought: they may have ended
 *   collective:error   an asynchronous error (remote) while the kernel goes on waiting
 *   collective:hang    the kernel never ends by itself
 *   collective:die     the process is killed in the kernel
 *   collective:fail    the call itself returns an error (each of a group is one)
 *   revoke:slow=MS, revoke:hang (nothing ends), revoke:error (it returns one)
 *   abort:slow=MS, abort:hang (nothing ends, and it does not return)
 *   copy:fail          the call returns an error; copies between and within memories, and fills
 *   copy:slow=MS, copy:hang, copy:die     when its turn has come
 *   alloc:fail, pin:fail, event:fail (creating and recording), stream:fail
 *   device:lost        from here on every call of the driver returns an error, and kernels end: all
 *                      devices of the process are lost
 *   device:hang        every call of the driver waits until the faults are taken back
 */

/* What dlsym finds in the stand-in of the driver, for tests in this process (lib/fake_gpu.h). */

/* Adds faults; NULL clears them all and their counts. */
typedef void standin_faults_fn(const char *faults);
/* The host's view of device memory; NULL: it is none, or not allocated. */
typedef void *standin_memory_fn(const void *device_memory);
/* Managed memory, which both can reach, to be freed by cuMemFree. */
typedef void *standin_managed_fn(size_t bytes);
/* How many there are now of "memory", "streams", "events", "pinned", "communicators", "ids" (those
 * in use are forgotten when the next is made); for leaks. And of "staying": calls that wait because
 * of device:hang. */
typedef size_t standin_live_fn(const char *what);
/* A kernel of the test's own, run by the stream's thread in its turn. */
typedef void standin_run_fn(struct CUstream_st *stream, void (*run)(void *arg), void *arg);
typedef int standin_priority_fn(struct CUstream_st *stream);

#define STANDIN_FAULTS   "standin_faults"
#define STANDIN_MEMORY   "standin_memory"
#define STANDIN_MANAGED  "standin_managed"
#define STANDIN_LIVE     "standin_live"
#define STANDIN_RUN      "standin_run"
#define STANDIN_PRIORITY "standin_priority"

#endif
