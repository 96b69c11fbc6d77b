/*
 * manifest.h: manifest.json, which says what a checkpoint consists of, and COMPLETE, which says
 * that the checkpoint counts. docs/checkpoints.md has the format.
 */
#ifndef STATE_CHECKPOINT_MANIFEST_H
#define STATE_CHECKPOINT_MANIFEST_H

#include "base/buf.h"
#include "proto/msg.h"
#include "state/checkpoint/storage.h"

#define CHECKPOINT_MANIFEST   "manifest.json"
#define CHECKPOINT_COMPLETE   "COMPLETE"
#define CHECKPOINT_VERSION    1
#define CHECKPOINT_FOLDER_MAX 32
#define CHECKPOINT_REPLICATED (-1) /* the rank of a file with replicated entries */

struct checkpoint_file {
    const char *name; /* in the checkpoint's folder */
    uint64_t bytes;
    int32_t rank;        /* or CHECKPOINT_REPLICATED */
    const uint8_t *sums; /* 8 bytes, little-endian, for each chunk of STATE_CHUNK_BYTES */
};

/* Made by hand it borrows what it points to. One that was read has all in `memory`. */
struct checkpoint_manifest {
    const char *job;
    uint64_t commit; /* proto/commit.h */
    uint32_t ranks;
    int64_t wall_us;               /* when it was completed */
    uint64_t digest;               /* of the state's entries */
    struct msg_entry_list entries; /* in the state's order; offsets are not kept */
    const struct checkpoint_file *files;
    size_t file_count;
    struct arena memory;
};

void checkpoint_manifest_init(struct checkpoint_manifest *manifest);
void checkpoint_manifest_release(struct checkpoint_manifest *manifest);

/* Copies all of it; released with checkpoint_manifest_release. HVD_E_NOMEM. */
int checkpoint_manifest_copy(const struct checkpoint_manifest *from,
                             struct checkpoint_manifest *ret) MUST_CHECK;

/* Returns how many chunks, and so checksums, a file of this size has. */
uint64_t checkpoint_chunks(uint64_t bytes);

/* Returns the checksum of one chunk of the file; and reads one of 16 hexadecimal digits. */
uint64_t checkpoint_sum(const struct checkpoint_file *file, uint64_t chunk);
bool checkpoint_sum_read(const char *text, size_t length, uint64_t *ret_sum);

/* Writes the folder of a commit, "commit-12.5"; and reads such a name: false: it is none. */
const char *checkpoint_folder(uint64_t commit, char folder[CHECKPOINT_FOLDER_MAX]);
bool checkpoint_folder_commit(const char *folder, uint64_t *ret_commit);

/* The JSON text of a manifest, and back. HVD_E_CORRUPT; HVD_E_VERSION: the text names the version;
 * HVD_E_LIMIT, HVD_E_NOMEM. `path` begins the error texts. */
int checkpoint_print(const struct checkpoint_manifest *manifest, struct buf *out) MUST_CHECK;
int checkpoint_parse(const char *path, const char *text, size_t length,
                     struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

/* Writes manifest.json; *ret_sum belongs into COMPLETE. The checkpoint counts when the second call
 * has returned 0. */
int checkpoint_write_manifest(struct checkpoint_store *storage,
                              const struct checkpoint_manifest *manifest, uint64_t *ret_sum,
                              struct hvd_err *err) MUST_CHECK;
int checkpoint_write_complete(struct checkpoint_store *storage, uint64_t commit, uint64_t sum,
                              struct hvd_err *err) MUST_CHECK;

/* Removes a checkpoint, COMPLETE first. */
int checkpoint_remove(struct checkpoint_store *storage, const char *folder,
                      struct hvd_err *err) MUST_CHECK;

/* Reads the manifest of a folder, and checks that the checkpoint is complete: COMPLETE fits, and
 * each file is there with its size. The bytes of the files are not read. HVD_E_NOTFOUND: there is
 * no COMPLETE, so this is no checkpoint, or not yet one. HVD_E_CORRUPT, HVD_E_VERSION. */
int checkpoint_load(struct checkpoint_store *storage, const char *folder,
                    struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

/* Checks that each file of the manifest is there with its size. HVD_E_CORRUPT: it is not. */
int checkpoint_check_files(struct checkpoint_store *storage,
                           const struct checkpoint_manifest *manifest,
                           struct hvd_err *err) MUST_CHECK;

/* Calls visit for each folder that has the name of a checkpoint, the newest commit first. */
typedef int checkpoint_visit_fn(void *arg, const char *folder, uint64_t commit);
int checkpoint_each(struct checkpoint_store *storage, checkpoint_visit_fn *visit, void *arg,
                    struct hvd_err *err) MUST_CHECK;

/* Finds the newest checkpoint that is complete. Calls skip (may be NULL) for each newer folder,
 * with the reason. HVD_E_NOTFOUND: none was ever completed. When some were completed and none of
 * them can be used, the code and the text are those of the newest, so that no job begins anew
 * beside them. */
typedef void checkpoint_skip_fn(void *arg, const char *folder, int code, const char *reason);
int checkpoint_find_newest(struct checkpoint_store *storage, checkpoint_skip_fn *skip, void *arg,
                           struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

#endif
