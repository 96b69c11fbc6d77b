/*
 * test_chaos_trace.c: the traces that chaos replays: what is read, what is refused with its line,
 * and the limit of nodes.
 */
#include "base/buf.h"
#include "tests/chaos/trace.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static int parse(struct trace *trace, const char *text, struct hvd_err *err)
{
    return trace_parse(trace, text, strlen(text), err);
}

TEST(reads_who_came_and_went)
{
    struct trace trace;

    CHECK_OK(t, parse(&trace, "0,add,a\n0,add,b\n1500,remove,a\n1500,add,c\n2000,add,a\n", NULL));
    CHECK_INT(t, trace.count, ==, 5);
    CHECK_INT(t, trace.node_count, ==, 3);
    CHECK_TEXT(t, trace.nodes[0], "a");
    CHECK_TEXT(t, trace.nodes[2], "c");
    CHECK_INT(t, trace.events[2].at_us, ==, 1500000);
    CHECK(t, !trace.events[2].add);
    CHECK_INT(t, trace.events[2].node, ==, 0);
    CHECK(t, trace.events[4].add);
    CHECK_INT(t, trace.events[4].node, ==, 0);
out:
    trace_release(&trace);
    trace_release(NULL);
}

TEST(takes_lines_of_other_systems)
{
    struct trace trace;

    CHECK_OK(t, parse(&trace, "0,add,node1\r\n60000,add,node2\r\n60000,remove,node1", NULL));
    CHECK_INT(t, trace.count, ==, 3);
    CHECK_TEXT(t, trace.nodes[1], "node2");
out:
    trace_release(&trace);
}

static void refuses(struct test *t, const char *text, const char *why)
{
    struct hvd_err err = { .text = "" };
    struct trace trace;
    int rc = parse(&trace, text, &err);

    CHECK(t, rc == HVD_E_INVAL || rc == HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, why);
out:
    trace_release(&trace);
}

TEST(says_which_line_and_what_to_do)
{
    static const char *const bad[][2] = {
        {"",                       "no events; write lines of MILLISECONDS,add|remove,NODE"                  },
        { "\n",                    "line 1: \"\": write MILLISECONDS,add|remove,NODE"                        },
        { "0,add,a\n\n1,add,b\n",  "line 2: \"\": write MILLISECONDS,add|remove,NODE"                        },
        { "0,add\n",               "line 1: \"0,add\": write MILLISECONDS,add|remove,NODE"                   },
        { "# hosts\n",             "line 1: \"# hosts\": write MILLISECONDS,add|remove,NODE"                 },
        { "0.5,add,a\n",           "line 1: \"0.5\": the time in milliseconds must be a whole number"        },
        { "-1,add,a\n",            "line 1: \"-1\": the time in milliseconds must be a whole number"         },
        { "0,Add,a\n",             "line 1: \"Add\": write add or remove"                                    },
        { "0,add,\n",              "line 1: \"\": not the name of a node; give it 1 to 63 letters and digits"},
        { "0,add,a b\n",
         "line 1: \"a b\": not the name of a node; give it 1 to 63 letters and digits"                       },
        { "0,add,a,b\n",
         "line 1: \"a,b\": not the name of a node; give it 1 to 63 letters and digits"                       },
        { "5,add,a\n4,add,b\n",
         "line 2: \"4\": earlier than the line before; sort the lines by time"                               },
        { "0,add,a\n1,add,a\n",
         "line 2: \"a\": it is there already; take this line or the add before it out"                       },
        { "0,add,a\n1,remove,b\n",
         "line 2: \"b\": it is not there; take this line out, or add it before"                              },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad) && !t->failed; i++)
        refuses(t, bad[i][0], bad[i][1]);
}

TEST_FLAGS(holds_so_many_nodes_and_no_more, TEST_NO_TORTURE)
{
    struct hvd_err err = { .text = "" };
    struct trace trace = { .events = NULL };
    struct buf text;

    buf_init(&text, 1024 * 1024);
    for (unsigned i = 0; i < 4096; i++)
        CHECK_OK(t, buf_printf(&text, "0,add,node%u\n", i));
    CHECK_OK(t, trace_parse(&trace, text.data, text.length, NULL));
    CHECK_INT(t, trace.node_count, ==, 4096);
    trace_release(&trace);
    CHECK_OK(t, buf_append_text(&text, "0,add,more\n"));
    CHECK_CODE(t, trace_parse(&trace, text.data, text.length, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, "line 4097: more than 4096 nodes; cut the trace in pieces");
out:
    trace_release(&trace);
    buf_release(&text);
}

TEST(is_read_from_a_file)
{
    static const char text[] = "0,add,a\n3,remove,a\n";
    static const char bad[] = "0,add,a\n3,take,a\n";
    struct hvd_err err = { .text = "" };
    struct trace trace = { .events = NULL };
    char path[512];

    snprintf(path, sizeof(path), "%s/trace", test_dir(t));
    CHECK_CODE(t, trace_load(&trace, path, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, path);
    trace_release(&trace);
    files_write(path, text, strlen(text));
    CHECK_OK(t, trace_load(&trace, path, NULL));
    CHECK_INT(t, trace.count, ==, 2);
    trace_release(&trace);
    files_write(path, bad, strlen(bad));
    CHECK_CODE(t, trace_load(&trace, path, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "trace: line 2: \"take\": write add or remove");
out:
    trace_release(&trace);
}
