/*
 * hvd.h: the public interface of the worker library, and its contract.
 *
 *     hvd_init();
 *     hvd_state *state = hvd_state_create();
 *     hvd_state_add_array(state, "weights", weights, count, HVD_FLOAT32);
 *     code = hvd_elastic_run(state, train, NULL);    train repeats: one step, hvd_state_commit
 *
 * Words that are used here:
 *     job              all workers that one command of hvd-elastic runs
 *     worker           one process of the job; it has a rank and runs this library
 *     round            one membership of the job: the workers that train together from one change
 *                      of the membership to the next. A worker of a round is a member of it
 *     commit           a copy of the training state to which a failed round goes back
 *     train            the program's work in one round: the function that hvd_elastic_run calls, or
 *                      what the program does from a hvd_elastic_next that returned 0 to the next
 *                      call of hvd_elastic_next. "Return a code from train" then means: pass the
 *                      code to hvd_elastic_next
 *     training thread  the thread that has called hvd_elastic_run, or the last hvd_elastic_next
 *
 * A function returns an int unless its comment says otherwise:
 *     0          the call succeeded
 *     positive   not an error, but news (HVD_HOSTS_UPDATED, HVD_LEFT, ...) that the program acts on
 *     negative   an error. hvd_strerror() turns a code into a sentence; hvd_last_error() names the
 *                cause and the remedy of this one error
 *
 * The library never exits, aborts or installs a signal handler, and it prints nothing, with two
 * exceptions, both on standard error. A bug that could cost the training state (in the library, or
 * a wrong pointer to hvd_free) is reported, and ends the process. A timeline that cannot be
 * written is reported.
 *
 * The library's threads block all signals and end in hvd_shutdown. A program that was started
 * without hvd-elastic is a job of one worker, in which every function works.
 *
 * Any thread may call a function unless its comment says "Training thread": from another thread
 * such a function returns HVD_E_STATE. In a process that was forked after hvd_init every function
 * returns HVD_E_STATE.
 *
 * Usable from C11 and C++11.
 */
#ifndef HVD_HVD_H
#define HVD_HVD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HVD_API __attribute__((visibility("default")))
#else
#define HVD_API
#endif

#define HVD_VERSION_MAJOR 0
#define HVD_VERSION_MINOR 1
#define HVD_VERSION_PATCH 0

/* The codes that functions of the library return. The numbers are part of the contract: a code
 * is never renumbered or reused. */
enum hvd_code {
    HVD_OK = 0,

    HVD_HOSTS_UPDATED = 1, /* the membership changes here: return this code from train */
    HVD_LEFT = 2,          /* this worker was asked to leave and has left: end the process */
    HVD_DONE = 3,          /* other workers have finished the job: return this code from train */
    HVD_EPOCH_END = 4,     /* all samples of the epoch are used; the next batch begins a new one */
    HVD_FINISHED = 5,      /* the training is done: hvd_elastic_next says so */

    HVD_E_NOMEM = -1,        /* memory could not be allocated */
    HVD_E_INVAL = -2,        /* an argument or an input is wrong */
    HVD_E_LIMIT = -3,        /* a documented limit would be exceeded */
    HVD_E_STATE = -4,        /* the call is not allowed at this moment */
    HVD_E_NOTFOUND = -5,     /* what the caller asked for does not exist */
    HVD_E_EXISTS = -6,       /* the name is already in use */
    HVD_E_IO = -7,           /* reading or writing failed */
    HVD_E_FULL = -8,         /* no space is left */
    HVD_E_DENIED = -9,       /* permission or authentication was refused */
    HVD_E_BUSY = -10,        /* another thread or process uses it */
    HVD_E_CORRUPT = -11,     /* stored data is damaged */
    HVD_E_VERSION = -12,     /* the other side speaks another version */
    HVD_E_PROTO = -13,       /* the other side broke the protocol */
    HVD_E_TIMEOUT = -14,     /* a time limit has passed */
    HVD_E_REVOKED = -15,     /* the round was revoked: return this code from train */
    HVD_E_MISMATCH = -16,    /* two workers disagree about what should be equal */
    HVD_E_LOST = -17,        /* the driver, the agent or a peer is gone */
    HVD_E_UNSUPPORTED = -18, /* not available in this build or on this machine */
    HVD_E_INTERNAL = -19,    /* a bug of hvd-elastic; please report it */
    HVD_E_EXCEPTION = -20    /* the program itself has raised an exception */
};

/* Returns a short sentence for any code, also for news. The text is never NULL; it is static, so
 * do not free it. */
HVD_API const char *hvd_strerror(int code);

/* Returns the error text of the calling thread's last call: first the culprit, last the remedy. "":
 * the call has succeeded. Functions that only ask (as hvd_rank) and functions that return nothing
 * leave the text as it is. The text is valid until the thread's next call. */
HVD_API const char *hvd_last_error(void);

/* Returns the version of the library as "major.minor.patch". The text is static, so do not free
 * it. */
HVD_API const char *hvd_version(void);

/* ---- joining the job --------------------------------------------------------------------------
 *
 * hvd_init connects to the agent that started this process: one round trip to a process of this
 * host; it does not wait for other workers. A second call changes nothing.
 *     HVD_E_LOST      no agent answers at the address in HVD_AGENT
 *     HVD_E_DENIED    the agent did not start this process, or the process that listens at that
 *                     address belongs to another user
 *     HVD_E_INVAL     HVD_AGENT or HVD_INCARNATION in the environment is malformed; or mpirun,
 *                     horovodrun, srun or torchrun started this process as one of several, without
 *                     hvd-elastic, and HVD_ALONE is not 1
 *     HVD_E_TIMEOUT, HVD_E_NOMEM
 *
 * hvd_shutdown disconnects and ends the library's threads. During hvd_elastic_run it does nothing.
 * A process may end without it.
 *
 * hvd_is_initialized: 1 from a successful hvd_init to hvd_shutdown, else 0; 0 in a process that was
 * forked after hvd_init. */
