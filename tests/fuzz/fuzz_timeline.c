/*
 * fuzz_timeline.c: hvd-timeline reads timelines with any contents. A line that is refused says why;
 * what the others add up to is never more than there was.
 */
#include "base/panic.h"
#include "tools/arrivals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = { (const char *)data, size };
    struct arrivals arrivals;
    uint64_t last = 0;
    struct span line;

    arrivals_init(&arrivals);
    while (span_next(&text, '\n', &line)) {
        struct hvd_err err = { .text = "" };
        int rc = arrivals_line(&arrivals, line, &err);

        ASSERT(rc == 0 || (rc == HVD_E_INVAL && err.text[0]));
    }
    if (!arrivals_judge(&arrivals, NULL)) {
        ASSERT(2 * arrivals.compared + arrivals.partial <= arrivals.calls.count);
        for (size_t i = 0; i < arrivals.workers.count; i++) {
            last += arrivals.workers.items[i].last;
            ASSERT(arrivals.workers.items[i].most_us <= arrivals.worst.us);
        }
        ASSERT(last == arrivals.compared);
    }
    arrivals_release(&arrivals);
    return 0;
}
