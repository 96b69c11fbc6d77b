/*
 * hvd.h: the one public header of hvd-elastic's worker library.
 *
 *     hvd_init();
 *     hvd_state *state = hvd_state_create();
 *     hvd_state_add(state, "weights", weights, sizeof(weights));
 *     code = hvd_elastic_run(state, train, NULL);    where train repeats: a step, hvd_state_commit
 *
 * Every call returns an int unless its comment says otherwise:
 *     0          it worked
 *     positive   news that the training loop acts on (it is not an error)
 *     negative   an error; hvd_strerror() turns any code into a sentence, hvd_last_error() says
 *                what exactly was wrong and what to do about it
 *
 * The library never exits, aborts, prints, or installs a signal handler, but that it says two
 * things on standard error: a bug that could cost your state, its own or a wrong hvd_free, which
 * ends the process, and that a timeline cannot be written. Its threads have all signals blocked,
 * and are gone after hvd_shutdown. A program that was not started by hvd-elastic is a job of one
 * worker, in which every call works.
 *
 * "The loop" is the thread that has called hvd_elastic_run. Calls are for any thread unless their
 * comment says that they are for the loop: from another they return HVD_E_STATE. In a process that
 * was forked from one that has called hvd_init, every call returns HVD_E_STATE.
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

/* Numbers are part of the contract: a code is never renumbered or reused. */
enum hvd_code {
    HVD_OK = 0,

    HVD_HOSTS_UPDATED = 1, /* the membership is about to change: return this from train */
    HVD_LEFT = 2,          /* this worker was asked to leave and has left; end the process */
    HVD_DONE = 3,          /* the job has finished elsewhere; return from train */
    HVD_EPOCH_END = 4,     /* all samples of the epoch are used; the next batch begins another */

    HVD_E_NOMEM = -1,        /* memory could not be allocated */
    HVD_E_INVAL = -2,        /* an argument or an input is wrong */
    HVD_E_LIMIT = -3,        /* a named limit would be exceeded */
    HVD_E_STATE = -4,        /* the call is not allowed at this moment */
    HVD_E_NOTFOUND = -5,     /* no such thing */
    HVD_E_EXISTS = -6,       /* it is already there */
    HVD_E_IO = -7,           /* reading or writing failed */
    HVD_E_FULL = -8,         /* no space is left */
    HVD_E_DENIED = -9,       /* permission or authentication was refused */
    HVD_E_BUSY = -10,        /* somebody else holds it */
    HVD_E_CORRUPT = -11,     /* stored data is damaged */
    HVD_E_VERSION = -12,     /* the other side speaks another version */
    HVD_E_PROTO = -13,       /* the other side broke the protocol */
    HVD_E_TIMEOUT = -14,     /* it did not happen in time */
    HVD_E_REVOKED = -15,     /* the round was revoked: return this from train */
    HVD_E_MISMATCH = -16,    /* two sides disagree about what should be equal */
    HVD_E_LOST = -17,        /* the driver, the agent or a peer is gone */
    HVD_E_UNSUPPORTED = -18, /* not available in this build or on this machine */
    HVD_E_INTERNAL = -19     /* a bug of ours; please report it */
};

/* A short sentence for any code, news included. Never NULL; static, not to be freed; any thread. */
HVD_API const char *hvd_strerror(int code);

/* What was wrong with the last call of this thread that failed: the culprit first, the remedy last.
 * "" when none has. Valid until the thread's next failing call. */
HVD_API const char *hvd_last_error(void);

/* The version of the library in use, "major.minor.patch". Static, not to be freed; any thread. */
HVD_API const char *hvd_version(void);

/* ---- joining ----------------------------------------------------------------------------------
 *
 * hvd_init says hello to the agent that started this process; it takes one round trip to a process
 * of this machine, and waits for nobody else. Calling it again changes nothing. HVD_E_LOST: there
 * is no such agent (any more); HVD_E_DENIED: it does not know this process; HVD_E_INVAL: HVD_AGENT
 * and HVD_INCARNATION in the environment make no sense; HVD_E_TIMEOUT, HVD_E_NOMEM.
 *
 * hvd_shutdown takes leave and ends the library's threads; not while hvd_elastic_run is being
 * called (then it does nothing). A process may end without it. */
HVD_API int hvd_init(void);
HVD_API void hvd_shutdown(void);

/* The place of this worker, or HVD_E_STATE before hvd_init. Until the first reset callback these
 * are provisional: what the driver expected when it launched this worker. From then on they are
 * those of the round, equal in the eyes of all members, and change only between two calls of train.
 *     rank, size              among all workers, 0 to size - 1
 *     local_rank, local_size  among those of this host
 *     cross_rank, cross_size  among those of all hosts that have this local rank */
