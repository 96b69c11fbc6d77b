/*
 * manifest_json.c: a manifest: its memory and checksums, its text (manifest.json), and back. Called
 * by manifest.c, and by all that use manifests. Invariant: a manifest that was accepted has only
 * names of files in its own folder, and a checksum for each chunk of each file.
 */
#include "base/hex.h"
#include "base/mem.h"
#include "base/stamp.h"
#include "base/text.h"
#include "base/time.h"
#include "proto/commit.h"
#include "state/checkpoint/json_text.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/part_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT      "hvd-checkpoint"
#define SUM_DIGITS  16   /* hexadecimal digits of a checksum */
#define VALUES_REST 1024 /* values of a manifest that belong to no entry and no file */
/* The most JSON values of a manifest: 8 of each entry, 5 of each file. */
#define VALUES_MAX \
    ((size_t)8 * LIMIT_MANIFEST_ENTRIES + (size_t)5 * LIMIT_CHECKPOINT_FILES + VALUES_REST)

/* The names of the kinds of entries, by enum msg_entry_kind. */
static const char *const kinds[ENTRY_KIND_COUNT] = { "replicated", "per_rank" };

void checkpoint_manifest_init(struct checkpoint_manifest *manifest)
{
    *manifest = (struct checkpoint_manifest){ .job = "" };
    arena_init(&manifest->memory, (size_t)2 * LIMIT_CHECKPOINT_MANIFEST_BYTES);
}

void checkpoint_manifest_release(struct checkpoint_manifest *manifest)
{
    if (!manifest)
        return;
    arena_release(&manifest->memory);
    checkpoint_manifest_init(manifest);
}

/* Returns the number of chunks of a file; the last chunk may be shorter. */
uint64_t checkpoint_chunks(uint64_t bytes)
{
    return bytes / STATE_CHUNK_BYTES + (bytes % STATE_CHUNK_BYTES > 0);
}

/* Returns the checksum of a chunk, which the manifest keeps in 8 bytes, the lowest first. */
uint64_t checkpoint_sum(const struct checkpoint_file *file, uint64_t chunk)
{
    const uint8_t *at = file->sums + chunk * 8;
    uint64_t sum = 0;

    for (size_t i = 0; i < 8; i++)
        sum |= (uint64_t)at[i] << 8 * i;
    return sum;
}

/* Appends the entries of the state, and the files with their checksums. */
static int print_lists(const struct checkpoint_manifest *manifest, struct buf *out)
{
    int rc = buf_printf(out, ",\n \"state\":{\"digest\":\"%016" PRIx64 "\",\"entries\":[",
                        manifest->digest);

    for (size_t i = 0; !rc && i < manifest->entries.count; i++) {
        const struct msg_entry *entry = &manifest->entries.items[i];
        const char *type = part_type_name(entry->type);

        rc = buf_append_text(out, i ? ",\n  {\"name\":" : "\n  {\"name\":");
        if (!rc)
            rc = json_text_quote(out, entry->name);
        if (!rc)
            rc = buf_printf(out, ",\"bytes\":%" PRIu64 ",\"kind\":\"%s\",\"type\":%s%s%s%s}",
                            entry->bytes, kinds[entry->kind], entry->type ? "\"" : "",
                            entry->type && type ? type : "null", entry->type ? "\"" : "",
                            entry->custom ? ",\"custom\":true" : ",\"custom\":false");
    }
    if (!rc)
        rc = buf_printf(out, "]},\n \"chunk_bytes\":%d,\n \"files\":[", STATE_CHUNK_BYTES);
    for (size_t i = 0; !rc && i < manifest->file_count; i++) {
        const struct checkpoint_file *file = &manifest->files[i];
        uint64_t chunks = checkpoint_chunks(file->bytes);

        rc = buf_append_text(out, i ? ",\n  {\"name\":" : "\n  {\"name\":");
        if (!rc)
            rc = json_text_quote(out, file->name);
        if (!rc)
            rc = buf_printf(out, ",\"bytes\":%" PRIu64 ",\"rank\":%" PRId32 ",\"sums\":\"",
                            file->bytes, file->rank);
        for (uint64_t chunk = 0; !rc && chunk < chunks; chunk++)
            rc = buf_printf(out, "%016" PRIx64, checkpoint_sum(file, chunk));
        if (!rc)
            rc = buf_append_text(out, "\"}");
    }
    return rc ? rc : buf_append_text(out, "]}\n");
}

