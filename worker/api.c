/* api.c: what hvd.h promises, and nothing else. */
#include "base/err.h"
#include "hvd/hvd.h"

const char *hvd_strerror(int code)
{
    return err_text(code);
}

const char *hvd_version(void)
{
    return HVD_VERSION_TEXT;
}
