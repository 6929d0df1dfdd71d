/*
 * mysql://user@host:port/db and mysql://user@/db?socket=/path, taken apart.
 * A password in it is refused: a URL ends up in process lists and logs.
 */
#ifndef TOC_STORE_MYSQL_URL_H
#define TOC_STORE_MYSQL_URL_H

#include "common/store/mysql/store_mysql_internal.h"

TOC_MUST_CHECK enum toc_status toc_my_url_parse(
    const char *url, struct toc_my_address *ret_address,
    struct toc_error *reterr);

#endif
