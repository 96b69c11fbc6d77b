/*
 * fuzz_audit.c: the audit reads sample logs with any contents. Form feeds separate the files.
 */
#include "base/panic.h"
#include "tools/audit.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* only small numbers of samples, because the audit has a bit for each sample */
#define SAMPLES_MAX 10000

static void read_all(struct audit *audit, struct span text, bool mark)
{
    struct span file;
    struct span row;

    while (span_next(&text, '\f', &file)) {
        audit_begin_file(audit);
        while (span_next(&file, '\n', &row)) {
            struct hvd_err err = { .text = "" };
            struct audit_line line;
            int rc = audit_line_read(row, &line, &err);

            ASSERT(rc == 0 || (rc == HVD_E_INVAL && err.text[0]));
            if (rc || line.samples > SAMPLES_MAX)
                continue;
            ASSERT(line.rank < line.size && line.count <= line.total);
            ASSERT(line.first + line.total <= line.samples);
            if (mark)
                audit_mark(audit, &line);
            else
                rc = audit_note(audit, &line, &err);
            ASSERT(rc == 0 || rc == HVD_E_INVAL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = { (const char *)data, size };
    struct audit audit;

    audit_init(&audit);
    read_all(&audit, text, false);
    ASSERT(audit_judge(&audit, NULL) == 0);
    read_all(&audit, text, true);
    audit_finish(&audit);
    /* A finished epoch without faults must have each sample exactly once. */
    for (size_t i = 0; i < audit.samplers.count; i++) {
        const struct audit_sampler *sampler = audit.samplers.items[i];

        for (size_t k = 0; k < sampler->epochs.count; k++) {
            const struct audit_epoch *epoch = sampler->epochs.items[k];

            ASSERT(epoch->used <= sampler->samples);
            ASSERT(epoch->faults || !epoch->twice);
            ASSERT(epoch->faults || !epoch->finished || epoch->used == sampler->samples);
        }
    }
    audit_release(&audit);
    return 0;
}
