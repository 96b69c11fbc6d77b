/*
 * read.c: reads the entries of a checkpoint. Called by the agent for a worker that begins with a
 * checkpoint, by a program that loads its state, and by the verbs that verify and export.
 * Invariant: a byte is given to a caller only after the checksum of its chunk was compared with the
 * manifest; that holds for headers, too.
 */
#include "state/checkpoint/read.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/panic.h"
#include "state/checkpoint/part.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NO_FILE SIZE_MAX /* the index of no file */

/* The bytes of one entry: in which file they lie, and where. */
struct read_place {
    size_t file;     /* index in the manifest; NO_FILE: the file is not known yet */
    uint64_t offset; /* offset in the file */
    uint64_t bytes;
};

struct checkpoint_reader {
    struct checkpoint_store *storage;           /* the storage of the checkpoint; borrowed */
    const struct checkpoint_manifest *manifest; /* the manifest of the checkpoint; borrowed */
    char folder[CHECKPOINT_FOLDER_MAX];
    struct names names; /* the names of the manifest's entries */
    /* One for each entry of the manifest: of replicated entries, and of the entries of `rank`. */
    struct read_place *places;
    uint32_t
        rank; /* the rank whose entries are in `places`; UINT32_MAX: no rank was asked for yet */
    /* A buffer with the chunk of which a part was read last: the next part of an entry is often in
     * it. */
    uint8_t *chunk;
    size_t chunk_file;    /* the file of `chunk`; NO_FILE: the buffer has no chunk */
    uint64_t chunk_index; /* the number of `chunk` in its file */
};

/* Reads one chunk of a file into `at`, and compares its checksum. */
static int read_chunk(struct checkpoint_reader *reader, size_t index, uint64_t chunk, void *at,
                      size_t bytes, struct hvd_err *err)
{
    const struct checkpoint_file *file = &reader->manifest->files[index];
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    int rc;

    snprintf(name, sizeof(name), "%s/%s", reader->folder, file->name);
    rc = checkpoint_store_read(reader->storage, name, chunk * STATE_CHUNK_BYTES, at, bytes, err);
    if (rc)
        return rc;
    if (sum_of(at, bytes) == checkpoint_sum(file, chunk))
        return 0;
    return err_set(err, HVD_E_CORRUPT,
                   "%s/%s: chunk %" PRIu64
                   " has a wrong checksum; choose another checkpoint (--from-checkpoint)",
                   checkpoint_store_where(reader->storage), name, chunk);
}

/* Reads bytes that lie within a file; `index` is the file's place in the manifest. A whole chunk is
 * read directly to its target; a part of a chunk is copied from the reader's buffer. */
static int reader_read_range(struct checkpoint_reader *reader, size_t index, uint64_t offset,
                             void *at, uint64_t bytes, struct hvd_err *err)
{
    const struct checkpoint_file *file = &reader->manifest->files[index];
    uint8_t *next = at;

    while (bytes > 0) {
        uint64_t chunk = offset / STATE_CHUNK_BYTES;
        uint64_t begin = chunk * STATE_CHUNK_BYTES;
        uint64_t left = file->bytes - begin;
        size_t length = left < STATE_CHUNK_BYTES ? (size_t)left : STATE_CHUNK_BYTES;
        size_t skip = (size_t)(offset - begin);
        size_t now = bytes < length - skip ? (size_t)bytes : length - skip;
        bool whole = now == length;
        int rc = 0;

        if (whole) {
            rc = read_chunk(reader, index, chunk, next, length, err);
        } else if (reader->chunk_file != index || reader->chunk_index != chunk) {
            reader->chunk_file = NO_FILE;
            rc = read_chunk(reader, index, chunk, reader->chunk, length, err);
        }
        if (rc)
            return rc;
        if (!whole) {
            reader->chunk_file = index;
            reader->chunk_index = chunk;
            memcpy(next, reader->chunk + skip, now);
        }
        next += now;
        offset += now;
        bytes -= now;
    }
    return 0;
}

