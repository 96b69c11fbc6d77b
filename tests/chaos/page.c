#include "tests/chaos/page.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES (64 * 1024 * 1024)
#define PUT_BYTES  2048
#define PATH_BYTES 4096

/* Colours by kind are hues, whose lightness follows the reader's. */
static const char *const style[] = {
    ":root{color-scheme:light dark;--paper:#fdfdfc;--ink:#1c1d20;--faint:#6b6f76;--line:#dfe1e4;",
    "--good:#1a7f4b;--bad:#c2272d;--accent:#2f5fb3;--still:#d9822b;--again:#8a5fbf;",
    "--boot:#3b8ea5;--rest:#9aa0a8;--ks:58%;--kl:42%}",
    "@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e7e8ea;--faint:#9ba1a9;",
    "--line:#31353b;--good:#4cc38a;--bad:#ff6b6b;--accent:#7aa5f0;--still:#f0a04b;--again:#b794e6;",
    "--boot:#62b6cd;--rest:#7b828b;--ks:62%;--kl:64%}}",
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);",
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;",
    "font-variant-numeric:tabular-nums}main{max-width:1180px;margin:0 auto;padding:36px 28px 64px}",
    "h1{font-size:15px;font-weight:600;color:var(--faint);margin:0 0 4px}",
    ".verdict{font-size:27px;line-height:1.3;font-weight:600;letter-spacing:-.01em;",
    "margin:0 0 10px;max-width:40em}.good{color:var(--good)}.bad{color:var(--bad)}",
    "h2{font-size:18px;margin:40px 0 6px}p{margin:6px 0;max-width:62em}.faint{color:var(--faint)}",
    "dl{display:flex;flex-wrap:wrap;gap:10px 34px;margin:18px 0 0}dl div{min-width:5em}",
    "dt{font-size:12.5px;color:var(--faint)}dd{margin:0;font-size:19px;font-weight:600}",
    ".wide{overflow-x:auto}svg{display:block}svg.plot{width:100%;min-width:820px;height:auto}",
    "svg text{font-size:11.5px;fill:var(--faint)}svg text.name{fill:var(--ink)}",
    ".grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--faint);stroke-width:1}",
    ".size{fill:none;stroke:var(--accent);stroke-width:1.6;stroke-linejoin:round}",
    ".band{fill:var(--accent);opacity:.28}.there{fill:none;stroke:var(--faint);stroke-width:1.4}",
    ".gap{fill:var(--still);opacity:.28}.wrong{stroke:var(--bad);stroke-width:2;fill:none}",
    ".k{fill:hsl(var(--h) var(--ks) var(--kl))}.dot{fill-opacity:.62}",
    ".mark{stroke:var(--ink);stroke-width:1.6}.mark.p99{stroke-dasharray:2 2}",
    "table{border-collapse:collapse;font-size:13.5px}th{font-weight:500;color:var(--faint);",
    "text-align:right;padding:3px 9px;vertical-align:bottom;white-space:nowrap}",
    "td{text-align:right;padding:3px 9px;border-top:1px solid var(--line);white-space:nowrap}",
    "th:first-child,td:first-child{text-align:left;padding-left:0}td.pic,th.pic{padding:0 9px}",
    "tr.all td{font-weight:600}td.text,th.text{text-align:left;white-space:normal}",
    ".key{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.5em}",
    ".bar{display:inline-block;height:11px;vertical-align:middle}.bars{text-align:left}",
    ".still{background:var(--still);fill:var(--still)}.again{background:var(--again)}",
    ".boot{background:var(--boot)}.rest{background:var(--rest)}",
    ".useful{background:var(--accent)}.limit{background:var(--good)}",
    ".add{fill:var(--good)}.remove{fill:var(--bad)}ul{padding-left:1.2em;margin:6px 0}",
};

void page_put(struct page *page, const char *format, ...)
{
    char text[PUT_BYTES];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (page->rc)
        return;
    if (length < 0 || (size_t)length >= sizeof(text))
        page->rc = HVD_E_LIMIT;
    else
        page->rc = buf_append(&page->out, text, (size_t)length);
}

/* How many bytes of text are one character that may be shown; 0: none is. */
static size_t whole_character(const char *text)
{
    size_t length = strlen(text);

    if ((unsigned char)*text < 0x80)
        return (unsigned char)*text >= ' ' && *text != 0x7f;
    for (size_t i = 2; i <= 4 && i <= length; i++)
        if (text_is_clean(text, i))
            return i;
    return 0;
}

static const char *escape(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\n': return " ";
    default: return NULL;
    }
}

void page_text(struct page *page, const char *text)
{
    while (*text && !page->rc) {
        const char *instead = escape(*text);
        size_t length = whole_character(text);

        if (!instead && length == 0)
            instead = "?";
        if (instead)
            page->rc = buf_append_text(&page->out, instead);
        else
            page->rc = buf_append(&page->out, text, length);
        text += instead ? 1 : length;
    }
}

void page_open(struct page *page, const char *title)
{
    buf_init(&page->out, PAGE_BYTES);
    page->rc = 0;
    page_put(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                   "<title>");
    page_text(page, title);
    page_put(page, "</title>\n<style>\n");
    for (size_t i = 0; i < ARRAY_SIZE(style); i++)
        page_put(page, "%s\n", style[i]);
    page_put(page, "</style>\n</head>\n<body>\n<main>\n");
}

int page_close(struct page *page, const char *path, struct hvd_err *err)
{
    int rc;

    page_put(page, "</main>\n</body>\n</html>\n");
    rc = page->rc;
    if (rc)
        err_set(err, rc, "%s: the page could not be made", path);
    else
        rc = page_save(path, &page->out, err);
    buf_release(&page->out);
    return rc;
}

int page_save(const char *path, const struct buf *bytes, struct hvd_err *err)
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
