/*
 * owner.c: one owner for each directory of checkpoints. Called by the thread of the catalog.
 * Invariant: of two owners the one that came later is named in OWNER, so the other one learns of it
 * before it completes a checkpoint. The lock only refuses a second job early.
 */
#include "driver/checkpoint/owner.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define OWNER_FIELD_MAX 300

/* The facts of OWNER, for texts; a field is "" if the file does not have it. */
struct owner_facts {
    char job[OWNER_FIELD_MAX];
    char id[OWNER_FIELD_MAX];
    char host[OWNER_FIELD_MAX];
    char pid[OWNER_FIELD_MAX];
};

/* Reads the file OWNER as text, cut at OWNER_TEXT_MAX; "" if there is no such file. */
static int owner_read_text(struct checkpoint_store *store, char text[OWNER_TEXT_MAX],
                           struct hvd_err *err)
{
    uint64_t bytes;
    int rc = checkpoint_store_size(store, OWNER_FILE, &bytes, err);

    text[0] = '\0';
    if (rc)
        return rc == HVD_E_NOTFOUND ? 0 : rc;
    if (bytes >= OWNER_TEXT_MAX)
        bytes = OWNER_TEXT_MAX - 1;
    rc = checkpoint_store_read(store, OWNER_FILE, 0, text, (size_t)bytes, err);
    text[rc ? 0 : bytes] = '\0';
    return rc == HVD_E_NOTFOUND ? 0 : rc;
}

/* Reads the lines "job ...", "id ...", "host ..." and "pid ..." of OWNER; other lines are
 * ignored. */
static void owner_parse(const char *text, struct owner_facts *facts)
{
    struct span rest = { text, strlen(text) };
    struct span line;

    *facts = (struct owner_facts){ .job = "" };
    while (span_next(&rest, '\n', &line)) {
        struct span word = { NULL, 0 };
        char *field = NULL;

        if (!text_is_clean(line.at, line.length) || !span_next(&line, ' ', &word))
            continue;
        field = span_is(word, "job") ? facts->job : field;
        field = span_is(word, "id") ? facts->id : field;
        field = span_is(word, "host") ? facts->host : field;
        field = span_is(word, "pid") ? facts->pid : field;
        if (field && line.length < OWNER_FIELD_MAX)
            snprintf(field, OWNER_FIELD_MAX, "%.*s", (int)line.length, line.at);
    }
}

/* Sets an error with this code, which names the owner (`facts`) and the remedy. Returns the
 * code. */
static int owner_refuse(struct checkpoint_store *store, int code, const struct owner_facts *facts,
                        const char *remedy, struct hvd_err *err)
{
    return err_set(err, code,
                   "%s: job \"%s\" (host %s, pid %s) keeps its checkpoints in this place; %s",
                   checkpoint_store_where(store), facts->job[0] ? facts->job : "?",
                   facts->host[0] ? facts->host : "?", facts->pid[0] ? facts->pid : "?", remedy);
}

/* Makes this process the owner of the directory: takes its lock, if its file system has locks, and
 * writes OWNER. A lock that another process holds is taken over only if OWNER names the same
 * job. */
int owner_take(struct checkpoint_store *store, const char *job, const char *job_id,
               struct owner *ret_owner, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + sizeof(OWNER_LOCK) + 1];
    struct owner owner = { .lock = -1 };
    struct checkpoint_object *object;
    struct owner_facts facts = { .job = "" };
    char text[OWNER_TEXT_MAX];
    char host[256] = "?";
    uint64_t token = (uint64_t)clock_wall_us(); /* used if there is no random number */
    pid_t holder = 0;
    size_t length;
    int rc;

    snprintf(path, sizeof(path), "%s/" OWNER_LOCK, checkpoint_store_where(store));
    rc = checkpoint_store_directory(store) < 0 ? HVD_E_UNSUPPORTED
                                               : lock_take(path, &owner.lock, &holder, err);
    if (rc == HVD_E_BUSY && !owner_read_text(store, text, NULL) && text[0]) {
        owner_parse(text, &facts);
        if (strcmp(facts.id, job_id) != 0)
            return owner_refuse(store, HVD_E_BUSY, &facts,
                                "give each job a --checkpoint-dir of its own, or stop that job",
                                err);
        rc = lock_take_over(path, &owner.lock, err);
    }
    if (rc && rc != HVD_E_UNSUPPORTED)
        return rc;
    (void)!getrandom(&token, sizeof(token), 0);
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(owner.text, sizeof(owner.text),
             "job %s\nid %s\nhost %s\npid %ld\ntoken %016" PRIx64 "\n", job, job_id, host,
             (long)getpid(), token);
    length = strlen(owner.text);
    rc = checkpoint_store_create(store, OWNER_FILE, length, &object, err);
    if (!rc && (rc = checkpoint_store_write(object, owner.text, length, err)) != 0)
        checkpoint_store_abandon(object);
    else if (!rc)
        rc = checkpoint_store_finish(object, err);
    if (rc)
        owner_release(&owner);
    else
        *ret_owner = owner;
    return rc;
}

/* Returns 0 if OWNER still has the text that this owner wrote, HVD_E_LOST if another owner has
 * written it, or the error of a read. A text that is missing counts as another owner's. */
int owner_check(struct checkpoint_store *store, const struct owner *owner, struct hvd_err *err)
{
    char text[OWNER_TEXT_MAX];
    struct owner_facts facts = { .job = "" };
    int rc = owner_read_text(store, text, err);

    if (rc || !strcmp(text, owner->text))
        return rc;
    owner_parse(text, &facts);
    return owner_refuse(store, HVD_E_LOST, &facts,
                        "this driver writes no more checkpoints; give each job a --checkpoint-dir "
                        "of its own",
                        err);
}

void owner_release(struct owner *owner)
{
    if (owner->lock >= 0)
        close(owner->lock);
    owner->lock = -1;
}
