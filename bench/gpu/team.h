/*
 * team.h: processes that answer a question together, each with a device and NCCL in it: one for
 * each rank, as NCCL wants it, and so that one can be killed. Their parent has neither, so it can
 * start as many as it likes.
 *
 * Where there are fewer devices than ranks every process is told that it is a host of its own
 * (NCCL_HOSTID): NCCL takes only one rank for each device of a host.
 */
#ifndef BENCH_GPU_TEAM_H
#define BENCH_GPU_TEAM_H

#include "bench/gpu/figures.h"
#include "gpu/device.h"
#include "gpu/nccl.h"

#include <sys/types.h>

#define TEAM_MAX    8
#define TEAM_IDS    512
#define TEAM_WAIT_S 60 /* for the others, and for NCCL, where nothing else is said */

struct team_page { /* shared */
    struct figures figures;
    struct team_found {
        uint32_t devices; /* 0: none, and why says it */
        bool standin, nccl;
        int cuda_version, nccl_version;
        char device[GPU_NAME_MAX];
        char why[ERR_TEXT_MAX];
    } found;
    /* of the team that is at work */
    _Atomic uint32_t arrived, at_work, enough;
    _Atomic int64_t struck_us; /* when the parent has killed or stopped one */
    struct nccl_id ids[TEAM_IDS];
};

struct options {
    uint32_t times;
    uint32_t ranks_most;
    uint32_t mib; /* of a large buffer */
};

struct member {
    struct team_page *page;
    const struct options *options;
    uint32_t rank, size;
    uint32_t arrivals, ids; /* how often it has been at the gate; how many ids were used */
    const char *question;
    const struct gpu_device *device;
    const struct cuda *cuda;
    const struct nccl *nccl;
    struct CUstream_st *stream;
    float *data; /* on the device */
};
#define MEMBER_NUMBERS ((size_t)1 << 20) /* at data */

typedef void member_fn(struct member *member);

struct team {
    struct team_page *page;
    const struct options *options;
    const char *question;
    uint32_t size;
    bool as_it_is; /* without NCCL_HOSTID, even if they share a device */
    member_fn *live;
    pid_t pids[TEAM_MAX];
};

/* ---- the parent ---- */

struct team_page *team_page_create(void); /* ends the process when there is no memory */

/* A process of its own that looks what there is. */
void team_look(struct team_page *page);

/* Runs all members; meanwhile `strike` (or NULL) does something to them. A member that has not
 * ended after so many seconds is killed, and a figure of that name says so. True: all members but
 * the struck one have ended well. */
typedef void team_strike_fn(struct team *team);
bool team_run(struct team *team, const char *name, int seconds, team_strike_fn *strike);

/* ---- a member ---- */

NORETURN void member_fail(struct member *member, const char *what, const char *why);
void member_must_cuda(struct member *member, int code, const char *what);
void member_must_nccl(struct member *member, int code, const char *what);

/* Until all are here. */
void member_gate(struct member *member);

void member_add(struct member *member, const char *name, const char *unit, double value);

/* ---- both ---- */

int64_t now_us(void);
void nap_us(int64_t us);

#endif
