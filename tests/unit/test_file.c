/*
 * test_file.c: os/file: whole files into a buffer, files that are replaced, standard input, and
 * standard streams that are closed.
 */
#include "os/file.h"
#include "tests/lib/test.h"

#include <errno.h>
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

/* A reader finds the old bytes or the new ones, and a failure leaves no other file. */
TEST(a_file_is_replaced_as_a_whole)
{
    char path[300], fresh[310], lost[330], folder[300];
    struct buf old, now, read;
    const mode_t mask = umask(0777);
    struct stat made;

    buf_init(&old, 100);
    buf_init(&now, 100);
    buf_init(&read, 100);
    snprintf(path, sizeof(path), "%s/file", test_dir(t));
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    snprintf(lost, sizeof(lost), "%s/none/file.new", test_dir(t));
    snprintf(folder, sizeof(folder), "%s/folder", test_dir(t));
    CHECK_OK(t, buf_append_text(&old, "old"));
    CHECK_OK(t, buf_append_text(&now, "now"));
    CHECK_INT(t, symlink("/dev/null", fresh), ==, 0); /* of an earlier process, or a stranger */
    CHECK_INT(t, file_replace(path, fresh, &old, 0644), ==, 0);
    CHECK(t, !lstat(path, &made) && S_ISREG(made.st_mode) && (made.st_mode & 0777) == 0644);

    CHECK_INT(t, file_replace(path, lost, &now, 0644), ==, ENOENT);
    CHECK_OK(t, file_read(path, &read, NULL));
    CHECK_TEXT(t, buf_text(&read), "old");
    umask(mask);
    CHECK_INT(t, mkdir(folder, 0700), ==, 0);
    CHECK_INT(t, file_replace(folder, fresh, &now, 0644), ==, EISDIR);
    CHECK(t, access(fresh, F_OK) && errno == ENOENT);

    CHECK_INT(t, file_replace(path, fresh, &now, 0600), ==, 0);
    buf_clear(&read);
    CHECK_OK(t, file_read(path, &read, NULL));
    CHECK_TEXT(t, buf_text(&read), "now");
out:
    umask(mask);
    buf_release(&old);
    buf_release(&now);
    buf_release(&read);
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

TEST(a_secret_is_read_if_others_cannot)
{
    char path[300];
    struct hvd_err err;
    struct buf buf;

    buf_init(&buf, 100);
    snprintf(path, sizeof(path), "%s/secret", test_dir(t));
    CHECK(t, write_file(path, "k3y", 3) && !chmod(path, 0640));
    CHECK_OK(t, file_read_secret(path, &buf, NULL));
    CHECK_TEXT(t, buf_text(&buf), "k3y");
    CHECK(t, !chmod(path, 0604));
    CHECK_CODE(t, file_read_secret(path, &buf, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "secret: other users can read or change this file");
    CHECK_HAS(t, err.text, "(mode 0604); run: chmod o-rwx,g-w ");
    CHECK(t, !chmod(path, 0620));
    CHECK_CODE(t, file_read_secret(path, &buf, &err), HVD_E_DENIED);
    CHECK(t, !unlink(path));
    CHECK_CODE(t, file_read_secret(path, &buf, &err), HVD_E_NOTFOUND);
    CHECK(t, !mkfifo(path, 0600));
    CHECK_CODE(t, file_read_secret(path, &buf, &err), HVD_E_INVAL); /* it does not wait */
    CHECK_HAS(t, err.text, "secret: is no regular file");
out:
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
