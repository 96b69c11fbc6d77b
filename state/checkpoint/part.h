/*
 * part.h: one file of a checkpoint: a safetensors file. Its layout:
 *
 *     0   8          8 + N                                header_bytes + data_bytes
 *     | N | header N | bytes of the entries, without gaps |
 *
 * N is a 64-bit number, little-endian. The header is a JSON object with the type, the shape and the
 * place of each entry, and blanks at its end so that the data begin at a multiple of 8.
 */
#ifndef STATE_CHECKPOINT_PART_H
#define STATE_CHECKPOINT_PART_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "state/checkpoint/storage.h"

/* Entries with larger types come first, so that each entry is aligned for its type; within one
 * alignment the order is the caller's. */
struct part_entry {
    const char *name;
    uint64_t bytes;
    uint64_t offset; /* the offset in the data of the file */
    uint32_t type;   /* 1 + enum hvd_dtype; 0: bytes of no known type, U8 in the file */
    const void *at;  /* the bytes of the source; NULL in a header that was read */
};

struct part {
    struct VEC(struct part_entry); /* the entries, sorted by their offsets */
    struct arena memory;
    uint64_t commit;       /* the commit that the header names; 0: it names none */
    uint64_t header_bytes; /* the offset at which the data begin */
    uint64_t data_bytes;
};

void part_init(struct part *part);
void part_release(struct part *part);

/* Returns the bytes of one element of a type; 1 for bytes of no known type. */
size_t part_type_bytes(uint32_t type);

/* The bytes of one entry in memory, borrowed. */
struct part_source {
    const char *name;
    const void *at;
    uint64_t bytes;
    uint32_t type; /* the type of the elements, as in struct part_entry */
};

/* The entries of one file, in the order of the caller. */
struct part_sources {
    uint64_t commit;
    const struct part_source *items;
    size_t count;
};

/* The facts about a file that was written. sums: 8 bytes, little-endian, for each
 * chunk of STATE_CHUNK_BYTES of the file, header included. */
struct part_written {
    uint64_t bytes;
    struct buf sums;
};

/* Returns true when the caller does not want the file any more. Called between two chunks. */
typedef bool part_stop_fn(void *arg);

/*
 * Writes one file with these entries into the storage; 0: the file is durable. stop may be NULL.
 * The caller releases ret->sums. HVD_E_REVOKED: `stop` has returned true. HVD_E_INVAL: an entry's
 * size is not a multiple of the size of its type. HVD_E_LIMIT: the file has more chunks than
 * LIMIT_SAVED_SUMS_BYTES, or a header of more than LIMIT_PART_HEADER_BYTES. Other codes come from
 * the storage.
 */
int part_write(struct checkpoint_store *storage, const char *name,
               const struct part_sources *sources, part_stop_fn *stop, void *arg,
               struct part_written *ret, struct hvd_err *err) MUST_CHECK;

/* Appends the first header_bytes of a file with these entries to `out`, and fills `part` with their
 * places; the names are borrowed from the sources. */
int part_print(const struct part_sources *sources, struct part *part, struct buf *out,
               struct hvd_err *err) MUST_CHECK;

/* Returns the length of the header, which stands in the first 8 bytes of a file; 0: this length is
 * not possible. */
uint64_t part_header_bytes(const uint8_t first[8], uint64_t file_bytes);

/* Parses a header. `text`: the bytes after the first 8; `file_bytes`: the size of the file. Checks
 * that each entry lies within the file, and that the entries fill the file without a gap.
 * HVD_E_CORRUPT, HVD_E_LIMIT, HVD_E_NOMEM; error texts begin with `name`. */
int part_parse(const char *name, const char *text, size_t length, uint64_t file_bytes,
               struct part *ret_part, struct hvd_err *err) MUST_CHECK;

#endif
