/*
 * catalog.c: the thread that owns the directory of checkpoints. The event loop hands it manifests
 * (catalog_complete) and takes results (catalog_next) when the descriptor is readable. Invariant:
 * COMPLETE is written only after every file was seen with its size, and after a look at the owner
 * between manifest.json and COMPLETE.
 */
#include "driver/checkpoint/catalog.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/panic.h"
#include "driver/checkpoint/owner.h"
#include "driver/checkpoint/prune.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A shared file system may show a file of another host with a delay. The catalog looks for a
 * missing file again and again for this long. */
#define VISIBLE_PATIENCE (5 * TIME_S)
#define VISIBLE_LOOK     (100 * TIME_MS)

/* the wait after a failed attempt to open the directory; it doubles with each further failure */
#define OPEN_RETRY     TIME_S
#define OPEN_RETRY_MAX TIME_MIN

/* One request, and later its result. The loop makes it, so the thread needs no memory for a
 * result. */
struct catalog_entry {
    struct list link;
    struct checkpoint_manifest manifest; /* what a request is about; a result does not use it */
    struct catalog_result result;
};

struct catalog {
    char *where, *from, *job, *job_id;
    uint64_t keep;
    bool patient;
    int fd;
    pthread_t thread;

    pthread_mutex_t lock; /* not held while the thread uses the file system */
    /* signalled when a request comes, when the catalog is to stop, and when the thread has ended */
    pthread_cond_t wake;
    /* The fields below are protected by the lock. */
    struct list requests;
    struct list results;
    bool stopping;
    bool ended;

    /* Only the thread uses the fields below, while it runs. */
    /* the entry for the result CATALOG_READY, made before the thread starts; NULL: the thread has
     * posted it */
    struct catalog_entry *ready;
    /* the opened directory `where`; NULL: it is not open, or the job has none */
    struct checkpoint_store *store;
    struct owner owner;
    struct hvd_err lost; /* code not 0: another owner has the directory, or it cannot be used */
};

static void entry_free(struct catalog_entry *entry)
{
    checkpoint_manifest_release(&entry->manifest);
    mem_free(entry);
}

/* Makes a request or result, with the event that the event loop gets in the end. NULL: no memory is
 * left. */
static struct catalog_entry *entry_create(enum catalog_event event)
{
    struct catalog_entry *entry = mem_zalloc(sizeof(*entry));

    if (!entry)
        return NULL;
    list_init(&entry->link);
    checkpoint_manifest_init(&entry->manifest);
    entry->result.event = event;
    return entry;
}

/* Hands a result to the event loop: appends it to the list, and makes the descriptor readable so
 * that the loop calls catalog_next. */
static void catalog_post(struct catalog *catalog, struct catalog_entry *entry)
{
    const uint64_t one = 1;
    ssize_t wrote;

    pthread_mutex_lock(&catalog->lock);
    list_append(&catalog->results, &entry->link);
    pthread_mutex_unlock(&catalog->lock);
    do
        wrote = write(catalog->fd, &one, sizeof(one));
    while (wrote < 0 && errno == EINTR); /* EAGAIN: the descriptor is readable already */
}

/* Posts a result that is only a text for the log. If no memory is left, the log lacks this line. */
static void catalog_tell(struct catalog *catalog, enum catalog_event event, int code,
                         const char *text)
{
    struct catalog_entry *entry = entry_create(event);

    if (!entry)
        return;
    entry->result.code = code;
    snprintf(entry->result.text, sizeof(entry->result.text), "%s", text);
    catalog_post(catalog, entry);
}

/* Called by prune.c with a text for the log; the type prune_note_fn requires `arg`, which is the
 * catalog. */
static void catalog_note(void *arg, const char *text)
{
    catalog_tell(arg, CATALOG_NOTE, 0, text);
}

/* Called for each checkpoint that a search passes over: posts a line for the log. The reason names
 * the folder already. */
static void note_skipped(void *arg, const char *folder, int code, const char *reason)
{
    char text[ERR_TEXT_MAX];

    (void)folder;
    snprintf(text, sizeof(text), "skipped a checkpoint: %.400s (%s)", reason, err_name(code));
    catalog_tell(arg, CATALOG_NOTE, code, text);
}

