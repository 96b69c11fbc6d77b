/*
 * test_catalog.c: proto/catalog: numbers of messages, who may send what at which moment, and that
 * PROTOCOL.md says the same as the tables.
 */
#include "base/text.h"
#include "proto/catalog.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

TEST(numbers_rise_and_are_found)
{
    unsigned last = 0;
    size_t count = 0;

    for (const struct msg_kind *kind; (kind = msg_kind_at(count)); count++) {
        CHECK_INT(t, kind->type, >, last);
        last = kind->type;
        CHECK(t, msg_kind(last) == kind);
        CHECK(t, kind->links && kind->when);
        CHECK_INT(t, kind->body_max, <=, LIMIT_FRAME_BODY_BYTES);
    }
    CHECK_INT(t, count, >, 30);
    CHECK(t, !msg_kind(0) && !msg_kind(500) && !msg_kind(UINT16_MAX));
out:;
}

/* A message that minor version 0 does not know ends the connection, unless it may be skipped. */
TEST(only_what_is_newer_may_be_skipped)
{
    CHECK(t, msg_may_be_skipped(MSG_UNUSABLE) && msg_may_be_skipped(MSG_REMARK));
    CHECK(t, msg_may_be_skipped(MSG_PERSIST) && msg_may_be_skipped(MSG_PERSISTED));
    CHECK(t, msg_may_be_skipped(MSG_STORE) && msg_may_be_skipped(MSG_STORED));
    CHECK(t, msg_may_be_skipped(MSG_AUTOPSY) && msg_may_be_skipped(MSG_EXAMINE));
    CHECK(t, !msg_may_be_skipped(MSG_STALLED) && !msg_may_be_skipped(MSG_CHUNK));
    CHECK_INT(t, PROTO_MINOR, >, 0);
out:;
}

TEST(every_greeting_fits_its_cap)
{
    const struct msg_kind *kind;

    for (size_t i = 0; (kind = msg_kind_at(i)); i++)
        CHECK(t, !(kind->when & WHEN_GREETING) || kind->body_max <= LIMIT_GREETING_BODY_BYTES);
out:;
}

