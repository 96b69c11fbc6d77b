/*
 * test_private.c: os/private: which folders and files are believed, and what the refusal of the
 * others says. Root also tries folders of another user.
 */
#include "os/private.h"

#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER 12345 /* a user without a name */

static char at[300]; /* the folder of the case */
static char text[400];
static struct hvd_err err;
static int fd;

static void begin(struct test *t)
{
    fd = -1;
    err = (struct hvd_err){ 0 };
    snprintf(at, sizeof(at), "%s", test_dir(t));
}

static void end(struct test *t)
{
    (void)t;
    if (fd >= 0)
        close(fd);
}
FIXTURE(begin, end)

/* The path of a name in the folder of the case. */
static const char *in(const char *name)
{
    snprintf(text, sizeof(text), "%s/%s", at, name);
    return text;
}

static int folder_rc(const char *name)
{
    int rc;

    if (fd >= 0)
        close(fd);
    fd = -1;
    rc = private_folder(in(name), false, &fd, &err);
    return rc;
}

static int open_rc(const char *name)
{
    int folder = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *slash = strrchr(name, '/');
    char way[64] = "";
    int below = -1;
    int rc;

    if (fd >= 0)
        close(fd);
    fd = -1;
    if (slash)
        snprintf(way, sizeof(way), "%.*s", (int)(slash - name), name);
    rc = private_below(folder, at, way, true, &below, &err);
    if (!rc)
        rc = private_open(below, at, slash ? slash + 1 : name, O_WRONLY | O_APPEND | O_CREAT, &fd,
                          &err);
    if (below >= 0)
        close(below);
    close(folder);
    return rc;
}

static int entry_rc(const char *name)
{
    int folder = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = private_entry(folder, at, name, &err);

    close(folder);
    return rc;
}

