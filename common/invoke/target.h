/*
 * Targets as texts: grpc://host:port[/package.Service/Method], and dns:///…,
 * which is the same.
 *
 * Threads: any. Pure; the parts borrow from the text or the arena.
 */
#ifndef TOC_INVOKE_TARGET_H
#define TOC_INVOKE_TARGET_H

#include "common/base/arena.h"

#include <stdbool.h>

struct toc_invoke_target {
    struct toc_str address; /* host:port */
    struct toc_str method;  /* "/package.Service/Method"; empty: TOC's own */
};

/* NULL when it is one, else why not. */
const char *toc_invoke_target_parse(struct toc_str text,
                                    struct toc_invoke_target *ret_target);

#endif