HVD_API int hvd_init(void);
HVD_API void hvd_shutdown(void);
HVD_API int hvd_is_initialized(void);

/* The place of this worker: its ranks and the sizes that belong to them. HVD_E_STATE before
 * hvd_init. Before the first reset callback these numbers are provisional: the driver expected
 * them when it launched this worker. From then on they are the numbers of the round, consistent
 * on all members, and change only between two calls of train.
 *     rank, size              among all members, 0 to size - 1
 *     local_rank, local_size  among the members on this host
 *     cross_rank, cross_size  among the members with this local rank, one for each host */
HVD_API int hvd_rank(void);
HVD_API int hvd_size(void);
HVD_API int hvd_local_rank(void);
HVD_API int hvd_local_size(void);
HVD_API int hvd_cross_rank(void);
HVD_API int hvd_cross_size(void);

/* Returns the slot of the host in which this worker runs; 0 in a job without hvd-elastic. The
 * slot never changes, and no other live worker of the host has the same slot, so choose a GPU by
 * this number. Do not choose it by the local rank, which changes with the membership and is
 * provisional before the first round. HVD_E_STATE before hvd_init. */
HVD_API int hvd_slot(void);

/* Return the smallest and the largest number of workers with which the job trains (options
 * --min-np and --max-np). These numbers do not change with the membership, so learning rates and
 * shares of data can be computed from them. With --max-np unlimited hvd_max_np is 131072. */
HVD_API int hvd_min_np(void);
HVD_API int hvd_max_np(void);

/* Returns the number of the running round; 0 before the first round. A later round has a higher
 * number, but some numbers are skipped. */
HVD_API uint64_t hvd_round(void);

/* ---- collectives ------------------------------------------------------------------------------
 *
 * Allowed inside train only (else HVD_E_STATE), from any thread, one call at a time (else
 * HVD_E_BUSY). All members of the round make the same calls in the same order with the same
 * counts, types, ops and roots (else HVD_E_MISMATCH); calls of different groups count in this
 * order too. A call returns when its result is ready on the caller. A result is the same on every
 * rank, bit for bit.
 *
 * HVD_E_REVOKED: the round is over because a member has died or failed. The output buffers are
 * undefined. Return this code from train: all members go back to the last commit. HVD_E_INVAL (the
 * arguments are wrong) and HVD_E_NOMEM end the round for all members.
 *
 * After any failure all further collectives, commits, checks and batches of the round return
 * HVD_E_REVOKED. After a commit or a check has returned news, collectives, commits and batches
 * return HVD_E_STATE. */
typedef enum hvd_dtype {
    HVD_UINT8 = 0,
    HVD_INT8 = 1,
    HVD_INT32 = 2,
    HVD_INT64 = 3,
    HVD_FLOAT16 = 4,
    HVD_BFLOAT16 = 5,
    HVD_FLOAT32 = 6,
    HVD_FLOAT64 = 7,
    HVD_INT16 = 8,
    HVD_UINT16 = 9,
    HVD_UINT32 = 10,
    HVD_UINT64 = 11,
    HVD_BOOL = 12 /* one byte: 0 is false, any other value is true */
} hvd_dtype;

typedef enum hvd_op {
    HVD_SUM = 0,
    HVD_AVERAGE = 1, /* the sum divided by the size; integers are rounded towards zero */
    HVD_MIN = 2,
    HVD_MAX = 3,
    HVD_PRODUCT = 4,
    HVD_AND = 5, /* of each bit of an integer; of an HVD_BOOL as a whole */
    HVD_OR = 6,
    HVD_XOR = 7
} hvd_op;

/* Floating types have no HVD_AND, HVD_OR and HVD_XOR; HVD_BOOL has no HVD_SUM, HVD_AVERAGE and
 * HVD_PRODUCT: HVD_E_INVAL. The least HVD_BOOL (HVD_MIN) of several is their HVD_AND, the greatest
 * (HVD_MAX) is their HVD_OR. Of zeros and ones a reduction makes zeros and ones; another true byte
 * may stay as it is. Sums and products of integers wrap around. */

/* Reduces (for example adds up) element i of `in` over all ranks, for each i below count, and
 * writes the results to `out` on all ranks. in == out is allowed; otherwise in and out must not
 * overlap. */
HVD_API int hvd_allreduce(const void *in, void *out, size_t count, hvd_dtype type, hvd_op op);

/* Copies count elements from `buf` of the rank `root` to `buf` of all other ranks. */
HVD_API int hvd_broadcast(void *buf, size_t count, hvd_dtype type, int root);

/* Gives the elements of all ranks to all ranks, in rank order. `counts` says how many elements
 * each rank contributes: it has size numbers, is equal on all ranks, and counts[rank] == count.
 * counts NULL: each rank contributes `count` elements. `in` may be this rank's own part of
 * `out`; otherwise in and out must not overlap. */
HVD_API int hvd_allgather(const void *in, size_t count, void *out, const size_t *counts,
                          hvd_dtype type);

/* Reduces the elements of all ranks and gives each rank its part of the result, `count`
 * elements; rank 0 gets the first part. `in` holds the parts of all ranks. `counts` says how
 * many elements each rank gets: it has size numbers, is equal on all ranks, and counts[rank] ==
 * count. counts NULL: each rank gets `count` elements. in and out must not overlap. */
HVD_API int hvd_reducescatter(const void *in, void *out, size_t count, const size_t *counts,
                              hvd_dtype type, hvd_op op);

/* Sends count elements to each rank and receives count elements from each rank, both in rank
 * order. in and out must not overlap. */
HVD_API int hvd_alltoall(const void *in, void *out, size_t count, hvd_dtype type);

