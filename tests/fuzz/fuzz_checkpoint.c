/*
 * fuzz_checkpoint.c: the JSON of a checkpoint. The first byte says how the rest is read: 'm': as a
 * manifest; anything else: as the header of a file, whose data have as many bytes as the second
 * byte says.
 *
 * Text that is refused says why. A manifest that is taken is printed, and the print is read back to
 * the same. The entries of a header that is taken fill the file.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/part.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_manifest(const char *text, size_t length)
{
    struct checkpoint_manifest manifest, again;
    struct hvd_err err = { .code = 0 };
    struct buf printed, second;

    if (checkpoint_parse("fuzz", text, length, &manifest, &err)) {
        ASSERT(err.code < 0 && !strncmp(err.text, "fuzz: ", strlen("fuzz: ")));
        return;
    }
    for (size_t i = 0; i < manifest.file_count; i++)
        ASSERT(manifest.files[i].rank < (int32_t)manifest.ranks &&
               !strchr(manifest.files[i].name, '/'));
    buf_init(&printed, LIMIT_CHECKPOINT_MANIFEST_BYTES);
    buf_init(&second, LIMIT_CHECKPOINT_MANIFEST_BYTES);
    ASSERT(!checkpoint_print(&manifest, &printed));
    if (checkpoint_parse("again", printed.data, printed.length, &again, &err))
        PANIC("%s", err.text);
    ASSERT(!checkpoint_print(&again, &second));
    ASSERT(!strcmp(buf_text(&printed), buf_text(&second)));
    buf_release(&printed);
    buf_release(&second);
    checkpoint_manifest_release(&manifest);
    checkpoint_manifest_release(&again);
}

static void read_header(const char *text, size_t length, uint64_t data_bytes)
{
    struct hvd_err err = { .code = 0 };
    struct part_entry *entry;
    uint64_t end = 0;
    struct part part;

    if (part_parse("fuzz", text, length, 8 + length + data_bytes, &part, &err)) {
        ASSERT(err.code < 0 && !strncmp(err.text, "fuzz: ", strlen("fuzz: ")));
        return;
    }
    VEC_EACH (entry, &part) {
        ASSERT(entry->offset == end && entry->name);
        end += entry->bytes;
    }
    ASSERT(end == data_bytes);
    part_release(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy; /* a block of its own, so that the sanitizer sees a read past its end */

    if (size < 2)
        return 0;
    copy = mem_strndup((const char *)data + 2, size - 2);
    ASSERT(copy);
    if (data[0] == 'm')
        read_manifest(copy, size - 2);
    else
        read_header(copy, size - 2, data[1]);
    mem_free(copy);
    return 0;
}
