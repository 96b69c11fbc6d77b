/*
 * s3_storage.c: the objects of checkpoints in a bucket. Called through the table of
 * state/checkpoint/storage_internal.h. An object gets its name when S3 has all its bytes, also when
 * its bytes were sent in parts. Invariant: a request of which the answer was lost does no harm when
 * it is repeated, because the same bytes go under the same name.
 */
#include "state/remote/s3_storage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "state/checkpoint/storage_internal.h"
#include "state/remote/s3_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define S3_PARTS_MAX      10000         /* S3's own limit of one object */
#define S3_UPLOAD_MAX     1024          /* most bytes of the name of an upload */
#define S3_PAGE_TOKEN_MAX S3_UPLOAD_MAX /* most bytes of the token for the next page of a list */
/* most bytes of the query of a URL */
#define S3_QUERY_MAX (3 * (S3_KEY_MAX + S3_UPLOAD_MAX) + 256)

struct s3_storage {
    struct checkpoint_store base;
    struct s3 *s3;
    /* Bytes that were read ahead: those behind the last read, for a reader that goes on there. */
    char *ahead;
    char ahead_name[LIMIT_CHECKPOINT_NAME_BYTES + 1];
    uint64_t ahead_at, ahead_bytes; /* where these bytes begin in their object, and their number */
    uint64_t read_end;              /* where the last read has ended */
    bool unconditional; /* the server refuses the header If-None-Match, so no put has it */
};

/* An object that is being written. If it fits in one part, one request sends it; otherwise an
 * upload in parts begins with the first full part. */
struct s3_object {
    struct checkpoint_object base;
    char *part;                 /* the bytes that are gathered for the next part */
    size_t used, room;          /* bytes in `part`, and the bytes that it has room for */
    char upload[S3_UPLOAD_MAX]; /* the name of the upload; "": no part was sent yet */
    unsigned parts;             /* parts that were sent */
    struct buf parts_text;      /* the XML that lists the parts */
};

/* Returns the struct of this file whose first member is `storage`. */
static struct s3_storage *s3_storage_of(struct checkpoint_store *storage)
{
    return CONTAINER_OF(storage, struct s3_storage, base);
}

/* Frees the storage of a bucket, which may be half-made. */
static void s3_storage_close(struct checkpoint_store *base)
{
    struct s3_storage *storage = s3_storage_of(base);

    s3_close(storage->s3);
    mem_free(storage->ahead);
    mem_free(storage->base.where);
    mem_free(storage);
}

/* ---- writing an object
 * ------------------------------------------------------------------------- */

/* Begins an object of `bytes` bytes, without a request. Large objects have larger parts, because S3
 * takes at most S3_PARTS_MAX parts. */
static int s3_storage_create(struct checkpoint_store *base, const char *name, uint64_t bytes,
                             struct checkpoint_object **ret_object, struct hvd_err *err)
{
    uint64_t part = s3_limits_of(s3_storage_of(base)->s3)->part_bytes;
    struct s3_object *object = mem_zalloc(sizeof(*object));

    while (bytes / part >= S3_PARTS_MAX)
        part *= 2;
    if (object) {
        object->room = (size_t)(bytes < part ? bytes : part);
        object->part = mem_alloc(object->room);
        buf_init(&object->parts_text, (size_t)S3_PARTS_MAX * (S3_ETAG_MAX + 64));
    }
    if (!object || !object->part) {
        mem_free(object);
        return err_set(err, HVD_E_NOMEM,
                       "%s/%s: no memory for a part of this object; free memory on this host",
                       base->where, name);
    }
    *ret_object = &object->base;
    return 0;
}

/* Sets the error of a request for which a buffer has no room or no memory. */
static void s3_too_long(const struct s3_object *object, int rc, struct hvd_err *err)
{
    err_set(err, rc,
            "%s/%s: the request for an upload in parts cannot be built: %s; free memory on this "
            "host, or use a server with shorter names of uploads",
            object->base.storage->where, object->base.name, err_text(rc));
}

/* Sends the gathered bytes as the next part of an upload. The first part begins the upload: the
 * server gives it a name. */
