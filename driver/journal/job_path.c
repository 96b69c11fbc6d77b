/*
 * job_path.c: computes the path of a job's state directory. The driver calls it before it makes the
 * directory (driver/job_folder.c), the verbs when they search for a job (driver/cli/find_job.c).
 * Both find the same job under the same name. Nothing here touches the disk.
 */
#include "driver/journal/job_path.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "driver/store/store.h"
#include "os/state_home.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Gives the path to the caller; if it is NULL, no memory was left, and the error says so. */
static int path_or_no_memory(char *path, char **ret_path, struct hvd_err *err)
{
    *ret_path = path;
    return path
               ? 0
               : err_set(err, HVD_E_NOMEM,
                         "no memory for the path of the state directory; free memory on this host");
}

/* Returns "FOLDER/NAME", which the caller frees; NULL: no memory is left, or the path is too
 * long. */
char *job_path_join(const char *folder, const char *name)
{
    struct buf path;
    char *joined = NULL;

    buf_init(&path, LIMIT_PATH_BYTES);
    if (!buf_printf(&path, "%s/%s", folder, name))
        joined = mem_strdup(buf_text(&path));
    buf_release(&path);
    return joined;
}

/* Returns the folder that has the folders of all jobs of this user (os/state_home.h). */
int job_path_root(char **ret_path, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = state_home(path, err);

    return rc ? rc : path_or_no_memory(mem_strdup(path), ret_path, err);
}

/* Returns the absolute path of a job's folder: `state_dir` if it is given (a relative one is below
 * the current folder), otherwise the folder `job` below job_path_root. */
int job_path_folder(const char *state_dir, const char *job, char **ret_path, struct hvd_err *err)
{
    char cwd[LIMIT_PATH_BYTES];
    char *root = NULL;
    int rc;

    if (state_dir && *state_dir == '/')
        return path_or_no_memory(mem_strdup(state_dir), ret_path, err);
    if (state_dir && !getcwd(cwd, sizeof(cwd)))
        return err_set(err, HVD_E_NOTFOUND,
                       "the current folder cannot be found: %s; change to another folder",
                       strerror(errno));
    if (state_dir)
        return path_or_no_memory(job_path_join(cwd, state_dir), ret_path, err);
    rc = job_name_check(job, err);
    if (!rc)
        rc = job_path_root(&root, err);
    if (rc)
        return rc;
    rc = path_or_no_memory(job_path_join(root, job), ret_path, err);
    mem_free(root);
    return rc;
}