HVD_API int hvd_rank(void);
HVD_API int hvd_size(void);
HVD_API int hvd_local_rank(void);
HVD_API int hvd_local_size(void);
HVD_API int hvd_cross_rank(void);
HVD_API int hvd_cross_size(void);

/* The slot of its host that this worker fills; 0 for who is alone. It never changes, and no other
 * worker that lives fills it: what to choose a GPU by. The local rank would not do: it changes when
 * others come and go, and is a guess until the first round. HVD_E_STATE before hvd_init. */
HVD_API int hvd_slot(void);

/* The fewest and the most workers the job is run with. */
HVD_API int hvd_min_np(void);
HVD_API int hvd_max_np(void);

/* The number of the round; 0 before the first. It only grows, and not always by one. */
HVD_API uint64_t hvd_round(void);

/* ---- collectives ------------------------------------------------------------------------------
 *
 * Inside train only (HVD_E_STATE elsewhere), by any thread but one at a time (HVD_E_BUSY). All
 * members of the round make the same calls in the same order with the same counts, types, ops and
 * roots (HVD_E_MISMATCH); the order counts also between calls of groups and of all. They return
 * when the caller's result is there. Results are the same, bit for bit, on every rank.
 *
 * HVD_E_REVOKED: the round is dead, as somebody in it has died or failed. Buffers hold rubbish:
 * return this code from train, and everything goes back to the last commit. HVD_E_INVAL (the call
 * makes no sense) and HVD_E_NOMEM end the round for all. After any failure in a round all further
 * collectives, commits, checks and batches of that round return HVD_E_REVOKED; after a commit or
 * check has returned news, collectives, commits and batches return HVD_E_STATE. */
typedef enum hvd_dtype {
    HVD_UINT8 = 0,
    HVD_INT8 = 1,
    HVD_INT32 = 2,
    HVD_INT64 = 3,
    HVD_FLOAT16 = 4,
    HVD_BFLOAT16 = 5,
    HVD_FLOAT32 = 6,
    HVD_FLOAT64 = 7
} hvd_dtype;

typedef enum hvd_op {
    HVD_SUM = 0,
    HVD_AVERAGE = 1, /* the sum divided by size; whole numbers towards zero */
    HVD_MIN = 2,
    HVD_MAX = 3,
    HVD_PRODUCT = 4
} hvd_op;

/* count elements of each rank become count elements on all. in == out is allowed; else they must
 * not overlap. */
HVD_API int hvd_allreduce(const void *in, void *out, size_t count, hvd_dtype type, hvd_op op);

/* What root has in buf is then in everybody's. */
HVD_API int hvd_broadcast(void *buf, size_t count, hvd_dtype type, int root);

/* count elements of each rank, one after the other in rank order. counts: how many each rank gives
 * (size of them, the same on all ranks; counts[rank] == count); NULL: all give count. in may be
 * this rank's own place in out; else they must not overlap. */
HVD_API int hvd_allgather(const void *in, size_t count, void *out, const size_t *counts,
                          hvd_dtype type);

/* The numbers of all ranks are reduced, and each rank gets its part: count of them, those of rank 0
 * first. in holds the parts of all. counts: how many each rank gets (size of them, the same on all
 * ranks; counts[rank] == count); NULL: all get count. in and out must not overlap. */
HVD_API int hvd_reducescatter(const void *in, void *out, size_t count, const size_t *counts,
                              hvd_dtype type, hvd_op op);

/* count numbers to each rank, and as many from each, in rank order. in and out must not overlap. */
HVD_API int hvd_alltoall(const void *in, void *out, size_t count, hvd_dtype type);

/* Returns when all have called it. */
HVD_API int hvd_barrier(void);

/* This rank has no more data: it contributes nothing (0 to a sum, 1 to a product) to the others'
 * allreduces and barriers until all have called it. Other collectives are refused meanwhile, on all
 * ranks (HVD_E_MISMATCH). AVERAGE divides by the size all the same. ret_last (NULL is allowed): the
 * rank that was the last to join: broadcast from it what must be equal again.
 *
 * Who has joined makes no other call: not in a group either. So between the first rank's join and
 * the last one's nobody commits or checks: those are for all ranks equally often. Commit before
 * the ranks' data differs, and after the join. */
HVD_API int hvd_join(int *ret_last);

/* ---- collectives in other forms -----------------------------------------------------------------
 *
 * Whatever can be asked of a collective, as one struct: set what is needed and leave the rest 0.
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
    HVD_JOIN = 7
} hvd_kind;

/* Ranks that do something without the others: see hvd_group_create. */
typedef struct hvd_group hvd_group;

