/*
 * fuzz_autopsy.c: any bytes as the file of an autopsy. A file that is taken for one is shown in
 * each form, in bounded memory; the JSON is one line.
 */
#include "base/panic.h"
#include "driver/control/autopsy_text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct autopsy autopsy = { .wall_us = 1 };
    struct json json;
    struct buf out;

    if (autopsy_file_parse(data, size, &autopsy.msg))
        return 0;
    buf_init(&out, (size_t)1024 * 1024);
    ASSERT(!autopsy_text_line(&autopsy, &out));
    ASSERT(!autopsy_text_whole(&autopsy, &out));
    buf_clear(&out);
    json = (struct json){ .out = &out };
    json_open(&json, NULL, '[');
    autopsy_text_json(&autopsy, &json);
    json_close(&json, ']');
    ASSERT(!json.rc && !strchr(buf_text(&out), '\n'));
    buf_release(&out);
    msg_release(&autopsy.msg);
    return 0;
}