/* Fills the result with the folder, commit and ranks of the checkpoint that this manifest
 * describes, and frees the manifest. */
static void take_checkpoint(struct catalog_result *result, const struct checkpoint_store *store,
                            struct checkpoint_manifest *manifest)
{
    char folder[CHECKPOINT_FOLDER_MAX];

    snprintf(result->path, sizeof(result->path), "%s/%s", checkpoint_store_where(store),
             checkpoint_folder(manifest->commit, folder));
    result->commit = manifest->commit;
    result->ranks = manifest->ranks;
    checkpoint_manifest_release(manifest);
}

/* Loads the checkpoint that --from-checkpoint names: the folder of one, or the newest in a
 * directory. */
static int find_given(struct catalog *catalog, struct catalog_result *result, struct hvd_err *err)
{
    const char *from = catalog->from;
    struct checkpoint_manifest manifest;
    char parent[LIMIT_PATH_BYTES];
    struct checkpoint_store *store = NULL;
    size_t length = strlen(from);
    const char *name;
    uint64_t commit;
    int rc;

    while (length > 1 && from[length - 1] == '/')
        length--;
    snprintf(parent, sizeof(parent), "%.*s", (int)length, from);
    name = strrchr(parent, '/');
    if (name && name > parent && checkpoint_folder_commit(name + 1, &commit)) {
        parent[name - parent] = '\0';
        rc = checkpoint_store_open(parent, &store, err);
        if (!rc)
            rc = checkpoint_load(store, name + 1, &manifest, err);
    } else {
        rc = checkpoint_store_open(parent, &store, err);
        if (!rc)
            rc = checkpoint_find_newest(store, note_skipped, catalog, &manifest, err);
    }
    if (!rc)
        take_checkpoint(result, store, &manifest);
    checkpoint_store_close(store);
    /* The job was told to begin with this checkpoint, so it does not begin anew without it. */
    if (rc == HVD_E_NOTFOUND)
        rc = HVD_E_INVAL;
    return rc ? err_prefix(err, rc, "--from-checkpoint") : 0;
}

/* Opens the directory and becomes its owner, then finds the checkpoint with which the job begins.
 * HVD_E_NOTFOUND: there is none, and the job begins without one. */
static int catalog_begin(struct catalog *catalog, struct catalog_result *result,
                         struct hvd_err *err)
{
    struct checkpoint_manifest manifest;
    int rc = HVD_E_NOTFOUND;

    if (catalog->where) {
        rc = (catalog->patient ? checkpoint_store_open
                               : checkpoint_store_make)(catalog->where, &catalog->store, err);
        if (!rc)
            rc = owner_take(catalog->store, catalog->job, catalog->job_id, &catalog->owner, err);
        if (rc == HVD_E_NOTFOUND)
            rc = catalog->patient ? HVD_E_IO : HVD_E_INVAL;
        if (rc)
            return err_prefix(err, rc, "--checkpoint-dir");
        rc = checkpoint_find_newest(catalog->store, note_skipped, catalog, &manifest, err);
        if (!rc)
            take_checkpoint(result, catalog->store, &manifest);
        if (!rc && catalog->from) {
            char text[ERR_TEXT_MAX];

            snprintf(
                text, sizeof(text),
                "--from-checkpoint %.150s is not used, because --checkpoint-dir has a complete "
                "checkpoint: %.200s",
                catalog->from, result->path);
            catalog_note(catalog, text);
        }
    }
    return rc == HVD_E_NOTFOUND && catalog->from ? find_given(catalog, result, err) : rc;
}

/* Waits, at most VISIBLE_PATIENCE, until this machine sees all files of the checkpoint with their
 * sizes: a shared file system may show files of other hosts late. */
static int wait_visible(struct catalog *catalog, const struct checkpoint_manifest *manifest,
                        struct hvd_err *err)
{
    const int64_t until_us = clock_now_us() + VISIBLE_PATIENCE;
    bool stopping = false;
    int rc = checkpoint_check_files(catalog->store, manifest, err);

