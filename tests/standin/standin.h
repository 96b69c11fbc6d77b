/*
 * standin.h: a CUDA driver and NCCL for machines without a GPU: two shared libraries with the entry
 * points that gpu/cuda.h and gpu/nccl.h name, found by the same dlopen path (HVD_CUDA_LIBRARY,
 * HVD_NCCL_LIBRARY). Never installed.
 *
 * It behaves like a real driver in these points, because bugs hide there:
 *   - device memory lies at addresses that the host must not touch: reading or writing it faults.
 *     The stand-in works on a second mapping of the same pages (standin_memory). It holds garbage
 *     until it is written, and after an operation that was broken off.
 *   - a stream is a thread that does one thing after the other, some time after it was queued;
 *     events and waits are real; the NULL stream waits for all blocking streams, and they for it.
 *   - a call waits where the real driver waits: giving memory back (or unpinning it) until all
 *     queued work is done; a copy from or to memory that is not pinned until the copy is done.
 *   - a collective is a kernel that occupies its stream until every member has come, or for ever:
 *     nothing tells it that a peer has died. Revoke and abort end it, and nothing else.
 *   - what a member brings to a collective is in its own buffers, and is sent by its own threads.
 *     When a member revokes or aborts its communicator before another member has taken the bytes,
 *     that other member's kernel waits for ever, even if the first member's kernel has long ended.
 *   - communicators are non-blocking: a call has returned before its kernel is in the stream. The
 *     first collective is "in progress" until all members make theirs (connections are made then).
 *   - two members on one device are refused, unless NCCL_HOSTID tells them apart.
 *   - misuse ends the process with a message, so that a test fails there: two threads in one
 *     communicator, or in calls for one device (except an abort); a call on a communicator that
 *     is in progress; use of a stream while a kernel is launched in it; a group call without its
 *     end; members that call for different operations; host memory in place of device memory;
 *     memory that was freed.
 * It is no model of speed. Its promises about NCCL are those of NCCL's documents.
 *
 * Environment, read when the library is first used:
 *   HVD_STANDIN_DEVICES    number of devices (1); CUDA_VISIBLE_DEVICES is respected
 *   HVD_STANDIN_HOST       the machine of the devices; two machines have different UUIDs
 *   HVD_STANDIN_MEMORY_MB  of each device (256)
 *   HVD_STANDIN_NCCL       the version that the library reports, as a number (22809). The library
 *                          standin_nccl_old has no revoke, and no shrink (22105)
 *   HVD_STANDIN_FAULTS     faults, separated by blanks: see below
 */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <stddef.h>

struct CUstream_st;

/*
 * A fault is CALL[#N][@RANK]:WHAT[=VALUE]. It happens at the N-th such call of this process since
 * the fault was added (without N: at every call), on the member with this rank in its communicator
 * (without RANK: on every member).
 *
 *   init:slow=MS       the communicator becomes ready this much later
 *   init:error         it fails on this member alone; the other members wait
 *   init:die           the process is killed while the communicator is made
 *   init:hang          the communicator never becomes ready
 *   collective:slow=MS the kernel begins this much later
 *   collective:late=MS the kernel takes the other members' bytes this much later
 *   collective:held    the kernel takes them when the faults are cleared
 *   collective:error   an asynchronous error (remote) while the kernel goes on waiting
 *   collective:hang    the kernel never ends by itself
 *   collective:die     the process is killed in the kernel
 *   collective:fail    the call itself returns an error (each call of a group counts)
 *   revoke:slow=MS, revoke:hang (no work ends), revoke:error (the call returns an error)
 *   abort:slow=MS, abort:hang (no work ends, and the call does not return)
 *   copy:fail          the call returns an error; also for copies within a memory, and for fills
 *   copy:slow=MS, copy:hang, copy:die     when the stream's thread runs the copy
 *   alloc:fail, pin:fail, event:fail (creating and recording), stream:fail
 *   device:lost        from here on every call of the driver returns an error, and kernels end;
 *                      all devices of the process are lost. Streams and events are still destroyed
 *   device:hang        every call of the driver waits until the faults are cleared
 */

/* Symbols that dlsym finds in the stand-in of the driver, for tests in this process
 * (lib/fake_gpu.h). */

/* Adds faults; NULL clears them all and their counts. */
typedef void standin_faults_fn(const char *faults);
/* The host's address for device memory; NULL: the address is not device memory, or not allocated.
 */
typedef void *standin_memory_fn(const void *device_memory);
/* Managed memory, which the host and the device can use; cuMemFree frees it. */
typedef void *standin_managed_fn(size_t bytes);
/* The number of living "memory", "streams", "events", "pinned", "communicators", "ids" (ids in use
 * are forgotten when the next is made), for leak checks. "staying": calls that wait because of
 * device:hang. "collectives": those that this process has had a result of; the number only rises.
 */
typedef size_t standin_live_fn(const char *what);
/* Queues a function of the test in the stream; the stream's thread calls it. */
typedef void standin_run_fn(struct CUstream_st *stream, void (*run)(void *arg), void *arg);
typedef int standin_priority_fn(struct CUstream_st *stream);

#define STANDIN_FAULTS   "standin_faults"
#define STANDIN_MEMORY   "standin_memory"
#define STANDIN_MANAGED  "standin_managed"
#define STANDIN_LIVE     "standin_live"
#define STANDIN_RUN      "standin_run"
#define STANDIN_PRIORITY "standin_priority"

#endif
