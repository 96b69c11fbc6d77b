/*
 * report_page.c: writes a report into its folder: NAME.json for programs, and NAME.html, which is
 * page.html with the JSON in it. The page draws the charts from the JSON. Each file replaces the
 * old one in one step.
 */
#include "tests/chaos/report.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES (512 * 1024 * 1024)
#define PATH_BYTES 4096
#define PLACE      "\nREPORT\n" /* the text in the page that is replaced by the JSON */

static int write_whole(const char *path, const struct buf *bytes, struct hvd_err *err)
{
    char beside[PATH_BYTES];
    bool done = false;
    FILE *file;
    int failed;

    if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
        return err_set(err, HVD_E_LIMIT, "%s: the path is too long", path);
    file = fopen(beside, "we");
    if (file) {
        done = fwrite(buf_text(bytes), 1, bytes->length, file) == bytes->length;
        failed = errno;
        if (fclose(file) != 0 && done) {
            done = false;
            failed = errno;
        }
        if (done && !rename(beside, path))
            return 0;
        if (done)
            failed = errno;
        unlink(beside);
    } else {
        failed = errno;
    }
    return err_set(err, HVD_E_IO, "%s: cannot write it: %s; give another folder", path,
                   strerrordesc_np(failed));
}

static int read_page(struct buf *page, struct hvd_err *err)
{
    char part[4096];
    FILE *file = fopen(CHAOS_PAGE, "re");
    size_t got;
    int rc = 0;

    if (!file)
        return err_set(err, HVD_E_IO, "%s: %s", CHAOS_PAGE, strerror(errno));
    while (!rc && (got = fread(part, 1, sizeof(part), file)) > 0)
        rc = buf_append(page, part, got);
    fclose(file);
    return rc;
}

/* Appends the JSON for a script element. A '<' occurs only in texts; as \u003c it can neither end
 * the script element nor begin another. */
static int append_json(struct buf *out, const struct buf *json)
{
    int rc = 0;

    for (const char *at = buf_text(json); !rc && *at; at += strcspn(at, "<")) {
        if (*at == '<') {
            rc = buf_append_text(out, "\\u003c");
            at++;
        }
        rc = rc ? rc : buf_append(out, at, strcspn(at, "<"));
    }
    return rc;
}

static int write_page(const char *path, const struct buf *json, struct hvd_err *err)
{
    struct buf page, out;
    const char *place;
    int rc;

    buf_init(&page, PAGE_BYTES);
    buf_init(&out, PAGE_BYTES);
    rc = read_page(&page, err);
    place = rc ? NULL : strstr(buf_text(&page), PLACE);
    if (!rc && !place)
        rc = err_set(err, HVD_E_CORRUPT, "%s: has no line REPORT", CHAOS_PAGE);
    rc = rc ? rc : buf_append(&out, buf_text(&page), (size_t)(place + 1 - buf_text(&page)));
    rc = rc ? rc : append_json(&out, json);
    rc = rc ? rc : buf_append_text(&out, place + strlen(PLACE));
    rc = rc ? rc : write_whole(path, &out, err);
    buf_release(&out);
    buf_release(&page);
    return rc;
}

int report_write(const char *folder, const char *name, const struct buf *json, struct buf *said,
                 struct hvd_err *err)
{
    char path[2][PATH_BYTES];
    int rc;

    for (int i = 0; i < 2; i++)
        if (snprintf(path[i], PATH_BYTES, "%s/%s.%s", folder, name, i ? "html" : "json") >=
            PATH_BYTES)
            return err_set(err, HVD_E_LIMIT, "--report %s: too long a path", folder);
    rc = write_whole(path[0], json, err);
    rc = rc ? rc : write_page(path[1], json, err);
    for (int i = 0; !rc && said && i < 2; i++)
        rc = buf_append_text(said, path[i]) ? HVD_E_NOMEM : buf_append_text(said, "\n");
    return rc;
}