    while (rc == HVD_E_CORRUPT && !stopping && clock_now_us() < until_us) {
        int64_t look_us = clock_now_us() + VISIBLE_LOOK;

        pthread_mutex_lock(&catalog->lock);
        while (!catalog->stopping && !thread_cond_wait(&catalog->wake, &catalog->lock, look_us))
            ;
        stopping = catalog->stopping;
        pthread_mutex_unlock(&catalog->lock);
        rc = checkpoint_check_files(catalog->store, manifest, err);
    }
    if (rc == HVD_E_CORRUPT)
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: a file that an agent has written is missing or incomplete in this "
                       "folder on the driver's machine; --checkpoint-dir must be a directory that "
                       "all hosts and the driver share, or a bucket",
                       checkpoint_store_where(catalog->store));
    return rc;
}

/* Carries out a request of catalog_complete: checks that this driver still owns the directory and
 * that all files are visible, then writes manifest.json and COMPLETE. */
static int catalog_finish(struct catalog *catalog, struct catalog_entry *entry, struct hvd_err *err)
{
    char folder[CHECKPOINT_FOLDER_MAX];
    struct checkpoint_manifest found;
    uint64_t sum = 0;
    bool same;
    int rc;

    if (catalog->lost.code) {
        *err = catalog->lost;
        return err->code;
    }
    if (!catalog->store)
        return err_set(err, HVD_E_STATE, "the job has no --checkpoint-dir; start it with one");
    entry->manifest.wall_us = clock_wall_us();
    rc = owner_check(catalog->store, &catalog->owner, err);
    if (rc == HVD_E_LOST)
        catalog->lost = *err;
    if (rc)
        return rc;
    /* A driver before this one may have completed the checkpoint, and have died before it could
     * tell. Then it is not written again: a second manifest would not fit the first COMPLETE. */
    rc = checkpoint_load(catalog->store, checkpoint_folder(entry->manifest.commit, folder), &found,
                         err);
    if (!rc) {
        same = found.digest == entry->manifest.digest && found.ranks == entry->manifest.ranks;
        checkpoint_manifest_release(&found);
        if (same) {
            take_checkpoint(&entry->result, catalog->store, &entry->manifest);
            return 0;
        }
    } else if (rc == HVD_E_NOTFOUND || rc == HVD_E_CORRUPT) {
        /* No complete checkpoint lies in the folder, so it is written below. With any other error,
         * such as that of a checkpoint of a newer version, nothing is written. */
        rc = 0;
    }
    if (!rc)
        rc = wait_visible(catalog, &entry->manifest, err);
    if (!rc)
        rc = checkpoint_write_manifest(catalog->store, &entry->manifest, &sum, err);
    if (!rc)
        rc = owner_check(catalog->store, &catalog->owner, err);
    if (!rc)
        rc = checkpoint_write_complete(catalog->store, entry->manifest.commit, sum, err);
    if (rc == HVD_E_LOST)
        catalog->lost = *err;
    if (!rc)
        take_checkpoint(&entry->result, catalog->store, &entry->manifest);
    return rc;
}

struct catalog_search {
    struct catalog *catalog;
    uint64_t before; /* only checkpoints with a lower commit count */
    struct checkpoint_manifest manifest;
    struct hvd_err err; /* the error of the checkpoint that was loaded last */
};

/* Called for each checkpoint, the newest first. Returns 0 to go on; 1 to end the search, because
 * this checkpoint is older than `before` and complete; HVD_E_VERSION to end it at a checkpoint of a
 * newer hvd-elastic. */
static int catalog_visit(void *arg, const char *folder, uint64_t commit)
{
    struct catalog_search *search = arg;
    int rc;

    if (commit >= search->before)
        return 0;
    rc = checkpoint_load(search->catalog->store, folder, &search->manifest, &search->err);
    if (rc == HVD_E_VERSION)
        return rc;
    if (rc && rc != HVD_E_NOTFOUND)
        note_skipped(search->catalog, folder, rc, search->err.text);
    return !rc;
}

/* Carries out a request of catalog_reject: finds the newest complete checkpoint that is older than
 * the rejected one, whose commit is in entry->manifest. */
static int catalog_find_older(struct catalog *catalog, struct catalog_entry *entry,
                              struct hvd_err *err)
{
    struct catalog_search search = { .catalog = catalog, .before = entry->manifest.commit };
    int rc = catalog->store ? checkpoint_each(catalog->store, catalog_visit, &search, err) : 0;

