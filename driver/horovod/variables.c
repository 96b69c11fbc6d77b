/*
 * variables.c: reads the HOROVOD_* variables. options.c calls it after the command line and before
 * the other sources. If the value of one variable is wrong, such as a word in place of a number, no
 * variable is used, and the driver does not start: the error names the variable. A variable that
 * asks for what hvd-elastic does not have never stops a job, because images and shells set such
 * variables for other programs; the user is told the name of the variable.
 */
#include "driver/horovod/variables.h"

#include "base/limits.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX   "HOROVOD_"
#define MB       ((uint64_t)1024 * 1024)
#define TEXT_MAX 24 /* the size of a converted value: a number, or a word */

/* How the value of a variable becomes the value of the option. */
enum variable_unit {
    UNIT_SAME,    /* the value is copied; seconds without a unit are a valid time */
    UNIT_BYTES,   /* a number of bytes becomes a number of MB */
    UNIT_FLAG,    /* a flag: a number above 0 turns the option on, 0 turns it off */
    UNIT_NEGATED, /* a flag: a number above 0 turns the option off, 0 turns it on */
    UNIT_CARRIER, /* the value "gloo" is copied; another library has no effect */
    UNIT_FILE,    /* a path is copied; DYNAMIC, which names no file yet, has no effect */
    UNIT_WORKER   /* ignored, because the agent sets this variable for each worker */
};

/* clang-format off */
static const struct variable {
    const char *name; /* the name without "HOROVOD_" */
    enum variable_unit unit;
    const char *option; /* the option that the variable sets; NULL: none */
} variables[] = {
    { "AUTOTUNE", UNIT_FLAG, "autotune" },
    { "AUTOTUNE_BAYES_OPT_MAX_SAMPLES", UNIT_SAME, "autotune-bayes-opt-max-samples" },
    { "AUTOTUNE_GAUSSIAN_PROCESS_NOISE", UNIT_SAME, "autotune-gaussian-process-noise" },
    { "AUTOTUNE_LOG", UNIT_SAME, "autotune-log-file" },
    { "AUTOTUNE_STEPS_PER_SAMPLE", UNIT_SAME, "autotune-steps-per-sample" },
    { "AUTOTUNE_WARMUP_SAMPLES", UNIT_SAME, "autotune-warmup-samples" },
    { "CONTROLLER", UNIT_CARRIER, NULL },
    { "CPU_OPERATIONS", UNIT_CARRIER, "cpu-operations" },
    { "CROSS_RANK", UNIT_WORKER, NULL },
    { "CROSS_SIZE", UNIT_WORKER, NULL },
    { "DISABLE_NVTX_RANGES", UNIT_FLAG, "disable-nvtx-ranges" },
    { "ELASTIC", UNIT_WORKER, NULL },
    { "ELASTIC_TIMEOUT", UNIT_SAME, "elastic-timeout" },
    { "FUSION_THRESHOLD", UNIT_BYTES, "fusion-threshold-mb" },
    { "GLOO_IFACE", UNIT_SAME, "network-interface" },
    { "HIERARCHICAL_ALLGATHER", UNIT_FLAG, "hierarchical-allgather" },
    { "HIERARCHICAL_ALLREDUCE", UNIT_FLAG, "hierarchical-allreduce" },
    { "HOSTNAME", UNIT_WORKER, NULL },
    { "LOCAL_RANK", UNIT_WORKER, NULL },
    { "LOCAL_SIZE", UNIT_WORKER, NULL },
    { "LOG_HIDE_TIME", UNIT_FLAG, "log-without-timestamp" },
    { "LOG_LEVEL", UNIT_SAME, "log-level" },
    { "MPI_THREADS_DISABLE", UNIT_FLAG, "mpi-threads-disable" },
    { "RANK", UNIT_WORKER, NULL },
    { "SIZE", UNIT_WORKER, NULL },
    { "STALL_CHECK_DISABLE", UNIT_NEGATED, "stall-check" },
    { "STALL_CHECK_TIME_SECONDS", UNIT_SAME, "stall-warning" },
    { "STALL_SHUTDOWN_TIME_SECONDS", UNIT_SAME, "stall-shutdown" },
    { "START_TIMEOUT", UNIT_SAME, "start-timeout" },
    { "THREAD_AFFINITY", UNIT_SAME, "thread-affinity" },
    { "TIMELINE", UNIT_FILE, "timeline-filename" },
    { "TIMELINE_MARK_CYCLES", UNIT_FLAG, "timeline-mark-cycles" },
    { "TORUS_ALLREDUCE", UNIT_FLAG, "torus-allreduce" },
};
/* clang-format on */

/* The options that the variables set, collected for opt_take. Entry i of the three arrays is the
 * option i, the text of its value if that was converted, and the name of its variable. */
