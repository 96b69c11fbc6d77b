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
    const char *name;    /* the name of the file in the folder of the checkpoint */
    uint64_t bytes;      /* size of the file */
    int32_t rank;        /* the rank whose entries the file has, or CHECKPOINT_REPLICATED */
    const uint8_t *sums; /* 8 bytes, little-endian, for each chunk of STATE_CHUNK_BYTES */
};

/* A manifest that the caller fills borrows its texts and lists. A manifest that was read has them
 * in `memory`. */
struct checkpoint_manifest {
    const char *job;               /* name of the job */
    uint64_t commit;               /* number of the commit, as proto/commit.h makes it */
    uint32_t ranks;                /* number of ranks that have written the checkpoint */
    int64_t wall_us;               /* the time at which the checkpoint was completed */
    uint64_t digest;               /* the digest of the state's entries */
    struct msg_entry_list entries; /* in the state's order; offsets are not kept */
    const struct checkpoint_file *files;
    size_t file_count;
    struct arena memory;
};

void checkpoint_manifest_init(struct checkpoint_manifest *manifest);
void checkpoint_manifest_release(struct checkpoint_manifest *manifest);

/* Copies a manifest with its texts and lists. The caller calls checkpoint_manifest_release.
 * HVD_E_NOMEM. */
int checkpoint_manifest_copy(const struct checkpoint_manifest *from,
                             struct checkpoint_manifest *ret) MUST_CHECK;

/* Returns how many chunks, and so checksums, a file of this size has. */
uint64_t checkpoint_chunks(uint64_t bytes);

/* checkpoint_sum returns the checksum of one chunk of the file. The other function reads a checksum
 * of 16 hexadecimal digits. */
uint64_t checkpoint_sum(const struct checkpoint_file *file, uint64_t chunk);
bool checkpoint_sum_read(const char *text, size_t length, uint64_t *ret_sum);

/* checkpoint_folder writes the name of a commit's folder, "commit-12.5".
 * checkpoint_folder_commit reads such a name; false: the text is no such name. */
const char *checkpoint_folder(uint64_t commit, char folder[CHECKPOINT_FOLDER_MAX]);
bool checkpoint_folder_commit(const char *folder, uint64_t *ret_commit);

/* Splits the path of a checkpoint's folder into the storage above it and the name of the folder,
 * which is borrowed from the path. HVD_E_INVAL: the path is not the folder of a checkpoint. */
int checkpoint_folder_split(const char *path, char ret_where[LIMIT_PATH_BYTES + 1],
                            const char **ret_folder, struct hvd_err *err) MUST_CHECK;

/* checkpoint_print appends the JSON text of a manifest; checkpoint_parse reads such a text.
 * HVD_E_CORRUPT; HVD_E_VERSION: the format is of a newer version; HVD_E_LIMIT, HVD_E_NOMEM. `path`
 * begins the error texts. */
int checkpoint_print(const struct checkpoint_manifest *manifest, struct buf *out) MUST_CHECK;
int checkpoint_parse(const char *path, const char *text, size_t length,
                     struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

/* checkpoint_write_manifest writes manifest.json and gives its checksum, which
 * checkpoint_write_complete writes into COMPLETE: then the checkpoint counts. HVD_E_EXISTS: another
 * writer has completed this checkpoint; only S3 reports this. */
int checkpoint_write_manifest(struct checkpoint_store *storage,
                              const struct checkpoint_manifest *manifest, uint64_t *ret_sum,
                              struct hvd_err *err) MUST_CHECK;
int checkpoint_write_complete(struct checkpoint_store *storage, uint64_t commit, uint64_t sum,
                              struct hvd_err *err) MUST_CHECK;

/* Removes a checkpoint. COMPLETE goes first, so a checkpoint of which a part is gone never
 * counts. */
int checkpoint_remove(struct checkpoint_store *storage, const char *folder,
                      struct hvd_err *err) MUST_CHECK;

/* Reads the manifest of a folder, and checks that the checkpoint is complete: COMPLETE fits, and
 * each file is there with its size. The bytes of the files are not read. HVD_E_NOTFOUND: there is
 * no COMPLETE, so this is no checkpoint, or not yet one. HVD_E_CORRUPT, HVD_E_VERSION. */
int checkpoint_load(struct checkpoint_store *storage, const char *folder,
                    struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

/* Checks that each file of the manifest is there with its size. HVD_E_CORRUPT: a file is missing,
 * or has another size. */
int checkpoint_check_files(struct checkpoint_store *storage,
                           const struct checkpoint_manifest *manifest,
                           struct hvd_err *err) MUST_CHECK;

/* Calls visit for each folder that has the name of a checkpoint, the newest commit first. */
typedef int checkpoint_visit_fn(void *arg, const char *folder, uint64_t commit);
int checkpoint_each(struct checkpoint_store *storage, checkpoint_visit_fn *visit, void *arg,
                    struct hvd_err *err) MUST_CHECK;

/* Finds the newest checkpoint that is complete. Calls skip (may be NULL) for each newer folder,
 * with the reason. HVD_E_NOTFOUND: no checkpoint was ever completed. If checkpoints were completed
 * and none of them can be used, the code and the text are those of the newest one, so that no job
 * begins anew beside them. HVD_E_VERSION: a newer hvd-elastic has written a checkpoint, and this
 * version has written no later one that is complete; such a checkpoint is not skipped. */
typedef void checkpoint_skip_fn(void *arg, const char *folder, int code, const char *reason);
int checkpoint_find_newest(struct checkpoint_store *storage, checkpoint_skip_fn *skip, void *arg,
                           struct checkpoint_manifest *ret, struct hvd_err *err) MUST_CHECK;

#endif
