/*
 * notice_grace.c: how long a scheduler waits after SIGTERM before it kills a process, and how long
 * Slurm waits after the earlier signal that a user has asked for (sbatch --signal). Called when the
 * agent starts. Invariant: a text that cannot be read gives the usual time, and no error.
 */
#include "agent/notice/notice_grace.h"

#include "agent/notice/notice.h"
#include "agent/notice/notice_read.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "os/file.h"
#include "proto/preemption.h"

#include <stdlib.h>
#include <string.h>

#define SLURM_KILL_WAIT_US (30 * TIME_S) /* KillWait, if slurm.conf does not set it */
#define SLURM_SIGNAL_US    (60 * TIME_S) /* the time of --signal, if it has none */
#define SLURM_SECONDS_MAX  65535         /* the most seconds that Slurm takes for these times */

/* Takes the next word of the form "Name=Value" off the line; words of other forms are skipped.
 * false: no such word is left. */
static bool grace_next(struct span *line, struct span *ret_name, struct span *ret_value)
{
    struct span word;

    for (;;) {
        *line = span_trim(*line);
        if (!line->length)
            return false;
        if (!span_next(line, ' ', &word))
            return false;
        if (memchr(word.at, '=', word.length)) {
            *ret_value = word;
            (void)span_next(ret_value, '=', ret_name);
            *ret_value = span_trim(*ret_value);
            return true;
        }
    }
}

/* Reads a number of seconds. A text that is none leaves *ret_us as it is. */
static void grace_seconds(struct span value, int64_t *ret_us)
{
    uint64_t seconds;

    if (!text_parse_u64(value, 0, SLURM_SECONDS_MAX, "seconds", &seconds, NULL))
        *ret_us = (int64_t)seconds * TIME_S;
}

/* Reads slurm.conf: KillWait of the cluster, and GraceTime on the line of this partition. The
 * shorter one counts; a GraceTime of 0 means that none is set. */
int64_t notice_slurm_grace(struct span conf, const char *partition)
{
    int64_t kill_us = SLURM_KILL_WAIT_US, grace_us = 0, found_us;
    struct span line, name, value;
    bool of_ours; /* the line is that of our partition */

    while (span_next(&conf, '\n', &line)) {
        const char *comment = line.length ? memchr(line.at, '#', line.length) : NULL;

        if (comment)
            line.length = (size_t)(comment - line.at);
        of_ours = false;
        found_us = -1;
        while (grace_next(&line, &name, &value)) {
            if (notice_same(name, "killwait"))
                grace_seconds(value, &kill_us);
            else if (notice_same(name, "partitionname"))
                of_ours = partition && span_is(value, partition);
            else if (notice_same(name, "gracetime"))
                grace_seconds(value, &found_us);
        }
        if (of_ours && found_us >= 0)
            grace_us = found_us;
    }
    return grace_us > 0 && grace_us < kill_us ? grace_us : kill_us;
}

/* Reads the seconds after the "@" in the value of --signal, "B:USR2@120". NULL, or no time: Slurm's
 * own default. */
int64_t notice_slurm_signal(const char *signal)
{
    const char *at = signal ? strchr(signal, '@') : NULL;
    int64_t left_us = SLURM_SIGNAL_US;

    if (at)
        grace_seconds((struct span){ at + 1, strlen(at + 1) }, &left_us);
    return left_us;
}

/* true: this agent runs in a job of Slurm, and --preemption is "auto" or names slurm. */
static bool grace_of_slurm(const char *preemption)
{
    struct preemption wanted;

    return getenv("SLURM_JOB_ID") && !preemption_parse(preemption, &wanted, NULL) &&
           (wanted.automatic || (wanted.givers & PREEMPTION_SLURM));
}

/* Returns the time that is left after a SIGTERM: from HVD_TERMINATION_GRACE, else from the settings
 * of Slurm, else fallback_us. */
int64_t notice_grace(const char *preemption, int64_t fallback_us)
{
    const char *said = getenv("HVD_TERMINATION_GRACE");
    const char *conf = getenv("SLURM_CONF");
    struct hvd_err err;
    struct buf text;
    int64_t left_us = fallback_us;

    if (said && *said) {
        if (time_parse(said, &left_us, &err))
            log_warning(AGENT,
                        "HVD_TERMINATION_GRACE: %s; the time of --notice counts after a SIGTERM",
                        err.text);
        return left_us;
    }
    if (!conf || !grace_of_slurm(preemption))
        return fallback_us;
    buf_init(&text, LIMIT_CONFIG_TEXT_BYTES);
    if (!file_read(conf, &text, NULL))
        left_us = notice_slurm_grace((struct span){ buf_text(&text), text.length },
                                     getenv("SLURM_JOB_PARTITION"));
    buf_release(&text);
    return left_us;
}

/* Returns the time that is left after a SIGUSR2, the signal before SIGTERM that a job of Slurm may
 * ask for. */
int64_t notice_warning(const char *preemption, int64_t fallback_us)
{
    return grace_of_slurm(preemption) ? notice_slurm_signal(getenv("SBATCH_SIGNAL")) : fallback_us;
}
