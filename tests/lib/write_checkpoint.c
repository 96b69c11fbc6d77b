/*
 * write_checkpoint.c: writes checkpoints of known values (checkpoints.h) for tests in other
 * languages, and reads the header of a file that another program has written.
 *
 *     write_checkpoint DIR COMMIT...      complete checkpoints of round 1
 *     write_checkpoint --header FILE      a line for each entry: name, type, bytes
 */
#include "base/buf.h"
#include "os/file.h"
#include "proto/commit.h"
#include "state/checkpoint/part.h"
#include "tests/lib/checkpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show_header(const char *path)
{
    struct hvd_err err = { .text = "" };
    const struct part_entry *entry;
    struct buf text;
    struct part part;
    uint64_t header;
    int rc;

    buf_init(&text, 1 << 26);
    rc = file_read(path, &text, &err);
    if (!rc) {
        header = text.length < 8
                     ? 0
                     : part_header_bytes((const uint8_t *)text.data, (uint64_t)text.length);
        rc = header ? part_parse(path, text.data + 8, (size_t)header - 8, text.length, &part, &err)
                    : HVD_E_CORRUPT;
    }
    if (!rc) {
        VEC_EACH (entry, &part)
            printf("%s %" PRIu32 " %" PRIu64 "\n", entry->name, entry->type, entry->bytes);
        part_release(&part);
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    buf_release(&text);
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct checkpoint_store *store;
    struct hvd_err err = { .text = "" };
    int rc;

    if (argc == 3 && !strcmp(argv[1], "--header"))
        return show_header(argv[2]);
    if (argc < 3)
        return 2;
    rc = checkpoint_store_make(argv[1], &store, &err);
    for (int i = 2; !rc && i < argc; i++)
        rc = checkpoints_write(store, COMMIT_FIRST_OF(1) | strtoul(argv[i], NULL, 10), &err);
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    else
        checkpoint_store_close(store);
    return rc ? 1 : 0;
}
