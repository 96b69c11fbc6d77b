/*
 * fuzz_show.c: any text, as a terminal may have it. The result is one clean text, apart from
 * colours, and shows the same when it is shown again without them.
 */
#include "base/panic.h"
#include "base/text.h"
#include "base/text_show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf shown;

    buf_init(&shown, 5 * size + 16);
    for (int colours = 0; colours < 2; colours++) {
        buf_clear(&shown);
        ASSERT(!text_show(&shown, (const char *)data, size, colours));
        ASSERT(colours || text_is_clean(buf_text(&shown), shown.length));
        /* the only escape that passes begins a sequence of colours */
        for (size_t i = 0; i < shown.length; i++)
            ASSERT(shown.data[i] != '\x1b' || (shown.data[i + 1] == '[' && colours));
    }
    buf_release(&shown);
    return 0;
}
