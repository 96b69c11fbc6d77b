/*
 * record.c: keeps what happened in a campaign until the reports are made: the faults, and the
 * faults that were skipped.
 */
#include "tests/chaos/record.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdio.h>
#include <string.h>

/* a page with more faults could not be read */
#define FAULTS_MAX  (1024 * 1024)
#define SKIPPED_MAX 1024

void record_init(struct record *record)
{
    memset(record, 0, sizeof(*record));
}

void record_release(struct record *record)
{
    if (!record)
        return;
    mem_free(record->faults);
    mem_free(record->skipped);
    record_init(record);
}

int record_fault(struct record *record, const struct record_fault *fault)
{
    int rc = vec_reserve(&record->faults, &record->fault_room, record->fault_count, 1, FAULTS_MAX,
                         sizeof(*record->faults));

    if (rc)
        return rc;
    record->faults[record->fault_count++] = *fault;
    record->violations += fault->violation[0] && !fault->hung;
    record->hangs += fault->hung;
    return 0;
}

int record_skipped(struct record *record, const char *text)
{
    int rc = vec_reserve(&record->skipped, &record->skipped_room, record->skipped_count, 1,
                         SKIPPED_MAX, sizeof(*record->skipped));

    if (rc)
        return rc;
    snprintf(record->skipped[record->skipped_count++], RECORD_TEXT, "%s", text);
    return 0;
}
