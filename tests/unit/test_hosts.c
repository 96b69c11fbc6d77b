/*
 * test_hosts.c: discovery/hosts: the set of hosts keeps its order, its names and its limit, and a
 * copy that fails changes nothing.
 */
#include "base/limits.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

static struct hosts hosts, copy;

static void begin(struct test *t)
{
    (void)t;
    hosts_init(&hosts);
    hosts_init(&copy);
}

static void end(struct test *t)
{
    (void)t;
    hosts_release(&hosts);
    hosts_release(&copy);
}
FIXTURE(begin, end)

TEST(keeps_the_order_of_adding)
{
    CHECK_TEXT(t, hosts_shown(&hosts), "");
    CHECK(t, !hosts_find(&hosts, "a"));
    CHECK_OK(t, hosts_add(&hosts, "zebra", 2));
    CHECK_OK(t, hosts_add(&hosts, "a", 0));
    CHECK_OK(t, hosts_add(&hosts, "m.example", LIMIT_SLOTS_PER_HOST));
    CHECK_TEXT(t, hosts_shown(&hosts), "zebra:2 a:0 m.example:1024");
    CHECK_INT(t, hosts_total_slots(&hosts), ==, 1026);
    hosts_release(NULL);
}

TEST(finds_by_name)
{
    char name[16];

    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "h%" PRIu32, i);
        CHECK_OK(t, hosts_add(&hosts, name, i));
    }
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "h%" PRIu32, i);
        CHECK(t, hosts_find(&hosts, name) == &hosts.items[i]);
        CHECK_INT(t, hosts.items[i].slots, ==, i);
    }
    CHECK(t, !hosts_find(&hosts, "h100"));
    CHECK(t, !hosts_find(&hosts, "H1"));
    CHECK(t, !hosts_find(&hosts, ""));
}

TEST(refuses_equal_and_wrong_hosts)
{
    CHECK_OK(t, hosts_add(&hosts, "a", 2));
    CHECK_CODE(t, hosts_add(&hosts, "a", 2), HVD_E_EXISTS);
    CHECK_CODE(t, hosts_add(&hosts, "a", 3), HVD_E_EXISTS);
    CHECK_CODE(t, hosts_add(&hosts, "b", LIMIT_SLOTS_PER_HOST + 1), HVD_E_LIMIT);
    CHECK_CODE(t, hosts_add(&hosts, "b c", 1), HVD_E_INVAL);
    CHECK_CODE(t, hosts_add(&hosts, "", 1), HVD_E_INVAL);
    CHECK_TEXT(t, hosts_shown(&hosts), "a:2");
}

TEST_FLAGS(holds_limit_hosts_and_no_more, TEST_NO_TORTURE)
{
    char name[16];

    for (uint32_t i = 0; i < LIMIT_HOSTS; i++) {
        snprintf(name, sizeof(name), "h%" PRIu32, i);
        CHECK_OK(t, hosts_add(&hosts, name, LIMIT_SLOTS_PER_HOST));
    }
    CHECK_CODE(t, hosts_add(&hosts, "more", 1), HVD_E_LIMIT);
    CHECK_CODE(t, hosts_add(&hosts, "h7", 1), HVD_E_EXISTS);
    CHECK(t, !hosts_find(&hosts, "more"));
    CHECK_INT(t, hosts.count, ==, LIMIT_HOSTS);
    CHECK_INT(t, hosts_total_slots(&hosts), ==, (long long)LIMIT_HOSTS * LIMIT_SLOTS_PER_HOST);
}

TEST(copy_stands_alone)
{
    CHECK_OK(t, hosts_add(&copy, "old", 1));
    CHECK_OK(t, hosts_add(&hosts, "a", 2));
    CHECK_OK(t, hosts_add(&hosts, "b", 3));
    CHECK_OK(t, hosts_copy(&hosts, &copy));
    CHECK_OK(t, hosts_add(&hosts, "c", 4));
    CHECK_TEXT(t, hosts_shown(&copy), "a:2 b:3");
    CHECK(t, hosts_find(&copy, "b") && hosts_find(&copy, "b")->name != hosts.items[1].name);
    CHECK(t, !hosts_find(&copy, "old"));
    CHECK_OK(t, hosts_copy(&hosts, &hosts));
    CHECK_TEXT(t, hosts_shown(&hosts), "a:2 b:3 c:4");
    CHECK(t, hosts_find(&hosts, "c") == &hosts.items[2]);
}

TEST(failed_copy_changes_nothing)
{
    int rc;

    CHECK_OK(t, hosts_add(&copy, "old", 1));
    CHECK_OK(t, hosts_add(&hosts, "a", 2));
    rc = hosts_copy(&hosts, &copy);
    CHECK(t, hosts_find(&copy, rc ? "old" : "a"));
    CHECK_INT(t, copy.count, ==, 1);
    CHECK_OK(t, rc);
}

