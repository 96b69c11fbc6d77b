/*
 * store.c: the values that the workers of a job share (hvd/store.h). A call goes to the driver as a
 * STORE (PROTOCOL.md); in a program that runs alone a table of its own answers. Called by the
 * program from any thread; store_calls.c keeps the calls. Invariant: no call outlives its round,
 * its time or the agent.
 */
#include "hvd/store.h"

#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "worker/fail.h"
#include "worker/store_calls.h"
#include "worker/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HVD_STORE_KEY_BYTES == LIMIT_STORE_KEY_BYTES &&
                   HVD_STORE_VALUE_BYTES == LIMIT_STORE_VALUE_BYTES &&
                   HVD_STORE_BYTES == LIMIT_STORE_BYTES,
               "the limits of the header are those of the driver");

/* Makes a call of hvd/store.h and waits until it is answered, or its round, its time or the agent
 * is gone. *ret_result gets the answer. `name`: the function, for errors. */
static int store_call(const char *name, hvd_store_scope scope, struct msg_store call,
                      int64_t timeout_us, struct channel *ret_result)
{
    struct worker *worker = worker_enter();
    struct store *store = worker ? worker->store : NULL;
    int64_t deadline_us = timeout_us < 0 ? TIME_NEVER : time_add(clock_now_us(), timeout_us);
    struct msg msg = { .type = MSG_STORE };
    bool in_time = true;
    struct channel *channel;
    const char *why;
    int rc;

    if (!worker)
        return HVD_E_STATE;
    if (!call.key || !*call.key || strlen(call.key) > LIMIT_STORE_KEY_BYTES ||
        !text_is_clean(call.key, strlen(call.key)))
        return fail(
            HVD_E_INVAL,
            "%s: the key is missing, is longer than %d bytes, or is no text; choose another "
            "key",
            name, LIMIT_STORE_KEY_BYTES);
    if (call.value.length > LIMIT_STORE_VALUE_BYTES ||
        call.expected.length > LIMIT_STORE_VALUE_BYTES || (call.value.length && !call.value.at) ||
        (call.expected.length && !call.expected.at))
        return fail(HVD_E_INVAL,
                    "%s: the value of \"%s\" is missing or has more than %d bytes; pass a shorter "
                    "one, or its parts under several keys",
                    name, call.key, LIMIT_STORE_VALUE_BYTES);
    if (scope != HVD_STORE_JOB && scope != HVD_STORE_ROUND)
        return fail(HVD_E_INVAL, "%s: the scope is %d; pass HVD_STORE_JOB or HVD_STORE_ROUND", name,
                    (int)scope);
    msg.round = scope == HVD_STORE_ROUND ? hvd_round() : 0;
    if (scope == HVD_STORE_ROUND && !msg.round)
        return fail(HVD_E_STATE,
                    "%s: there has been no round yet; pass HVD_STORE_JOB, or call %s in train",
                    name, name);
    pthread_mutex_lock(&store->lock);
    channel = store_take(store, call.op == STORE_WAIT, msg.round, deadline_us, &rc, &why);
    if (!channel)
        goto out;
    call.number = channel->number;
    call.channel = (uint32_t)(channel - store->channels);
    msg.u.store = call;
    if (!worker_is_alone(worker))
        session_thread_say(worker->session,
                           &(struct session_event){ .kind = SESSION_STORE, .msg = &msg });
    while (in_time && !(rc = store_over(store, msg.round, &why))) {
        if (worker_is_alone(worker) && !channel->done)
            store_apply_alone(store, channel, &call);
        if (channel->done)
            break;
        in_time = store_sleep(store, deadline_us);
    }
    if (channel->done) {
        rc = channel->code;
        why = ret_result->text; /* the next line writes the text of the answer there */
        *ret_result = *channel;
    } else if (!rc) {
        rc = HVD_E_TIMEOUT;
        why = "the key still has no value";
    }
    channel->taken = false;
    pthread_cond_broadcast(&store->changed);

out:
    pthread_mutex_unlock(&store->lock);
    return rc ? fail(rc, "%s: \"%s\": %s", name, call.key, why) : 0;
}

int hvd_store_set(hvd_store_scope scope, const char *key, const void *value, size_t bytes)
{
    struct channel result;

    return store_call("hvd_store_set", scope,
                      (struct msg_store){
                          .op = STORE_SET, .key = key, .value = {value, bytes}
    },
                      -1, &result);
}

/* Copies the value of an answer into the program's memory, and its length to *ret_bytes. value NULL
 * and room 0: the program wants the length alone. */
static int store_copy(const char *name, const char *key, const struct channel *result, void *value,
                      size_t room, size_t *ret_bytes)
{
    if (ret_bytes)
        *ret_bytes = result->length;
    if (!value && !room)
        return 0;
    if (!value || result->length > room)
        return fail(HVD_E_FULL,
                    "%s: \"%s\" has %zu bytes, and there is room for %zu; pass more room", name,
                    key, result->length, value ? room : 0);
    memcpy(value, result->value, result->length);
    return 0;
}

int hvd_store_get(hvd_store_scope scope, const char *key, void *value, size_t room,
                  size_t *ret_bytes)
{
    const struct msg_store call = { .op = STORE_GET, .key = key };
    struct channel result;
    int rc = store_call("hvd_store_get", scope, call, -1, &result);

    return rc ? rc : store_copy("hvd_store_get", key, &result, value, room, ret_bytes);
}

int hvd_store_wait(hvd_store_scope scope, const char *key, int64_t timeout_us, void *value,
                   size_t room, size_t *ret_bytes)
{
    const struct msg_store call = { .op = STORE_WAIT, .key = key };
    struct channel result;
    int rc = store_call("hvd_store_wait", scope, call, timeout_us, &result);

    return rc ? rc : store_copy("hvd_store_wait", key, &result, value, room, ret_bytes);
}

/* Sends the amount as a decimal number. The driver adds, so the calls of several workers do not
 * lose an amount. */
int hvd_store_add(hvd_store_scope scope, const char *key, int64_t amount, int64_t *ret_sum)
{
    char number[VALUE_NUMBER_MAX];
    int length = snprintf(number, sizeof(number), "%" PRId64, amount);
    const struct msg_store call = {
        .op = STORE_ADD, .key = key, .value = {(const uint8_t *)number, (size_t)length}
    };
    struct channel result;
    int rc = store_call("hvd_store_add", scope, call, -1, &result);

    if (rc || !ret_sum)
        return rc;
    result.value[result.length < VALUE_NUMBER_MAX ? result.length : VALUE_NUMBER_MAX] = '\0';
    *ret_sum = strtoll((const char *)result.value, NULL, 10);
    return 0;
}

/* Sets the value if the present one is `expected`. `absent`: expected is NULL, so the key must have
 * no value. The driver compares, so of several workers one succeeds. */
int hvd_store_compare_set(hvd_store_scope scope, const char *key, const void *expected,
                          size_t expected_bytes, const void *value, size_t bytes)
{
    struct channel result;

    return store_call("hvd_store_compare_set", scope,
                      (struct msg_store){
                          .op = STORE_COMPARE_SET,
                          .key = key,
                          .value = {value,     bytes                        },
                          .expected = { expected, expected ? expected_bytes : 0},
                          .absent = !expected
    },
                      -1, &result);
}

int hvd_store_delete(hvd_store_scope scope, const char *key)
{
    struct channel result;

    return store_call("hvd_store_delete", scope,
                      (struct msg_store){ .op = STORE_DELETE, .key = key }, -1, &result);
}