/* Notes where an entry lies that the header of a file has. Returns why the entry does not fit the
 * manifest, as the end of a sentence; NULL: the entry fits. */
static const char *take_place(struct checkpoint_reader *reader, size_t file,
                              const struct part_entry *entry, uint64_t data_from)
{
    const struct checkpoint_manifest *manifest = reader->manifest;
    uint32_t kind =
        manifest->files[file].rank == CHECKPOINT_REPLICATED ? ENTRY_REPLICATED : ENTRY_PER_RANK;
    uint32_t index = names_find(&reader->names, entry->name, strlen(entry->name));
    const struct msg_entry *expected;

    if (index == NAMES_NONE)
        return "is not in the manifest";
    expected = &manifest->entries.items[index];
    if (expected->kind != kind)
        return "is per rank in the manifest and replicated in this file, or the other way round,";
    if (expected->custom ? entry->bytes > expected->bytes : entry->bytes != expected->bytes)
        return "has another size in the manifest";
    /* A custom entry may be U8 although its type is known: its save may write any number of bytes.
     */
    if (entry->type != (expected->type ? expected->type : 1 + HVD_UINT8) &&
        !(expected->custom && entry->type == 1 + HVD_UINT8))
        return "has another type in the manifest";
    if (reader->places[index].file != NO_FILE)
        return "occurs twice";
    reader->places[index] = (struct read_place){ file, data_from + entry->offset, entry->bytes };
    return NULL;
}

/* Reads the header of a file, and takes the places of its entries. */
static int read_header(struct checkpoint_reader *reader, size_t index, struct hvd_err *err)
{
    const struct checkpoint_file *file = &reader->manifest->files[index];
    char path[LIMIT_PATH_BYTES + LIMIT_CHECKPOINT_NAME_BYTES + 2];
    const struct part_entry *entry;
    const char *wrong = NULL;
    uint64_t header_bytes;
    uint8_t first[8];
    struct part part;
    char *text;
    int rc;

    snprintf(path, sizeof(path), "%s/%s/%s", checkpoint_store_where(reader->storage),
             reader->folder, file->name);
    if (file->bytes < sizeof(first))
        return err_set(
            err, HVD_E_CORRUPT,
            "%s: the file is too short for a header; choose another checkpoint (--from-checkpoint)",
            path);
    rc = reader_read_range(reader, index, 0, first, sizeof(first), err);
    if (rc)
        return rc;
    header_bytes = part_header_bytes(first, file->bytes);
    if (!header_bytes)
        return err_set(
            err, HVD_E_CORRUPT,
            "%s: the header is longer than the file; choose another checkpoint (--from-checkpoint)",
            path);
    text = mem_alloc((size_t)header_bytes);
    if (!text)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to read the header; free memory on this host", path);
    rc = reader_read_range(reader, index, 8, text, header_bytes - 8, err);
    if (!rc)
        rc = part_parse(path, text, (size_t)header_bytes - 8, file->bytes, &part, err);
    mem_free(text);
    if (rc)
        return rc;
    if (part.commit && part.commit != reader->manifest->commit)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s: the file is of another commit than its folder; choose another checkpoint "
                     "(--from-checkpoint)",
                     path);
    VEC_EACH (entry, &part) {
        if (rc)
            break;
        wrong = take_place(reader, index, entry, part.header_bytes);
        if (wrong)
            rc = err_set(err, HVD_E_CORRUPT,
                         "%s: the entry \"%s\" %s; choose another checkpoint (--from-checkpoint)",
                         path, entry->name, wrong);
    }
    part_release(&part);
    return rc;
}

/* Checks that each entry of this kind was found in a file. */
static int check_places(const struct checkpoint_reader *reader, uint32_t kind, struct hvd_err *err)
{
    const struct msg_entry_list *entries = &reader->manifest->entries;

    for (size_t i = 0; i < entries->count; i++)
        if (entries->items[i].kind == kind && reader->places[i].file == NO_FILE)
            return err_set(err, HVD_E_CORRUPT,
                           "%s/%s: no file has the entry \"%s\"; choose another checkpoint "
                           "(--from-checkpoint)",
                           checkpoint_store_where(reader->storage), reader->folder,
                           entries->items[i].name);
    return 0;
}