TEST(move_takes_the_names_along)
{
    const char *name;

    CHECK_OK(t, hosts_add(&hosts, "a", 2));
    CHECK_OK(t, hosts_add(&copy, "old", 1));
    name = hosts.items[0].name;
    hosts_move(&hosts, &copy);
    CHECK(t, copy.items[0].name == name);
    CHECK(t, hosts_find(&copy, "a") == &copy.items[0]);
    CHECK_INT(t, hosts.count, ==, 0);
    CHECK(t, !hosts_find(&hosts, "a"));
    CHECK_OK(t, hosts_add(&hosts, "a", 5));
    CHECK_TEXT(t, hosts_shown(&copy), "a:2");
}

TEST_FLAGS(move_onto_itself_is_a_bug, TEST_NO_TORTURE)
{
    CHECK_PANICS(t, "hosts != ret_hosts", hosts_move(&hosts, &hosts));
}

TEST(accepts_host_names)
{
    static const char *const good[] = {
        "a",
        "localhost",
        "node-17.rack_3.example.com",
        "127.0.0.2",
        "7",
        "_x",
        "UPPER",
        "host.",
        "::1",
        "fe80::1",
        "2001:db8:0:0:0:0:0:1",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "fe80::1%bond0.7-x_y",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK_OK(t, host_name_check(good[i], strlen(good[i]), NULL));
        CHECK_INT(t, host_name_is_ipv6(good[i]), ==, strchr(good[i], ':') != NULL);
    }
}

/* A literal and its length, so that a NUL byte may stand in it. */
#define NAME(literal) literal, sizeof(literal) - 1

TEST(refuses_host_names)
{
    static const struct {
        const char *name;
        size_t length;
        const char *why;
    } rows[] = {
        {NAME(""),              "\"\": a host name cannot be empty; write a name"       },
        { NAME("-oHostName=x"), "\"-oHostName=x\": a host name cannot start with '-'"   },
        { NAME("-"),            "a host name cannot start with '-'"                     },
        { NAME("."),            "a host name cannot start with '.'"                     },
        { NAME(".."),           "a host name cannot start with '.'"                     },
        { NAME("a b"),          "\"a b\": \" \" cannot be in a host name; use letters, "},
        { NAME("a/b"),          "\"/\" cannot be in a host name"                        },
        { NAME("user@a"),       "\"@\" cannot be in a host name"                        },
        { NAME("a;b"),          "\";\" cannot be in a host name"                        },
        { NAME("a\0b"),         "\"a\\x00b\": \"\\x00\" cannot be in a host name"       },
        { NAME("\x1b[31m"),     "\"\\x1b\" cannot be in a host name"                    },
        { NAME("n\xc3\xb8rd"),  "\"\\xc3\" cannot be in a host name"                    },
        { NAME("a%b"),          "\"%\" cannot be in a host name"                        },
        { NAME("[::1]"),        "not an IPv6 address"                                   },
        { NAME(":"),            "\":\": not an IPv6 address"                            },
        { NAME("a:2"),          "\"a:2\": not an IPv6 address"                          },
        { NAME("1::2::3"),      "not an IPv6 address"                                   },
        { NAME("::12345"),      "not an IPv6 address"                                   },
        { NAME("::1%"),         "not an IPv6 address"                                   },
        { NAME("::1%et/0"),     "not an IPv6 address"                                   },
        { NAME("::1%a%b"),      "not an IPv6 address"                                   },
        { NAME("%::1"),         "not an IPv6 address"                                   },
        { NAME("::1\0"),        "not an IPv6 address"                                   },
    };
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        err.text[0] = '\0';
        CHECK_CODE(t, host_name_check(rows[i].name, rows[i].length, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, rows[i].why);
        CHECK_CODE(t, host_name_check(rows[i].name, rows[i].length, NULL), HVD_E_INVAL);
    }
}

TEST(host_names_have_a_longest)
{
    char name[LIMIT_HOST_NAME_BYTES + 1];
    struct hvd_err err;

    memset(name, ':', sizeof(name));
    for (size_t length = 3; length <= LIMIT_HOST_NAME_BYTES; length++)
        CHECK_CODE(t, host_name_check(name, length, &err), HVD_E_INVAL);
    memset(name, 'x', sizeof(name));
    CHECK_OK(t, host_name_check(name, LIMIT_HOST_NAME_BYTES, &err));
    CHECK_CODE(t, host_name_check(name, LIMIT_HOST_NAME_BYTES + 1, &err), HVD_E_LIMIT);
    CHECK_HAS(
        t, err.text,
        "xxx\"...: the host name is longer than 253 bytes (LIMIT_HOST_NAME_BYTES); shorten it");
    snprintf(name, sizeof(name), "fe80::1%%");
    name[strlen(name)] = 'x';
    CHECK_OK(t, host_name_check(name, LIMIT_HOST_NAME_BYTES, &err));
    CHECK_CODE(t, host_name_check(name, LIMIT_HOST_NAME_BYTES + 1, &err), HVD_E_LIMIT);
}
