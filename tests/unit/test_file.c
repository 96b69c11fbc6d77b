/*
 * test_file.c: os/file: whole files into a buffer, standard input, and standard streams that are
 * closed.
 */
#include "os/file.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    bool written = file && fwrite(text, 1, length, file) == length;

    if (file)
        fclose(file);
    return written;
}

TEST(reads_the_whole_file)
{
    static char text[200000];
    char path[300];
    struct buf buf;

    buf_init(&buf, sizeof(text));
    memset(text, 'x', sizeof(text));
    snprintf(path, sizeof(path), "%s/file", test_dir(t));
    CHECK(t, write_file(path, text, sizeof(text) - 1));
    CHECK_OK(t, file_read(path, &buf, NULL));
    CHECK_INT(t, buf.length, ==, sizeof(text) - 1);
    CHECK(t, !memcmp(buf.data, text, buf.length));
out:
    buf_release(&buf);
}

TEST(an_empty_file_is_an_empty_text)
{
    char path[300];
    struct buf buf;

    buf_init(&buf, 10);
    snprintf(path, sizeof(path), "%s/file", test_dir(t));
    CHECK(t, write_file(path, "", 0));
    CHECK_OK(t, file_read(path, &buf, NULL));
    CHECK_TEXT(t, buf_text(&buf), "");
out:
    buf_release(&buf);
}

TEST(stops_when_the_buffer_is_full)
{
    struct buf buf;

    buf_init(&buf, 100000);
    CHECK_OK(t, file_read("/dev/zero", &buf, NULL));
    CHECK_INT(t, buf.length, ==, 100000);
out:
    buf_release(&buf);
}

TEST(names_a_file_that_cannot_be_read)
{
    struct hvd_err err = { 0 };
    char path[300];
    struct buf buf;

    buf_init(&buf, 100);
    snprintf(path, sizeof(path), "%s/none", test_dir(t));
    CHECK_CODE(t, file_read(path, &buf, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "/none: cannot open: No such file");
    CHECK_CODE(t, file_read("/", &buf, &err), HVD_E_IO);
    CHECK_TEXT(t, err.text, "/: cannot read: Is a directory");
out:
    buf_release(&buf);
}

TEST(dash_is_standard_input)
{
    int saved = dup(STDIN_FILENO);
    struct buf buf;
    int fds[2];

    buf_init(&buf, 100);
    CHECK(t, saved >= 0 && !pipe(fds));
    CHECK(t, write(fds[1], "a:2\n", 4) == 4);
    close(fds[1]);
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    CHECK_OK(t, file_read("-", &buf, NULL));
    CHECK_TEXT(t, buf_text(&buf), "a:2\n");
out:
    dup2(saved, STDIN_FILENO);
    close(saved);
    buf_release(&buf);
}

/* Else what is printed would go to the next file that is opened. */
TEST(standard_streams_that_are_closed_go_nowhere)
{
    int saved = dup(STDIN_FILENO);
    struct stat held;
    struct stat null;
    int fd = -1;

    CHECK(t, saved > STDERR_FILENO);
    close(STDIN_FILENO);
    file_hold_standard();
    CHECK(t, !fstat(STDIN_FILENO, &held) && !stat("/dev/null", &null));
    CHECK(t, held.st_rdev == null.st_rdev);
    file_hold_standard(); /* nothing to do */
    fd = dup(saved);
    CHECK(t, fd > saved);
out:
    if (fd >= 0)
        close(fd);
    dup2(saved, STDIN_FILENO);
    close(saved);
}