/* An allgather and an alltoall for ranks that do not know how much the other ranks give: the
 * call tells each rank how much it gets.
 *     hvd_allgather_ragged  count: what this rank gives to all ranks; each rank chooses its own
 *     hvd_alltoall_ragged   counts: how many elements of in go to each rank, size numbers
 * *ret_counts gets size numbers: how many elements came from each rank. *ret_out gets the
 * elements, in rank order, in host memory that the caller gives to hvd_free; NULL: no element
 * came. A program that wants the result in its own memory or in memory of a GPU uses hvd_call
 * with `received`. After a failure *ret_out and *ret_counts are untouched.
 *
 * HVD_E_LIMIT: this rank gives more than 1 TiB (LIMIT_RAGGED_BYTES); HVD_E_NOMEM: there is no
 * memory for the result. Both end the round for all members. */
HVD_API int hvd_allgather_ragged(const void *in, size_t count, hvd_dtype type, void **ret_out,
                                 size_t *ret_counts);
HVD_API int hvd_alltoall_ragged(const void *in, const size_t *counts, hvd_dtype type,
                                void **ret_out, size_t *ret_counts);

/* A barrier: a call returns when all ranks have made this call. */
HVD_API int hvd_barrier(void);

/* Tells the other ranks that this rank has no more data. Until all ranks have called hvd_join, a
 * joined rank takes part, inside this call, in the allreduces and barriers of the other ranks, and
 * gives neutral elements (0 to a sum, 1 to a product, all bits to HVD_AND); HVD_AVERAGE still
 * divides by the size. Meanwhile other collectives are refused on all ranks (HVD_E_MISMATCH).
 * *ret_last (ret_last may be NULL) gets the rank that called hvd_join last. After the join,
 * broadcast from that rank what must be equal on all ranks.
 *
 * A joined rank makes no other call, also not in a group. All ranks must make equally many commits
 * and checks, so no rank commits or checks after the first rank has joined and before the last rank
 * has joined: commit while all ranks still have data, and once more after the join. */
HVD_API int hvd_join(int *ret_last);

/* ---- collectives as a struct --------------------------------------------------------------------
 *
 * All options of a collective in one struct: set the fields that are needed and leave the rest 0.
 *
 *     hvd_call call = { .kind = HVD_ALLREDUCE, .in = grads, .out = grads, .count = n,
 *                       .type = HVD_BFLOAT16, .op = HVD_AVERAGE };
 *     hvd_start(&call, &request);     ...other work...     hvd_wait(request);
 */
typedef enum hvd_kind {
    HVD_ALLREDUCE = 1,
    HVD_BROADCAST = 2,
    HVD_ALLGATHER = 3,
    HVD_REDUCESCATTER = 4,
    HVD_ALLTOALL = 5,
    HVD_BARRIER = 6,
    HVD_JOIN = 7,
    HVD_ALLGATHER_RAGGED = 9,
    HVD_ALLTOALL_RAGGED = 10,
    /* To or from one member of the group, `root`. These three have no function of their own.
     * `counts` means the same as for an allgather and a reducescatter; in and out must not overlap,
     * but in == out is allowed in a reduce.
     *     HVD_REDUCE   as an allreduce, but only the root gets the result, and needs an out
     *     HVD_GATHER   as an allgather, but only the root gets the elements, and needs an out
     *     HVD_SCATTER  the root gives each member its part of `in`, in rank order; each member gets
     *                  `count` elements. Other members than the root need no in */
    HVD_REDUCE = 11,
    HVD_GATHER = 12,
    HVD_SCATTER = 13,
    /* Between two ranks, without the others: HVD_SEND gives `count` elements of `in` to the rank
     * `root`, HVD_RECV gets `count` elements into `out` from the rank `root`, in host memory. See
     * "sends and receives" at hvd_start. These two have no function of their own. */
    HVD_SEND = 14,
    HVD_RECV = 15
} hvd_kind;

/* A group: some of the ranks, which make collectives without the other ranks. See
 * hvd_group_create. */
typedef struct hvd_group hvd_group;

typedef struct hvd_piece { /* one of several buffers; `count` is equal on all ranks */
    const void *in;
    void *out;
    size_t count;
} hvd_piece;

/* Says where the result of a ragged collective goes. The struct must stay valid until the
 * request is done. */
typedef void *hvd_memory_fn(void *arg, size_t bytes);
typedef struct hvd_received {
    /* Returns memory for the result: on the GPU if `in` is there (also when this rank gives
     * nothing), else on the host. A result of NULL says that there is no memory, and ends the
     * round. The function is not called when no element came. The thread that makes the
     * collective calls it; for a started call that is a thread of the library. The function must
     * not call a collective. After a failure the memory still belongs to the program, and `data`
     * does not point to it. If `memory` is NULL, the library allocates with hvd_alloc and the
     * caller frees; this is allowed only when `in` is in host memory. */
    hvd_memory_fn *memory;
    void *arg;
    size_t *counts; /* the caller's memory; gets, for each member of the group, how many elements
                       came from it */
    /* gets the address of the result; NULL: no element came. Untouched after a failure */
    void *data;
} hvd_received;

typedef struct hvd_call {
    hvd_kind kind;
    hvd_group *group; /* NULL: the call is for all ranks */
    hvd_dtype type;
    hvd_op op;
    /* for floating types only: factors before and after the reduction; 0 means 1 */
    double prescale, postscale;
    /* for a broadcast, reduce, gather or scatter: the rank of the root in the round, not in the
     * group; for a send or a receive: the rank of the other side */
    int root;
    const void *in; /* unused in a broadcast, which has only out */
    void *out;
    size_t count;
    /* The numbers mean the same as in the functions above; item i is for the member with rank i
     * of the group. In an alltoall, `counts` says how many elements go to each member, and
     * `out_counts` says how many elements come from each member. */
    const size_t *counts, *out_counts;
    /* For an allreduce or a broadcast of several buffers in one call: the buffers; `in`, `out` and
     * `count` are then not used. In a broadcast leave `in` of each piece NULL. The call takes about
     * as long as one buffer of the total size, and the caller does not have to pack the buffers. */
    const hvd_piece *pieces;
    size_t piece_count;
    int *last;              /* for HVD_JOIN: gets the rank that joined last; may be NULL */
    hvd_received *received; /* for HVD_ALLGATHER_RAGGED and HVD_ALLTOALL_RAGGED, instead of `out` */
    /* Not 0: a call on GPU memory goes through host memory, even where NCCL could carry it. The
     * value must be equal on all ranks. A call on host memory ignores it. */
    int by_host;
    /* A number that the program chooses, for example a hash of a parameter's name and shape. The
     * members compare it as they compare types and counts: HVD_E_MISMATCH names the tags of both
     * sides. In a join it is not used. */
    uint64_t tag;
} hvd_call;

