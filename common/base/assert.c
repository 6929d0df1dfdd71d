#include "common/base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* write(2), not the log: nothing of the process is to be trusted any more. */
void
toc_assert_fail(const char *cond, const char *file, int line)
{
    char text[512];
    int len = snprintf(text, sizeof text, "assertion failed at %s:%d: %s\n",
                       file, line, cond);

    if (len >= (int)sizeof text) {
        len = (int)sizeof text - 1;
        text[len - 1] = '\n';
    }
    if (len > 0 && write(STDERR_FILENO, text, (size_t)len) < 0)
        abort();
    abort();
}
