/*
 * fuzz_notice.c: texts of those who give notices. The first byte says how the rest is read: 'a': as
 * the action of AWS; 'r': as its rebalance recommendation; 'z': as the events of Azure; 'l': as the
 * line of a file; 's': as Slurm's settings; 'p': as --preemption; 'd': as a moment.
 *
 * A text that is taken has printable words of bounded length, and a time that can be added to.
 */
#include "agent/notice/notice_grace.h"
#include "agent/notice/notice_read.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/stamp.h"
#include "base/time.h"
#include "proto/preemption.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_line(struct span text)
{
    struct notice_line line;

    if (!notice_read_line(text, true, TIME_S, TIME_DAY, &line, NULL))
        ASSERT(line.given && line.left_us >= 0 && text_is_clean(line.words, strlen(line.words)));
}

static void read_events(struct span text)
{
    struct notice_event event;

    if (!notice_read_events(text, "vm", &event, NULL) && *event.id)
        ASSERT(event.started == (event.at_us == NOTICE_NO_TIME) &&
               text_is_clean(event.id, strlen(event.id)));
}

static void read_preemption(const char *text)
{
    struct preemption read;

    if (!preemption_parse(text, &read, NULL))
        ASSERT(!read.file.length || *read.file.at == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct notice_action action;
    int64_t at_us, left_us;
    struct span text;
    char *copy; /* a block of its own, so that the sanitizer sees a read past its end */

    if (size < 1)
        return 0;
    copy = mem_strndup((const char *)data + 1, size - 1);
    ASSERT(copy);
    text = (struct span){ copy, size - 1 };
    switch (data[0]) {
    case 'a':
        if (!notice_read_action(text, &action, NULL))
            ASSERT(text_is_clean(action.action, strlen(action.action)));
        break;
    case 'r': (void)!notice_read_rebalance(text, &at_us, NULL); break;
    case 'z': read_events(text); break;
    case 'l': read_line(text); break;
    case 's': ASSERT(notice_slurm_grace(text, "low") >= 0); break;
    case 'p': read_preemption(copy); break;
    default:
        if (stamp_read(text, &at_us) || stamp_read_http(text, &at_us))
            if (notice_left(at_us, TIME_DAY, &left_us) == NOTICE_COMES)
                ASSERT(left_us >= NOTICE_LEAST_US);
    }
    mem_free(copy);
    return 0;
}