TEST(only_the_right_side_may_send)
{
    struct hvd_err err = { 0 };

    CHECK_OK(t, msg_allowed(MSG_LAUNCH, LINK_DRIVER_TO_AGENT, WHEN_OPEN, &err));
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_AGENT_TO_DRIVER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_TEXT(t, err.text,
               "the message LAUNCH may not go from an agent to the driver; install the same "
               "version of hvd-elastic on both sides");
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_WORKER_TO_AGENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from a worker to its agent");
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_AGENT_TO_WORKER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from an agent to its worker");
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_CLIENT_TO_DRIVER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from a client to the driver");
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_DRIVER_TO_CLIENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from the driver to a client");
    CHECK_CODE(t, msg_allowed(MSG_LAUNCH, LINK_CLIENT_TO_AGENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from a client to an agent");
    CHECK_CODE(t, msg_allowed(MSG_ASK, LINK_AGENT_TO_CLIENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from an agent to a client");
    CHECK_OK(t, msg_allowed(MSG_ASK, LINK_CLIENT_TO_AGENT, WHEN_OPEN, &err));
    CHECK_OK(t, msg_allowed(MSG_TELL, LINK_AGENT_TO_CLIENT, WHEN_OPEN, &err));
    CHECK_CODE(t, msg_allowed(MSG_ASK, LINK_DRIVER_TO_AGENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from the driver to an agent");
    CHECK_CODE(t, msg_allowed(MSG_ASK, LINK_PULLER_TO_HOLDER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from an agent that fetches a commit to an agent that holds it");
    CHECK_CODE(t, msg_allowed(MSG_PULL, LINK_HOLDER_TO_PULLER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "from an agent that holds a commit to an agent that fetches it");
    CHECK_CODE(t, msg_allowed(MSG_ASK, (enum link)0, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "an unknown link");
    CHECK_CODE(t, msg_allowed(7, LINK_DRIVER_TO_AGENT, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_TEXT(
        t, err.text,
        "the message type 7 is unknown; install the same version of hvd-elastic on both sides");
out:;
}

TEST(only_hellos_before_the_greeting_is_over)
{
    struct hvd_err err = { 0 };

    CHECK_OK(t, msg_allowed(MSG_HELLO_AGENT, LINK_AGENT_TO_DRIVER, WHEN_GREETING, &err));
    CHECK_CODE(t, msg_allowed(MSG_HELLO_AGENT, LINK_AGENT_TO_DRIVER, WHEN_OPEN, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "HELLO_AGENT came after the greeting; install the same version");
    CHECK_CODE(t, msg_allowed(MSG_EXITED, LINK_AGENT_TO_DRIVER, WHEN_GREETING, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "EXITED came before the greeting was over; install the same version");
    CHECK_OK(t, msg_allowed(MSG_BYE, LINK_AGENT_TO_DRIVER, WHEN_GREETING, &err));
    CHECK_OK(t, msg_allowed(MSG_BYE, LINK_AGENT_TO_DRIVER, WHEN_OPEN, &err));
out:;
}

/* Returns the links that the third column of PROTOCOL.md names. */
static unsigned links_of(const char *words)
{
    static const struct {
        const char *words;
        unsigned links;
    } table[] = {
        {"up",                 LINK_UP                                    },
        { "down",              LINK_DOWN                                  },
        { "agent → driver",  LINK_AGENT_TO_DRIVER                       },
        { "driver → agent",  LINK_DRIVER_TO_AGENT                       },
        { "worker → agent",  LINK_WORKER_TO_AGENT                       },
        { "agent → worker",  LINK_AGENT_TO_WORKER                       },
        { "client → driver", LINK_CLIENT_TO_DRIVER                      },
        { "driver → client", LINK_DRIVER_TO_CLIENT                      },
        { "client → agent",  LINK_CLIENT_TO_AGENT                       },
        { "agent → client",  LINK_AGENT_TO_CLIENT                       },
        { "puller → holder", LINK_PULLER_TO_HOLDER                      },
        { "holder → puller", LINK_HOLDER_TO_PULLER                      },
        { "agent ↔ driver",  LINK_AGENT_TO_DRIVER | LINK_DRIVER_TO_AGENT},
        { "worker ↔ agent",  LINK_WORKER_TO_AGENT | LINK_AGENT_TO_WORKER},
    };
    struct span rest = { words, strlen(words) };
    struct span part;
    unsigned links = 0;

    while (span_next(&rest, ',', &part)) {
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
            if (span_is(span_trim(part), table[i].words))
                links |= table[i].links;
        }
    }
    return links;
}

static unsigned letters_of(const char *text, const char *letters)
{
    unsigned bits = 0;

    for (size_t i = 0; letters[i]; i++)
        bits |= strchr(text, letters[i]) ? 1u << i : 0;
    return bits;
}

static uint64_t number_of(const char *text, size_t length)
{
    uint64_t number = 0;

    return text_parse_u64((struct span){ text, length }, 0, UINT32_MAX, "", &number, NULL) ? 0
                                                                                           : number;
}

/* Compares one row "| 101 | HELLO_AGENT | agent → driver | G | | 4 MiB |" with the catalogue. */
static void check_row(struct test *t, char *cells[6])
{
    const struct msg_kind *kind = msg_kind((unsigned)number_of(cells[0], strlen(cells[0])));
    uint64_t unit = strstr(cells[5], " MiB") ? MIB(1) : KIB(1);

    CHECK(t, kind);
    CHECK_TEXT(t, cells[1], kind->name);
    CHECK_INT(t, links_of(cells[2]), ==, kind->links);
    CHECK_INT(t, letters_of(cells[3], "GO"), ==, kind->when);
    CHECK_INT(t, letters_of(cells[4], "tir"), ==, kind->keys);
    CHECK_INT(t, number_of(cells[5], strcspn(cells[5], " ")) * unit, ==, kind->body_max);
out:;
}

/* Cuts "| a | b |" into trimmed cells; returns their number. */
static size_t cut_row(char *line, char *cells[6])
{
    struct span rest = { line, strlen(line) };
    struct span cell;
    size_t count = 0;

    span_next(&rest, '|', &cell);
    while (span_next(&rest, '|', &cell) && count < 6) {
        cell = span_trim(cell);
        cells[count] = line + (cell.at - line);
        cells[count++][cell.length] = '\0';
    }
    return count;
}

TEST(the_document_says_the_same)
{
    FILE *file = fopen(HVD_SOURCE_DIR "/proto/PROTOCOL.md", "r");
    size_t rows = 0;
    size_t kinds = 0;
    char line[1024];

    CHECK(t, file);
    while (fgets(line, sizeof(line), file)) {
        char *cells[6] = { NULL };

        if (line[0] != '|' || strspn(line + 2, "0123456789") != 3) /* only the rows of section 4 */
            continue;
        CHECK_INT(t, cut_row(line, cells), ==, 6);
        check_row(t, cells);
        if (t->failed)
            goto out;
        CHECK_TEXT(t, cells[1], msg_kind_at(rows)->name);
        rows++;
    }
    while (msg_kind_at(kinds))
        kinds++;
    CHECK_INT(t, rows, ==, kinds);
out:
    if (file)
        fclose(file);
}