/* Makes the call and waits for its result. */
HVD_API int hvd_run(const hvd_call *call);

/* Starts the call and returns at once: a thread of the library makes the started calls in the order
 * in which they were started. The struct is copied; its counts, pieces and buffers are not copied,
 * and must stay valid until the request is done. A collective that is not started but waits
 * (hvd_run) is made after all started calls. When a request fails, later requests do nothing and
 * end with HVD_E_REVOKED. Wait for all requests before train returns: the end of the round ends
 * pending requests with HVD_E_REVOKED. HVD_E_LIMIT: there are 16384 requests for which hvd_wait has
 * not been called.
 *
 * Small allreduces that are started one after another may be fused, that is, made as one operation,
 * which begins when no more can be added to it (docs/embedding.md, "Fusion"). Therefore hvd_wait
 * and hvd_test belong to the order of calls that is the same on all members (else HVD_E_MISMATCH).
 * With --fusion-threshold-mb 0 no calls are fused, and any thread may call hvd_wait and hvd_test at
 * any time.
 *
 * Sends and receives are not in this order of calls: no rank but the two takes part, and neither a
 * collective nor another transfer waits for them. The n-th send of rank a to rank b is received by
 * the n-th receive at rank b from rank a, of any group; counts, types and tags must be equal (else
 * HVD_E_MISMATCH, with both sides in words). A send may wait until its receive is called, for as
 * long as that takes. Transfers that are started with hvd_start never block each other, or a
 * collective; with hvd_run or hvd_wait a rank waits for the other side alone, and a deadlock comes
 * only from ranks that wait for each other in a circle. A started small allreduce may not have
 * begun, because it may still be fused (see above): wait for that allreduce before waiting for a
 * transfer whose other side needs it first. Any thread may make transfers, also while another
 * thread is in a collective. HVD_E_LIMIT, which ends the round: a rank sends to and receives from
 * more than 256 ranks (both counted) in one round. */
typedef struct hvd_request hvd_request;
HVD_API int hvd_start(const hvd_call *call, hvd_request **ret_request);

/* Sets *ret_done to 1 when the request is done, else to 0. Returns 0 in both cases. HVD_E_INVAL:
 * there is no such request. */
HVD_API int hvd_test(hvd_request *request, int *ret_done);

/* Waits for the request, frees it, and returns the result of its call. Call it once for each
 * request, in any order, from any thread (but see hvd_start); a later round is allowed too.
 * HVD_E_INVAL: there is no such request, or hvd_wait has been called for it before. */
HVD_API int hvd_wait(hvd_request *request);

/* Waits as hvd_wait does, for timeout_us microseconds at most (below 0: no limit). HVD_E_TIMEOUT:
 * the request is not done; it stays, so wait for it again. The first wait for a request belongs to
 * the order of calls (see hvd_start); later waits for it do not. hvd_wait may make the collective
 * itself, without the thread of the library, which is faster; hvd_wait_for with a limit does
 * not. */
HVD_API int hvd_wait_for(hvd_request *request, int64_t timeout_us);

/* Creates a group. Groups that are created before hvd_elastic_run, in the same order on every
 * rank, live until hvd_shutdown; for groups that are opened in train see below. In each round
 * the library divides the ranks anew: it calls `belongs` on every rank for every rank of the
 * round. Ranks for which `belongs` returns the same number, 0 or more, are one group; -1: the
 * rank is in no group.
 *
 * `belongs` must return the same on every rank; a worker whose groups differ from those of the
 * other members fails with HVD_E_INVAL. The training thread calls `belongs`, or, while train
 * runs, a thread of the library that prepares the next round. Therefore `belongs` may read only
 * the place and data that never changes, and must not call the library.
 *
 * Inside train, hvd_group_create and hvd_group_create_of open a group in the running round, and
 * hvd_group_close closes one. These calls are collectives of all ranks, also of ranks that are
 * not in the group. HVD_E_MISMATCH: the ranks open different groups, or one rank makes another
 * call. A group that train has opened ends with the round: train opens it again when it is
 * called for the next round, on members and joiners alike. Such a group works over links even
 * within a host, which are slower than shared memory, so create a group that is always needed
 * before hvd_elastic_run. HVD_E_BUSY, which ends the round: a request has not been waited for.
 *
 * HVD_E_STATE: hvd_init has not been called, or hvd_elastic_run has begun and train does not
 * run. HVD_E_LIMIT: more than 1024 groups before hvd_elastic_run, or more than 128 groups that
 * were opened in one round, closed ones and those of hvd_group_open included. */
typedef struct hvd_place {
    int rank, size;
    int local_rank, local_size;
    int cross_rank, cross_size;
} hvd_place;
typedef int hvd_belongs_fn(const hvd_place *place, void *arg);
HVD_API int hvd_group_create(hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group);

/* Creates a group of the listed ranks, which must differ from each other. Ranks that the round
 * does not have are left out. The list is copied. */
HVD_API int hvd_group_create_of(const int *ranks, size_t count, hvd_group **ret_group);

/* Called in train, by the listed ranks alone: opens a group of them, until the round ends. The
 * members find each other by the ranks and by the tag, a number that the program chooses; so two
 * groups of the same ranks need two tags. The list is copied; its order means nothing.
 *
 * The call does not wait for the other members, so ranks may open groups in different orders. The
 * group's first collective waits until all members have opened the group; if one never does, the
 * log of the job names it as for any collective that does not go on. The members share memory
 * within a host. A death ends the group with its round. Requests may be pending. A started call of
 * such a group is made before small allreduces of all ranks that may still be fused ("Fusion").
 *
 * HVD_E_STATE: train does not run. These end the round: HVD_E_INVAL: the list is wrong, or does not
 * have this rank; HVD_E_EXISTS: this rank has opened these ranks with this tag in this round
 * before; HVD_E_LIMIT: see hvd_group_create. */
