/*
 * etcd_call.c: sends calls to the servers of an etcd cluster, one server after the other, and
 * judges their answers. etcd_store.c calls it from one thread. Invariant: each request ends within
 * the limit of its path, and no answer is longer than LIMIT_ETCD_ANSWER_BYTES.
 */
#include "driver/store/etcd_call.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "driver/store/etcd_text.h"
#include "http/client.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_US (500 * TIME_MS)
#define REQUEST_US (500 * TIME_MS) /* a quarter of the lease, if that is less */
#define READ_US    (5 * TIME_S)    /* a page of a journal may be long */
#define SIGN_IN_US (2 * TIME_S)    /* etcd makes the check of a password slow on purpose */
/* the wait after all servers were asked, before the first is asked again */
#define PAUSE_US     (100 * TIME_MS)
#define TOKEN_MAX    512
#define PASSWORD_MAX 1024

#define ETCD_REMEDY  "look at the servers of --store with \"etcdctl endpoint health\""

struct etcd {
    struct etcd_url url;
    struct http_client *http;
    size_t server; /* the server that is asked next */
    int64_t patience_us;
    int64_t request_us; /* the limit of a request that is short and is not for a sign-in */
    char user[ETCD_USER_MAX + 1]; /* the calls are made without a user */
    char *password_file;
    char authorization[TOKEN_MAX + 32]; /* the HTTP header with the token; "": not signed in */
    struct buf answer;
};

/* Makes the client for the servers of --store. Nothing is sent yet. The texts of the configuration
 * are copied. */
int etcd_create(const struct etcd_store_config *config, struct etcd **ret_etcd, struct hvd_err *err)
{
    const struct http_config http = { .connect_us = CONNECT_US,
                                      .request_us = REQUEST_US,
                                      .ca_file = config->ca_file,
                                      .cert_file = config->cert_file,
                                      .key_file = config->key_file,
                                      .remedy = ETCD_REMEDY };
    struct etcd *etcd = mem_zalloc(sizeof(*etcd));
    int rc;

    if (!etcd)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the client of etcd; free memory on this host");
    etcd_text_start();
    buf_init(&etcd->answer, LIMIT_ETCD_ANSWER_BYTES);
    rc = etcd_url_parse(config->url, &etcd->url, err);
    if (!rc)
        rc = http_client_create(&http, &etcd->http, err);
    if (!rc && config->password_file && !(etcd->password_file = mem_strdup(config->password_file)))
        rc =
            err_set(err, HVD_E_NOMEM, "no memory for the client of etcd; free memory on this host");
    if (rc) {
        etcd_free(etcd);
        return rc;
    }
    snprintf(etcd->user, sizeof(etcd->user), "%s", config->user ? config->user : etcd->url.user);
    etcd->request_us = REQUEST_US;
    if (config->lease_us && config->lease_us / 4 < REQUEST_US)
        etcd->request_us = config->lease_us / 4;
    *ret_etcd = etcd;
    return 0;
}

void etcd_free(struct etcd *etcd)
{
    if (!etcd)
        return;
    http_client_free(etcd->http);
    buf_release(&etcd->answer);
    mem_free(etcd->password_file);
    explicit_bzero(etcd->authorization, sizeof(etcd->authorization));
    mem_free(etcd);
}

/* Sets how long each later call goes on trying servers that do not answer; 0: each server is asked
 * once. */
void etcd_set_patience(struct etcd *etcd, int64_t patience_us)
{
    etcd->patience_us = patience_us;
}

/* Says what an error of etcd means. The numbers are those of gRPC; etcd uses some for several
 * errors, which only its texts tell apart. */
static int etcd_code_of(int64_t number, const char *text)
{
    switch (number) {
    case 3: /* invalid argument */
        if (strstr(text, "too large"))
            return HVD_E_LIMIT;
        return strstr(text, "authentication failed") || strstr(text, "user name is empty") ||
                       strstr(text, "auth")
                   ? HVD_E_DENIED
                   : HVD_E_IO;
    case 5: return HVD_E_NOTFOUND;
    case 7:
    case 16: return HVD_E_DENIED;
    case 8: /* resource exhausted */
        if (strstr(text, "database space exceeded"))
            return HVD_E_FULL;
        return strstr(text, "larger than max") ? HVD_E_LIMIT : HVD_E_BUSY;
    case 9: return strstr(text, "auth") ? HVD_E_DENIED : HVD_E_IO;
    case 1:  /* cancelled */
    case 4:  /* deadline exceeded */
    case 10: /* aborted */
    case 14: /* unavailable */ return HVD_E_BUSY;
    case 2: /* unknown: a server that has lost its cluster says "context deadline exceeded" */
        return strstr(text, "deadline") || strstr(text, "leader") || strstr(text, "timed out")
                   ? HVD_E_BUSY
                   : HVD_E_IO;
    default: return HVD_E_IO;
    }
}

