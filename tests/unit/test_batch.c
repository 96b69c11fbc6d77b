/*
 * test_batch.c: discovery/batch: the lists of hosts that batch systems give to their jobs, as their
 * manuals and users show them, and every refusal with its line.
 */
#include "discovery/batch.h"

#include "base/limits.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

/* A literal and its length, so that a NUL byte may stand in it. */
#define TEXT(literal) literal, sizeof(literal) - 1

/* A text, and the expected set of hosts, or the expected words of the refusal. */
struct row {
    enum batch_grammar grammar;
    const char *text;
    size_t length;
    const char *expected;
};

static struct hosts hosts;
static char bytes[LIMIT_HOST_TEXT_BYTES + 1];

static void begin(struct test *t)
{
    (void)t;
    hosts_init(&hosts);
}

static void end(struct test *t)
{
    (void)t;
    hosts_release(&hosts);
}
FIXTURE(begin, end)

TEST(texts_of_each_system_are_read)
{
    static const struct row rows[] = {
  /* PBS: a line for each process of MPI, or one for each chunk; LSF's file of hosts */
        {BATCH_NODES,   TEXT("node1\nnode1\nnode2\nnode2\n"),                                     "node1:2 node2:2"           },
        { BATCH_NODES,  TEXT("node1\nnode2\nnode1\nnode2"),                                       "node1:2 node2:2"           },
        { BATCH_NODES,  TEXT("x3006c0s13b1n0.hsn.cm.example\r\n\n"),
         "x3006c0s13b1n0.hsn.cm.example:1"                                                                                    },
 /* LSF: LSB_HOSTS, LSB_MCPU_HOSTS */
        { BATCH_NAMES,  TEXT("grid03 grid05 grid01 grid01"),                                      "grid03:1 grid05:1 grid01:2"},
        { BATCH_NAMES,  TEXT("alone"),                                                            "alone:1"                   },
        { BATCH_PAIRS,  TEXT("grid03 1 grid05 1 grid01 2"),                                       "grid03:1 grid05:1 grid01:2"},
        { BATCH_PAIRS,  TEXT("hname1 2 hname2 4 "),                                               "hname1:2 hname2:4"         },
        { BATCH_PAIRS,  TEXT("\ta  1 b 0 a 2"),                                                   "a:3 b:0"                   },
 /* SGE: hosts with queue and processors; a host with slots of two queues has two lines */
        { BATCH_QUEUES,
         TEXT(
              "compute-12 16 all.q@compute-12 UNDEFINED\ncompute-13 16 all.q@compute-13 UNDEFINED\n"
              "compute-12 4 short.q@compute-12 UNDEFINED\n"),
         "compute-12:20 compute-13:16"                                                                                        },
        { BATCH_QUEUES, TEXT("n1.example 2 all.q@n1.example 0,0:0,1\nn2 1 all.q <NULL>\nn3 4\n"),
         "n1.example:2 n2:1 n3:4"                                                                                             },
    };
    struct hvd_err err = { .text = "" };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int rc = hosts_parse_batch(rows[i].grammar, (struct span){ rows[i].text, rows[i].length },
                                   "src", 1, &hosts, &err);

        CHECK_TEXT(t, err.text, "");
        CHECK_OK(t, rc);
        CHECK_TEXT(t, hosts_shown(&hosts), rows[i].expected);
    }
}

/* A system that counts machines names each of them once; --slots-per-host says the rest. It changes
 * no number that a system gives. */
TEST(a_line_is_as_many_slots_as_the_caller_says)
{
    CHECK_OK(t, hosts_parse_batch(BATCH_NODES, (struct span){ TEXT("a\nb\na\n") }, "src", 8, &hosts,
                                  NULL));
    CHECK_TEXT(t, hosts_shown(&hosts), "a:16 b:8");
    CHECK_OK(t,
             hosts_parse_batch(BATCH_PAIRS, (struct span){ TEXT("a 2") }, "src", 8, &hosts, NULL));
    CHECK_TEXT(t, hosts_shown(&hosts), "a:2");
}

TEST(other_texts_are_refused)
{
    static const struct row rows[] = {
        {BATCH_NODES,   TEXT(""),             "src: names no host"                                },
        { BATCH_PAIRS,  TEXT(" \t\r\n\n"),    "src: names no host"                                },
        { BATCH_NODES,  TEXT("a\nb 4\n"),
         "src: line 2: \"4\": a second word; write one host a line"                               },
        { BATCH_NODES,  TEXT("a\n# b\n"),     "src: line 2: \"#\": \"#\" cannot be in a host name"},
        { BATCH_NODES,  TEXT("a\n-oProxy\n"), "src: line 2: \"-oProxy\":"                         },
        { BATCH_NAMES,  TEXT("a\0b"),         "src: line 1: \"a\\x00b\":"                         },
        { BATCH_PAIRS,  TEXT("a 1 b"),        "src: line 1: \"b\": no number of slots follows"    },
        { BATCH_PAIRS,  TEXT("a b 1"),        "src: line 1: \"b\": the number of slots"           },
        { BATCH_PAIRS,  TEXT("a 1025"),       "src: line 1: \"1025\": the number of slots"        },
        { BATCH_PAIRS,  TEXT("a -1"),         "src: line 1: \"-1\": the number of slots"          },
        { BATCH_QUEUES, TEXT("a 1 q\nb\n"),   "src: line 2: \"b\": no number of slots follows"    },
        { BATCH_QUEUES, TEXT("a all.q 1\n"),  "src: line 1: \"all.q\": the number of slots"       },
        { BATCH_PAIRS,  TEXT("a 1024 a 1"),   "src: line 1: a: with this host there are more"     },
    };
    struct hvd_err err;

    CHECK_OK(t, hosts_add(&hosts, "before", 7));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int rc = hosts_parse_batch(rows[i].grammar, (struct span){ rows[i].text, rows[i].length },
                                   "src", 1, &hosts, &err);

        CHECK_TEXT(t, hosts_shown(&hosts), "before:7");
        CHECK_HAS(t, err.text, rc == HVD_E_NOMEM ? "src: " : rows[i].expected);
        CHECK_INT(t, err.code, ==, rc);
        CHECK(t, rc == HVD_E_INVAL || rc == HVD_E_LIMIT);
    }
}

/* 131073 slots are one too many, and so is a byte above the limit of a text. */
TEST_FLAGS(limits_are_kept, TEST_NO_TORTURE)
{
    size_t length = 0;
    struct hvd_err err;

    for (int i = 0; i <= LIMIT_SLOTS / LIMIT_SLOTS_PER_HOST; i++)
        length += (size_t)snprintf(bytes + length, sizeof(bytes) - length, "h%d %d ", i,
                                   i ? LIMIT_SLOTS_PER_HOST : 1);
    CHECK_CODE(
        t, hosts_parse_batch(BATCH_PAIRS, (struct span){ bytes, length }, "src", 1, &hosts, &err),
        HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: line 1: h128: with this host there are more than 16384 hosts");
    memset(bytes, ' ', sizeof(bytes));
    bytes[0] = 'a';
    CHECK_CODE(t,
               hosts_parse_batch(BATCH_NODES, (struct span){ bytes, sizeof(bytes) }, "src", 1,
                                 &hosts, &err),
               HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: longer than LIMIT_HOST_TEXT_BYTES");
    CHECK_OK(t, hosts_parse_batch(BATCH_NODES, (struct span){ bytes, sizeof(bytes) - 1 }, "src", 1,
                                  &hosts, &err));
}