typedef struct hvd_piece { /* one of several buffers: as many numbers on every rank */
    const void *in;
    void *out;
    size_t count;
} hvd_piece;

typedef struct hvd_call {
    hvd_kind kind;
    hvd_group *group; /* NULL: all ranks */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale; /* floating types: each number times this, before and after the
                                 * reduction; 0 stands for 1 */
    int root;                   /* of a broadcast: a rank of the round */
    const void *in;             /* not of a broadcast, which has out alone */
    void *out;
    size_t count;
    /* As in the calls above, indexed by place in the group. Of an alltoall: how many go to each,
     * and in out_counts how many come from each. */
    const size_t *counts, *out_counts;
    /* An allreduce of several buffers at once, instead of in, out and count: about as fast as one
     * of their total size, and none is copied by the caller. */
    const hvd_piece *pieces;
    size_t piece_count;
    int *last; /* HVD_JOIN; NULL is allowed */
} hvd_call;

/* The call as a whole. */
HVD_API int hvd_run(const hvd_call *call);

/* The same without waiting: a thread of the library does it, in the order of the calls. The call is
 * copied, but for counts, pieces and buffers: they must stay until the request is done. A call that
 * waits goes behind what is pending. Of a request that fails, those behind it do nothing:
 * HVD_E_REVOKED. Wait for all before train returns: what is pending then is given up, and done with
 * HVD_E_REVOKED by the end of the round. HVD_E_LIMIT: 16384 are not waited for. */
typedef struct hvd_request hvd_request;
HVD_API int hvd_start(const hvd_call *call, hvd_request **ret_request);
HVD_API int hvd_test(hvd_request *request, int *ret_done); /* 0, whether it is done or not */

/* In any order, once for each request, which it frees; by any thread, in a later round too. Returns
 * what the call has come to. HVD_E_INVAL: that is no request, or has been waited for. */
HVD_API int hvd_wait(hvd_request *request);

/* Groups are made before hvd_elastic_run, in the same order on every rank, and exist anew in each
 * round: belongs says, from its place alone, which part of the round a rank is in (ranks with the
 * same number of 0 or more are in one group) or -1 for none. It is called for every rank of the
 * round on every rank of it, and must say the same everywhere (a worker that finds others to have
 * other groups fails with HVD_E_INVAL): by the loop, or by a thread of the
 * library while train runs, as the next round is prepared. So it may look at nothing but the place
 * and what never changes, and call nothing of the library. HVD_E_STATE: before hvd_init, or
 * hvd_elastic_run has begun; HVD_E_LIMIT: more than 1024. A group lives until hvd_shutdown. */
typedef struct hvd_place {
    int rank, size;
    int local_rank, local_size;
    int cross_rank, cross_size;
} hvd_place;
typedef int hvd_belongs_fn(const hvd_place *place, void *arg);
HVD_API int hvd_group_create(hvd_belongs_fn *belongs, void *arg, hvd_group **ret_group);

/* The same for a list of different ranks: those of them that the round has. Copied. */
HVD_API int hvd_group_create_of(const int *ranks, size_t count, hvd_group **ret_group);

/* In this round: this process's place among the group's (-1: it is not in it), and how many they
 * are (0: it is not in it). NULL: all ranks. HVD_E_STATE before the first. */
HVD_API int hvd_group_rank(const hvd_group *group);
HVD_API int hvd_group_size(const hvd_group *group);

/* Memory that the other workers of this host can read: a large allreduce among workers of one host
 * needs one copy less, if in and out are of it on all of them. Whole pages, zeroed, and a file
 * descriptor each: for few and large buffers. Otherwise like malloc and free: NULL when there is
 * none (hvd_last_error says why); any thread, any time; what hvd_free gets is of hvd_alloc and not
 * freed yet, or NULL. A fork sees the same bytes, not a copy. */
HVD_API void *hvd_alloc(size_t bytes);
HVD_API void hvd_free(void *memory);

