/*
 * fuzz_report.c: any bytes in the slots of a worker's page, as its agent reads them. A value that
 * is read has a good name with zeros behind it; then the worker reports one more value, which is
 * found.
 */
#include "base/panic.h"
#include "proto/page.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct page page;
    struct report report, mine = { .name = "loss", .bits = 7 };
    bool found = false;

    memset(&page, 0, sizeof(page));
    memcpy(page.reports, data, size < sizeof(page.reports) ? size : sizeof(page.reports));
    for (size_t i = 0; i < LIMIT_REPORTS; i++) {
        if (!report_get(&page.reports[i], &report))
            continue;
        ASSERT(report_name_is_good(report.name));
        for (size_t k = strlen(report.name); k < sizeof(report.name); k++)
            ASSERT(!report.name[k]);
    }
    if (report_put(page.reports, &mine))
        return 0;
    for (size_t i = 0; i < LIMIT_REPORTS; i++)
        /* the turn of a slot may be the highest number, and becomes 0 then */
        found = found || !page.reports[i].turn ||
                (report_get(&page.reports[i], &report) && report.bits == mine.bits &&
                 !strcmp(report.name, mine.name));
    ASSERT(found);
    return 0;
}
