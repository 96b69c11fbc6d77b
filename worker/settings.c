/*
 * settings.c: reads the environment variables of settings.h.
 *
 * Called by worker.c in hvd_init. Invariant: a variable that is not set or empty changes nothing,
 * so the defaults are those of a program that was started without hvd-elastic.
 */
#include "worker/settings.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB ((size_t)1024 * 1024)

/* The words that a variable with two values may have. The words with an odd index mean true. */
static const char *const settings_flags[] = { "0", "1", "false", "true", NULL };

/* Returns the value of the environment variable; NULL: it is not set, or is empty. */
static const char *value_of(const char *name)
{
    const char *text = getenv(name);

    return text && text[0] ? text : NULL;
}

/* Makes the error for a variable whose value is not allowed. `allowed`: the allowed values, in
 * words. */
static int refuse_value(const char *name, const char *text, const char *allowed,
                        struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(err, HVD_E_INVAL, "%s is %s; set this variable to %s", name,
                   text_quote(text, strlen(text), quoted), allowed);
}

/* Sets *ret_index to the index of the variable's value in `words`; *ret_index does not change
 * when the variable is not set. */
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
    return text ? refuse_value(name, text, allowed, err) : 0;
}

/* Reads HVD_THREAD_AFFINITY: one core for all workers of a host, or a list with one core for each
 * slot. *ret_core is -1 if the variable is not set. */
int settings_read_core(int *ret_core, struct hvd_err *err)
{
    const char *name = "HVD_THREAD_AFFINITY";
    const char *text = value_of(name);
    const char *slot_text = value_of("HVD_SLOT");
    struct span rest = { text, text ? strlen(text) : 0 };
    bool several = text && strchr(text, ',');
    uint64_t slot = 0;
    uint64_t core;
    struct span item;

    *ret_core = -1;
    if (!text)
        return 0;
    /* A program without hvd-elastic has no slot, and uses the first core. */
    if (slot_text && text_parse_u64((struct span){ slot_text, strlen(slot_text) }, 0,
                                    LIMIT_SLOTS_PER_HOST, "HVD_SLOT", &slot, NULL))
        return refuse_value("HVD_SLOT", slot_text, "the number of a slot", err);
    for (uint64_t i = 0; span_next(&rest, ',', &item); i++) {
        if (text_parse_u64(item, 0, LIMIT_CORES - 1, name, &core, NULL))
            return refuse_value(name, text, "the numbers of cores, such as 3 or 0,8", err);
        if (!several || i == slot)
            *ret_core = (int)core;
    }
    if (*ret_core < 0)
        return err_set(err, HVD_E_INVAL,
                       "%s is %s, which has no core for slot %s; name one core for each slot of a "
                       "host, or one core for all slots",
                       name, text, slot_text ? slot_text : "0");
    return 0;
}

/* Reads HVD_COMMIT_TO: where commits of entries in GPU memory go; "both" if it is not set. */
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

/* Reads HVD_DISABLE_NVTX_RANGES. The variable disables, so its value is turned around. */
int settings_read_ranges(bool *ret_ranges, struct hvd_err *err)
{
    size_t disabled = 0;
    int rc = read_word("HVD_DISABLE_NVTX_RANGES", settings_flags, "0 or 1", &disabled, err);

    if (!rc)
        /* a word with an even index in settings_flags means false: the ranges are not disabled */
        *ret_ranges = disabled % 2 == 0;
    return rc;
}

/* The least and the longest value of HVD_GPU_TIMEOUT, as of the option --gpu-timeout. */
#define GPU_LEAST_US (100 * TIME_MS)
#define GPU_MOST_US  TIME_HOUR

