/*
 * checkpoints.c: the verb "checkpoints": lists, verifies, exports or prunes the checkpoints of a
 * directory. No driver is asked: all that the verb needs is in the directory. Only `prune` changes
 * the directory, and it removes nothing that the driver of a living job may still write.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/checkpoint/prune.h"
#include "driver/cli/client.h"
#include "driver/cli/find_job.h"
#include "driver/control/json.h"
#include "os/clock.h"
#include "os/file.h"
#include "proto/commit.h"
#include "state/checkpoint/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINTS_ANSWER_BYTES ((size_t)64 * 1024 * 1024)
/* The most bytes of the file "command" in a job's folder. */
#define COMMAND_BYTES_MAX (8 * 1024 * 1024)

/* One run of the verb. */
struct checkpoints {
    struct checkpoint_store *store;
    /* the folder of the checkpoint that the operator named; NULL: all of the directory */
    const char *only;
    bool json;
    bool verify; /* read all bytes of each checkpoint, and compare the checksums */
    struct buf out;
    struct json line; /* writes JSON to `out` */
    size_t broken;    /* how many checkpoints were completed but cannot be used */
    struct hvd_err *err;
};

static uint64_t manifest_bytes_of(const struct checkpoint_manifest *manifest)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->file_count; i++)
        bytes += manifest->files[i].bytes;
    return bytes;
}

/* Reads all bytes of the checkpoint, and compares them with its checksums. */
static int verify_one(struct checkpoint_store *store, const struct checkpoint_manifest *manifest,
                      struct hvd_err *err)
{
    struct checkpoint_reader *reader;
    uint64_t bytes;
    int rc = checkpoint_reader_open(store, manifest, &reader, err);

    if (rc)
        return rc;
    rc = checkpoint_verify(reader, &bytes, err);
    checkpoint_reader_close(reader);
    return rc;
}

/* Adds the row of one checkpoint to the answer, as JSON or as text. manifest is NULL if the
 * checkpoint cannot be loaded: `code` and `why` are then the reason, and only its commit is shown
 * beside them. */
static int show_row(struct checkpoints *run, uint64_t commit,
                    const struct checkpoint_manifest *manifest, int code, const char *why)
{
    int64_t age_us = manifest ? clock_wall_us() - manifest->wall_us : -1;
    const char *state = code ? why : run->verify ? "complete, verified" : "complete";
    char name[CHECKPOINT_FOLDER_MAX], age[TIME_TEXT_MAX];
    struct json *json = &run->line;

    checkpoint_folder(commit, name);
    if (!run->json && !manifest)
        return buf_printf(&run->out, "%-22s  %5s  %7s  %14s  %-10s  %s\n", name + strlen("commit-"),
                          "-", "-", "-", "-", state);
    if (!run->json)
        return buf_printf(&run->out, "%-22s  %5" PRIu32 "  %7zu  %14" PRIu64 "  %-10s  %s\n",
                          name + strlen("commit-"), manifest->ranks, manifest->entries.count,
                          manifest_bytes_of(manifest),
                          time_format(age_us > 0 ? age_us / TIME_S * TIME_S : 0, age), state);
    json_open(json, NULL, '{');
    json_text(json, "folder", name);
    json_number(json, "round", COMMIT_ROUND_OF(commit));
    json_number(json, "commit", COMMIT_PLACE_OF(commit));
    json_bool(json, "complete", code == 0);
    json_text(json, "text", code ? why : "");
    if (manifest) {
        json_text(json, "job", manifest->job);
        json_number(json, "ranks", manifest->ranks);
        json_number(json, "entries", manifest->entries.count);
        json_number(json, "bytes", manifest_bytes_of(manifest));
        json_seconds(json, "age_s", age_us);
    }
    json_close(json, '}');
    return 0;
}

/* Called by checkpoint_each for each checkpoint, the newest first: shows it. A checkpoint that was
 * never completed (HVD_E_NOTFOUND) is no failure. A checkpoint that the job removes meanwhile is
 * not shown. */
