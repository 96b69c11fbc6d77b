/*
 * arena_store.c: starts the servers of etcd in which the arena's job is kept, and asks them as an
 * operator would: which one leads, is the database full. arena.c opens and closes the store,
 * faults_etcd.c attacks it. Invariant: the servers die with this process, and are no processes of
 * the arena: the judge does not count them.
 */
#include "tests/chaos/arena_store.h"

#include "base/time.h"
#include "driver/store/etcd_call.h"
#include "tests/lib/etcd_server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define QUOTA    "--quota-backend-bytes=33554432"
#define FILL     "ZmlsbA==" /* the key "fill", as base64 */
#define FILL_END "ZmlsbQ==" /* "film", where the keys that begin with "fill" end */
#define FILL_AT  (384 * 1024)
#define FILLS    400 /* far more than the quota has room for */
#define ASK_US   (20 * TIME_S)

int arena_store_open(const char *folder, struct hvd_err *err)
{
    if (!etcd_server_found())
        return err_set(err, HVD_E_UNSUPPORTED,
                       "--store etcd: the program etcd is not installed (etcd-server)");
    if (mkdir(folder, 0700) || !etcd_server_start(folder, ARENA_STORE_SERVERS, QUOTA))
        return err_set(err, HVD_E_IO, "%s: etcd cannot be started there", folder);
    return 0;
}

void arena_store_close(void)
{
    etcd_server_stop();
}

const char *arena_store_url(void)
{
    return etcd_server_url();
}

void arena_store_signal(unsigned number, int signal)
{
    etcd_server_signal(number, signal);
}

int arena_store_again(unsigned number, struct hvd_err *err)
{
    return etcd_server_again(number) ? 0
                                     : err_set(err, HVD_E_IO, "no process for a server of etcd");
}

/* Asks one server of the cluster, or with number ARENA_STORE_SERVERS any of them. */
static int ask(unsigned number, const char *path, const struct buf *body, json_t **ret_answer,
               struct hvd_err *err)
{
    char url[64];
    const struct etcd_store_config config = { .url = url };
    const char *from = strstr(etcd_server_url(), "//") + 2;
    struct etcd *etcd;
    int rc;

    for (unsigned i = 0; i < number % ARENA_STORE_SERVERS; i++)
        from = strchr(from, ',') + 1;
    snprintf(url, sizeof(url), "etcd://%.*s/", (int)strcspn(from, ",/"), from);
    rc = etcd_create(number < ARENA_STORE_SERVERS
                         ? &config
                         : &(struct etcd_store_config){ .url = etcd_server_url() },
                     &etcd, err);
    if (rc)
        return rc;
    etcd_set_patience(etcd, number < ARENA_STORE_SERVERS ? 0 : ASK_US);
    rc = etcd_call(etcd, path, body, ret_answer, err);
    etcd_free(etcd);
    return rc;
}

static int ask_text(unsigned number, const char *path, const char *text, json_t **ret_answer,
                    struct hvd_err *err)
{
    struct buf body;
    int rc;

    buf_init(&body, 1024);
    rc = buf_append(&body, text, strlen(text));
    if (!rc)
        rc = ask(number, path, &body, ret_answer, err);
    buf_release(&body);
    return rc;
}

int arena_store_leader(struct hvd_err *err)
{
    int leader = HVD_E_NOTFOUND;

    for (unsigned i = 0; i < ARENA_STORE_SERVERS && leader < 0; i++) {
        json_t *answer = NULL, *member;

        if (ask_text(i, "maintenance/status", "{}", &answer, err))
            continue;
        member = json_object_get(json_object_get(answer, "header"), "member_id");
        if (json_is_string(member) && json_equal(member, json_object_get(answer, "leader")))
            leader = (int)i;
        json_decref(answer);
    }
    return leader >= 0 ? leader : err_set(err, HVD_E_NOTFOUND, "no server of etcd leads");
}

int arena_store_fill(struct hvd_err *err)
{
    static char value[FILL_AT];
    int rc = 0;

    memset(value, 'A', sizeof(value));
    for (unsigned i = 0; i < FILLS && !rc; i++) {
        json_t *answer = NULL;
        struct buf body;

        buf_init(&body, FILL_AT + 1024);
        rc = buf_printf(&body, "{\"key\":\"" FILL "\",\"value\":\"%.*s\"}", FILL_AT, value);
        if (!rc)
            rc = ask(ARENA_STORE_SERVERS, "kv/put", &body, &answer, err);
        json_decref(answer);
        buf_release(&body);
    }
    if (!rc)
        return err_set(err, HVD_E_INTERNAL, "etcd has taken more than its quota");
    return rc == HVD_E_FULL ? 0 : rc;
}

/* Ends the alarm of each server, as "etcdctl alarm disarm" does. */
static int disarm(struct hvd_err *err)
{
    json_t *answer = NULL, *alarms;
    int rc =
        ask_text(ARENA_STORE_SERVERS, "maintenance/alarm", "{\"action\":\"GET\"}", &answer, err);

    alarms = json_object_get(answer, "alarms");
    for (size_t i = 0; i < json_array_size(alarms) && !rc; i++) {
        const char *member =
            json_string_value(json_object_get(json_array_get(alarms, i), "memberID"));
        json_t *done = NULL;
        char text[128];

        snprintf(text, sizeof(text),
                 "{\"action\":\"DEACTIVATE\",\"memberID\":\"%.24s\",\"alarm\":\"NOSPACE\"}",
                 member ? member : "0");
        rc = ask_text(ARENA_STORE_SERVERS, "maintenance/alarm", text, &done, err);
        json_decref(done);
    }
    json_decref(answer);
    return rc;
}

int arena_store_drain(struct hvd_err *err)
{
    json_t *answer = NULL;
    char text[96];
    int rc = ask_text(ARENA_STORE_SERVERS, "kv/deleterange",
                      "{\"key\":\"" FILL "\",\"range_end\":\"" FILL_END "\"}", &answer, err);

    snprintf(text, sizeof(text), "{\"revision\":\"%" PRId64 "\",\"physical\":true}",
             etcd_number(json_object_get(answer, "header"), "revision"));
    json_decref(answer);
    answer = NULL;
    if (!rc)
        rc = ask_text(ARENA_STORE_SERVERS, "kv/compaction", text, &answer, err);
    json_decref(answer);
    for (unsigned i = 0; i < ARENA_STORE_SERVERS && !rc; i++) {
        answer = NULL;
        rc = ask_text(i, "maintenance/defragment", "{}", &answer, err);
        json_decref(answer);
    }
    return rc ? rc : disarm(err);
}
