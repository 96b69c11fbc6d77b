/*
 * fuzz_recorder.c: any bytes in the recorder of a worker's page, as its agent reads them. Each
 * activity that is read is within its limits; then the worker records one more activity, which is
 * found, unless its slot is being written.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "proto/page.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct activity mine = { .name = "allreduce", .round = 1, .bytes = 77 };
    static struct recorded recorded;
    static struct page page;
    struct recorder *recorder = &page.recorder;
    uint64_t number;
    bool found = false;

    memset(&page, 0, sizeof(page));
    memcpy(recorder, data, size < sizeof(*recorder) ? size : sizeof(*recorder));
    for (int pass = 0; pass < 2; pass++) {
        recorder_read(recorder, &recorded);
        ASSERT(recorded.count <= RECORDER_SLOTS);
        ASSERT(recorded.size <= LIMIT_WORKERS &&
               (recorded.size ? recorded.rank < recorded.size : !recorded.rank));
        for (size_t i = 0; i < recorded.count; i++) {
            const char *name = recorded.items[i].name;
            size_t length = strnlen(name, RECORDER_NAME_BYTES + 1);

            ASSERT(length && length <= RECORDER_NAME_BYTES);
            for (size_t k = 0; k < length; k++)
                ASSERT(name[k] >= ' ' && name[k] <= '~');
            found = found || (pass && !strcmp(name, mine.name) && recorded.items[i].bytes == 77);
        }
        number = pass ? 0 : recorder_begin(recorder, &mine);
        if (!pass && !number)
            return 0;
        /* the turn of the highest numbers is 0 again, which is an empty slot */
        if (!pass && 2 * number == 0)
            return 0;
    }
    ASSERT(found);
    return 0;
}
