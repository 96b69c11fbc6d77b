#include "driver/ask_find.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "driver/job_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SHOWN_MAX 8 /* jobs that an error names */

static int no_memory(struct hvd_err *err)
{
    return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
}

int ask_socket(const char *folder, char **ret_name, int *ret_fd, struct hvd_err *err)
{
    static const char file[] = "control";
    struct sockaddr_un address;
    struct buf name;
    int fd = -1;
    int rc;

    buf_init(&name, LIMIT_PATH_BYTES);
    if (strlen(folder) + sizeof("/") + sizeof(file) <= sizeof(address.sun_path)) {
        rc = buf_printf(&name, "%s/%s", folder, file);
    } else {
        fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        rc = buf_printf(&name, "/proc/self/fd/%d/%s", fd, file);
    }
    *ret_name = rc ? NULL : mem_strdup(buf_text(&name));
    buf_release(&name);
    if (!*ret_name) {
        if (fd >= 0)
            close(fd);
        return no_memory(err);
    }
    *ret_fd = fd;
    return 0;
}

/* Whether somebody listens there; not who, and not whether it answers. */
static bool lives(const char *folder)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    bool connected = false;
    char *name;
    int folder_fd;
    int fd;

    if (ask_socket(folder, &name, &folder_fd, NULL))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
        connected = !connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
                    errno == EAGAIN; /* so many ask */
        close(fd);
    }
    if (folder_fd >= 0)
        close(folder_fd);
    mem_free(name);
    return connected;
}

struct search {
    const char *root;
    bool living;  /* only jobs whose driver lives */
    char *folder; /* of the first that was found */
    size_t found;
    struct buf names; /* "a, b, ..." */
    int rc;
};

static void look_at(struct search *search, const char *name)
{
    char folder[LIMIT_PATH_BYTES];
    char file[LIMIT_PATH_BYTES + sizeof("/job.db")];

    if (*name == '.' ||
        snprintf(folder, sizeof(folder), "%s/%s", search->root, name) >= (int)sizeof(folder))
        return;
    snprintf(file, sizeof(file), "%s/job.db", folder);
    if (search->living ? !lives(folder) : access(file, F_OK) != 0)
        return;
    search->found++;
    if (search->found == 1) {
        search->folder = mem_strdup(folder);
        search->rc = search->folder ? 0 : HVD_E_NOMEM;
    }
    if (!search->rc && search->found <= SHOWN_MAX)
        search->rc = buf_printf(&search->names, "%s%s", search->found > 1 ? ", " : "", name);
    if (!search->rc && search->found == SHOWN_MAX + 1)
        search->rc = buf_append_text(&search->names, ", ...");
}

static void search_release(struct search *search)
{
    mem_free(search->folder);
    buf_release(&search->names);
}

/* 0 or HVD_E_NOMEM; a root that is not there has no jobs. */
static int search_root(struct search *search, const char *root, bool living, struct hvd_err *err)
{
    struct dirent *entry;
    DIR *dir;

    *search = (struct search){ .root = root, .living = living };
    buf_init(&search->names, LIMIT_REASON_BYTES);
    dir = opendir(root);
    while (dir && !search->rc && (entry = readdir(dir)))
        look_at(search, entry->d_name);
    if (dir)
        closedir(dir);
    if (search->rc == HVD_E_LIMIT)
        search->rc = 0; /* names enough */
    if (search->rc)
        no_memory(err);
    return search->rc;
}

static int find_only(const char *root, char **ret_folder, struct hvd_err *err)
{
    struct search search;
    int rc = search_root(&search, root, true, err);

    if (!rc && search.found > 1)
        rc = err_set(err, HVD_E_EXISTS, "%zu jobs run here: %s; say which", search.found,
                     buf_text(&search.names));
    if (!rc && search.found == 0)
        rc = err_set(err, HVD_E_NOTFOUND,
                     "no driver of yours runs on this machine with its state in %s; name the job, "
                     "or give --state-dir",
                     root);
    if (!rc) {
        *ret_folder = search.folder;
        search.folder = NULL;
    }
    search_release(&search);
    return rc;
}

static int no_such_job(const char *job, struct hvd_err *err)
{
    struct search search = { .root = NULL };
    char *root = NULL;
    int rc = job_folder_root(&root, err);

    if (!rc)
        rc = search_root(&search, root, false, err);
    if (!rc && search.found)
        rc = err_set(err, HVD_E_NOTFOUND, "%s: there is no such job in %s; there are %s", job, root,
                     buf_text(&search.names));
    else if (!rc)
        rc = err_set(err, HVD_E_NOTFOUND, "%s: there is no such job in %s; give its --state-dir",
                     job, root);
    if (search.root)
        search_release(&search);
    mem_free(root);
    return rc;
}

int ask_find(const char *state_dir, const char *job, char **ret_folder, struct hvd_err *err)
{
    char *folder = NULL;
    int rc;

    if (state_dir || job) {
        rc = job_folder_path(state_dir, job, &folder, err);
        if (!rc && access(folder, F_OK))
            rc = state_dir ? err_set(err, HVD_E_NOTFOUND, "%s: %s", folder, strerror(errno))
                           : no_such_job(job, err);
    } else {
        char *root = NULL;

        rc = job_folder_root(&root, err);
        if (!rc)
            rc = find_only(root, &folder, err);
        mem_free(root);
    }
    if (rc)
        mem_free(folder);
    else
        *ret_folder = folder;
    return rc;
}

int ask_no_driver(const char *folder, struct hvd_err *err)
{
    char file[LIMIT_PATH_BYTES + sizeof("/job.db")];
    const char *name = strrchr(folder, '/');

    snprintf(file, sizeof(file), "%s/job.db", folder);
    if (access(file, F_OK))
        return err_set(err, HVD_E_NOTFOUND, "%s: there is no job in this folder", folder);
    return err_set(err, HVD_E_NOTFOUND,
                   "%s: no driver of this job runs on this machine; if the job has not ended, "
                   "resume it with 'hvd-elastic --resume %s --state-dir %s'",
                   folder, name ? name + 1 : "JOB", folder);
}