struct variables_reader {
    size_t count; /* the number of options in `given` */
    struct opt_given given[ARRAY_SIZE(variables)];
    char texts[ARRAY_SIZE(variables)][TEXT_MAX];
    char names[ARRAY_SIZE(variables)][sizeof(PREFIX) + OPT_NAME_MAX];
};

/* Converts the value of a variable (`text`) to the value of its option. *ret_value is then `text`
 * itself, `converted`, or a word; NULL: this value has no effect in hvd-elastic. */
static int convert(const struct variable *variable, const char *text, char converted[TEXT_MAX],
                   const char **ret_value, struct hvd_err *err)
{
    struct span span = { text, strlen(text) };
    uint64_t number = 0;
    int rc = 0;

    *ret_value = text;
    switch (variable->unit) {
    case UNIT_BYTES:
        rc = text_parse_u64(span, 0, LIMIT_FUSION_MB * MB, "the number of bytes", &number, err);
        if (!rc && number % MB)
            rc = err_set(err, HVD_E_INVAL,
                         "%s bytes are no whole number of MB; write %" PRIu64
                         " bytes, or give --%s %" PRIu64,
                         text, (number / MB + 1) * MB, variable->option, number / MB + 1);
        snprintf(converted, TEXT_MAX, "%" PRIu64, number / MB);
        *ret_value = converted;
        break;
    case UNIT_FLAG:
    case UNIT_NEGATED:
        if (span_is(span, "true"))
            number = 1;
        else if (!span_is(span, "false"))
            rc = text_parse_u64(span, 0, UINT64_MAX, "the flag, 0 or 1,", &number, err);
        *ret_value = (number > 0) == (variable->unit == UNIT_FLAG) ? "true" : "false";
        break;
    case UNIT_CARRIER:
        if (strcasecmp(text, "gloo") != 0)
            *ret_value = NULL;
        break;
    case UNIT_FILE:
        if (span_is(span, "DYNAMIC"))
            *ret_value = NULL;
        break;
    default: break; /* UNIT_SAME: any text is right; UNIT_WORKER never comes here */
    }
    return rc;
}

/* Reads the HOROVOD_* variables of envp into options. All values are read first and set together at
 * the end (opt_take), so a wrong value leaves all options unchanged. `unused` gets the names of
 * variables without effect. */
int horovod_variables(struct opt_set *set, char *const *envp, struct buf *unused,
                      struct hvd_err *err)
{
    struct variables_reader reader = { .count = 0 };
    char quoted[TEXT_QUOTE_MAX];
    int rc = 0;

    for (char *const *entry = envp; *entry && !rc; entry++) {
        bool first = !strncmp(*entry, PREFIX, strlen(PREFIX));
        size_t length = strcspn(*entry, "="), at = reader.count;
        const char *text = *entry + length + ((*entry)[length] == '=');
        const struct variable *variable = NULL;
        const char *value = NULL;

        /* `first`: the entry is a HOROVOD_ variable, and no earlier entry has its name. Of two
         * entries with one name the first counts, as with getenv. */
        for (char *const *earlier = envp; first && earlier != entry; earlier++)
            first = strncmp(*earlier, *entry, strcspn(*entry, "=") + 1) != 0;
        if (!first)
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(variables) && !variable; i++) {
            if (length - strlen(PREFIX) == strlen(variables[i].name) &&
                !strncmp(*entry + strlen(PREFIX), variables[i].name, length - strlen(PREFIX)))
                variable = &variables[i];
        }
        if (!*text || (variable && variable->unit == UNIT_WORKER))
            continue;
        if (variable && at < ARRAY_SIZE(variables))
            rc = convert(variable, text, reader.texts[at], &value, err);
        if (rc) {
            err_prefix(err, rc, "%.*s", (int)length, *entry);
        } else if (!value ||
                   (variable->option && opt_refuses(opt_find(set, variable->option), value))) {
            /* The variable has no effect, and its name is added to `unused`. A name with unusual
             * characters is quoted. */
            if (unused->length)
                rc = buf_append_text(unused, ", ");
            if (!rc && strspn(*entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") >= length)
                rc = buf_append(unused, *entry, length);
            else if (!rc)
                rc = buf_append_text(unused, text_quote(*entry, length, quoted));
            /* The list is only shown to the user. If it is too long, its beginning is enough. */
            rc = rc == HVD_E_LIMIT ? 0 : rc;
        } else if (variable->option) {
            snprintf(reader.names[at], sizeof(reader.names[at]), "%.*s", (int)length, *entry);
            reader.given[at] =
                (struct opt_given){ variable->option, value, reader.names[at], NULL };
            reader.count++;
        }
    }
    if (rc == HVD_E_NOMEM)
        return err_set(err, rc, "%s", err_text(rc));
    return rc ? rc : opt_take(set, OPT_FOREIGN, reader.given, reader.count, err);
}