/* Reads the settings of the collectives. Without a variable a setting has its default. */
int settings_read(struct coll_options *ret_options, struct hvd_err *err)
{
    static const char *const carriers[] = {
        [COLL_BY_BEST] = "auto", [COLL_BY_GLOO] = "gloo", [COLL_BY_TCP] = "tcp", NULL
    };
    static const char *const securities[] = { [LINK_SECURITY_AUTO] = "auto",
                                              [LINK_SECURITY_ENCRYPTED] = "encrypted",
                                              [LINK_SECURITY_AUTHENTICATED] = "authenticated",
                                              [LINK_SECURITY_NONE] = "none",
                                              NULL };
    static const char *const gpus[] = {
        [COLL_GPU_AUTO] = "auto", [COLL_GPU_NCCL] = "nccl", [COLL_GPU_CPU] = "cpu", NULL
    };
    const char *fusion = value_of("HVD_FUSION_THRESHOLD_MB");
    const char *timeout = value_of("HVD_GPU_TIMEOUT");
    struct coll_options options = { .host = NULL };
    uint64_t mb = 0;
    size_t carrier = COLL_BY_BEST;
    size_t security = LINK_SECURITY_AUTO;
    size_t fixed_order = 0;
    size_t gpu = COLL_GPU_AUTO;
    int rc = read_word("HVD_CPU_OPERATIONS", carriers, "auto, gloo or tcp", &carrier, err);

    options.carrier = (enum coll_carrier)carrier;
    /* If the variable names a carrier, this carrier is used inside a host too, instead of shared
     * memory. */
    options.flat = carrier != COLL_BY_BEST;
    if (!rc)
        rc = read_word("HVD_DATA_SECURITY", securities, "auto, encrypted, authenticated or none",
                       &security, err);
    options.security = (enum link_security)security;
    if (!rc)
        rc = read_word("HVD_FIXED_ORDER", settings_flags, "0 or 1", &fixed_order, err);
    options.fixed_order = fixed_order % 2;
    if (!rc && fusion &&
        text_parse_u64((struct span){ fusion, strlen(fusion) }, 0, LIMIT_FUSION_MB, "", &mb, NULL))
        rc = refuse_value("HVD_FUSION_THRESHOLD_MB", fusion,
                          "a whole number from 0 to 4096 (LIMIT_FUSION_MB)", err);
    options.fusion_bytes = (size_t)mb * MB;
    /* 0 was set, which turns fusion off; without the variable fusion_bytes is 0 too, and means the
     * default */
    options.unfused = fusion && !mb;
    if (!rc)
        rc = read_word("HVD_GPU_OPERATIONS", gpus, "auto, nccl or cpu", &gpu, err);
    options.gpu = (enum coll_gpu)gpu;
    if (!rc && timeout &&
        (time_parse(timeout, &options.gpu_bound_us, NULL) || options.gpu_bound_us < GPU_LEAST_US ||
         options.gpu_bound_us > GPU_MOST_US))
        rc = refuse_value("HVD_GPU_TIMEOUT", timeout, "a time from 100ms to 1h", err);
    if (!rc)
        *ret_options = options;
    return rc;
}

/* ---- other launchers ------------------------------------------------------------------------- */

/* The variables by which a launcher tells a process how many processes it has started. An agent of
 * hvd-elastic sets HOROVOD_SIZE too, but not the address beside it. */
static const struct launcher {
    const char *size; /* the number of processes */
    const char *with; /* a variable that must be set too; NULL: `size` is enough */
    const char *name;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE",  NULL,                           "mpirun"    },
    { "PMI_SIZE",             NULL,                           "mpirun"    },
    { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",                 "srun"      }, /* a batch script is in no step of srun */
    { "WORLD_SIZE",           "MASTER_ADDR",                  "torchrun"  },
    { "HOROVOD_SIZE",         "HOROVOD_GLOO_RENDEZVOUS_ADDR", "horovodrun"},
};

/* The variables of launchers that number their processes from 1, and do not say how many processes
 * there are. A process with the number 1 may be the only one, so it may train alone. */
static const struct launcher numberers[] = {
    {"LSF_PM_TASKID", NULL, "blaunch"},
    { "PBS_TASKNUM",  NULL, "pbsdsh" }, /* the script of the job itself is number 1 */
};

/* Writes the error for a process that another launcher has started as one of several. `variable`
 * shows that launcher; size is the number of processes, 0: the launcher does not say how many. */
static int refuse_launcher(const char *name, const char *variable, uint64_t size,
                           struct hvd_err *err)
{
    char count[24] = "N";

    if (size)
        snprintf(count, sizeof(count), "%" PRIu64, size);
    return err_set(
        err, HVD_E_INVAL,
        "%s started this process as one of %s (%s is set), and each of these processes would train "
        "alone, as a job of one worker; start the program with \"hvd-elastic -np %s COMMAND\" on "
        "this machine, or with \"hvd-elastic -np %s -H HOST:SLOTS,... COMMAND\" on several "
        "machines; or set HVD_ALONE=1 to train alone in each process",
        name, size ? count : "several", variable, count, count);
}

/* Checks that a process without hvd-elastic may train alone. The check fails if another launcher
 * has started the process as one of several, unless HVD_ALONE is set to 1. */
int settings_check_alone(struct hvd_err *err)
{
    size_t alone = 0;
    uint64_t size = 0;
    bool is_counted = false;
    int rc = read_word("HVD_ALONE", settings_flags, "0 or 1", &alone, err);

    if (rc || alone % 2) /* a word with an odd index in settings_flags means true */
        return rc;
    for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
        const struct launcher *launcher = &launchers[i];
        const char *text = value_of(launcher->size);

        if (!text || (launcher->with && !value_of(launcher->with)) ||
            text_parse_u64((struct span){ text, strlen(text) }, 1, UINT32_MAX, "", &size, NULL))
            continue;
        if (size > 1)
            return refuse_launcher(launcher->name, launcher->size, size, err);
        is_counted = true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(numberers) && !is_counted; i++) {
        const char *text = value_of(numberers[i].size);

        if (text &&
            !text_parse_u64((struct span){ text, strlen(text) }, 2, UINT32_MAX, "", &size, NULL))
            return refuse_launcher(numberers[i].name, numberers[i].size,
                                   0 /* how many processes is not known */, err);
    }
    /* a launcher with PMIx tells a process its rank, but not how many processes there are */
    if (!is_counted && value_of("PMIX_RANK"))
        return refuse_launcher("a launcher with PMIx", "PMIX_RANK",
                               0 /* how many processes is not known */, err);
    return 0;
}
