/*
 * nccl.c: finds NCCL, after the CUDA driver, and puts its codes into words. The first usable NCCL
 * that was found is kept for the life of the process.
 */
#include "gpu/nccl.h"

#include "gpu/library.h"

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
static const void *_Atomic the_nccl; /* &found once `found` is complete; NULL: not found yet */

/* Writes a version as text. NCCL counts 10000 for a major and 100 for a minor version: 22809 is
 * "2.28.9". */
void nccl_version_text(int version, char text[NCCL_VERSION_TEXT_MAX])
{
    snprintf(text, NCCL_VERSION_TEXT_MAX, "%d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
}

/* Turns a code of NCCL into ours: 0, also for "in progress"; HVD_E_LOST: a peer has died; HVD_E_IO:
 * another failure. `what`: the call that returned the code, as the error's text names it. */
int nccl_judge(const struct nccl *nccl, int code, const char *what, struct hvd_err *err)
{
    const char *noted;

    if (code == NCCL_OK || code == NCCL_IN_PROGRESS)
        return 0;
    noted = nccl->last_error(NULL);
    return err_set(err, code == NCCL_REMOTE_ERROR ? HVD_E_LOST : HVD_E_IO, "%s: NCCL: %s%s%s", what,
                   nccl->result_text(code), noted && noted[0] ? "; " : "", noted ? noted : "");
}

/* Finds NCCL's functions and checks NCCL's version; library_once calls this until it succeeds. NCCL
 * needs the CUDA driver, so that is opened first. */
static int find_nccl(void *arg, const void **ret_found, struct hvd_err *err)
{
    char have[NCCL_VERSION_TEXT_MAX], least[NCCL_VERSION_TEXT_MAX];
    struct nccl nccl = { .version = 0 };
    int rc = cuda_open(&nccl.cuda, err);

    (void)arg;
    if (!rc)
        rc = library_find(&spec, true, &nccl, err); /* true: NCCL may be loaded */
    if (!rc)
        rc = nccl_judge(&nccl, nccl.get_version(&nccl.version), "the version of NCCL", err);
    if (rc)
        return rc;
    if (nccl.version < NCCL_VERSION_LEAST) {
        nccl_version_text(nccl.version, have);
        nccl_version_text(NCCL_VERSION_LEAST, least);
        return err_set(err, HVD_E_UNSUPPORTED,
                       "NCCL has version %s, and at least %s is needed; install a newer NCCL, or "
                       "name the path of a newer one in HVD_NCCL_LIBRARY",
                       have, least);
    }
    found = nccl;
    *ret_found = &found;
    return 0;
}

/* Returns NCCL, and loads its library if the process has not loaded it (nccl.h). */
int nccl_open(const struct nccl **ret_nccl, struct hvd_err *err)
{
    int rc = library_once(&lock, &the_nccl, find_nccl, NULL, err);

    if (!rc)
        *ret_nccl = atomic_load(&the_nccl);
    return rc;
}
