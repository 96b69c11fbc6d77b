/*
 * test_checkpoint_storage.c: state/checkpoint/storage: objects in a directory, whole or not at all.
 */
#include "state/checkpoint/storage.h"

#include "base/mem.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LARGE (((size_t)9 << 20) + 12345) /* two blocks and a part of one (storage_dir.c) */
#define PIECE (((size_t)1 << 20) - 7)

static char dir[256];
static struct checkpoint_store *storage;
static struct checkpoint_object *object;
static struct hvd_err err;
/* the names of the last list, and how many there are */
static char names[4][LIMIT_CHECKPOINT_NAME_BYTES + 1];
static size_t count;

static const char *in_dir(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void begin(struct test *t)
{
    storage = NULL;
    object = NULL;
    err = (struct hvd_err){ .code = 0 };
    snprintf(dir, sizeof(dir), "%s/new/checkpoints", test_dir(t));
    CHECK_OK(t, checkpoint_store_make(dir, &storage, NULL));
}

static void end(struct test *t)
{
    (void)t;
    files_obey_permissions(false);
    checkpoint_store_abandon(object);
    checkpoint_store_close(storage);
}
FIXTURE(begin, end)

static int note_name(void *arg, const char *name)
{
    (void)arg;
    if (count < ARRAY_SIZE(names))
        snprintf(names[count], sizeof(names[count]), "%s", name);
    count++;
    return 0;
}

static void list(struct test *t, const char *folder)
{
    count = 0;
    CHECK_OK(t, checkpoint_store_list(storage, folder, note_name, NULL, NULL));
}

static void put(struct test *t, const char *name, const char *text)
{
    struct checkpoint_object *made;

    CHECK_OK(t, checkpoint_store_create(storage, name, strlen(text), &made, NULL));
    object = made;
    CHECK_OK(t, checkpoint_store_write(object, text, strlen(text), NULL));
    object = NULL;
    CHECK_OK(t, checkpoint_store_finish(made, NULL));
}

TEST(an_object_is_read_back_and_replaced)
{
    uint64_t bytes = 0;
    char text[8] = "";
    struct stat st;

    put(t, "commit-1.2/part", "first");
    CHECK_OK(t, checkpoint_store_size(storage, "commit-1.2/part", &bytes, NULL));
    CHECK_INT(t, bytes, ==, 5);
    CHECK_OK(t, checkpoint_store_read(storage, "commit-1.2/part", 1, text, 4, NULL));
    CHECK_TEXT(t, text, "irst");
    put(t, "commit-1.2/part", "second");
    CHECK_OK(t, checkpoint_store_read(storage, "commit-1.2/part", 0, text, 6, NULL));
    CHECK_TEXT(t, text, "second");
    CHECK_INT(t, stat(in_dir("commit-1.2/part"), &st), ==, 0);
    CHECK_INT(t, st.st_mode & 0777, ==, 0600);
    CHECK_INT(t, stat(in_dir("commit-1.2"), &st), ==, 0);
    CHECK_INT(t, st.st_mode & 0777, ==, 0700);
    list(t, "");
    CHECK_INT(t, count, ==, 1);
    CHECK_TEXT(t, names[0], "commit-1.2");
    list(t, "commit-1.2");
    CHECK_INT(t, count, ==, 1);
    CHECK_TEXT(t, names[0], "part");
    CHECK_INT(t, checkpoint_store_directory(storage), >=, 0);
    CHECK_TEXT(t, checkpoint_store_where(storage), dir);
}

TEST(an_object_that_is_not_finished_is_not_there)
{
    uint64_t bytes = 0;

    CHECK_OK(t, checkpoint_store_create(storage, "a/b", 3, &object, NULL));
    CHECK_OK(t, checkpoint_store_write(object, "x", 1, NULL));
    CHECK_CODE(t, checkpoint_store_size(storage, "a/b", &bytes, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, in_dir("a/b: there is no such file"));
    list(t, "a");
    CHECK_INT(t, count, ==, 1);
    CHECK_HAS(t, names[0], CHECKPOINT_UNFINISHED);
    checkpoint_store_abandon(object);
    object = NULL;
    list(t, "a");
    CHECK_INT(t, count, ==, 0);
}

TEST(an_object_has_as_many_bytes_as_announced)
{
    struct checkpoint_object *made;

    CHECK_OK(t, checkpoint_store_create(storage, "short", 3, &made, NULL));
    object = made;
    CHECK_OK(t, checkpoint_store_write(object, "x", 1, NULL));
    object = NULL;
    CHECK_CODE(t, checkpoint_store_finish(made, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "short: 1 bytes were written, and 3 announced");
    list(t, "");
    CHECK_INT(t, count, ==, 0);
}

TEST(a_read_past_the_end_is_damage)
{
    char text[8];

    put(t, "a", "12345");
    CHECK_CODE(t, checkpoint_store_read(storage, "a", 2, text, 4, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, in_dir("a: the file ends at byte 5, 1 bytes too early"));
    CHECK_CODE(t, checkpoint_store_read(storage, "none/a", 0, text, 4, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, checkpoint_store_read(storage, "none", 0, text, 4, NULL), HVD_E_NOTFOUND);
}

TEST(a_folder_is_removed_with_its_objects)
{
    put(t, "a/1", "1");
    put(t, "a/2", "2");
    put(t, "b", "3");
    CHECK_OK(t, checkpoint_store_remove(storage, "a", NULL));
    CHECK_OK(t, checkpoint_store_remove(storage, "a", NULL));
    CHECK_OK(t, checkpoint_store_remove(storage, "a/1", NULL));
    CHECK_OK(t, checkpoint_store_remove(storage, "b", NULL));
    list(t, "");
    CHECK_INT(t, count, ==, 0);
    list(t, "a");
    CHECK_INT(t, count, ==, 0);
}

TEST(a_name_leads_nowhere_else)
{
    static const char *const wrong[] = { "",      "/", "/a",    "a/",   "..",   "a/..", "../a",
                                         "a/b/c", ".", "a/./b", "a//b", "\x01", "\xff" };
    char text[1];

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK_CODE(t, checkpoint_store_create(storage, wrong[i], 1, &object, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "is not a valid name of an object; use NAME or FOLDER/NAME");
        CHECK_CODE(t, checkpoint_store_read(storage, wrong[i], 0, text, 1, NULL), HVD_E_INVAL);
        CHECK_CODE(t, checkpoint_store_remove(storage, wrong[i], NULL), HVD_E_INVAL);
    }
}

/* Links are followed above the directory only. */
TEST(links_and_pipes_are_refused)
{
    uint64_t bytes;
    char text[1];

    put(t, "real", "1");
    CHECK_INT(t, symlink("real", in_dir("link")), ==, 0);
    CHECK_INT(t, symlink("/", in_dir("root")), ==, 0);
    CHECK_INT(t, mkfifo(in_dir("pipe"), 0600), ==, 0);
    CHECK_CODE(t, checkpoint_store_size(storage, "link", &bytes, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text,
              "link: cannot read its size: the path is a symbolic link; replace the link");
    CHECK_CODE(t, checkpoint_store_read(storage, "link", 0, text, 1, NULL), HVD_E_DENIED);
    CHECK(t, checkpoint_store_size(storage, "root/etc", &bytes, NULL) < 0);
    CHECK_CODE(t, checkpoint_store_create(storage, "root/x", 1, &object, NULL), HVD_E_NOTFOUND);
    CHECK(t, checkpoint_store_size(storage, "pipe", &bytes, NULL) < 0);
    CHECK(t, checkpoint_store_read(storage, "pipe", 0, text, 1, NULL) < 0);
    CHECK_OK(t, checkpoint_store_remove(storage, "root", NULL));
    CHECK(t, files_exist("/etc"));
}

TEST(a_directory_that_cannot_be_used_says_what_to_do)
{
    struct checkpoint_store *other = NULL;
    char path[300];

    snprintf(path, sizeof(path), "%s/gone", dir);
    CHECK_CODE(t, checkpoint_store_open(path, &other, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "gone: cannot open the directory: No such file or directory; create");
    put(t, "file", "1");
    snprintf(path, sizeof(path), "%s/file", dir);
    CHECK_CODE(t, checkpoint_store_open(path, &other, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, checkpoint_store_make(path, &other, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, checkpoint_store_open("s3://bucket/prefix", &other, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text,
              "s3://bucket/prefix: this program reads and writes checkpoints in directories");
    CHECK_CODE(t, checkpoint_store_open("", &other, NULL), HVD_E_INVAL);
    CHECK(t, other == NULL);
}

TEST(a_read_only_directory_is_named)
{
    files_obey_permissions(true);
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, checkpoint_store_create(storage, "a/b", 1, &object, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, in_dir("a/b: cannot write it: Permission denied; make the file"));
    CHECK_CODE(t, checkpoint_store_create(storage, "a", 1, &object, &err), HVD_E_DENIED);
    CHECK_INT(t, chmod(dir, 0700), ==, 0);
}

/* The directory is removed while it is in use, as by an operator. */
TEST(a_directory_that_is_gone_is_named)
{
    CHECK_INT(t, rmdir(dir), ==, 0);
    CHECK_CODE(t, checkpoint_store_create(storage, "a/b", 1, &object, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, in_dir("a/b: cannot write it: No such file"));
    list(t, "");
    CHECK_INT(t, count, ==, 0);
}

/* A limit on the size of files stands for a full disk: the space of the object is asked for when it
 * begins, and a write that fails is reported. */
TEST_FLAGS(a_full_disk_is_named, TEST_NO_TORTURE)
{
    struct rlimit before, small;
    char text[64] = "";

    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(t, getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    small = (struct rlimit){ 16, before.rlim_max };
    CHECK_OK(t, checkpoint_store_create(storage, "a/b", sizeof(text), &object, NULL));
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    CHECK_CODE(t, checkpoint_store_write(object, text, sizeof(text), &err), HVD_E_IO);
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    CHECK_HAS(t, err.text, in_dir("a/b: cannot write it: File too large"));
    checkpoint_store_abandon(object);
    object = NULL;
    list(t, "a");
    CHECK_INT(t, count, ==, 0);
}

/* Returns how much of a file is in the page cache, in parts of a hundred. */
static unsigned cached(struct test *t, const char *path, size_t bytes)
{
    size_t pages = (bytes + 4095) / 4096, in_cache = 0;
    unsigned char *resident = mem_zalloc(pages);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

    CHECK(t, resident && at != MAP_FAILED);
    CHECK_INT(t, mincore(at, bytes, resident), ==, 0);
    for (size_t i = 0; i < pages; i++)
        in_cache += resident[i] & 1;
    munmap(at, bytes);
    close(fd);
    mem_free(resident);
    return pages ? (unsigned)(in_cache * 100 / pages) : 0;
}

/* Goes to a directory that is not in memory, as far as this machine has one. */
static void move_to_disk(struct test *t)
{
    checkpoint_store_close(storage);
    storage = NULL;
    snprintf(dir, sizeof(dir), "/tmp/hvd-test-disk-XXXXXX");
    CHECK(t, mkdtemp(dir) != NULL);
    CHECK_OK(t, checkpoint_store_open(dir, &storage, NULL));
}

/* A large object is written in blocks, beside the page cache where the file system can do so. Its
 * bytes come in pieces that fit no block, and the last block is not whole. */
TEST_FLAGS(a_large_object_is_written_directly, TEST_NO_TORTURE)
{
    static char bytes[LARGE], read[LARGE];
    struct statfs disk;

    move_to_disk(t);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 2654435761U >> 16);
    CHECK_OK(t, checkpoint_store_create(storage, "a/large", LARGE, &object, NULL));
    for (size_t at = 0; at < LARGE; at += PIECE)
        CHECK_OK(t, checkpoint_store_write(object, bytes + at,
                                           LARGE - at < PIECE ? LARGE - at : PIECE, NULL));
    CHECK_OK(t, checkpoint_store_finish(object, NULL));
    object = NULL;
    CHECK_INT(t, statfs(dir, &disk), ==, 0);
    if (disk.f_type == EXT4_SUPER_MAGIC || disk.f_type == XFS_SUPER_MAGIC)
        CHECK_INT(t, cached(t, in_dir("a/large"), LARGE), <, 20);
    else
        printf("the page cache is not looked at: the test knows ext4 and XFS only\n");
    CHECK_OK(t, checkpoint_store_read(storage, "a/large", 0, read, LARGE, NULL));
    CHECK(t, memcmp(read, bytes, LARGE) == 0);
    list(t, "a");
    CHECK_INT(t, count, ==, 1);
    CHECK_OK(t, checkpoint_store_remove(storage, "a", NULL));
    CHECK_INT(t, rmdir(dir), ==, 0);
}

/* The disk is full in the middle of a block, and at a place that no direct write can reach. */
TEST_FLAGS(a_disk_that_is_full_in_a_block_is_named, TEST_NO_TORTURE)
{
    static const char bytes[LARGE];
    struct rlimit before, small;

    move_to_disk(t);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(t, getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    small = (struct rlimit){ LARGE / 2 + 100, before.rlim_max };
    CHECK_OK(t, checkpoint_store_create(storage, "a/b", LARGE, &object, NULL));
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    CHECK_CODE(t, checkpoint_store_write(object, bytes, LARGE, &err), HVD_E_IO);
    CHECK_INT(t, setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    CHECK_HAS(t, err.text, in_dir("a/b: cannot write it: File too large"));
    checkpoint_store_abandon(object);
    object = NULL;
    list(t, "a");
    CHECK_INT(t, count, ==, 0);
    CHECK_OK(t, checkpoint_store_remove(storage, "a", NULL));
    CHECK_INT(t, rmdir(dir), ==, 0);
}

TEST(no_space_is_known_at_the_beginning)
{
    CHECK_CODE(t, checkpoint_store_create(storage, "a", UINT64_C(1) << 50, &object, &err),
               HVD_E_FULL);
    CHECK_HAS(t, err.text, in_dir("a: cannot write it: No space left on device; free some space"));
    list(t, "");
    CHECK_INT(t, count, ==, 0);
}