    if (rc == 1)
        take_checkpoint(&entry->result, catalog->store, &search.manifest);
    if (rc == HVD_E_VERSION)
        return err_set(err, rc, "%s", search.err.text);
    if (rc)
        return rc == 1 ? 0 : rc;
    return err_set(err, HVD_E_NOTFOUND, "there is no older checkpoint");
}

/* Sets the code of a result and its text: the text of `err`, or that of the code if `err` has none;
 * "" for code 0. */
static void set_code(struct catalog_result *result, int code, const struct hvd_err *err)
{
    result->code = code;
    snprintf(result->text, sizeof(result->text), "%s",
             !code          ? ""
             : err->text[0] ? err->text
                            : err_text(code));
}

/* Waits for the next request of the event loop and takes it; NULL: the catalog stops. */
static struct catalog_entry *next_request(struct catalog *catalog)
{
    struct catalog_entry *entry = NULL;

    pthread_mutex_lock(&catalog->lock);
    while (!catalog->stopping && list_empty(&catalog->requests))
        (void)thread_cond_wait(&catalog->wake, &catalog->lock, TIME_NEVER);
    if (!catalog->stopping) {
        entry = CONTAINER_OF(catalog->requests.next, struct catalog_entry, link);
        list_remove(&entry->link);
    }
    pthread_mutex_unlock(&catalog->lock);
    return entry;
}

/* Removes old checkpoints and leftovers (prune.h), after each new checkpoint. A failure is only
 * logged, because the next call tries again. */
static void catalog_prune(struct catalog *catalog, uint64_t keep, bool all_incomplete)
{
    struct hvd_err err = { .code = 0 };
    int rc = prune_checkpoints(catalog->store, keep, all_incomplete, catalog_note, catalog, NULL,
                               NULL, &err);

    if (rc)
        catalog_tell(catalog, CATALOG_NOTE, rc, err.text);
}

/* Waits until `until_us`, and fails the requests that come meanwhile. False: the catalog stops. */
static bool catalog_wait_away(struct catalog *catalog, int64_t until_us, const struct hvd_err *err)
{
    struct catalog_entry *entry;
    bool stopping, more = true;

    while (more) {
        entry = NULL;
        pthread_mutex_lock(&catalog->lock);
        while (!catalog->stopping && list_empty(&catalog->requests) && more)
            more = !thread_cond_wait(&catalog->wake, &catalog->lock, until_us);
        stopping = catalog->stopping;
        if (!stopping && !list_empty(&catalog->requests)) {
            entry = CONTAINER_OF(catalog->requests.next, struct catalog_entry, link);
            list_remove(&entry->link);
        }
        pthread_mutex_unlock(&catalog->lock);
        if (stopping) /* the requests are freed with the catalog */
            return false;
        if (entry) {
            set_code(&entry->result, err->code, err);
            catalog_post(catalog, entry);
        }
    }
    return true;
}

/* The function of the thread: takes the directory and posts CATALOG_READY, then carries out
 * requests until the catalog stops. A patient catalog tries again and again to take the directory,
 * as long as the failure may pass. */
