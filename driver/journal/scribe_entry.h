/*
 * scribe_entry.h: a write that waits for its thread: a copy in one block. Private to this folder.
 */
#ifndef DRIVER_JOURNAL_SCRIBE_ENTRY_H
#define DRIVER_JOURNAL_SCRIBE_ENTRY_H

#include "base/list.h"
#include "driver/journal/job_file.h"

struct scribe_entry {
    struct list in_queue;
    size_t bytes; /* of the block */
    struct job_write write;
};

/* NULL when memory is out. Freed with mem_free. */
struct scribe_entry *scribe_entry_create(const struct job_write *write) MUST_CHECK;

#endif
