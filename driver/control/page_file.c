/*
 * page_file.c: puts data into the page that cmake/page.cmake has made. The verb "page" calls it
 * (driver/cli/page.c). Invariant: no '<' of the data gets into the file, so a text of the job can
 * neither end nor begin an element of the page.
 */
#include "driver/control/page_file.h"

#include "base/panic.h"
#include "driver/control/page_text.h"

#include <string.h>

/* Copies the page, with two insertions: before the title the policy that forbids the file to load
 * anything, and behind id="data"> the data. */
int page_file_write(const char *data, size_t length, struct buf *out)
{
    static const char meta[] = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
    static const char before_policy[] = "<title>", before_data[] = "id=\"data\">";
    const char *page = (const char *)page_text;
    const char *title = strstr(page, before_policy);
    const char *place = strstr(page, before_data);
    const char *mark;
    int rc;

    ASSERT(title && place && title < place);
    place += strlen(before_data);
    rc = buf_append(out, page, (size_t)(title - page));
    if (!rc)
        rc = buf_append_text(out, meta);
    if (!rc)
        rc = buf_append_text(out, page_file_policy);
    if (!rc)
        rc = buf_append_text(out, "\">\n");
    if (!rc)
        rc = buf_append(out, title, (size_t)(place - title));
    /* JSON has a '<' only inside texts, where \u003c means the same. */
    while (!rc && (mark = memchr(data, '<', length)) != NULL) {
        rc = buf_append(out, data, (size_t)(mark - data));
        if (!rc)
            rc = buf_append_text(out, "\\u003c");
        length -= (size_t)(mark + 1 - data);
        data = mark + 1;
    }
    if (!rc)
        rc = buf_append(out, data, length);
    return rc ? rc : buf_append_text(out, place);
}