/* Reads the header of the file of a rank, unless it was read last. The reader knows the entries of
 * one rank at a time: those of the rank before are forgotten. */
static int read_rank(struct checkpoint_reader *reader, uint32_t rank, struct hvd_err *err)
{
    const struct checkpoint_manifest *manifest = reader->manifest;
    bool found = false;
    int rc = 0;

    if (reader->rank == rank)
        return 0;
    reader->rank = UINT32_MAX;
    for (size_t i = 0; i < manifest->entries.count; i++)
        if (manifest->entries.items[i].kind == ENTRY_PER_RANK)
            reader->places[i].file = NO_FILE;
    for (size_t i = 0; !rc && i < manifest->file_count; i++)
        if (manifest->files[i].rank >= 0 && (uint32_t)manifest->files[i].rank == rank) {
            found = true;
            rc = read_header(reader, i, err);
        }
    if (!rc && !found)
        rc = err_set(err, HVD_E_NOTFOUND,
                     "%s/%s: the checkpoint has no per-rank entries of rank %" PRIu32
                     ", because %" PRIu32 " ranks wrote this checkpoint; run with %" PRIu32
                     " workers, or do not load per-rank entries",
                     checkpoint_store_where(reader->storage), reader->folder, rank, manifest->ranks,
                     manifest->ranks);
    if (!rc)
        rc = check_places(reader, ENTRY_PER_RANK, err);
    if (!rc)
        reader->rank = rank;
    return rc;
}

/* Makes a reader of a checkpoint, and reads the headers of the files with replicated entries. */
int checkpoint_reader_open(struct checkpoint_store *storage,
                           const struct checkpoint_manifest *manifest,
                           struct checkpoint_reader **ret_reader, struct hvd_err *err)
{
    struct checkpoint_reader *reader = mem_zalloc(sizeof(*reader));
    int rc = HVD_E_NOMEM;

    if (reader) {
        reader->storage = storage;
        reader->manifest = manifest;
        reader->rank = UINT32_MAX;
        reader->chunk_file = NO_FILE;
        checkpoint_folder(manifest->commit, reader->folder);
        names_init(&reader->names);
        reader->places = mem_zalloc_array(manifest->entries.count, sizeof(*reader->places));
        reader->chunk = mem_alloc(STATE_CHUNK_BYTES);
    }
    if (reader && reader->places && reader->chunk)
        rc = 0;
    for (size_t i = 0; !rc && i < manifest->entries.count; i++) {
        const char *name = manifest->entries.items[i].name;

        reader->places[i].file = NO_FILE;
        rc = names_put(&reader->names, name, strlen(name), (uint32_t)i);
    }
    if (rc)
        err_set(
            err, rc == HVD_E_EXISTS ? HVD_E_CORRUPT : rc,
            "%s/commit-%" PRIu64 ".%" PRIu32 ": the checkpoint cannot be read: %s",
            checkpoint_store_where(storage), manifest->commit >> 32, (uint32_t)manifest->commit,
            rc == HVD_E_EXISTS
                ? "the manifest names an entry twice; choose another checkpoint (--from-checkpoint)"
                : "no memory; free memory on this host");
    if (rc == HVD_E_EXISTS)
        rc = HVD_E_CORRUPT;
    for (size_t i = 0; !rc && i < manifest->file_count; i++)
        if (manifest->files[i].rank == CHECKPOINT_REPLICATED)
            rc = read_header(reader, i, err);
    if (!rc)
        rc = check_places(reader, ENTRY_REPLICATED, err);
    if (rc)
        checkpoint_reader_close(reader);
    else
        *ret_reader = reader;
    return rc;
}

