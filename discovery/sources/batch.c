/*
 * batch.c: hosts that a batch system has given to the job in which this process runs
 * (--batch-system). The system names them in a variable, or in a file that a variable names; the
 * file is read again for each answer. discover.c calls it, and driver/options.c counts the slots.
 *
 * The environment of this process counts, never that of the training's first driver: after --resume
 * the hosts of an earlier batch job may belong to another user.
 */
#include "discovery/batch.h"
#include "base/limits.h"
#include "base/panic.h"
#include "discovery/sources/source_internal.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The variables in which each batch system names the hosts of a job. A system with several
 * variables is read from the first of its rows whose variable is set. */
static const struct batch_row {
    const char *system;
    const char *variable;
    enum batch_grammar grammar;
    bool is_file; /* the variable has the path of the text, not the text */
} batch_rows[] = {
    {"lsf",     "LSB_DJOB_HOSTFILE", BATCH_NODES,  true },
    { "lsf",    "LSB_MCPU_HOSTS",    BATCH_PAIRS,  false},
    { "lsf",    "LSB_HOSTS",         BATCH_NAMES,  false},
    { "pbs",    "PBS_NODEFILE",      BATCH_NODES,  true },
    { "sge",    "PE_HOSTFILE",       BATCH_QUEUES, true },
    { "cobalt", "COBALT_NODEFILE",   BATCH_NODES,  true },
};

/* Finds the row of the variable from which the hosts are read. HVD_E_INVAL: `system` is not known,
 * or with "auto" the variables of two systems are set. HVD_E_NOTFOUND: no variable of the system is
 * set. */
static int batch_find(const char *system, const struct batch_row **ret_row, struct hvd_err *err)
{
    bool is_auto = !strcmp(system, "auto");
    const struct batch_row *found = NULL;
    char looked[160] = ""; /* the names of the variables that were looked for */
    size_t length = 0;

    for (size_t i = 0; i < ARRAY_SIZE(batch_rows); i++) {
        const struct batch_row *row = &batch_rows[i];
        const char *value = getenv(row->variable);

        if (!is_auto && strcmp(system, row->system) != 0)
            continue;
        length += (size_t)snprintf(looked + length, sizeof(looked) - length, "%s%s",
                                   length ? ", " : "", row->variable);
        ASSERT(length < sizeof(looked));
        if (!value || !value[0])
            continue;
        if (found && strcmp(found->system, row->system) != 0)
            return err_set(err, HVD_E_INVAL,
                           "--batch-system auto: both %s and %s are set; write --batch-system %s "
                           "or --batch-system %s",
                           found->variable, row->variable, found->system, row->system);
        if (!found)
            found = row;
    }
    if (!length)
        return err_set(err, HVD_E_INVAL,
                       "--batch-system %s: no such system is known; write auto, lsf, pbs, sge or "
                       "cobalt; for Slurm see deploy/slurm.md",
                       system);
    if (!found)
        return err_set(err, HVD_E_NOTFOUND,
                       "--batch-system %s: this process is in no batch job, as none of %s is set; "
                       "start the driver in the job's script, or name hosts with --hosts or "
                       "--hostfile",
                       system, looked);
    *ret_row = found;
    return 0;
}

/* Reads the hosts from the variable of the batch system, or from the file that the variable names.
 * Errors begin with the system and its variable. */
int discover_batch_hosts(const char *system, uint32_t slots_per_line, struct hosts *ret_hosts,
                         struct hvd_err *err)
{
    const struct batch_row *row = NULL;
    const char *value;
    struct span span;
    struct stat st;
    struct buf text;
    int rc = batch_find(system, &row, err);

    value = row ? getenv(row->variable) : NULL;
    if (!value)
        return rc;
    span = (struct span){ value, strlen(value) };
    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    /* A pipe is refused: opening it waits for a writer, and would stop the event loop. */
    if (row->is_file && !stat(value, &st) && !S_ISREG(st.st_mode))
        rc = err_set(err, HVD_E_INVAL,
                     "%s: is no regular file; let the variable name the file of the batch system",
                     value);
    else if (row->is_file) {
        rc = file_read(value, &text, err);
        span = (struct span){ buf_text(&text), text.length };
    }
    if (!rc)
        rc = hosts_parse_batch(row->grammar, span, row->is_file ? value : "its text",
                               slots_per_line, ret_hosts, err);
    if (rc)
        err_prefix(err, rc, "--batch-system %s: %s", row->system, row->variable);
    buf_release(&text);
    return rc;
}

/* Called when the driver starts: reads the hosts only to find errors. Each question (batch_ask)
 * reads them again. */
static int batch_open(struct discoverer *discoverer, struct hvd_err *err)
{
    struct hosts hosts;
    int rc;

    hosts_init(&hosts);
    rc = discover_batch_hosts(discoverer->config.value, discoverer->config.slots_per_host, &hosts,
                              err);
    hosts_release(&hosts);
    return rc;
}

/* Reads the hosts anew from the variable or file, and gives the owner the answer. `err` is set only
 * if rc is not 0. */
static void batch_ask(struct discoverer *discoverer)
{
    struct hosts hosts;
    struct hvd_err err;
    int rc;

    hosts_init(&hosts);
    rc = discover_batch_hosts(discoverer->config.value, discoverer->config.slots_per_host, &hosts,
                              &err);
    discover_answer(discoverer, rc, &hosts, &err);
}

const struct discover_source discover_batch = {
    .option = "batch-system",
    .when_empty = "is empty",
    .open = batch_open,
    .ask = batch_ask,
};
