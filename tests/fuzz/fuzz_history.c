/*
 * fuzz_history.c: any bytes as events.log. The history is one value of JSON whose texts have no
 * control characters and whose brackets close, with bounded lists; in the file of a page it ends no
 * element.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "driver/control/history.h"
#include "driver/control/page_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

static void check_json(const char *text, size_t length)
{
    size_t depth = 0;
    bool quoted = false;

    ASSERT(strlen(text) == length);
    for (size_t i = 0; i < length; i++) {
        ASSERT((unsigned char)text[i] >= ' ');
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && (text[i] == '}' || text[i] == ']'))
            ASSERT(depth-- && (depth || i + 1 == length));
    }
    ASSERT(!quoted && !depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char split[] = "\n----\n"; /* between the older file and the newer one */
    const char *bytes = (const char *)data;
    const char *mark = size ? memmem(bytes, size, split, strlen(split)) : NULL;
    size_t older = mark ? (size_t)(mark + 1 - bytes) : 0;
    const struct span texts[HISTORY_TEXTS] = {
        {bytes,          older       },
        { bytes + older, size - older}
    };
    struct view_change changes[8];
    struct buf out, page;

    buf_init(&out, LIMIT_ANSWER_BYTES);
    buf_init(&page, LIMIT_ANSWER_BYTES);
    ASSERT(!history_write(texts, "2", &out));
    check_json(buf_text(&out), out.length);
    ASSERT(count_of(buf_text(&out), "\"cause\":") <= HISTORY_CHANGES);
    ASSERT(count_of(buf_text(&out), ",\"severity\":") <= HISTORY_EVENTS + HISTORY_GRAVE);
    ASSERT(history_changes(texts, "2", 0, 0, changes, ARRAY_SIZE(changes)) <= ARRAY_SIZE(changes));
    ASSERT(!page_file_write(buf_text(&out), out.length, &page));
    ASSERT(count_of(buf_text(&page), "</script>") == 2);
    buf_release(&page);
    buf_release(&out);
    return 0;
}
