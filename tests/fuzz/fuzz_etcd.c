/*
 * fuzz_etcd.c: reads the answer of an etcd server as the store of a job does: the status, the keys
 * in it, and each value as a record, as facts, as an owner and as a row of the blacklist. A value
 * that is accepted must come back the same when it is written and read again.
 *
 * The first byte is the kind of the input: an answer of HTTP, one value, or a URL. The second byte
 * of an answer chooses its status.
 */
#include "base/panic.h"
#include "driver/store/etcd_call.h"
#include "driver/store/etcd_text.h"
#include "driver/store/record_check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct etcd_record own, again;

static void fuzz_value(struct span line)
{
    struct journal_record record, back;
    struct blacklist_record row, row_back;
    struct store_peers peers;
    struct etcd_owner owner;
    struct job_facts facts, facts_back;
    struct hvd_err err;
    struct buf text;
    int rc = etcd_read_record(&own, line, 1, &record, &err);

    buf_init(&text, LIMIT_ETCD_STEP_BYTES);
    ASSERT(!rc || (rc == HVD_E_CORRUPT && *err.text));
    if (!rc) {
        ASSERT(!record_wrong(&record));
        ASSERT(etcd_write_record(&text, 1, &record) == 0);
        ASSERT(etcd_read_record(&again, (struct span){ buf_text(&text), text.length }, 1, &back,
                                NULL) == 0);
        ASSERT(back.kind == record.kind && back.term == record.term &&
               !strcmp(back.host, record.host) && !strcmp(back.text, record.text) &&
               back.members.count == record.members.count &&
               back.addresses.count == record.addresses.count);
    }
    if (!etcd_read_facts(line, &facts, NULL)) {
        buf_clear(&text);
        ASSERT(etcd_write_facts(&text, &facts) == 0);
        ASSERT(etcd_read_facts((struct span){ buf_text(&text), text.length }, &facts_back, NULL) ==
               0);
        ASSERT(!memcmp(facts.key, facts_back.key, sizeof(facts.key)) &&
               !strcmp(facts.text, facts_back.text));
    }
    if (!etcd_read_blacklist(line, &row, NULL)) {
        buf_clear(&text);
        ASSERT(etcd_write_blacklist(&text, &row) == 0);
        ASSERT(etcd_read_blacklist((struct span){ buf_text(&text), text.length }, &row_back,
                                   NULL) == 0);
        ASSERT(!strcmp(row.host, row_back.host) && row.slot == row_back.slot);
    }
    (void)!etcd_read_owner(line, &owner, NULL);
    peers.count = 0;
    (void)!etcd_read_peers(line, &peers, NULL);
    ASSERT(peers.count <= STORE_PEERS_MAX);
    buf_release(&text);
}

static void fuzz_kvs(const json_t *kvs)
{
    struct etcd_pair pair;

    etcd_pair_init(&pair);
    for (size_t i = 0; i < json_array_size(kvs); i++)
        if (!etcd_pair_at(kvs, i, &pair, NULL))
            fuzz_value((struct span){ buf_text(&pair.value), pair.value.length });
    etcd_pair_release(&pair);
}

static void fuzz_answer(long status, struct span body)
{
    json_t *answer = NULL;
    struct hvd_err err;

    if (etcd_read_answer("http://127.0.0.1:2379", status, body, &answer, &err)) {
        ASSERT(err.code < 0 && *err.text);
        return;
    }
    (void)etcd_number(answer, "ID");
    (void)etcd_number(json_object_get(answer, "header"), "revision");
    (void)etcd_number(json_object_get(answer, "result"), "TTL");
    fuzz_kvs(etcd_kvs(answer));
    fuzz_kvs(etcd_txn_kvs(answer, 0));
    fuzz_kvs(etcd_txn_kvs(answer, 1));
    json_decref(answer);
}

static void fuzz_url(struct span span)
{
    struct etcd_url url;
    char text[512];

    if (span.length >= sizeof(text))
        return;
    memcpy(text, span.at, span.length);
    text[span.length] = '\0';
    if (etcd_url_parse(text, &url, NULL))
        return;
    ASSERT(url.count > 0 && url.count <= LIMIT_ETCD_SERVERS && *url.prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = { 200, 400, 401, 403, 404, 429, 500, 503 };
    const char *at = (const char *)data;
    static bool begun;

    if (!begun) {
        etcd_text_start();
        etcd_record_init(&own);
        etcd_record_init(&again);
        begun = true;
    }
    if (size < 2)
        return 0;
    switch (data[0] % 3) {
    case 0: fuzz_answer(statuses[data[1] % 8], (struct span){ at + 2, size - 2 }); break;
    case 1: fuzz_value((struct span){ at + 1, size - 1 }); break;
    default: fuzz_url((struct span){ at + 1, size - 1 });
    }
    etcd_record_release(&own);
    etcd_record_release(&again);
    return 0;
}