/* Frees the reader, which may be NULL or half-made. Storage and manifest stay. */
void checkpoint_reader_close(struct checkpoint_reader *reader)
{
    if (!reader)
        return;
    names_release(&reader->names);
    mem_free(reader->places);
    mem_free(reader->chunk);
    mem_free(reader);
}

/* Returns the index of an entry in the manifest; -1: the checkpoint has no such entry. */
int64_t checkpoint_entry_find(const struct checkpoint_reader *reader, const char *name)
{
    uint32_t index = names_find(&reader->names, name, strlen(name));

    return index == NAMES_NONE ? -1 : (int64_t)index;
}

/* Gives the size of an entry in this checkpoint; `rank` counts only for an entry per rank, whose
 * file is opened then. */
int checkpoint_entry_bytes(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                           uint64_t *ret_bytes, struct hvd_err *err)
{
    int64_t index = checkpoint_entry_find(reader, name);
    int rc = 0;

    if (index < 0)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s/%s: the checkpoint has no entry \"%s\"; choose a checkpoint of this "
                       "program (--from-checkpoint)",
                       checkpoint_store_where(reader->storage), reader->folder, name);
    if (reader->manifest->entries.items[index].kind == ENTRY_PER_RANK)
        rc = read_rank(reader, rank, err);
    if (!rc)
        *ret_bytes = reader->places[index].bytes;
    return rc;
}

/* Reads a part of an entry. A part that is not inside the entry is a bug of the caller. */
int checkpoint_entry_read_at(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                             uint64_t offset, void *at, uint64_t bytes, struct hvd_err *err)
{
    const struct read_place *place;
    uint64_t size = 0;
    int rc = checkpoint_entry_bytes(reader, name, rank, &size, err);

    if (rc)
        return rc;
    ASSERT(offset <= size && bytes <= size - offset);
    place = &reader->places[checkpoint_entry_find(reader, name)];
    return reader_read_range(reader, place->file, place->offset + offset, at, bytes, err);
}

/* Reads a whole entry. HVD_E_LIMIT: the caller has less room than the entry has bytes. */
int checkpoint_entry_read(struct checkpoint_reader *reader, const char *name, uint32_t rank,
                          void *at, uint64_t room, uint64_t *ret_bytes, struct hvd_err *err)
{
    uint64_t bytes = 0;
    int rc = checkpoint_entry_bytes(reader, name, rank, &bytes, err);

    if (rc)
        return rc;
    if (bytes > room)
        return err_set(err, HVD_E_LIMIT,
                       "%s/%s: the entry \"%s\" has %" PRIu64
                       " bytes, but the program expects at most %" PRIu64
                       "; register the entry with its old size",
                       checkpoint_store_where(reader->storage), reader->folder, name, bytes, room);
    rc = checkpoint_entry_read_at(reader, name, rank, 0, at, bytes, err);
    if (!rc)
        *ret_bytes = bytes;
    return rc;
}

/* Reads every file of the checkpoint, and compares all checksums and headers with the manifest. */
int checkpoint_verify(struct checkpoint_reader *reader, uint64_t *ret_bytes, struct hvd_err *err)
{
    const struct checkpoint_manifest *manifest = reader->manifest;
    uint64_t bytes = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < manifest->file_count; i++) {
        const struct checkpoint_file *file = &manifest->files[i];

        if (file->rank >= 0)
            rc = read_rank(reader, (uint32_t)file->rank, err);
        reader->chunk_file = NO_FILE; /* the chunks of this file go to the buffer */
        for (uint64_t chunk = 0; !rc && chunk < checkpoint_chunks(file->bytes); chunk++) {
            uint64_t left = file->bytes - chunk * STATE_CHUNK_BYTES;
            size_t length = left < STATE_CHUNK_BYTES ? (size_t)left : STATE_CHUNK_BYTES;

            rc = read_chunk(reader, i, chunk, reader->chunk, length, err);
            bytes += length;
        }
    }
    if (!rc)
        *ret_bytes = bytes;
    return rc;
}