static void *catalog_thread(void *arg)
{
    struct catalog *catalog = arg;
    struct catalog_entry *entry = catalog->ready;
    struct hvd_err err = { .code = 0 };
    int64_t retry_us = OPEN_RETRY;
    bool may_pass = catalog->patient;
    int rc = catalog_begin(catalog, &entry->result, &err);

    /* Folders without COMPLETE are removed only here, when the first try to open the directory
     * succeeds: no attempt of this driver has begun, so all of them are leftovers. If this try
     * hangs until the driver goes on without an answer, such a folder may be that of an attempt.
     * Then this attempt fails, because COMPLETE is written only after every file was seen. After a
     * later try nothing is removed. */
    if (catalog->store && (!rc || rc == HVD_E_NOTFOUND))
        catalog_prune(catalog, UINT64_MAX /* keep all complete ones */,
                      true /* all incomplete go */);
    for (;;) {
        /* Only these failures may pass by themselves. Any other lasts until the operator changes
         * the options of the job. */
        may_pass = may_pass &&
                   (rc == HVD_E_IO || rc == HVD_E_TIMEOUT || rc == HVD_E_DENIED ||
                    rc == HVD_E_FULL || rc == HVD_E_LOST || rc == HVD_E_PROTO || rc == HVD_E_NOMEM);
        if (!may_pass)
            break;
        catalog_tell(catalog, CATALOG_AWAY, rc, err.text);
        owner_release(&catalog->owner);
        checkpoint_store_close(catalog->store);
        catalog->store = NULL;
        if (!catalog_wait_away(catalog, time_add(clock_now_us(), retry_us), &err))
            break;
        retry_us = retry_us * 2 < OPEN_RETRY_MAX ? retry_us * 2 : OPEN_RETRY_MAX;
        rc = catalog_begin(catalog, &entry->result, &err);
    }
    /* The directory cannot be used: each request fails with this error from now on. The job of a
     * patient catalog goes on without checkpoints. */
    if (rc && rc != HVD_E_NOTFOUND)
        (void)err_set(&catalog->lost, rc, "%s", err.text);
    catalog->ready = NULL;
    set_code(&entry->result, rc, &err);
    catalog_post(catalog, entry);
    while ((entry = next_request(catalog)) != NULL) {
        bool older = entry->result.event == CATALOG_OLDER;

        err.text[0] = '\0';
        rc =
            older ? catalog_find_older(catalog, entry, &err) : catalog_finish(catalog, entry, &err);
        set_code(&entry->result, rc, &err);
        catalog_post(catalog, entry);
        if (!rc && !older)
            catalog_prune(catalog, catalog->keep, false /* an attempt may be under way */);
    }
    owner_release(&catalog->owner);
    checkpoint_store_close(catalog->store);
    pthread_mutex_lock(&catalog->lock);
    catalog->ended = true;
    pthread_cond_broadcast(&catalog->wake);
    pthread_mutex_unlock(&catalog->lock);
    return NULL;
}

static void catalog_drop_all(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        list_remove(it);
        entry_free(CONTAINER_OF(it, struct catalog_entry, link));
    }
}

/* Frees a catalog whose thread has ended, or was never started. */
static void catalog_free(struct catalog *catalog)
{
    catalog_drop_all(&catalog->requests);
    catalog_drop_all(&catalog->results);
    if (catalog->ready)
        entry_free(catalog->ready);
    pthread_cond_destroy(&catalog->wake);
    pthread_mutex_destroy(&catalog->lock);
    if (catalog->fd >= 0)
        close(catalog->fd);
    mem_free(catalog->where);
    mem_free(catalog->from);
    mem_free(catalog->job);
    mem_free(catalog->job_id);
    mem_free(catalog);
}

/* True: `where` means the same place on every host: an absolute path, or an address such as
 * "s3://...". It is shorter than LIMIT_PATH_BYTES. */
static bool catalog_is_absolute(const char *where)
{
    return (*where == '/' || strstr(where, "://")) && strlen(where) < LIMIT_PATH_BYTES;
}

/* Checks the two paths, copies the options and starts the thread. The directory is opened by the
 * thread, so this function never waits for a disk. */
int catalog_start(const struct catalog_options *options, struct catalog **ret_catalog,
                  struct hvd_err *err)
{
    struct catalog *catalog;
    int rc;

    ASSERT(options->keep > 0);
    if (options->where && !catalog_is_absolute(options->where))
        return err_set(err, HVD_E_INVAL,
                       "--checkpoint-dir: \"%.64s\" is not an absolute path of at most %d bytes; "
                       "agents on other hosts use the same path",
                       options->where, LIMIT_PATH_BYTES - 1);
    if (options->from && !catalog_is_absolute(options->from))
        return err_set(err, HVD_E_INVAL,
                       "--from-checkpoint: \"%.64s\" is not an absolute path of at most %d bytes; "
                       "give such a path",
                       options->from, LIMIT_PATH_BYTES - 1);
    catalog = mem_zalloc(sizeof(*catalog));
    if (!catalog)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the thread of checkpoints; free memory on this host");
    list_init(&catalog->requests);
    list_init(&catalog->results);
    catalog->owner.lock = catalog->fd = -1;
    rc = pthread_mutex_init(&catalog->lock, NULL);
    ASSERT(rc == 0);
    rc = thread_cond_init(&catalog->wake);
    ASSERT(rc == 0);
    catalog->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    catalog->keep = options->keep;
    catalog->patient = options->patient;
    catalog->where = options->where ? mem_strdup(options->where) : NULL;
    catalog->from = options->from ? mem_strdup(options->from) : NULL;
    catalog->job = mem_strdup(options->job);
    catalog->job_id = mem_strdup(options->job_id);
    catalog->ready = entry_create(CATALOG_READY);
    if ((options->where && !catalog->where) || (options->from && !catalog->from) || !catalog->job ||
        !catalog->job_id || !catalog->ready)
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the thread of checkpoints; free memory on this host");
    else if (catalog->fd < 0 || thread_start(&catalog->thread, 0, catalog_thread, catalog))
        rc = err_set(err, HVD_E_LIMIT,
                     "the thread of checkpoints cannot be started; raise the limit on %s",
                     catalog->fd < 0 ? "open files (ulimit -n)" : "processes (ulimit -u)");
    if (rc)
        catalog_free(catalog);
    else
        *ret_catalog = catalog;
    return rc;
}