/* Appends the JSON text of a manifest. After a failure `out` is as it was before. */
int checkpoint_print(const struct checkpoint_manifest *manifest, struct buf *out)
{
    const size_t begin = out->length;
    char wall[TIME_STAMP_MAX];
    int rc =
        buf_printf(out, "{\"format\":\"" FORMAT "\",\"version\":%d,\"job\":", CHECKPOINT_VERSION);

    if (!rc)
        rc = json_text_quote(out, manifest->job);
    if (!rc)
        rc = buf_printf(out,
                        ",\"round\":%" PRIu64 ",\"commit\":%" PRIu32 ",\"ranks\":%" PRIu32
                        ",\"wall\":\"%s\"",
                        COMMIT_ROUND_OF(manifest->commit), COMMIT_PLACE_OF(manifest->commit),
                        manifest->ranks, time_stamp(manifest->wall_us, wall));
    if (!rc)
        rc = print_lists(manifest, out);
    if (rc)
        out->length = begin;
    return rc;
}

/* Reads the SUM_DIGITS hexadecimal digits of a checksum; false: the text is something else. */
static bool parse_digest(const char *text, uint64_t *ret_value)
{
    uint8_t bytes[SUM_DIGITS / 2];
    uint64_t value = 0;

    if (!hex_read(text, sizeof(bytes), bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        value = value << 8 | bytes[i];
    *ret_value = value;
    return true;
}

/* Reads a checksum that must be the whole text. */
bool checkpoint_sum_read(const char *text, size_t length, uint64_t *ret_sum)
{
    return length == SUM_DIGITS && parse_digest(text, ret_sum);
}

/* Parses one entry of the state. Returns 0, HVD_E_CORRUPT or HVD_E_NOMEM. */
static int manifest_parse_entry(const json_t *value, struct arena *arena, struct msg_entry *entry)
{
    const char *kind = json_string_value(json_object_get(value, "kind"));
    const json_t *type = json_object_get(value, "type");
    const json_t *custom = json_object_get(value, "custom");

    entry->kind = ENTRY_KIND_COUNT;
    for (uint32_t i = 0; kind && i < ENTRY_KIND_COUNT; i++)
        if (!strcmp(kind, kinds[i]))
            entry->kind = i;
    if (entry->kind == ENTRY_KIND_COUNT || !json_is_boolean(custom) ||
        (!json_is_null(type) && !part_type_named(json_string_value(type), &entry->type)) ||
        !json_text_u64(json_object_get(value, "bytes"), LIMIT_STATE_BYTES, &entry->bytes))
        return HVD_E_CORRUPT;
    entry->custom = json_is_true(custom);
    return json_text_copy(json_object_get(value, "name"), LIMIT_MANIFEST_NAME_BYTES, arena,
                          &entry->name);
}

/* Parses one file of the manifest. A name with a slash, "." and ".." are refused: such a name would
 * lead out of the folder. Returns 0, HVD_E_CORRUPT or HVD_E_NOMEM. */
static int parse_file(const json_t *value, struct checkpoint_manifest *manifest,
                      struct checkpoint_file *file)
{
    const json_t *rank = json_object_get(value, "rank");
    const json_t *sums = json_object_get(value, "sums");
    const uint64_t chunks_max = LIMIT_SAVED_SUMS_BYTES / 8;
    const char *digits = json_string_value(sums);
    uint64_t chunks, sum;
    uint8_t *bytes;
    int rc;

    if (!json_text_u64(json_object_get(value, "bytes"), chunks_max * STATE_CHUNK_BYTES,
                       &file->bytes) ||
        !json_is_integer(rank) || json_integer_value(rank) < CHECKPOINT_REPLICATED ||
        json_integer_value(rank) >= (json_int_t)manifest->ranks)
        return HVD_E_CORRUPT;
    file->rank = (int32_t)json_integer_value(rank);
    chunks = checkpoint_chunks(file->bytes);
    if (!digits || json_string_length(sums) != chunks * SUM_DIGITS)
        return HVD_E_CORRUPT;
    rc = json_text_copy(json_object_get(value, "name"),
                        LIMIT_CHECKPOINT_NAME_BYTES - CHECKPOINT_FOLDER_MAX, &manifest->memory,
                        &file->name);
    if (rc)
        return rc;
    if (!*file->name || strchr(file->name, '/') || !strcmp(file->name, ".") ||
        !strcmp(file->name, ".."))
        return HVD_E_CORRUPT;
    bytes = arena_alloc_array(&manifest->memory, (size_t)chunks, 8);
    if (!bytes)
        return HVD_E_NOMEM;
    for (uint64_t i = 0; i < chunks; i++) {
        if (!parse_digest(digits + i * SUM_DIGITS, &sum))
            return HVD_E_CORRUPT;
        for (size_t j = 0; j < 8; j++)
            bytes[i * 8 + j] = (uint8_t)(sum >> 8 * j);
    }
    file->sums = bytes;
    return 0;
}

/* Parses the members of the root, with the entries and the files. Returns 0, HVD_E_CORRUPT,
 * HVD_E_LIMIT or HVD_E_NOMEM; *ret_wrong is the text of the fault. */
static int parse_root(const json_t *root, struct checkpoint_manifest *manifest,
                      const char **ret_wrong)
{
    const json_t *state = json_object_get(root, "state");
    const json_t *digest = json_object_get(state, "digest");
    const json_t *entries = json_object_get(state, "entries");
    const json_t *files = json_object_get(root, "files");
    const json_t *wall = json_object_get(root, "wall");
    size_t entry_count = json_array_size(entries), file_count = json_array_size(files);
    struct checkpoint_file *file;
    struct msg_entry *entry;
    uint64_t round, place, ranks, chunk;
    int rc;

    *ret_wrong = "no valid round, commit, ranks, chunk_bytes, wall, digest, entries or files";
    if (!json_text_u64(json_object_get(root, "round"), UINT32_MAX, &round) ||
        !json_text_u64(json_object_get(root, "commit"), UINT32_MAX, &place) ||
        !json_text_u64(json_object_get(root, "ranks"), LIMIT_WORKERS, &ranks) || ranks == 0 ||
        !json_text_u64(json_object_get(root, "chunk_bytes"), STATE_CHUNK_BYTES, &chunk) ||
        chunk != STATE_CHUNK_BYTES ||
        !stamp_read((struct span){ json_string_value(wall), json_string_length(wall) },
                    &manifest->wall_us) ||
        !json_is_string(digest) ||
        !checkpoint_sum_read(json_string_value(digest), json_string_length(digest),
                             &manifest->digest) ||
        !json_is_array(entries) || !json_is_array(files))
        return HVD_E_CORRUPT;
    manifest->commit = COMMIT_FIRST_OF(round) | place;
    manifest->ranks = (uint32_t)ranks;
    *ret_wrong = "no name of a job";
    rc = json_text_copy(json_object_get(root, "job"), LIMIT_TEXT_BYTES, &manifest->memory,
                        &manifest->job);
    if (rc)
        return rc;
    *ret_wrong = "too many entries or files";
    if (entry_count > LIMIT_MANIFEST_ENTRIES || file_count > LIMIT_CHECKPOINT_FILES)
        return HVD_E_LIMIT;
    entry = arena_alloc_array(&manifest->memory, entry_count, sizeof(*entry));
    file = arena_alloc_array(&manifest->memory, file_count, sizeof(*file));
    if (!entry || !file)
        return HVD_E_NOMEM;
    *ret_wrong = "an entry of the state that is damaged";
    manifest->entries.items = entry;
    for (; !rc && manifest->entries.count < entry_count; manifest->entries.count++)
        rc = manifest_parse_entry(json_array_get(entries, manifest->entries.count),
                                  &manifest->memory, entry++);
    if (!rc)
        *ret_wrong = "a file that is damaged";
    manifest->files = file;
    for (; !rc && manifest->file_count < file_count; manifest->file_count++)
        rc = parse_file(json_array_get(files, manifest->file_count), manifest, file++);
    return rc;
}

/* Parses the JSON text of a manifest. HVD_E_VERSION: a newer hvd-elastic has written it. */
int checkpoint_parse(const char *path, const char *text, size_t length,
                     struct checkpoint_manifest *ret, struct hvd_err *err)
{
    struct checkpoint_manifest manifest;
    const char *wrong = NULL;
    const char *format;
    uint64_t version;
    json_t *root;
    int rc = json_text_load(path, text, length, VALUES_MAX, &root, err);

    if (rc)
        return rc;
    checkpoint_manifest_init(&manifest);
    format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, FORMAT) != 0 ||
        !json_text_u64(json_object_get(root, "version"), INT64_MAX, &version) || version == 0)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s: this file is not the manifest of a checkpoint; choose another checkpoint "
                     "(--from-checkpoint)",
                     path);
    else if (version > CHECKPOINT_VERSION)
        rc = err_set(err, HVD_E_VERSION,
                     "%s: the format has version %" PRIu64
                     ", and this hvd-elastic knows versions up to %d; use a newer hvd-elastic, or "
                     "choose another checkpoint (--from-checkpoint) and another --checkpoint-dir",
                     path, version, CHECKPOINT_VERSION);
    else if ((rc = parse_root(root, &manifest, &wrong)) == HVD_E_NOMEM)
        err_set(err, rc, "%s: no memory to read this manifest; free memory on this host", path);
    else if (rc)
        err_set(err, rc, "%s: the manifest has %s; choose another checkpoint (--from-checkpoint)",
                path, wrong);
    json_decref(root);
    if (rc)
        checkpoint_manifest_release(&manifest);
    else
        *ret = manifest;
    return rc;
}
