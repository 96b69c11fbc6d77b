/*
 * page_file.h: a file of lines that several processes append to, and that holds whole lines
 * whenever one of them is killed.
 *
 * A process that dies in the middle of a write has written a part of it: whole pages, as that is
 * how the kernel takes them. So the file is made of pages, none of which has a part of a line: what
 * is left of one is blank.
 */
#ifndef TIMELINE_PAGE_FILE_H
#define TIMELINE_PAGE_FILE_H

#include "base/err.h"

#define PAGE_FILE_PAGE  4096
#define PAGE_FILE_PAGES 8

struct page_file {
    int fd;     /* -1: not open */
    char *data; /* PAGE_FILE_PAGES, at the beginning of one */
    size_t used;
};

/*
 * `first` is its first page, up to PAGE_FILE_PAGE bytes, of which `same` are equal for all that may
 * be met in that place; then stands a decimal number by which it is known who wrote it. Missing,
 * empty or of a lower number: it is made anew. Codes as of timeline_open.
 */
struct page_file_first {
    const char *text;
    size_t same;
    uint64_t number;
};

int page_file_open(struct page_file *file, const char *path, const struct page_file_first *first,
                   struct hvd_err *err) MUST_CHECK;
void page_file_close(struct page_file *file); /* what is not written is lost */

/* A line with its end, no longer than a page. false: there is no room until it is written. */
bool page_file_add(struct page_file *file, const char *line, size_t length);

/* Appends what is there, and is empty again, whatever comes of it. */
int page_file_write(struct page_file *file, struct hvd_err *err);

#endif