HVD_API int hvd_group_open(const int *ranks, size_t count, uint64_t tag, hvd_group **ret_group);

/* Called in train: closes a group that was opened in this round. A group of hvd_group_open is
 * closed by each member alone, without waiting. HVD_E_INVAL, which ends the round: there is no such
 * group. */
HVD_API int hvd_group_close(hvd_group *group);

/* hvd_group_rank returns the rank of this worker within the group in this round (-1: this worker
 * is not a member); hvd_group_size returns the size of the group (0: this worker is not a
 * member). group NULL: all ranks. HVD_E_STATE before the first round. */
HVD_API int hvd_group_rank(const hvd_group *group);
HVD_API int hvd_group_size(const hvd_group *group);

/* Allowed at any time. Allocates memory that the other workers of this host can read. A large
 * allreduce among workers of one host saves a copy when in and out are such memory on all of them.
 * Each allocation takes whole pages, zeroed, and one file descriptor: use it for few and large
 * buffers.
 *
 * Otherwise like malloc and free. hvd_alloc returns NULL on failure (hvd_last_error says why);
 * hvd_free takes NULL, or memory from hvd_alloc that has not been freed. A forked process shares
 * the memory; it does not get a copy. */
HVD_API void *hvd_alloc(size_t bytes);
HVD_API void hvd_free(void *memory);

/* ---- the timeline -------------------------------------------------------------------------------
 *
 * hvd_timeline_start begins to write the times of this worker's activities to the file at path, for
 * trace viewers: see docs/timeline.md. The file shows each worker that makes this call; workers may
 * name the same file. A relative path starts at the working directory of the process. A file of an
 * earlier job is replaced, a file of this job is continued. Any thread may call it after hvd_init,
 * also in train. The call may wait for a disk. On failure nothing changes:
 *     HVD_E_STATE     a timeline is being written already (also by --timeline-filename); or the
 *                     file is the timeline of a later job
 *     HVD_E_EXISTS    the file exists and is not a timeline
 *     HVD_E_INVAL, HVD_E_NOTFOUND, HVD_E_DENIED, HVD_E_FULL, HVD_E_IO, HVD_E_LIMIT, HVD_E_BUSY,
 *     HVD_E_NOMEM     the file cannot be made or written
 *
 * hvd_timeline_stop writes the remaining events and ends the timeline, also the timeline of
 * --timeline-filename. A later start may name the same file. HVD_E_STATE: no timeline is being
 * written. Another code: some events are missing in the file; the timeline has ended nevertheless.
 */
HVD_API int hvd_timeline_start(const char *path);
HVD_API int hvd_timeline_stop(void);

/* ---- GPUs -------------------------------------------------------------------------------------
 *
 * Buffers of a collective may lie in the memory of a GPU (CUDA); the library sees that from the
 * pointer. The buffers of one call are all in GPU memory or all in host memory, on each rank (else
 * HVD_E_INVAL) and on all ranks alike (else HVD_E_MISMATCH). Memory that both host and GPU can
 * reach, such as managed memory, counts as host memory. A process works with one GPU (else
 * HVD_E_INVAL). NCCL carries these calls; while NCCL is being prepared, and where there is none,
 * they go through host memory: see docs/gpu.md. HVD_E_IO: the GPU or NCCL fails on this rank; that
 * ends the round for all members.
 *
 * Without hvd_set_stream: the buffers are read after all work that was queued in the default
 * stream. The call returns, or the request is done, when the result is ready.
 *
 * With a stream: the call is ordered in that stream, after work that was queued there before.
 * It returns as soon as all ranks have made it and it is queued (a call that goes through host
 * memory waits for the work queued before it). Work that is queued after the call finds the result.
 * A request comes after work that was queued before hvd_start, and work that is queued after
 * hvd_wait finds its result. A failure is then reported by a later call, and the output buffers are
 * undefined. No undefined data is kept: no commit succeeds after such a failure.
 *
 * After any failure the GPU may write into the buffers of a call until train has returned: until
 * then do not free or reuse them.
 *
 * The library looks whether the process uses CUDA when hvd_elastic_run begins and when a round
 * begins: initialize CUDA before. A program that begins to use CUDA later, inside train, calls
 * hvd_set_stream first. */
struct CUstream_st; /* the type to which CUstream and cudaStream_t point; a NULL pointer is the
                       default stream */

/* Sets the stream for all later calls of all threads. HVD_NO_STREAM: the library behaves as
 * before the first call of hvd_set_stream. The stream must live until another one is set, or
 * until hvd_shutdown.
 *     HVD_E_INVAL        not a CUDA stream, or one of another GPU, or of a context that is not the
 *                        GPU's primary context
 *     HVD_E_UNSUPPORTED  this GPU cannot be used in the way HVD_GPU_OPERATIONS asks for */
#define HVD_NO_STREAM ((struct CUstream_st *)(intptr_t)-1)
HVD_API int hvd_set_stream(struct CUstream_st *stream);

/* ---- state ------------------------------------------------------------------------------------
 *
 * The training state: all data that a training program would lose with its process. It is made of
 * entries, which are registered once, before hvd_elastic_run, with the same names, sizes, types and
 * order on every rank. A worker whose state differs is rejected, and the job goes on without it.
 * The memory stays the program's: it must not be freed until hvd_state_free, and not move without
 * hvd_state_move.
 *
 * A replicated entry has the same bytes on all ranks after each step, as weights have: a worker
 * that joins gets it from a member. A per-rank entry stays with its slot: a worker that replaces a
 * dead one in the same slot gets the dead worker's bytes; any other new worker keeps the bytes that
 * it began with.
 *
 * A commit is a copy of all entries in memory that the agent keeps, so it outlives this process.
 * The last two commits are kept. A commit counts only when it is completely written.
 *
 * An entry may lie in the memory of a GPU. The library sees that from the pointer when the entry is
 * added; all such entries are on one GPU (else HVD_E_INVAL). A commit has the results of the work
 * that was queued before it (see hvd_set_stream). Work that is queued after it waits for a copy
 * inside the GPU; the commit call itself waits for that copy only when no stream is set. The copy
 * to host memory runs while the training goes on, and the next commit or hvd_state_fence returns
 * its result: HVD_E_IO: the GPU fails, and there is no commit; HVD_E_REVOKED: a collective before
 * the commit was ended early, and there is no commit. HVD_COMMIT_TO says where commits go: see
 * docs/cli.md. */