/* ---- GPUs -------------------------------------------------------------------------------------
 *
 * Buffers of collectives may lie in the memory of a GPU (CUDA): the pointer tells. All buffers of a
 * call are in such memory or none, on one rank (HVD_E_INVAL) and on all (HVD_E_MISMATCH); memory
 * that both can reach, as managed memory, counts as the host's. A process works with one GPU
 * (HVD_E_INVAL). They go by NCCL, or through the host while NCCL is being prepared and where there
 * is none: see docs/gpu.md. HVD_E_IO: the GPU or NCCL fails here; it ends the round for all.
 *
 * Without hvd_set_stream a call's buffers are read after what was queued in the default stream, and
 * the call returns (a request is done) when the result is there. With a stream it is ordered in
 * that stream: it returns as soon as all have called it and it is queued there, behind what was
 * queued before (what goes through the host waits for that); what is queued behind it finds the
 * result. A request waits for what was queued before hvd_start, and whatever is queued after
 * hvd_wait finds its result. Then a failure is told by the next call, and the buffers hold rubbish:
 * nothing of it is kept, as no commit that comes after it succeeds. After any failure the GPU may
 * write into a call's buffers until train has returned: they are not to be freed, nor used for
 * anything else, before.
 *
 * Whether a process uses CUDA is looked for when hvd_elastic_run begins, and when a round does:
 * before that it should have initialized it. A program that begins in the middle of train calls
 * hvd_set_stream first. */
struct CUstream_st; /* what CUstream and cudaStream_t point to; NULL is the default stream */

/* For all calls from now on, of any thread. HVD_NO_STREAM: as if it had never been called.
 * HVD_E_INVAL: no stream of CUDA, one of another GPU, or of a context that is not the GPU's primary
 * one; HVD_E_UNSUPPORTED: this GPU cannot be used as HVD_GPU_OPERATIONS asks. The stream must stay
 * until another is set, or hvd_shutdown. */
#define HVD_NO_STREAM ((struct CUstream_st *)(intptr_t)-1)
HVD_API int hvd_set_stream(struct CUstream_st *stream);

/* ---- state ------------------------------------------------------------------------------------
 *
 * What a training loop would lose. Registered once, before hvd_elastic_run, the same names, sizes
 * and order on every rank (a worker whose state differs is turned away, and the job goes on). The
 * memory is borrowed: it must stay where it is until hvd_state_free.
 *
 * Replicated entries are the same bytes on all ranks after each step, as weights are: a newcomer
 * gets them from those who have them. Those of a rank stay with its slot: a worker that is started
 * where another has died finds that one's, any other keeps what it began with.
 *
 * A commit is a copy of it all in memory that the agent keeps: it outlives this process. Two are
 * kept; one that is being written does not count until it is whole.
 *
 * An entry may lie in the memory of a GPU: the pointer tells when it is added, and all that do are
 * of the same one (HVD_E_INVAL). A commit holds what all that was queued before it (hvd_set_stream)
 * has computed; what is queued after it waits until it is copied on the GPU, the call itself only
 * where no stream was set. It goes to the host beside the training, and what came of it is told by
 * the next commit or by hvd_state_fence. HVD_E_IO: the GPU fails, and nothing is committed;
 * HVD_E_REVOKED: a collective before it was cut short. HVD_COMMIT_TO says where commits go: see
 * docs/cli.md. */
typedef struct hvd_state hvd_state;

HVD_API hvd_state *hvd_state_create(void);     /* NULL: out of memory */
HVD_API void hvd_state_free(hvd_state *state); /* NULL is allowed; not during hvd_elastic_run */

/* The name is copied: 1 to 255 bytes of printable UTF-8. HVD_E_EXISTS: it is taken; HVD_E_STATE:
 * hvd_elastic_run has begun; HVD_E_LIMIT: more than 65536 entries. bytes may be 0. */
HVD_API int hvd_state_add(hvd_state *state, const char *name, void *at, size_t bytes);
HVD_API int hvd_state_add_per_rank(hvd_state *state, const char *name, void *at, size_t bytes);

/* The same for one number that is a variable of the program. */
HVD_API int hvd_state_add_scalar(hvd_state *state, const char *name, void *at, hvd_dtype type);

/* For what has no fixed place or size (lists, maps, what a library serialises): save writes at most
 * room bytes and returns how many (or a negative code, which fails the commit); load takes them
 * back (0, or a code that fails the restore). room is kept aside, but what is not written costs no
 * memory: be generous. Both are called by the loop, save also by hvd_state_commit_async. */
typedef int64_t hvd_save_fn(void *arg, void *into, size_t room);
typedef int hvd_load_fn(void *arg, const void *from, size_t bytes);
HVD_API int hvd_state_add_custom(hvd_state *state, const char *name, size_t room, hvd_save_fn *save,
                                 hvd_load_fn *load, void *arg);

/* Loop. Makes the state as it is now the newest commit, then hvd_state_check: what that returns is
 * to be returned from train. HVD_E_REVOKED without a copy when a collective of this round has
 * failed. HVD_E_NOMEM, or what a save has returned: nothing is committed, the one before stands. */
HVD_API int hvd_state_commit(hvd_state *state);

