/*
 * stolen_key.c: a thief of the key of one host dials the driver. Started by stolen_key.sh beside a
 * job that trains. It says whether the driver lets the key past the handshake, and says no hello.
 * Invariant: it ends after PATIENCE_S, and dials the loopback only.
 *
 *     stolen_key STATE_DIR HOST           prints the epoch of the host's newest key
 *     stolen_key STATE_DIR HOST EPOCH     prints "accepted" or "refused"
 */
#include "driver/io/host_keys.h"
#include "driver/journal/job_file.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S 180

struct thief {
    struct event_base *base;
    struct conn *conn;
    const char *host;
    uint64_t newest;
    const char *answer; /* NULL: none yet */
};

static void thief_on_opened(void *arg)
{
    struct thief *thief = arg;

    thief->answer = "accepted";
    event_base_loopbreak(thief->base);
}

static void thief_on_msg(void *arg, const struct msg *msg)
{
    (void)arg;
    (void)msg;
}

static void thief_on_closed(void *arg, const char *why)
{
    struct thief *thief = arg;

    thief->conn = NULL;
    if (strstr(why, TLS_REFUSED))
        thief->answer = "refused";
    else
        fprintf(stderr, "stolen_key: %s\n", why);
    event_base_loopbreak(thief->base);
}

static int thief_note_epoch(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    struct thief *thief = arg;

    (void)err;
    if (record->kind == JOURNAL_KEY && !strcmp(record->host, thief->host))
        thief->newest = (uint64_t)record->value;
    return 0;
}

static int thief_dial(struct thief *thief, const struct job_facts *facts, uint64_t epoch,
                      struct hvd_err *err)
{
    static const struct conn_ops ops = { thief_on_opened, thief_on_msg, thief_on_closed, NULL };
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    char address[32];
    const char *first = address;
    const struct msg_texts addresses = { &first, 1 };
    uint8_t key[TLS_KEY_BYTES];
    struct tls *tls = NULL;
    int rc = host_keys_derive(facts->key, thief->host, epoch, key);

    snprintf(address, sizeof(address), "127.0.0.1:%u", facts->port);
    thief->base = event_base_new();
    if (!rc)
        rc = thief->base ? tls_create("thief", key, &tls, err) : HVD_E_NOMEM;
    if (!rc)
        rc = conn_dial(thief->base, &addresses, tls, &ops, thief, &thief->conn, err);
    if (!rc) {
        event_base_loopexit(thief->base, &patience);
        event_base_dispatch(thief->base);
    }
    if (thief->conn)
        conn_drop(thief->conn);
    tls_free(tls);
    if (thief->base)
        event_base_free(thief->base);
    return rc;
}

int main(int argc, char **argv)
{
    struct thief thief = { .host = argc > 2 ? argv[2] : "" };
    struct job_facts facts = { .job = "none" };
    struct store *file;
    struct hvd_err err = { .text = "" };
    char path[LIMIT_PATH_BYTES];
    int rc;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: stolen_key STATE_DIR HOST [EPOCH]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof(path), "%s/job.db", argv[1]);
    rc = job_file_open(path, &db_options_usual, &facts, &file, &err);
    if (!rc) {
        rc = store_facts(file, &facts, &err);
        if (!rc)
            rc = store_replay(file, thief_note_epoch, &thief, &err);
        store_close(file);
    }
    if (!rc && argc == 3)
        printf("%" PRIu64 "\n", thief.newest);
    else if (!rc)
        rc = thief_dial(&thief, &facts, strtoull(argv[3], NULL, 10), &err);
    if (thief.answer)
        printf("%s\n", thief.answer);
    libevent_global_shutdown();
    if (rc)
        fprintf(stderr, "stolen_key: %s\n", err.text);
    return rc || (argc == 4 && !thief.answer) ? 1 : 0;
}