/* Returns the end of an error's text: what the operator can do about an error of this code; "":
 * nothing is known. */
static const char *etcd_remedy_of(int rc)
{
    switch (rc) {
    case HVD_E_FULL:
        return "; its database is full: compact and defragment it, or raise --quota-backend-bytes, "
               "then \"etcdctl alarm disarm\"";
    case HVD_E_DENIED: return "; see --store-user and --store-password-file";
    case HVD_E_BUSY: return "; " ETCD_REMEDY;
    default: return "";
    }
}

/* Judges an answer of HTTP status and body. 0: *ret_answer is its JSON. Otherwise the code and text
 * of an error that etcd, or a proxy before it, has answered with. */
int etcd_read_answer(const char *server, long status, struct span body, json_t **ret_answer,
                     struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    json_error_t why;
    json_t *answer = json_loadb(body.at, body.length, 0, &why);
    const char *text = json_string_value(json_object_get(answer, "error"));
    int rc;

    /* When an allocation fails the JSON library may leave the code "unknown", so that counts as no
     * memory. */
    if (!answer && (json_error_code(&why) == json_error_out_of_memory ||
                    json_error_code(&why) == json_error_unknown))
        return err_set(err, HVD_E_NOMEM, "%s: %s", server, err_text(HVD_E_NOMEM));
    if (status == 200 && json_is_object(answer) && !text) {
        *ret_answer = answer;
        return 0;
    }
    if (!text) { /* a proxy, or a server that is starting or ending, answers without JSON of etcd */
        rc = status >= 500 || status == 429   ? HVD_E_BUSY
             : status == 401 || status == 403 ? HVD_E_DENIED
                                              : HVD_E_PROTO;
        err_set(err, rc, "%s: etcd answers with HTTP status %ld: %s%s", server, status,
                text_quote(body.length ? body.at : "", body.length, quoted), etcd_remedy_of(rc));
    } else {
        rc = etcd_code_of((int64_t)json_integer_value(json_object_get(answer, "code")), text);
        err_set(err, rc, "%s: %s%s", server, text_quote(text, strlen(text), quoted),
                etcd_remedy_of(rc));
    }
    json_decref(answer);
    return rc;
}

/* Sends one request to the server whose turn it is (etcd->server), and reads its answer. A request
 * for keys may take longer than others. */
static int etcd_ask(struct etcd *etcd, const char *path, struct span body, json_t **ret_answer,
                    struct hvd_err *err)
{
    const char *server = etcd->url.server[etcd->server];
    const char *const headers[] = { "Content-Type: application/json", etcd->authorization };
    char url[sizeof(etcd->url.server[0]) + 64];
    struct http_answer answer;
    struct http_request request = { .method = HTTP_POST,
                                    .url = url,
                                    .headers = headers,
                                    .header_count = *etcd->authorization ? 2 : 1,
                                    .body = body.at,
                                    .body_length = body.length,
                                    .body_to = &etcd->answer,
                                    .limit_us = !strcmp(path, "kv/range") ? READ_US
                                                : !strcmp(path, "auth/authenticate")
                                                    ? SIGN_IN_US
                                                    : etcd->request_us };
    int rc;

    snprintf(url, sizeof(url), "%s/v3/%s", server, path);
    buf_clear(&etcd->answer);
    rc = http_send(etcd->http, &request, &answer, err);
    if (rc)
        return rc;
    return etcd_read_answer(server, answer.status,
                            (struct span){ buf_text(&etcd->answer), etcd->answer.length },
                            ret_answer, err);
}

/* Signs in with user and password, and keeps the token, which etcd forgets after some minutes. The
 * password is read again each time, because the operator may have changed it. */