/* Loop. The same without waiting for the copy: the state must not be changed until hvd_state_fence
 * has returned. A commit, a restore and the end of train fence by themselves. */
HVD_API int hvd_state_commit_async(hvd_state *state);
HVD_API int hvd_state_fence(hvd_state *state); /* 0, or why there was no commit */

/* Loop. Is there news? All ranks must call it (or a commit) equally often in a round, once a step
 * or every few. 0: go on; it costs an atomic load. Anything else is to be returned from train:
 *     HVD_HOSTS_UPDATED   the membership changes here; nothing is lost
 *     HVD_E_REVOKED       somebody has died; everybody goes back to the last commit
 *     HVD_LEFT, HVD_DONE, HVD_E_LOST   hvd_elastic_run will return it too */
HVD_API int hvd_state_check(hvd_state *state);

/* Loop. Back to the last commit by the program's own wish, on this rank only. HVD_E_NOTFOUND:
 * there is none yet. */
HVD_API int hvd_state_restore(hvd_state *state);

/* Called by the loop at the beginning of each round, with hvd_size() and the others already those
 * of the round, before the state of the round is there: the place to rebuild what depends on them.
 * In the order in which they were added. Not 0: this worker cannot go on; hvd_elastic_run returns
 * that code. */
typedef int hvd_reset_fn(hvd_state *state, void *arg);
HVD_API int hvd_state_on_reset(hvd_state *state, hvd_reset_fn *reset, void *arg);

/* Takes part in the job: waits for a round, gets the state that it begins with, calls train, and
 * does so again after every change. train returns 0 when the training is done, what the library
 * told it as it is, or a negative code of its own, which ends this worker as a failure. (0 after it
 * was told HVD_HOSTS_UPDATED or HVD_E_REVOKED is taken for that.) Once in a process. Returns
 *     0             the training is done
 *     HVD_LEFT      this worker was asked to leave; end the process with 0
 *     HVD_DONE      the others have finished; end the process with 0
 *     HVD_E_LOST    the agent is gone: end the process with another code
 *     other codes   what train, a reset callback or the registration of the state came to
 * A worker whose state differs from that of the others is ended from outside, by name of the entry.
 */
typedef int hvd_train_fn(hvd_state *state, void *arg);
HVD_API int hvd_elastic_run(hvd_state *state, hvd_train_fn *train, void *arg);

/* ---- samples ----------------------------------------------------------------------------------
 *
 * Deals out the numbers 0 to samples - 1, shuffled anew in each epoch, so that each is used exactly
 * once in an epoch however often the membership changes: how far it has come is part of the state,
 * under the sampler's name. With HVD_SAMPLE_LOG=DIR in the environment each batch is written down
 * there before it is used; hvd-audit DIR then proves it. */
typedef struct hvd_sampler hvd_sampler;

typedef enum hvd_batch_mode {
    /* `batch` samples a step, whatever the size: the learning rate may stay */
    HVD_BATCH_GLOBAL = 0,
    /* `batch` samples a step for each rank */
    HVD_BATCH_LOCAL = 1
} hvd_batch_mode;

/* Belongs to the state, and is freed with it. HVD_E_INVAL: samples or batch is 0. */
HVD_API int hvd_sampler_create(hvd_state *state, const char *name, uint64_t samples, size_t batch,
                               hvd_batch_mode mode, uint64_t seed, hvd_sampler **ret_sampler);

/* This rank's share of a batch. With HVD_BATCH_GLOBAL a batch is cut into hvd_max_np() shards,
 * equal but for one sample, or into as many as it has samples, if those are fewer; each rank gets
 * some of them. Whoever goes through them one by one needs no more memory with few ranks than with
 * many: give --max-np, for without it each shard is one sample. shards may be 0 when there are more
 * ranks than samples left. */
typedef struct hvd_batch {
    uint64_t epoch;
    uint64_t first;          /* place of the batch in its epoch */
    size_t total;            /* samples of all ranks together: divide a sum of gradients by it */
    size_t count;            /* of this rank, at */
    const uint64_t *samples; /* valid until the next call */
    size_t shards; /* shard i is samples[shard_at[i]] up to, not including, shard_at[i + 1] */
    const size_t *shard_at;
} hvd_batch;

/* Loop, in train. 0, HVD_EPOCH_END (no batch; the next call begins the next epoch), HVD_E_NOMEM,
 * HVD_E_IO (the sample log cannot be written). */
HVD_API int hvd_sampler_next(hvd_sampler *sampler, hvd_batch *ret_batch);
HVD_API uint64_t hvd_sampler_epoch(const hvd_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
