#include "common/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
toc_status_text(enum toc_status st)
{
    switch (st) {
#define X(name, code, retryable, text) \
    case TOC_##name:                   \
        return text;
        TOC_STATUS_MAP(X)
#undef X
    }
    return "unknown";
}

bool
toc_status_retryable(enum toc_status st)
{
    switch (st) {
#define X(name, code, retryable, text) \
    case TOC_##name:                   \
        return retryable;
        TOC_STATUS_MAP(X)
#undef X
    }
    return false;
}

/* Libraries hand out texts of several lines, or with a final newline. */
static void
make_one_line(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        text[--len] = '\0';
    for (; *text != '\0'; text++)
        if (*text == '\n' || *text == '\r')
            *text = ' ';
}

enum toc_status
toc_error_set(struct toc_error *err, enum toc_status st, const char *source,
              int native, const char *format, ...)
{
    /* Not straight into err->msg: it may be among the arguments. */
    char msg[sizeof err->msg];
    va_list args;

    if (err == NULL)
        return st;
    va_start(args, format);
    if (vsnprintf(msg, sizeof msg, format, args) < 0)
        msg[0] = '\0';
    va_end(args);
    make_one_line(msg);
    err->status = st;
    err->source = source;
    err->native = native;
    memcpy(err->msg, msg, sizeof msg);
    return st;
}