static int s3_send_part(struct s3_object *object, struct hvd_err *err)
{
    const char *where = object->base.storage->where, *name = object->base.name;
    struct s3 *s3 = s3_storage_of(object->base.storage)->s3;
    const struct s3_request begin = {
        .method = HTTP_POST, .doing = "cannot begin to write it", .key = name, .query = "uploads="
    };
    struct s3_request put = { .method = HTTP_PUT,
                              .doing = "cannot write it",
                              .key = name,
                              .body = object->part,
                              .length = object->used };
    struct s3_answer answer;
    struct span text;
    struct buf query;
    int rc = 0;

    if (!*object->upload) {
        rc = s3_call(s3, &begin, &answer, err);
        if (rc)
            return rc;
        if (!s3_text_find(s3_answer_text(s3), "UploadId", S3_DEPTH_PART, &text) || !text.length ||
            !s3_text_decode(text, object->upload, sizeof(object->upload))) {
            object->upload[0] = '\0';
            return err_set(
                err, HVD_E_PROTO,
                "%s/%s: the answer of the server has no name for the upload in parts; use "
                "another server",
                where, name);
        }
        rc = buf_append_text(&object->parts_text, "<CompleteMultipartUpload>");
    }
    buf_init(&query, S3_QUERY_MAX);
    rc = rc ? rc : buf_printf(&query, "partNumber=%u&uploadId=", object->parts + 1);
    rc = rc ? rc : s3_encode(&query, object->upload, false /* encode slashes, too */);
    if (rc)
        s3_too_long(object, rc, err);
    put.query = buf_text(&query);
    if (!rc)
        rc = s3_call(s3, &put, &answer, err);
    if (!rc && (rc = buf_printf(&object->parts_text,
                                "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                                ++object->parts, answer.etag)) != 0)
        s3_too_long(object, rc, err);
    buf_release(&query);
    object->used = 0;
    return rc;
}

/* Gathers the next bytes of the object, and sends a part whenever it is full and more bytes
 * follow. */
static int s3_storage_write(struct checkpoint_object *base, const void *at, size_t bytes,
                            struct hvd_err *err)
{
    struct s3_object *object = CONTAINER_OF(base, struct s3_object, base);
    const char *next = at;

    while (bytes > 0) {
        size_t now;

        if (object->used == object->room) {
            int rc = object->room < base->bytes ? s3_send_part(object, err) : 0;

            if (rc || object->used)
                return rc; /* rc is 0: the caller writes more than it announced: see storage.c */
        }
        now = object->room - object->used;
        now = bytes < now ? bytes : now;
        if (!now)
            return 0;
        memcpy(object->part + object->used, next, now);
        object->used += now;
        next += now;
        bytes -= now;
    }
    return 0;
}

/* Ends an upload without an object, by one request. If the request fails, the parts stay in the
 * bucket until the folder of the checkpoint is removed (s3_remove_uploads). */
static void s3_abort_parts(struct s3 *s3, const char *name, const char *upload)
{
    struct s3_request abort = {
        .method = HTTP_DELETE, .doing = "cannot remove it", .key = name, .once = true
    };
    struct s3_answer answer;
    struct buf query;

    buf_init(&query, S3_QUERY_MAX);
    if (!buf_append_text(&query, "uploadId=") &&
        !s3_encode(&query, upload, false /* encode slashes, too */)) {
        abort.query = buf_text(&query);
        (void)!s3_call(s3, &abort, &answer, NULL);
    }
    buf_release(&query);
}

/* Frees an object that is not to get its name, and ends its upload. */
static void s3_storage_abandon(struct checkpoint_object *base)
{
    struct s3_object *object = CONTAINER_OF(base, struct s3_object, base);

    if (*object->upload)
        s3_abort_parts(s3_storage_of(base->storage)->s3, base->name, object->upload);
    buf_release(&object->parts_text);
    mem_free(object->part);
    mem_free(object);
}

/* Gives the size of an object: a request for its first byte has the size in its answer. */
static int s3_storage_size(struct checkpoint_store *base, const char *name, uint64_t *ret_bytes,
                           struct hvd_err *err)
{
    char first;
    const struct s3_request get = { .doing = "cannot read its size",
                                    .key = name,
                                    .headers = { "Range: bytes=0-0" },
                                    .into = &first,
                                    .room = 1 };
    struct s3_answer answer;
    int rc = s3_call(s3_storage_of(base)->s3, &get, &answer, err);

    /* An object of 0 bytes has no first byte, so the server answers 416. */
    if (rc && answer.status != 416)
        return rc;
    if (!rc && !answer.has_total)
        return err_set(
            err, HVD_E_PROTO,
            "%s/%s: the server does not report the size of this object; use another server",
            base->where, name);
    *ret_bytes = rc ? 0 : answer.total;
    return 0;
}

/* Ends the upload of all parts: the object now has its name. If the answer to this request was lost
 * and the request is repeated, the server no longer knows the upload, but the object exists. */
static int s3_end_parts(struct s3_object *object, struct hvd_err *err)
{
    struct s3_storage *storage = s3_storage_of(object->base.storage);
    struct s3_request end = { .method = HTTP_POST,
                              .doing = "cannot end the writing",
                              .key = object->base.name,
                              .headers = { "Content-Type: application/xml" } };
    struct s3_answer answer;
    uint64_t bytes = 0;
    struct buf query;
    int rc = buf_append_text(&object->parts_text, "</CompleteMultipartUpload>");

    buf_init(&query, S3_QUERY_MAX);
    if (!rc)
        rc = buf_append_text(&query, "uploadId=");
    if (!rc)
        rc = s3_encode(&query, object->upload, false /* encode slashes, too */);
    end.query = buf_text(&query);
    end.body = buf_text(&object->parts_text);
    end.length = object->parts_text.length;
    if (!rc)
        rc = s3_call(storage->s3, &end, &answer, err);
    else
        s3_too_long(object, rc, err);
    if (rc == HVD_E_NOTFOUND && !s3_storage_size(&storage->base, object->base.name, &bytes, NULL) &&
        bytes == object->base.bytes)
        rc = 0;
    if (!rc || rc == HVD_E_NOTFOUND)
        object->upload[0] = '\0';
    buf_release(&query);
    return rc;
}

static int s3_get(struct s3_storage *storage, const char *name, uint64_t offset, void *at,
                  size_t room, size_t *ret_bytes, struct hvd_err *err);

/* Judges the answer to a put with If-None-Match ("only if there is no such object"). If the object
 * exists with the same bytes, this writer has made it: the answer to its put was lost, and the put
 * was repeated. HVD_E_UNSUPPORTED: the server refuses the header, as servers from before 2024
 * do. */
static int s3_judge_new(struct s3_object *object, const struct s3_answer *answer, int code,
                        struct hvd_err *err)
{
    struct s3_storage *storage = s3_storage_of(object->base.storage);
    size_t got = 0;
    char *back;
    bool own;

    if (answer->status == 501 || (answer->status == 400 && code == HVD_E_IO))
        return HVD_E_UNSUPPORTED;
    if (code != HVD_E_EXISTS && answer->status != 304)
        return code;
    back = mem_alloc(object->room + 1);
    own = back && !s3_get(storage, object->base.name, 0, back, object->room + 1, &got, NULL) &&
          got == object->used && !memcmp(back, object->part, got);
    mem_free(back);
    return own ? 0
               : err_set(err, HVD_E_EXISTS,
                         "%s/%s: another writer has completed this checkpoint; give each job a "
                         "prefix of its own",
                         storage->base.where, object->base.name);
}

/* Gives the object its name. Without an upload one put sends all bytes, if wanted only if there is
 * no such object (`only_new`); with an upload the last part is sent, and the upload ends. */
static int s3_storage_finish(struct checkpoint_object *base, struct hvd_err *err)
{
    struct s3_object *object = CONTAINER_OF(base, struct s3_object, base);
    struct s3_storage *storage = s3_storage_of(base->storage);
    struct s3_request put = { .method = HTTP_PUT,
                              .doing = "cannot write it",
                              .key = base->name,
                              .body = object->part,
                              .length = object->used };
    bool only_new = base->only_new && !storage->unconditional && !*object->upload;
    struct s3_answer answer;
    int rc = 0;

    if (only_new) {
        put.headers[0] = "If-None-Match: *";
        rc = s3_judge_new(object, &answer, s3_call(storage->s3, &put, &answer, err), err);
        put.headers[0] = NULL;
    }
    /* without If-None-Match, or again without it because the server refuses that header */
    if (only_new ? rc == HVD_E_UNSUPPORTED : !*object->upload) {
        rc = s3_call(storage->s3, &put, &answer, err);
        storage->unconditional = storage->unconditional || (only_new && !rc);
        if (only_new && !rc)
            log_warning(STATE,
                        "%s: the server refuses conditional writes (If-None-Match), so two jobs "
                        "with this prefix may both complete one checkpoint; give each job a prefix "
                        "of its own",
                        storage->base.where);
    } else if (*object->upload && object->used) {
        rc = s3_send_part(object, err);
    }
    if (!rc && *object->upload)
        rc = s3_end_parts(object, err);
    s3_storage_abandon(base);
    return rc;
}

/* ---- reading an object
 * ------------------------------------------------------------------------- */

/* Gets at most `room` bytes of an object from this offset; fewer at the end of the object. */
static int s3_get(struct s3_storage *storage, const char *name, uint64_t offset, void *at,
                  size_t room, size_t *ret_bytes, struct hvd_err *err)
{
    char range[80];
    const struct s3_request get = {
        .doing = "cannot read it", .key = name, .headers = { range }, .into = at, .room = room
    };
    struct s3_answer answer;
    int rc;

    snprintf(range, sizeof(range), "Range: bytes=%" PRIu64 "-%" PRIu64, offset, offset + room - 1);
    rc = s3_call(storage->s3, &get, &answer, err);
    if (!rc && answer.status != 206 && offset > 0)
        rc =
            err_set(err, HVD_E_PROTO,
                    "%s/%s: the server sends the whole object instead of the bytes of a range; use "
                    "another server",
                    storage->base.where, name);
    *ret_bytes = answer.taken;
    return rc == HVD_E_CORRUPT && answer.status == 416 ? 0 : rc;
}

/* true: these bytes of the object were read ahead. */
static bool s3_has_ahead(const struct s3_storage *storage, const char *name, uint64_t offset,
                         size_t bytes)
{
    return !strcmp(storage->ahead_name, name) && offset >= storage->ahead_at &&
           offset + bytes <= storage->ahead_at + storage->ahead_bytes;
}

/* Reads bytes of an object. If the read begins at the end of the last read, a whole part is read
 * ahead, because each request costs a round trip. */
static int s3_storage_read(struct checkpoint_store *base, const char *name, uint64_t offset,
                           void *at, size_t bytes, struct hvd_err *err)
{
    struct s3_storage *storage = s3_storage_of(base);
    size_t part = (size_t)s3_limits_of(storage->s3)->part_bytes;
    bool goes_on = offset > 0 && offset == storage->read_end &&
                   !strcmp(storage->ahead_name, name) && bytes < part;
    size_t got = 0;
    int rc = 0;

    if (!goes_on)
        storage->ahead_bytes = 0;
    if (goes_on && !s3_has_ahead(storage, name, offset, bytes)) {
        if (!storage->ahead && !(storage->ahead = mem_alloc(part)))
            return err_set(err, HVD_E_NOMEM,
                           "%s/%s: no memory to read a part ahead; free memory on this host",
                           base->where, name);
        storage->ahead_bytes = 0;
        rc = s3_get(storage, name, offset, storage->ahead, part, &got, err);
        storage->ahead_at = offset;
        storage->ahead_bytes = rc ? 0 : got;
    }
    if (!rc && goes_on && s3_has_ahead(storage, name, offset, bytes)) {
        memcpy(at, storage->ahead + (offset - storage->ahead_at), bytes);
        got = bytes;
    } else if (!rc && bytes > 0) {
        rc = s3_get(storage, name, offset, at, bytes, &got, err);
    }
    if (!rc && got < bytes)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s/%s: the object ends at byte %" PRIu64
                     ", %zu bytes too early; use another checkpoint",
                     base->where, name, offset + got, bytes - got);
    if (rc)
        return rc;
    memcpy(storage->ahead_name, name, strlen(name) + 1);
    storage->read_end = offset + bytes;
    return 0;
}

/* ---- listing and removing objects
 * -------------------------------------------------------------- */

/* Calls `visit` with each name of one page of a list, without its first `skip` bytes. S3 lists
 * objects as Key, and folders as Prefix with a slash at the end. */
static int s3_visit_page(const struct s3_storage *storage, size_t skip,
                         checkpoint_store_visit_fn *visit, void *arg)
{
    struct s3_reader reader = { .rest = s3_answer_text(storage->s3) };
    struct s3_element element;
    char name[S3_KEY_MAX + 1];
    int rc = 0;

    while (!rc && s3_text_next(&reader, &element)) {
        size_t length;

        if (element.depth != S3_DEPTH_ITEM ||
            (!span_is(element.name, "Key") && !span_is(element.name, "Prefix")) ||
            !s3_text_decode(element.text, name, sizeof(name)))
            continue;
        length = strlen(name);
        if (length <= skip)
            continue;
        if (name[length - 1] == '/')
            name[length - 1] = '\0';
        rc = visit(arg, name + skip);
    }
    return rc;
}

/* Lists what lies directly in a folder, page by page, and calls `visit` for each name. */
static int s3_storage_list(struct checkpoint_store *base, const char *folder,
                           checkpoint_store_visit_fn *visit, void *arg, struct hvd_err *err)
{
    struct s3_storage *storage = s3_storage_of(base);
    const struct s3_address *address = s3_address_of(storage->s3);
    size_t skip = strlen(address->prefix) + strlen(folder) + (*folder != '\0');
    struct s3_request get = { .doing = "cannot list it" };
    char token[S3_PAGE_TOKEN_MAX] = "";
    struct span next = { "", 0 };
    struct s3_answer answer;
    struct buf query;
    int rc;

    buf_init(&query, S3_QUERY_MAX);
    do {
        /* The signature requires that the parameters of a query are sorted by name. */
        buf_clear(&query);
        rc = s3_text_decode(next, token, sizeof(token)) ? 0 : HVD_E_PROTO;
        if (!rc && *token)
            rc = buf_append_text(&query, "continuation-token=");
        rc = rc ? rc : s3_encode(&query, token, false /* encode slashes, too */);
        rc = rc ? rc : buf_append_text(&query, *token ? "&" : "");
        rc = rc ? rc : buf_append_text(&query, "delimiter=%2F&list-type=2&prefix=");
        rc = rc ? rc : s3_encode(&query, address->prefix, false /* encode slashes, too */);
        rc = rc ? rc : s3_encode(&query, folder, false /* encode slashes, too */);
        rc = rc ? rc : buf_append_text(&query, *folder ? "%2F" : "");
        if (rc) {
            rc = err_set(err, rc,
                         "%s: cannot list it: the request cannot be built: %s; free memory on this "
                         "host, or use a server with shorter tokens",
                         base->where, err_text(rc));
            break;
        }
        get.query = buf_text(&query);
        rc = s3_call(storage->s3, &get, &answer, err);
        if (!rc)
            rc = s3_visit_page(storage, skip, visit, arg);
    } while (
        !rc &&
        s3_text_find(s3_answer_text(storage->s3), "NextContinuationToken", S3_DEPTH_PART, &next) &&
        next.length > 0);
    buf_release(&query);
    return rc;
}

struct s3_names VEC(char *);

/* Visits a name of a list: keeps a copy. */
static int s3_note_name(void *arg, const char *name)
{
    struct s3_names *names = arg;
    int rc = VEC_RESERVE(names, 1, 2 * LIMIT_CHECKPOINT_FILES);

    if (!rc && !(names->items[names->count] = mem_strdup(name)))
        rc = HVD_E_NOMEM;
    names->count += rc == 0;
    return rc;
}

/* Removes one object. A missing object is no error. */
static int s3_remove_object(struct s3_storage *storage, const char *name, struct hvd_err *err)
{
    const struct s3_request remove = { .method = HTTP_DELETE,
                                       .doing = "cannot remove it",
                                       .key = name };
    struct s3_answer answer;
    int rc = s3_call(storage->s3, &remove, &answer, err);

    return rc == HVD_E_NOTFOUND ? 0 : rc;
}

/* Ends the uploads in a folder that writers have left when they died, because the parts of an
 * upload cost as much as objects. If the server cannot list uploads, they stay, which is no
 * error. */
static void s3_remove_uploads(struct s3_storage *storage, const char *folder)
{
    const struct s3_address *address = s3_address_of(storage->s3);
    struct s3_request get = { .doing = "cannot list it" };
    size_t skip = strlen(address->prefix);
    char key[S3_KEY_MAX + 1] = "", upload[S3_UPLOAD_MAX] = "";
    struct s3_reader reader;
    struct s3_element element;
    struct s3_answer answer;
    struct buf query, page;

    buf_init(&query, S3_QUERY_MAX);
    buf_init(&page, S3_ANSWER_MAX);
    if (!buf_append_text(&query, "prefix=") &&
        !s3_encode(&query, address->prefix, false /* encode slashes, too */) &&
        !s3_encode(&query, folder, false /* encode slashes, too */) &&
        !buf_append_text(&query, "%2F&uploads=")) {
        get.query = buf_text(&query);
        if (!s3_call(storage->s3, &get, &answer, NULL))
            (void)!buf_append(&page, s3_answer_text(storage->s3).at,
                              s3_answer_text(storage->s3).length);
    }
    reader = (struct s3_reader){
        .rest = {buf_text(&page), page.length}
    };
    /* Some servers send Key before UploadId, others after it: an upload is known when both were
     * read. */
    while (s3_text_next(&reader, &element)) {
        bool whole = element.depth == S3_DEPTH_ITEM;

        if (whole && span_is(element.name, "Key"))
            whole = s3_text_decode(element.text, key, sizeof(key));
        else if (whole && span_is(element.name, "UploadId"))
            whole = s3_text_decode(element.text, upload, sizeof(upload));
        if (whole && (!*upload || strlen(key) <= skip || strncmp(key, address->prefix, skip) != 0))
            continue;
        if (whole)
            s3_abort_parts(storage->s3, key + skip, upload);
        key[0] = upload[0] = '\0';
    }
    buf_release(&page);
    buf_release(&query);
}

/* Removes an object; a name without a slash may be a folder, so the objects and uploads below that
 * name are removed, too. */
static int s3_storage_remove(struct checkpoint_store *base, const char *name, struct hvd_err *err)
{
    struct s3_storage *storage = s3_storage_of(base);
    char object[2 * LIMIT_CHECKPOINT_NAME_BYTES];
    struct s3_names names = { .count = 0 };
    int rc = s3_remove_object(storage, name, err);

    if (rc || strchr(name, '/'))
        return rc;
    rc = s3_storage_list(base, name, s3_note_name, &names, err);
    for (size_t i = 0; i < names.count; i++) {
        snprintf(object, sizeof(object), "%s/%s", name, names.items[i]);
        rc = rc ? rc : s3_remove_object(storage, object, err);
        mem_free(names.items[i]);
    }
    VEC_RELEASE(&names);
    if (!rc)
        s3_remove_uploads(storage, name);
    return rc;
}

static const struct checkpoint_store_ops s3_ops = {
    s3_storage_close, s3_storage_create, s3_storage_write, s3_storage_finish, s3_storage_abandon,
    s3_storage_size,  s3_storage_read,   s3_storage_list,  s3_storage_remove
};

/* Opens a bucket. `test` true: one request for a list shows whether the bucket can be used. */
int s3_storage_open_with(const char *where, bool test, const struct s3_limits *limits,
                         struct checkpoint_store **ret_store, struct hvd_err *err)
{
    const struct s3_request look = { .doing = "cannot list it", .query = "list-type=2&max-keys=1" };
    struct s3_storage *storage = mem_zalloc(sizeof(*storage));
    struct s3_answer answer;
    int rc;

    if (!storage)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to open the bucket; free memory on this host", where);
    storage->base.ops = &s3_ops;
    storage->base.directory = -1;
    storage->base.where = mem_strdup(where);
    if (!storage->base.where)
        rc = err_set(err, HVD_E_NOMEM, "%s: no memory to open the bucket; free memory on this host",
                     where);
    else
        rc = s3_open(where, limits, &storage->s3, err);
    if (!rc && test)
        rc = s3_call(storage->s3, &look, &answer, err);
    if (rc)
        s3_storage_close(&storage->base);
    else
        *ret_store = &storage->base;
    return rc;
}

/* Opens a bucket with the usual limits. */
int s3_storage_open(const char *where, bool test, struct checkpoint_store **ret_store,
                    struct hvd_err *err)
{
    return s3_storage_open_with(where, test, &s3_limits_default, ret_store, err);
}