typedef struct hvd_state hvd_state;

HVD_API hvd_state *hvd_state_create(void);     /* NULL: out of memory */
HVD_API void hvd_state_free(hvd_state *state); /* may be NULL; not during hvd_elastic_run */

/* Adds a replicated or a per-rank entry. The name is copied: 1 to 255 bytes of printable UTF-8.
 * bytes may be 0.
 *     HVD_E_EXISTS  the name is in use
 *     HVD_E_STATE   hvd_elastic_run has begun
 *     HVD_E_LIMIT   more than 65536 entries */
HVD_API int hvd_state_add(hvd_state *state, const char *name, void *at, size_t bytes);
HVD_API int hvd_state_add_per_rank(hvd_state *state, const char *name, void *at, size_t bytes);

/* Add a replicated or a per-rank entry that is an array of `count` elements of a type. Prefer them
 * to the forms without a type: a checkpoint has the type, so other programs can read the array.
 *     HVD_E_INVAL  there is no such type */
HVD_API int hvd_state_add_array(hvd_state *state, const char *name, void *at, size_t count,
                                hvd_dtype type);
HVD_API int hvd_state_add_array_per_rank(hvd_state *state, const char *name, void *at, size_t count,
                                         hvd_dtype type);

/* Adds a replicated entry that is one number. */
HVD_API int hvd_state_add_scalar(hvd_state *state, const char *name, void *at, hvd_dtype type);

/* Adds a replicated entry for data without a fixed place or size (lists, maps, what another
 * library serialises). `save` writes at most `room` bytes and returns how many it wrote, or a
 * negative code, which fails the commit. `load` reads those bytes back and returns 0, or a code,
 * which fails the restore. `room` only reserves address space, and bytes that are not written
 * cost no memory: choose a generous `room`. The training thread calls `save` and `load`;
 * hvd_state_commit_async calls `save` before it returns. */
typedef int64_t hvd_save_fn(void *arg, void *into, size_t room);
typedef int hvd_load_fn(void *arg, const void *from, size_t bytes);
HVD_API int hvd_state_add_custom(hvd_state *state, const char *name, size_t room, hvd_save_fn *save,
                                 hvd_load_fn *load, void *arg);

/* Adds a custom entry, as hvd_state_add_custom does, that is per rank. If an earlier worker of this
 * slot has left bytes, the caller of hvd_elastic_run calls `load` when the run begins. */
HVD_API int hvd_state_add_custom_per_rank(hvd_state *state, const char *name, size_t room,
                                          hvd_save_fn *save, hvd_load_fn *load, void *arg);

/* Says that the memory of an entry has moved: commits and restores use the new address from now on.
 * The program has copied the data; size, type and kind of memory (host or one GPU) stay the same.
 * The call waits for an asynchronous commit, so the old memory may be freed after it. Allowed
 * before a run, in train and in reset callbacks, the last two for the training thread only.
 *     HVD_E_NOTFOUND  there is no such entry
 *     HVD_E_INVAL     a custom entry or a sampler; or memory of another kind
 *     the code of hvd_state_fence: the last commit has failed, and the entry has not moved */
HVD_API int hvd_state_move(hvd_state *state, const char *name, void *at);

/* Training thread. Makes the present state the newest commit, then calls hvd_state_check: return
 * the code of that check from train unless it is 0. HVD_E_REVOKED, and no copy is made: a
 * collective of this round has failed. HVD_E_NOMEM, or the code of a save callback: there is no
 * new commit, and the previous one stays valid. */
HVD_API int hvd_state_commit(hvd_state *state);

/* Training thread. hvd_state_commit_async does the same as hvd_state_commit, but another thread
 * copies the state while the caller goes on: do not change the state until hvd_state_fence has
 * returned. A commit, a restore and the end of train call the fence themselves. hvd_state_fence
 * waits for the copy and returns 0, or the reason why the last commit does not exist. */
HVD_API int hvd_state_commit_async(hvd_state *state);
HVD_API int hvd_state_fence(hvd_state *state);

/* Training thread. Asks whether train must return. In a round all ranks make equally many calls of
 * hvd_state_check and hvd_state_commit together, one in each step or one in a few steps. 0: train
 * goes on; such a call costs one atomic load. Return any other code from train:
 *     HVD_HOSTS_UPDATED   the membership changes here; nothing is lost
 *     HVD_E_REVOKED       a member has died; all members go back to the last commit
 *     HVD_LEFT, HVD_DONE, HVD_E_LOST   hvd_elastic_run will return the same code */
HVD_API int hvd_state_check(hvd_state *state);

/* Training thread. Lets the program go back to the last commit when it wishes, on this rank
 * only. HVD_E_NOTFOUND: there is no commit yet. */
HVD_API int hvd_state_restore(hvd_state *state);