static int show_folder(void *arg, const char *folder, uint64_t commit)
{
    struct checkpoints *run = arg;
    struct checkpoint_manifest manifest;
    struct hvd_err why = { .text = "" };
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    uint64_t bytes;
    bool loaded;
    int rc, printed;

    if (run->only && strcmp(run->only, folder) != 0)
        return 0;
    rc = checkpoint_load(run->store, folder, &manifest, &why);
    loaded = rc == 0;
    if (!rc && run->verify)
        rc = verify_one(run->store, &manifest, &why);
    /* When a job removes a checkpoint, it removes the file COMPLETE first: a checkpoint that has
     * failed here and has no such file is being removed. */
    snprintf(name, sizeof(name), "%s/" CHECKPOINT_COMPLETE, folder);
    if (rc && !run->only && (loaded || rc != HVD_E_NOTFOUND) &&
        checkpoint_store_size(run->store, name, &bytes, NULL) == HVD_E_NOTFOUND) {
        if (loaded)
            checkpoint_manifest_release(&manifest);
        return 0;
    }
    if (rc == HVD_E_NOMEM)
        return rc;
    run->broken += rc != 0 && (rc != HVD_E_NOTFOUND || run->only);
    printed = show_row(run, commit, loaded ? &manifest : NULL, rc, why.text);
    if (loaded)
        checkpoint_manifest_release(&manifest);
    return printed;
}

/* Prints the list of all checkpoints; with run->verify all their bytes are read. HVD_E_CORRUPT: at
 * least one checkpoint that was completed cannot be used. */
static int show_all(struct checkpoints *run)
{
    int rc = 0;

    run->line = (struct json){ .out = &run->out };
    if (run->json) {
        json_open(&run->line, NULL, '{');
        json_text(&run->line, "where", checkpoint_store_where(run->store));
        json_open(&run->line, "checkpoints", '[');
    } else {
        rc = buf_printf(&run->out, "%-22s  %5s  %7s  %14s  %-10s  %s\n", "COMMIT", "RANKS",
                        "ENTRIES", "BYTES", "AGE", "STATE");
    }
    if (!rc)
        rc = checkpoint_each(run->store, show_folder, run, run->err);
    if (rc && rc != HVD_E_NOMEM && rc != HVD_E_LIMIT)
        return rc; /* run->err has the reason from checkpoint_each */
    if (!rc && run->json) {
        json_close(&run->line, ']');
        rc = json_end(&run->line);
    }
    if (!rc)
        rc = client_print(buf_text(&run->out), run->out.length);
    if (rc)
        return err_set(run->err, rc, "checkpoints: %s", err_text(rc));
    return run->broken
               ? err_set(run->err, HVD_E_CORRUPT,
                         "%s: %zu of the checkpoints cannot be used; the list above says why, and "
                         "'hvd-elastic checkpoints prune' removes such checkpoints",
                         checkpoint_store_where(run->store), run->broken)
               : 0;
}

/* Copies one file of the checkpoint `folder` from run->store to the same name in `to`. `chunk` is
 * memory for STATE_CHUNK_BYTES. checkpoint_store_read and _write report errors in run->err. */
static int export_file(struct checkpoints *run, struct checkpoint_store *to, const char *folder,
                       const struct checkpoint_file *file, void *chunk)
{
    char name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    struct checkpoint_object *object;
    int rc;

    snprintf(name, sizeof(name), "%s/%s", folder, file->name);
    rc = checkpoint_store_create(to, name, file->bytes, &object, run->err);
    if (rc)
        return rc;
    for (uint64_t at = 0; !rc && at < file->bytes; at += STATE_CHUNK_BYTES) {
        uint64_t rest = file->bytes - at;
        size_t bytes = rest < STATE_CHUNK_BYTES ? (size_t)rest : STATE_CHUNK_BYTES;

        rc = checkpoint_store_read(run->store, name, at, chunk, bytes, run->err);
        if (!rc)
            rc = checkpoint_store_write(object, chunk, bytes, run->err);
    }
    if (!rc)
        return checkpoint_store_finish(object, run->err);
    checkpoint_store_abandon(object);
    return rc;
}

/* Copies the named checkpoint, or the newest complete one, into the directory `dest`, which becomes
 * a directory of checkpoints. The checkpoint is verified before it is copied. */
