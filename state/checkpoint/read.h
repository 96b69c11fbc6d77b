/*
 * read.h: reads entries of a checkpoint into memory, by their names. Each chunk of a file is
 * compared with the checksum that the manifest has for it before a byte of the chunk is used. A
 * reader belongs to one thread, as its storage does; several readers may read one checkpoint at the
 * same time.
 */
#ifndef STATE_CHECKPOINT_READ_H
#define STATE_CHECKPOINT_READ_H

#include "state/checkpoint/manifest.h"

struct checkpoint_reader;

/* Reads the headers of the files with replicated entries. Store and manifest are borrowed until the
 * reader is closed. HVD_E_CORRUPT: a header is damaged, an entry of the manifest is in no file, or
 * in two, or has another size. */
int checkpoint_reader_open(struct checkpoint_store *storage,
                           const struct checkpoint_manifest *manifest,
                           struct checkpoint_reader **ret_reader, struct hvd_err *err) MUST_CHECK;
void checkpoint_reader_close(struct checkpoint_reader *reader); /* NULL is fine */

/* Returns the index of the entry in the manifest; -1: no entry has that name. */
int64_t checkpoint_entry_find(const struct checkpoint_reader *reader, const char *name);

/* checkpoint_entry_bytes gives the size of an entry; checkpoint_entry_read_at reads a part of the
 * entry, which lies within that size. A caller that reads an entry part by part, in order, reads
 * each chunk of the file once. The codes are those of checkpoint_entry_read. */
int checkpoint_entry_bytes(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                           uint64_t *ret_bytes, struct hvd_err *err) MUST_CHECK;
int checkpoint_entry_read_at(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                             uint64_t offset, void *at, uint64_t bytes,
                             struct hvd_err *err) MUST_CHECK;

/*
 * Reads an entry into `at`, which has room for `room` bytes; *ret_bytes is its size, which for a
 * custom entry may be smaller than the manifest's. `rank` matters for per-rank entries only.
 * HVD_E_NOTFOUND: no such entry, or no such entry of that rank. HVD_E_LIMIT: more bytes than room.
 * HVD_E_CORRUPT: a checksum is wrong; then the bytes at `at` are of no use.
 */
int checkpoint_entry_read(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                          void *at, uint64_t room, uint64_t *ret_bytes,
                          struct hvd_err *err) MUST_CHECK;

/* Reads all files of the checkpoint, and compares every checksum. *ret_bytes: the number of bytes
 * in these files. */
int checkpoint_verify(struct checkpoint_reader *reader, uint64_t *ret_bytes,
                      struct hvd_err *err) MUST_CHECK;

#endif
