/*
 * test_format.c: discovery/format: any set of hosts is written so that it is read back the same.
 */
#include "base/rng.h"
#include "discovery/format.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

static struct hosts own, again;
static struct buf buf;

static void begin(struct test *t)
{
    (void)t;
    hosts_init(&own);
    hosts_init(&again);
    buf_init(&buf, (size_t)4 * LIMIT_HOST_TEXT_BYTES);
}

static void end(struct test *t)
{
    (void)t;
    hosts_release(&own);
    hosts_release(&again);
    buf_release(&buf);
}
FIXTURE(begin, end)

TEST(writes_one_host_a_line)
{
    buf_init(&buf, 1000);
    CHECK_OK(t, hosts_format_text(&own, &buf));
    CHECK_TEXT(t, buf_text(&buf), "");
    CHECK_OK(t, hosts_fill(&own, "b:2,a:0,[fe80::1%eth0]:3"));
    CHECK_OK(t, buf_append_text(&buf, "# hosts\n"));
    CHECK_OK(t, hosts_format_text(&own, &buf));
    CHECK_TEXT(t, buf_text(&buf), "# hosts\nb:2\na:0\n[fe80::1%eth0]:3\n");
}

TEST(puts_only_ipv6_in_brackets)
{
    char text[HOST_NAME_TEXT_MAX];
    char name[LIMIT_HOST_NAME_BYTES + 1];

    CHECK_TEXT(t, host_name_format("a.example", text), "a.example");
    CHECK_TEXT(t, host_name_format("10.0.0.1", text), "10.0.0.1");
    CHECK_TEXT(t, host_name_format("::1", text), "[::1]");
    memset(name, 'x', sizeof(name));
    memcpy(name, "::1%", 4);
    name[LIMIT_HOST_NAME_BYTES] = '\0';
    CHECK_INT(t, strlen(host_name_format(name, text)), ==, LIMIT_HOST_NAME_BYTES + 2);
    CHECK_HAS(t, text, "xxx]");
}

TEST(a_full_buffer_stays_as_it_was)
{
    buf_init(&buf, 10);
    CHECK_OK(t, hosts_fill(&own, "a:2,b:4"));
    CHECK_OK(t, buf_append_text(&buf, "xyz"));
    CHECK_CODE(t, hosts_format_text(&own, &buf), HVD_E_LIMIT);
    CHECK_TEXT(t, buf_text(&buf), "xyz");
}

/* As many long names as would make a text that hosts_parse_text refuses. */
TEST_FLAGS(never_writes_what_cannot_be_read, TEST_NO_TORTURE)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];

    buf_init(&buf, (size_t)4 * LIMIT_HOST_TEXT_BYTES);
    memset(name, 'x', sizeof(name));
    name[LIMIT_HOST_NAME_BYTES] = '\0';
    for (size_t i = 0; i <= LIMIT_HOST_TEXT_BYTES / LIMIT_HOST_NAME_BYTES; i++) {
        snprintf(name, 6, "%05zu", i);
        name[5] = 'x';
        CHECK_OK(t, hosts_add(&own, name, 1));
    }
    CHECK_CODE(t, hosts_format_text(&own, &buf), HVD_E_LIMIT);
    CHECK_INT(t, buf.length, ==, 0);
}

static int add_random(struct rng *rng, struct hosts *hosts)
{
    static const char bytes[] = "abcxyzABCXYZ0123456789_-.";
    char name[LIMIT_HOST_NAME_BYTES + 1];
    uint32_t slots = (uint32_t)rng_below(rng, LIMIT_SLOTS_PER_HOST + 1);
    size_t length = (size_t)rng_below(rng, 2) ? 3 : (size_t)rng_below(rng, LIMIT_HOST_NAME_BYTES);

    if (rng_below(rng, 4) == 0) {
        snprintf(name, sizeof(name), "fd00::%x%s", (unsigned)rng_below(rng, 0x10000),
                 rng_below(rng, 2) ? "%eth0" : "");
        return hosts_add(hosts, name, slots);
    }
    name[0] = 'h';
    for (size_t i = 1; i <= length; i++)
        name[i] = bytes[rng_below(rng, sizeof(bytes) - 1)];
    name[length + 1] = '\0';
    return hosts_add(hosts, name, slots);
}

static bool same(const struct hosts *left, const struct hosts *right)
{
    if (left->count != right->count)
        return false;
    for (size_t i = 0; i < left->count; i++) {
        if (strcmp(left->items[i].name, right->items[i].name) != 0 ||
            left->items[i].slots != right->items[i].slots)
            return false;
    }
    return true;
}

TEST_FLAGS(any_set_is_read_back_the_same, TEST_NO_TORTURE)
{
    struct rng rng;

    rng_seed(&rng, 6);
    buf_init(&buf, LIMIT_HOST_TEXT_BYTES);
    for (int round = 0; round < 200; round++) {
        hosts_release(&own);
        buf_clear(&buf);
        for (uint64_t i = rng_below(&rng, 40); i > 0; i--) {
            int rc = add_random(&rng, &own);

            CHECK(t, rc == 0 || rc == HVD_E_EXISTS);
        }
        CHECK_OK(t, hosts_format_text(&own, &buf));
        CHECK_OK(t,
                 hosts_parse_text((struct span){ buf.data, buf.length }, "text", 0, &again, NULL));
        CHECK(t, same(&own, &again));
    }
}