static int etcd_sign_in(struct etcd *etcd, struct hvd_err *err)
{
    json_t *request = NULL, *answer = NULL;
    char *text = NULL;
    const char *token;
    struct buf password;
    int rc = 0;

    *etcd->authorization = '\0';
    buf_init(&password, PASSWORD_MAX);
    if (etcd->password_file)
        rc = file_read(etcd->password_file, &password, err);
    while (password.length && strchr("\r\n", password.data[password.length - 1]))
        password.length--;
    if (!rc) {
        request = json_pack("{s:s, s:s%}", "name", etcd->user, "password", buf_text(&password),
                            password.length);
        text = request ? json_dumps(request, JSON_COMPACT) : NULL;
        rc = text ? etcd_ask(etcd, "auth/authenticate", (struct span){ text, strlen(text) },
                             &answer, err)
                  : err_set(err, HVD_E_INVAL, "%s: the password is not a text; mend the file",
                            etcd->password_file ? etcd->password_file : "--store-user");
    }
    token = json_string_value(json_object_get(answer, "token"));
    if (!rc && (!token || strlen(token) > TOKEN_MAX))
        rc = err_set(err, HVD_E_PROTO,
                     "%s: etcd gives no token for the user %s; check the user and the password",
                     etcd->url.server[etcd->server], etcd->user);
    if (!rc) /* the gateway wants the token alone, without "Bearer" */
        snprintf(etcd->authorization, sizeof(etcd->authorization), "Authorization: %s", token);
    if (text)
        explicit_bzero(text, strlen(text));
    mem_free(text);
    json_decref(request);
    json_decref(answer);
    buf_release(&password);
    return rc;
}

/* Calls etcd: if a server does not answer, the next one is asked, round after round, for
 * patience_us. If the token is refused, the user signs in again, once. */
int etcd_call(struct etcd *etcd, const char *path, const struct buf *body, json_t **ret_answer,
              struct hvd_err *err)
{
    const struct span span = { buf_text(body), body->length };
    int64_t until_us = clock_now_us() + etcd->patience_us;
    size_t asked = 0;
    bool signed_in = false;
    int rc;

    for (;;) {
        rc = 0;
        if (*etcd->user && !*etcd->authorization) {
            rc = etcd_sign_in(etcd, err);
            signed_in = true;
        }
        if (!rc)
            rc = etcd_ask(etcd, path, span, ret_answer, err);
        if (rc == HVD_E_DENIED && *etcd->user && !signed_in) {
            *etcd->authorization = '\0';
            continue;
        }
        if (rc != HVD_E_BUSY)
            return rc;
        etcd->server = (etcd->server + 1) % etcd->url.count;
        /* A pause follows only when each server was asked once more. */
        if (++asked % etcd->url.count)
            continue;
        if (clock_now_us() >= until_us)
            return rc;
        thread_pause(PAUSE_US);
    }
}

/* ---- reading answers ------------------------------------------------------------------------ */

/* Returns a number of an answer, which etcd writes as a text in decimal digits; 0 if it is missing
 * or not valid, because etcd leaves out numbers that are 0. */
int64_t etcd_number(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    uint64_t number = 0;

    if (!text ||
        text_parse_u64((struct span){ text, strlen(text) }, 0, INT64_MAX, name, &number, NULL))
        return 0;
    return (int64_t)number;
}

/* Returns the list of keys with their values in the answer to a range; NULL: no key was found. */
const json_t *etcd_kvs(const json_t *answer)
{
    const json_t *kvs = json_object_get(answer, "kvs");

    return json_array_size(kvs) ? kvs : NULL;
}

/* Returns the list of keys that operation number `index` of a transaction has read; NULL: no key
 * was found. */
const json_t *etcd_txn_kvs(const json_t *answer, size_t index)
{
    const json_t *response = json_array_get(json_object_get(answer, "responses"), index);

    return etcd_kvs(json_object_get(response, "response_range"));
}

void etcd_pair_init(struct etcd_pair *pair)
{
    buf_init(&pair->key, LIMIT_ETCD_ANSWER_BYTES);
    buf_init(&pair->value, LIMIT_ETCD_ANSWER_BYTES);
    pair->revision = 0;
}

void etcd_pair_release(struct etcd_pair *pair)
{
    buf_release(&pair->key);
    buf_release(&pair->value);
}

/* Reads entry number `index` of a list of keys into `pair`, and decodes its base64. HVD_E_PROTO:
 * the answer is not one of etcd. */
int etcd_pair_at(const json_t *kvs, size_t index, struct etcd_pair *pair, struct hvd_err *err)
{
    const json_t *entry = json_array_get(kvs, index);
    const json_t *key = json_object_get(entry, "key");
    const json_t *value = json_object_get(entry, "value"); /* etcd leaves out an empty value */
    int rc;

    buf_clear(&pair->key);
    buf_clear(&pair->value);
    pair->revision = etcd_number(entry, "mod_revision");
    rc = json_is_string(key) && (!value || json_is_string(value)) && pair->revision ? 0
                                                                                    : HVD_E_PROTO;
    if (!rc)
        rc = etcd_unbase64(&pair->key, json_string_value(key), json_string_length(key));
    if (!rc && value)
        rc = etcd_unbase64(&pair->value, json_string_value(value), json_string_length(value));
    return rc ? err_set(err, rc,
                        "an answer of etcd cannot be read: %s; let the driver reach etcd without a "
                        "proxy",
                        err_text(rc))
              : 0;
}
