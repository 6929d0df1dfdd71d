/*
 * The targets that can be called: grpc://host:port for toc.v1.TimeoutHandler
 * there, or grpc://host:port/package.Service/Method for any unary method.
 *
 * Threads: any.
 */
#ifndef TOC_SCHEDULER_ACCESS_URL_H
#define TOC_SCHEDULER_ACCESS_URL_H

#include "common/base/str.h"

#include <stdbool.h>

/* NULL when it is one; else the rule that it breaks (static text). */
const char *sched_url_check(struct toc_str url, bool *ret_method);

#endif