static bool make_file(const char *name, mode_t mode)
{
    int file = open(in(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool made = file >= 0 && !fchmod(file, mode);

    if (file >= 0)
        close(file);
    return made;
}

TEST(an_own_folder_is_made_and_found)
{
    struct stat st;
    mode_t before = umask(0);
    int rc = private_folder(in("a/b/../c//d/"), true, &fd, &err);

    umask(before);
    CHECK_OK(t, rc);
    CHECK(t, !stat(in("a/c/d"), &st) && (st.st_mode & 07777) == 0700);
    CHECK(t, !stat(in("a"), &st) && (st.st_mode & 07777) == 0700);
    CHECK_OK(t, folder_rc("a/c/d"));
    CHECK_CODE(t, folder_rc("a/none"), HVD_E_NOTFOUND);
    CHECK_CODE(t, private_folder("a", false, &fd, &err), HVD_E_LIMIT);
    CHECK(t, make_file("file", 0600));
    CHECK_CODE(t, folder_rc("file"), HVD_E_INVAL);
    CHECK_CODE(t, folder_rc("file/x"), HVD_E_INVAL);
    CHECK_CODE(t, private_folder("/proc/none", true, &fd, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/proc/none: cannot be made: ");
}

TEST(a_folder_that_others_may_write_is_refused)
{
    CHECK(t, !mkdir(in("open"), 0700) && !chmod(in("open"), 0777));
    CHECK_CODE(t, folder_rc("open"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "open: other users may write there");
    CHECK_HAS(t, err.text, "mode 0777");
    CHECK_HAS(t, err.text, "chmod go-w ");
    CHECK(t, !chmod(in("open"), 0770));
    CHECK_CODE(t, folder_rc("open"), HVD_E_DENIED);
    CHECK(t, !chmod(in("open"), 01777));
    CHECK_CODE(t, folder_rc("open"), HVD_E_DENIED);
    CHECK(t, !chmod(in("open"), 0755));
    CHECK_OK(t, folder_rc("open"));
}

TEST(a_folder_above_that_others_may_write_is_refused)
{
    CHECK(t, !mkdir(in("above"), 0700) && !mkdir(in("above/job"), 0700));
    CHECK(t, !chmod(in("above"), 0777));
    CHECK_CODE(t, folder_rc("above/job"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/above: other users");
    CHECK(t, !chmod(in("above"), 01777)); /* the sticky bit protects the entries of each user */
    CHECK_OK(t, folder_rc("above/job"));
}

TEST(links_of_this_user_are_followed_and_a_circle_ends)
{
    CHECK(t, !mkdir(in("real"), 0700) && !mkdir(in("real/job"), 0700));
    CHECK(t, !symlink("real", in("short")) && !symlink(at, in("whole")));
    CHECK(t, !symlink("round", in("round")));
    CHECK_OK(t, folder_rc("short/job"));
    CHECK_OK(t, folder_rc("whole/real"));
    CHECK_CODE(t, folder_rc("round/job"), HVD_E_LIMIT);
    CHECK(t, !chmod(in("real"), 0707));
    CHECK_CODE(t, folder_rc("short/job"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/real: other users");
}

TEST(what_another_user_has_put_there_is_refused)
{
    if (geteuid() != 0)
        return; /* only root can make folders of another user */
    CHECK(t, !mkdir(in("theirs"), 0755) && !mkdir(in("theirs/job"), 0700));
    CHECK(t, !symlink("theirs", in("link")) && !lchown(in("link"), STRANGER, STRANGER));
    CHECK_CODE(t, folder_rc("link/job"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/link: belongs to user 12345");
    CHECK(t, !chown(in("theirs"), STRANGER, STRANGER));
    CHECK_CODE(t, folder_rc("theirs"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/theirs: belongs to user 12345 (mode 0755)");
    CHECK_HAS(t, err.text, "choose another folder, or run the command as that user");
    CHECK(t, !strstr(err.text, "chown"));
    CHECK_CODE(t, folder_rc("theirs/job"), HVD_E_DENIED);
    CHECK_CODE(t, entry_rc("theirs"), HVD_E_DENIED);
    CHECK_CODE(t, open_rc("theirs/file"), HVD_E_DENIED);
    CHECK(t, make_file("planted", 0600) && !chown(in("planted"), STRANGER, STRANGER));
    CHECK_CODE(t, open_rc("planted"), HVD_E_DENIED);
    CHECK_CODE(t, entry_rc("planted"), HVD_E_DENIED);
}

TEST(an_entry_is_own_and_no_link)
{
    CHECK_OK(t, entry_rc("missing"));
    CHECK(t, make_file("file", 0644));
    CHECK_OK(t, entry_rc("file"));
    CHECK(t, !chmod(in("file"), 0666));
    CHECK_CODE(t, entry_rc("file"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/file: other users may write there");
    CHECK(t, !symlink("file", in("link")));
    CHECK_CODE(t, entry_rc("link"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/link: this name is a symbolic link");
}

/* Root may write everywhere, so root becomes another user for the call. */
TEST(a_folder_below_that_cannot_be_made_says_why)
{
    int folder = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool root = geteuid() == 0;
    bool ready = folder >= 0 && !chmod(at, 0555) && (!root || !seteuid(STRANGER));
    int rc = private_below(folder, at, "host", true, &fd, &err);
    bool back = (!root || !seteuid(0)) && !chmod(at, 0700);

    close(folder);
    CHECK(t, ready && back);
    CHECK_CODE(t, rc, HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/host: cannot open the folder: Permission denied");
}

TEST(a_file_is_opened_as_a_plain_file_only)
{
    struct stat st;
    mode_t before = umask(0);
    int rc = open_rc("host/0/1.out");

    umask(before);
    CHECK_OK(t, rc);
    CHECK(t, !fstat(fd, &st) && (st.st_mode & 07777) == 0600);
    CHECK(t, !stat(in("host/0"), &st) && (st.st_mode & 07777) == 0700);
    CHECK_OK(t, open_rc("host/0/1.out"));

    CHECK(t, make_file("target", 0600) && !symlink("target", in("link")));
    CHECK_CODE(t, open_rc("link"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/link: is a symbolic link or not a regular file; remove it");
    CHECK(t, !mkfifo(in("pipe"), 0600)); /* without a reader the call would wait */
    CHECK_CODE(t, open_rc("pipe"), HVD_E_DENIED);
    CHECK(t, !symlink("host", in("way")));
    CHECK_CODE(t, open_rc("way/0/1.out"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "way in this path is a symbolic link or not a folder");
    CHECK_CODE(t, open_rc("target/x"), HVD_E_DENIED);
    CHECK(t, make_file("one", 0600));
    snprintf(err.text, sizeof(err.text), "%s/two", at);
    CHECK(t, !link(in("one"), err.text));
    CHECK_CODE(t, open_rc("two"), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "/two: the file has another name as well");
}