static int export_one(struct checkpoints *run, const char *dest)
{
    struct checkpoint_manifest manifest = { .commit = 0 };
    struct checkpoint_store *to = NULL;
    char folder[CHECKPOINT_FOLDER_MAX];
    void *chunk = mem_alloc(STATE_CHUNK_BYTES);
    uint64_t sum;
    int rc;

    if (!chunk)
        rc = err_set(run->err, HVD_E_NOMEM, "checkpoints: %s", err_text(HVD_E_NOMEM));
    else
        rc = run->only ? checkpoint_load(run->store, run->only, &manifest, run->err)
                       : checkpoint_find_newest(run->store, NULL, NULL, &manifest, run->err);
    if (rc) {
        mem_free(chunk);
        return rc;
    }
    checkpoint_folder(manifest.commit, folder);
    rc = verify_one(run->store, &manifest, run->err);
    if (!rc)
        rc = checkpoint_store_make(dest, &to, run->err);
    for (size_t i = 0; !rc && i < manifest.file_count; i++)
        rc = export_file(run, to, folder, &manifest.files[i], chunk);
    if (!rc)
        rc = checkpoint_write_manifest(to, &manifest, &sum, run->err);
    if (!rc)
        rc = checkpoint_write_complete(to, manifest.commit, sum, run->err);
    checkpoint_manifest_release(&manifest);
    /* The copy is read back, so that a disk that has not kept what was written is noticed now, and
     * not when the copy is needed. */
    if (!rc && !(rc = checkpoint_load(to, folder, &manifest, run->err))) {
        rc = verify_one(to, &manifest, run->err);
        checkpoint_manifest_release(&manifest);
    }
    if (!rc)
        printf("%s/%s: exported to %s/%s\n", checkpoint_store_where(run->store), folder, dest,
               folder);
    checkpoint_store_close(to);
    mem_free(chunk);
    return rc;
}

/* Called by prune_checkpoints with each line that tells the operator what it does. */
static void print_note(void *arg, const char *text)
{
    (void)arg;
    printf("%s\n", text);
}

/* Removes all checkpoints but the newest complete ones. `keep_text`: how many complete ones stay,
 * as the operator wrote it. */
static int prune_to_count(struct checkpoints *run, const char *keep_text)
{
    struct span span = { keep_text, strlen(keep_text) };
    uint64_t keep;
    size_t removed, kept;
    int rc = text_parse_u64(span, 1, LIMIT_CHECKPOINTS, "the number of checkpoints that stay",
                            &keep, run->err);

    if (rc)
        return err_prefix(run->err, HVD_E_INVAL, "checkpoints prune");
    rc = prune_checkpoints(run->store, keep, false /* an attempt may be under way */, print_note,
                           NULL, &removed, &kept, run->err);
    if (rc)
        return rc;
    printf("%zu removed, %zu complete checkpoints stay\n", removed, kept);
    return 0;
}

/* Finds --checkpoint-dir among the options with which the driver of the job was started, and writes
 * its absolute path to `where`. The file "command" in the folder of the job has texts that each end
 * with a NUL: a mark of the format, the current folder of the driver, its options (lines of a
 * config file), and others that are not read here. */
static int find_dir_of_job(const struct cli_request *request, char where[LIMIT_PATH_BYTES],
                           struct hvd_err *err)
{
    static const char first[] = "checkpoint-dir = ", later[] = "\ncheckpoint-dir = ";
    const char *cwd = "", *lines = "", *value = NULL;
    char path[LIMIT_PATH_BYTES + 16];
    char *folder = NULL;
    bool whole = false; /* the value is a path from the root, or an address */
    struct buf text;
    int rc = cli_find_job(request->options.state_dir, request->words[0], &folder, err);

    if (rc)
        return rc;
    buf_init(&text, COMMAND_BYTES_MAX);
    snprintf(path, sizeof(path), "%s/command", folder);
    rc = file_read(path, &text, err);
    if (!rc && strlen(buf_text(&text)) < text.length)
        cwd = text.data + strlen(text.data) + 1;
    if (!rc && *cwd && cwd + strlen(cwd) < text.data + text.length)
        lines = cwd + strlen(cwd) + 1;
    if (!strncmp(lines, first, sizeof(first) - 1))
        value = lines + sizeof(first) - 1;
    else if (strstr(lines, later))
        value = strstr(lines, later) + sizeof(later) - 1;
    /* A value in quotes has characters that are escaped, and is not read here. */
    if (!rc && (!value || *value == '"')) {
        rc = err_set(err, HVD_E_NOTFOUND,
                     "job %s: its options have no plain --checkpoint-dir; write the path of the "
                     "directory instead of the job",
                     request->words[0]);
    } else if (!rc) {
        whole = *value == '/' || memmem(value, strcspn(value, "\n"), "://", 3);
        snprintf(where, LIMIT_PATH_BYTES, "%s%s%.*s", whole ? "" : cwd, whole ? "" : "/",
                 (int)strcspn(value, "\n"), value);
    }
    buf_release(&text);
    mem_free(folder);
    return rc;
}

