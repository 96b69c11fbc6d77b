#include "gpu/nccl.h"

#include "gpu/library.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define CALL_ROW(member, name_there, parameters) \
    { .symbol = (name_there), .offset = offsetof(struct nccl, member) },
#define MAYBE_ROW(member, name_there, parameters) \
    { .symbol = (name_there), .offset = offsetof(struct nccl, member), .may_lack = true },
/* clang-format off */
static const struct library_call calls[] = {
    NCCL_CALLS(CALL_ROW, MAYBE_ROW)
    CALL_ROW(result_text, "ncclGetErrorString", )
    CALL_ROW(last_error, "ncclGetLastError", )
};
/* clang-format on */
#undef CALL_ROW
#undef MAYBE_ROW

static const struct library_spec spec = { .name = "NCCL",
                                          .file = "libnccl.so.2",
                                          .variable = "HVD_NCCL_LIBRARY",
                                          .calls = calls,
                                          .call_count = ARRAY_SIZE(calls) };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl found;
static const struct nccl *_Atomic the_nccl; /* &found, once it is complete */

void nccl_version_text(int version, char text[NCCL_VERSION_TEXT_MAX])
{
    snprintf(text, NCCL_VERSION_TEXT_MAX, "%d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
}

int nccl_judge(const struct nccl *nccl, int code, const char *what, struct hvd_err *err)
{
    const char *noted;

    if (code == NCCL_OK || code == NCCL_IN_PROGRESS)
        return 0;
    noted = nccl->last_error(NULL);
    return err_set(err, code == NCCL_REMOTE_ERROR ? HVD_E_LOST : HVD_E_IO, "%s: NCCL: %s%s%s", what,
                   nccl->result_text(code), noted && noted[0] ? "; " : "", noted ? noted : "");
}

static int judge_version(const struct nccl *nccl, struct hvd_err *err)
{
    char have[NCCL_VERSION_TEXT_MAX];
    char least[NCCL_VERSION_TEXT_MAX];

    if (nccl->version >= NCCL_VERSION_LEAST)
        return 0;
    nccl_version_text(nccl->version, have);
    nccl_version_text(NCCL_VERSION_LEAST, least);
    return err_set(err, HVD_E_UNSUPPORTED,
                   "NCCL is %s, and at least %s is needed; install it, or "
                   "name it in HVD_NCCL_LIBRARY",
                   have, least);
}

static int look(struct hvd_err *err)
{
    struct nccl nccl = { .version = 0 };
    int rc = cuda_open(&nccl.cuda, err);

    if (!rc)
        rc = library_find(&spec, true, &nccl, err);
    if (!rc)
        rc = nccl_judge(&nccl, nccl.get_version(&nccl.version), "its version", err);
    if (!rc)
        rc = judge_version(&nccl, err);
    if (rc)
        return rc;
    found = nccl;
    atomic_store(&the_nccl, &found);
    return 0;
}

int nccl_open(const struct nccl **ret_nccl, struct hvd_err *err)
{
    int rc = 0;

    if (!atomic_load(&the_nccl)) {
        pthread_mutex_lock(&lock);
        if (!atomic_load(&the_nccl))
            rc = look(err);
        pthread_mutex_unlock(&lock);
    }
    if (!rc)
        *ret_nccl = atomic_load(&the_nccl);
    return rc;
}