/* Write the state to a directory, and read it back, without hvd-elastic: custom entries, samplers
 * and per-rank entries included. Both are allowed while hvd_elastic_run is not running, from any
 * thread, and in train, from the training thread. They wait for the disk. Entries in the memory of
 * a GPU are copied through host memory. The format is that of the checkpoints of a job
 * (docs/checkpoints.md).
 *
 * hvd_state_save makes the directory if it is missing. The state that an earlier call has saved
 * there stays until the new one is complete, and is then removed, so a process may die at any
 * moment. Each call is for this worker alone: in a job one rank saves, or each rank saves to a
 * directory of its own. Use no directory into which a job writes its checkpoints.
 *     HVD_E_BUSY     another process is saving there
 *     HVD_E_DENIED, HVD_E_FULL, HVD_E_IO, HVD_E_LIMIT, HVD_E_NOMEM, or the code of a save callback:
 *                    the state that was saved before is still there
 *
 * hvd_state_load takes the path of such a directory, and loads the newest complete checkpoint; or
 * the path of one checkpoint ("DIR/commit-12.5"), of a job too. Each entry of the state must be
 * there, with its size, kind and type. The checkpoint may have more entries. Per-rank entries are
 * loaded from what hvd_state_save has written; from the checkpoint of a job only if it has as many
 * ranks as this job, otherwise they keep their values. In train the other ranks do not learn of the
 * call: all ranks load the same.
 *     HVD_E_NOTFOUND   there is no complete checkpoint, or it has no such entry
 *     HVD_E_INVAL      an entry has another size, kind or type there; nothing was changed
 *     HVD_E_VERSION    a newer version has written it; nothing was changed
 *     HVD_E_CORRUPT, HVD_E_IO, HVD_E_LIMIT, HVD_E_NOMEM, or the code of a load callback: the state
 *                      is undefined */
HVD_API int hvd_state_save(hvd_state *state, const char *path);
HVD_API int hvd_state_load(hvd_state *state, const char *path);

/* Training thread. Asks for a checkpoint of the newest commit of this worker (or of the state with
 * which the round began) in the job's --checkpoint-dir, and returns at once. The request is done
 * when a checkpoint of that commit, or of a later one, is complete: that checkpoint outlives the
 * loss of all hosts. No worker writes. One rank may ask, or all: one commit makes one checkpoint.
 * Any rank may pass the request to hvd_wait, hvd_wait_for and hvd_test at any time. These return
 *     0              the checkpoint is complete
 *     HVD_E_STATE    there is no --checkpoint-dir; or the job or the run has ended before; or train
 *                    was told HVD_HOSTS_UPDATED: the request stays, wait when train is called again
 *     HVD_E_IO       it could not be written, for the reason in hvd_last_error; ask again
 *     HVD_E_REVOKED  the round was revoked: return the code from train, and ask again
 *     HVD_E_LOST, HVD_E_UNSUPPORTED   the agent is gone; the agent or the driver is too old
 * A change of the members and a new driver do not end a request. While a training thread waits, the
 * other ranks wait for it in their collectives (docs/embedding.md). */
HVD_API int hvd_checkpoint(hvd_state *state, hvd_request **ret_request);

/* Adds a callback that the training thread calls when a round begins. Callbacks run in the order
 * in which they were added. hvd_rank, hvd_size and similar functions already return the numbers
 * of the new round, and the state of the round is not loaded yet. Use a callback to rebuild what
 * depends on the membership. When a callback does not return 0 this worker cannot go on:
 * hvd_elastic_run returns that code. */
typedef int hvd_reset_fn(hvd_state *state, void *arg);
HVD_API int hvd_state_on_reset(hvd_state *state, hvd_reset_fn *reset, void *arg);

/* Takes part in the job: waits for a round, loads the state with which the round begins, calls
 * train, and repeats this after every change of the membership. One run at a time, and in a job one
 * run in a process: a later one returns HVD_E_STATE, HVD_LEFT or HVD_DONE at once. Without
 * hvd-elastic a process may run again.
 *
 * train returns 0 when the training is done; a code that the library has given to it, unchanged; or
 * a negative code of its own, which ends this worker as failed. When train returns 0 after
 * the library gave it HVD_HOSTS_UPDATED or HVD_E_REVOKED, the library acts as if train had returned
 * that code: the training is not done, and train is called again.
 *
 * hvd_elastic_run returns
 *     0             the training is done
 *     HVD_LEFT      this worker was asked to leave: end the process with exit code 0
 *     HVD_DONE      other workers have finished the job: end the process with exit code 0
 *     HVD_E_LOST    the agent is gone: end the process with another exit code
 *     other codes   the failure of train, of a reset callback, or of registering the state
 * A worker whose state differs from that of the other workers does not return from here: its agent
 * ends the process, and the error names the entry. */
typedef int hvd_train_fn(hvd_state *state, void *arg);
HVD_API int hvd_elastic_run(hvd_state *state, hvd_train_fn *train, void *arg);

/* The loop of hvd_elastic_run for a program that calls its training itself, for example because
 * another language or framework has the main loop:
 *
 *     code = hvd_elastic_begin(state);
 *     for (int trained = 0; !code && !(code = hvd_elastic_next(state, trained));)
 *         trained = ...train in this round, with collectives, commits and checks...
 *
 * hvd_elastic_begin prepares the run; the state is registered before. It does not wait for other
 * workers. It returns 0, or a code with which hvd_elastic_run would return.
 *
 * hvd_elastic_next ends the running round, waits for the next one, calls the reset callbacks, and
 * loads the state with which the round begins. `code` says what the training of the round has come
 * to, as if train had returned it; the first call has no round to end, and gets 0 (a negative code
 * ends the run without a round). The calling thread is the training thread from then on, so each
 * call may come from another thread. The program makes sure that the thread before it is in no
 * function of the library but collectives, which the call ends.
 *     0             train now, and call hvd_elastic_next again
 *     HVD_FINISHED  the training is done; hvd_elastic_run would return 0
 *     HVD_E_BUSY    the training thread is in another function; nothing has changed
 *     HVD_E_STATE   also: the program has begun no run, or hvd_elastic_run makes these calls itself
 *     other codes   as those of hvd_elastic_run: the run has ended */
HVD_API int hvd_elastic_begin(hvd_state *state);
HVD_API int hvd_elastic_next(hvd_state *state, int code);

