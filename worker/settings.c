#include "worker/settings.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

#define MB ((size_t)1024 * 1024)

/* NULL: not set. */
static const char *value_of(const char *name)
{
    const char *text = getenv(name);

    return text && text[0] ? text : NULL;
}

static int refuse(const char *name, const char *text, const char *allowed, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(err, HVD_E_INVAL, "%s is %s; it may be %s", name,
                   text_quote(text, strlen(text), quoted), allowed);
}

/* Untouched when it is not set. */
static int read_word(const char *name, const char *const *words, const char *allowed,
                     size_t *ret_index, struct hvd_err *err)
{
    const char *text = value_of(name);

    for (size_t i = 0; text && words[i]; i++) {
        if (!strcmp(text, words[i])) {
            *ret_index = i;
            return 0;
        }
    }
    return text ? refuse(name, text, allowed, err) : 0;
}

static int read_carrier(struct coll_options *options, struct hvd_err *err)
{
    static const char *const words[] = {
        [COLL_BY_BEST] = "auto", [COLL_BY_GLOO] = "gloo", [COLL_BY_TCP] = "tcp", NULL
    };
    size_t index = COLL_BY_BEST;
    int rc = read_word("HVD_CPU_OPERATIONS", words, "auto, gloo or tcp", &index, err);

    options->carrier = (enum coll_carrier)index;
    options->flat = index != COLL_BY_BEST;
    return rc;
}

static int read_order(struct coll_options *options, struct hvd_err *err)
{
    static const char *const words[] = { "0", "1", "false", "true", NULL };
    size_t index = 0;
    int rc = read_word("HVD_FIXED_ORDER", words, "0 or 1", &index, err);

    options->fixed_order = index % 2;
    return rc;
}

/* 0 asks for the least. Not for none: each message has its cost, and what is cut to a few numbers
 * takes thousands of them. */
#define FUSION_LEAST ((size_t)64 * 1024)

static int read_fusion(struct coll_options *options, struct hvd_err *err)
{
    const char *name = "HVD_FUSION_THRESHOLD_MB";
    const char *text = value_of(name);
    uint64_t mb = 0;

    if (!text)
        return 0;
    if (text_parse_u64((struct span){ text, strlen(text) }, 0, LIMIT_FUSION_MB, name, &mb, NULL))
        return refuse(name, text, "a whole number from 0 to 4096 (LIMIT_FUSION_MB)", err);
    options->fusion_bytes = mb ? (size_t)mb * MB : FUSION_LEAST;
    return 0;
}

static int read_gpu(struct coll_options *options, struct hvd_err *err)
{
    static const char *const words[] = {
        [COLL_GPU_AUTO] = "auto", [COLL_GPU_NCCL] = "nccl", [COLL_GPU_CPU] = "cpu", NULL
    };
    size_t index = COLL_GPU_AUTO;
    int rc = read_word("HVD_GPU_OPERATIONS", words, "auto, nccl or cpu", &index, err);

    options->gpu = (enum coll_gpu)index;
    return rc;
}

/* As --gpu-timeout has them. */
#define GPU_LEAST_US (100 * TIME_MS)
#define GPU_MOST_US  TIME_HOUR

static int read_gpu_bound(struct coll_options *options, struct hvd_err *err)
{
    const char *name = "HVD_GPU_TIMEOUT";
    const char *text = value_of(name);

    if (!text)
        return 0;
    if (time_parse(text, &options->gpu_bound_us, NULL) || options->gpu_bound_us < GPU_LEAST_US ||
        options->gpu_bound_us > GPU_MOST_US)
        return refuse(name, text, "a time from 100ms to 1h", err);
    return 0;
}

int settings_read_commit_to(enum commit_to *ret_to, struct hvd_err *err)
{
    static const char *const words[] = {
        [COMMIT_TO_BOTH] = "both", [COMMIT_TO_HOST] = "host", [COMMIT_TO_DEVICE] = "device", NULL
    };
    size_t index = COMMIT_TO_BOTH;
    int rc = read_word("HVD_COMMIT_TO", words, "both, host or device", &index, err);

    if (!rc)
        *ret_to = (enum commit_to)index;
    return rc;
}

int settings_read(struct coll_options *ret_options, struct hvd_err *err)
{
    struct coll_options options = { .host = NULL };
    int rc = read_carrier(&options, err);

    if (!rc)
        rc = read_order(&options, err);
    if (!rc)
        rc = read_fusion(&options, err);
    if (!rc)
        rc = read_gpu(&options, err);
    if (!rc)
        rc = read_gpu_bound(&options, err);
    if (!rc)
        *ret_options = options;
    return rc;
}