/* Checks the words of the verb: JOB or DIR, then nothing, "verify", "export DEST" or "prune N". */
static int checkpoints_read(struct cli_request *request, struct hvd_err *err)
{
    const char *where = cli_next_word(request);
    const char *action = cli_next_word(request);
    const char *value = action ? cli_next_word(request) : NULL;
    bool takes = action && (!strcmp(action, "export") || !strcmp(action, "prune"));

    if (!where)
        return err_set(err, HVD_E_INVAL,
                       "checkpoints: the job or directory is missing; write a job's name, or the "
                       "path that it has as --checkpoint-dir");
    if (action && !takes && strcmp(action, "verify") != 0)
        return err_set(
            err, HVD_E_INVAL,
            "checkpoints: %.64s is none of verify, export DEST and prune N; give one of them",
            action);
    if (takes && !value)
        return err_set(err, HVD_E_INVAL, "checkpoints %s: one word is missing: %s", action,
                       *action == 'e' ? "the directory of the copy" : "how many checkpoints stay");
    if (!takes && value)
        return err_set(err, HVD_E_INVAL, "checkpoints: %.64s: one word too many; leave it out",
                       value);
    return 0;
}

/* Runs the verb: finds the directory of the checkpoints, opens it, and does what the second word
 * says. A path whose last part is the folder of a checkpoint (DIR/commit-12.5) names this one
 * checkpoint of DIR (run.only). */
static int checkpoints_run(const struct cli_request *request, struct hvd_err *err)
{
    const char *action = request->word_count > 1 ? request->words[1] : "";
    struct checkpoints run = { .json = request->options.json, .err = err };
    char where[LIMIT_PATH_BYTES];
    uint64_t commit;
    size_t length;
    char *slash;
    int rc;

    if (strlen(request->words[0]) >= sizeof(where))
        return err_set(err, HVD_E_INVAL,
                       "checkpoints: the path has more than %d bytes; give a shorter path",
                       LIMIT_PATH_BYTES - 1);
    snprintf(where, sizeof(where), "%s", request->words[0]);
    /* A word without a slash that is no file or directory here is the name of a job. */
    if (!strchr(where, '/') && access(where, F_OK) &&
        (rc = find_dir_of_job(request, where, err)) != 0)
        return rc;
    run.verify = !strcmp(action, "verify");
    for (length = strlen(where); length > 1 && where[length - 1] == '/'; length--)
        where[length - 1] = '\0';
    slash = strrchr(where, '/');
    if (slash && slash > where && checkpoint_folder_commit(slash + 1, &commit)) {
        *slash = '\0';
        run.only = slash + 1;
    }
    buf_init(&run.out, CHECKPOINTS_ANSWER_BYTES);
    rc = checkpoint_store_open(where, &run.store, err);
    if (!rc && !strcmp(action, "export"))
        rc = export_one(&run, request->words[2]);
    else if (!rc && !strcmp(action, "prune"))
        rc = prune_to_count(&run, request->words[2]);
    else if (!rc)
        rc = show_all(&run);
    checkpoint_store_close(run.store);
    buf_release(&run.out);
    return rc;
}

const struct cli_verb cli_checkpoints = {
    .name = "checkpoints",
    .words = "JOB|DIR|s3://BUCKET/PREFIX [verify | export DEST | prune N] ",
    .about =
        "Lists the checkpoints of a job or a directory, or the one in DIR/commit-12.5; verify "
        "reads all bytes and compares every checksum; export copies the newest complete one; prune "
        "removes all but the N newest complete ones.",
    .read = checkpoints_read,
    .run = checkpoints_run,
};