/* Appends a request to the list and wakes the thread, which frees it or posts it as a result. */
static void catalog_ask(struct catalog *catalog, struct catalog_entry *entry)
{
    pthread_mutex_lock(&catalog->lock);
    list_append(&catalog->requests, &entry->link);
    pthread_cond_broadcast(&catalog->wake);
    pthread_mutex_unlock(&catalog->lock);
}

/* Asks the thread to make a checkpoint complete whose files all exist; the result is CATALOG_DONE
 * with this number. HVD_E_NOMEM: nothing was asked. */
int catalog_complete(struct catalog *catalog, uint64_t number,
                     const struct checkpoint_manifest *manifest)
{
    struct catalog_entry *entry = entry_create(CATALOG_DONE);
    int rc = entry ? checkpoint_manifest_copy(manifest, &entry->manifest) : HVD_E_NOMEM;

    if (rc) {
        mem_free(entry);
        return rc;
    }
    entry->result.number = number;
    catalog_ask(catalog, entry);
    return 0;
}

/* Asks the thread for the newest checkpoint before this commit, whose own checkpoint cannot be
 * used; the result is CATALOG_OLDER. */
int catalog_reject(struct catalog *catalog, uint64_t commit)
{
    struct catalog_entry *entry = entry_create(CATALOG_OLDER);

    if (!entry)
        return HVD_E_NOMEM;
    entry->manifest.commit = commit;
    catalog_ask(catalog, entry);
    return 0;
}

int catalog_fd(const struct catalog *catalog)
{
    return catalog->fd;
}

/* Takes the next result; false: there is none now. The descriptor is emptied only when the list is
 * empty, and under the lock, so a result that is posted later makes it readable again. */
bool catalog_next(struct catalog *catalog, struct catalog_result *ret_result)
{
    struct catalog_entry *entry = NULL;
    uint64_t rings;

    pthread_mutex_lock(&catalog->lock);
    if (!list_empty(&catalog->results)) {
        entry = CONTAINER_OF(catalog->results.next, struct catalog_entry, link);
        list_remove(&entry->link);
    } else {
        (void)!read(catalog->fd, &rings, sizeof(rings));
    }
    pthread_mutex_unlock(&catalog->lock);
    if (!entry)
        return false;
    *ret_result = entry->result;
    entry_free(entry);
    return true;
}

/* Ends the thread and frees the catalog. If the thread does not end within patience_us, because a
 * file system holds it, the thread and its memory are left as they are (HVD_E_TIMEOUT). */
int catalog_stop(struct catalog *catalog, int64_t patience_us)
{
    int64_t until_us;
    bool ended;
    int rc;

    if (!catalog)
        return 0;
    until_us = time_add(clock_now_us(), patience_us);
    pthread_mutex_lock(&catalog->lock);
    catalog->stopping = true;
    pthread_cond_broadcast(&catalog->wake);
    while (!catalog->ended && !thread_cond_wait(&catalog->wake, &catalog->lock, until_us))
        ;
    ended = catalog->ended;
    pthread_mutex_unlock(&catalog->lock);
    if (!ended) {
        thread_abandon(catalog->thread);
        return HVD_E_TIMEOUT;
    }
    rc = pthread_join(catalog->thread, NULL);
    ASSERT(rc == 0);
    catalog_free(catalog);
    return 0;
}