/* ---- the running round ------------------------------------------------------------------------
 *
 * Any thread may call these functions.
 *
 * hvd_news tells what is known of the running round; it costs one atomic load and does not count as
 * a check. HVD_E_STATE before hvd_init.
 *     0                  nothing; also while train does not run
 *     HVD_HOSTS_UPDATED  the membership is about to change: a check will say so soon, unless the
 *                        change is given up
 *     HVD_E_REVOKED      the round is over; a collective, a commit or a check says why
 *
 * hvd_news_fd returns a descriptor for poll and the like, which is readable while hvd_news is not
 * 0. It belongs to the library: do not read or close it. hvd_shutdown closes it. HVD_E_LIMIT: no
 * descriptor is left.
 *
 * hvd_revoke ends the running round for all members, without a failure: their collectives return
 * HVD_E_REVOKED, as does train; then all go back to the last commit, and train again. `why` is for
 * the other members and for the driver's log; NULL or "": no reason. 0: the round is over, by this
 * call or by an earlier failure. HVD_E_STATE: train does not run, or was told to return. A program
 * that revokes at the same step again and again trains for ever.
 *
 * hvd_fail gives the reason, in words, for the negative code that train returns next:
 * hvd_last_error and the driver show it instead of a text of the library. Before a train that
 * returns 0: the training is done, but the program has failed for this reason; let the process end
 * with another exit code than 0, and the job ends with 1 and this reason. Control characters become
 * blanks. A long text is cut: at 511 bytes, and at 256 in the driver. HVD_E_STATE: train does not
 * run. */
HVD_API int hvd_news(void);
HVD_API int hvd_news_fd(void);
HVD_API int hvd_revoke(const char *why);
HVD_API int hvd_fail(const char *text);

/* Shows a value of the training to operators: its loss, accuracy, learning rate. status, top, the
 * metrics and the page have the newest value of each name with its age and the newest commit at the
 * call. Only the values of rank 0 are shown: a call on another rank does nothing and returns 0, so
 * all ranks may make it, and it is the program that averages what is to be averaged. NaN and
 * infinities are values, too.
 *
 * The call copies a few bytes to memory that the agent reads with its heartbeats (--beat, 1 s): it
 * sends nothing and waits for no process, so report in each step. Of the values of one heartbeat
 * only the newest one of each name is seen. The values are to be seen: they do not survive a lost
 * host, and no value is told while there is no driver. A program may ignore the code: no failure of
 * the call ends a round, and the driver's log has the first one of a worker.
 *     HVD_E_INVAL   the name is not 1 to 63 letters, digits and characters of _-./:@%+
 *     HVD_E_LIMIT   it is the 33rd name of this worker (LIMIT_REPORTS)
 *     HVD_E_STATE   there has been no round yet */
HVD_API int hvd_report(const char *name, double value);

/* ---- samples ----------------------------------------------------------------------------------
 *
 * A sampler distributes the numbers 0 to samples - 1 over the ranks, newly shuffled in each epoch.
 * Each number is used exactly once in an epoch, however often the membership changes, because the
 * sampler's progress is an entry of the state, under the sampler's name. With HVD_SAMPLE_LOG=DIR in
 * the environment each batch is logged in DIR before it is used, and `hvd-audit DIR` proves that no
 * sample was lost or used twice. */
typedef struct hvd_sampler hvd_sampler;

typedef enum hvd_batch_mode {
    /* `batch` is the number of samples in a step of all ranks together: the learning rate may
     * stay the same */
    HVD_BATCH_GLOBAL = 0,
    /* `batch` is the number of samples in a step of each rank */
    HVD_BATCH_LOCAL = 1
} hvd_batch_mode;

/* Creates a sampler, which belongs to the state and is freed with it. HVD_E_INVAL: samples or
 * batch is 0. */
HVD_API int hvd_sampler_create(hvd_state *state, const char *name, uint64_t samples, size_t batch,
                               hvd_batch_mode mode, uint64_t seed, hvd_sampler **ret_sampler);

/* This rank's part of a batch. With HVD_BATCH_GLOBAL a batch is divided into hvd_max_np() shards
 * whose sizes differ by at most one sample, or into one shard for each sample when there are
 * fewer samples than that; each rank gets some of the shards. A program that computes shard by
 * shard needs no more memory with few ranks than with many. With --max-np unlimited each shard
 * is one sample. `shards` is 0 on some ranks when there are more ranks than samples left. */
typedef struct hvd_batch {
    uint64_t epoch;
    uint64_t first;          /* index of the batch's first sample in its epoch */
    size_t total;            /* samples of all ranks: divide a sum of gradients by this number */
    size_t count;            /* samples of this rank */
    const uint64_t *samples; /* an array of `count` sample numbers; valid until the next call */
    size_t shards; /* shard i is samples[shard_at[i]] up to, not including, shard_at[i + 1] */
    const size_t *shard_at;
} hvd_batch;

/* Training thread, inside train. hvd_sampler_next gets this rank's part of the next batch. It
 * returns 0; or HVD_EPOCH_END: there is no batch, and the next call begins the next epoch; or
 * HVD_E_NOMEM; or HVD_E_IO: the sample log cannot be written. */
HVD_API int hvd_sampler_next(hvd_sampler *sampler, hvd_batch *ret_batch);
HVD_API uint64_t hvd_sampler_epoch(const hvd_sampler *sampler);

/* Looks ahead, without moving: this rank's part of the batch that hvd_sampler_next will give after
 * `ahead` more batches of the epoch (0: the next one), if the membership stays as it is. Any
 * thread, also beside hvd_sampler_next, so that a loader can fetch what is not yet trained; nothing
 * is logged. The sample numbers are written to `samples`, which has room for `room` of them.
 * ret_batch->first says which batch it is; there are no shards (0 and NULL).
 *     HVD_EPOCH_END  the epoch has no such batch
 *     HVD_E_FULL     the room is too small; ret_batch->count is what is needed
 *     HVD_E_STATE    there has been no round yet */
HVD_API int hvd_sampler_at(hvd_sampler *sampler, uint64_t ahead, uint64_t *samples, size_t room,
                           hvd_batch *ret_batch);

#ifdef __cplusplus
}
#endif
#endif
